"""How the tests run, on one page. tests/harness.py has what they are written with.

A test converts a model, runs the IR with OpenVINO in a worker process, and compares with ONNX Runtime. 24,000 rows of
parameters do so in some minutes because of three things:

1. A part of the rows. `make test` runs one part of the rows of a sweep (`@pytest.mark.sweep`) and of the functions of
   tests/runtime with more than 4 rows, and checks the graph after each pass in one of four tests. It is part 0;
   MO_LOOP_TEST_PART=N chooses another one, `--all` runs everything. (rows.py)
2. Models compiled together. In folders whose conftest.py imports the hook of rows.py, the rows of a function are one
   test; `--each-row` makes each row a test. The IR files of a test are compiled as one model at its end. If that does
   not pass, each is compiled alone. (rows.py, together.py)
3. Results of earlier runs. An IR that passed with the same inputs, libraries and processor is not compiled again. Only
   what passed is kept, in build/test-results; MO_LOOP_TEST_RESULTS= with no value runs everything. (together.py)

So a red test is red for this part, and never because of an earlier result or test: each test and row draws the same
random numbers as alone (draws.py). Its report has three things to read:

- the message: the line of the test that made the model, the row in brackets, and the tensor that differs;
- `in the row [...]`, if the row failed before its model ran;
- the section "to repeat it", a command that runs this test, or the row alone, in the same part.

An error that names a limit of the processor (ONEDNN_MAX_CPU_ISA) skips the test (processor.py). Workers stay for the
next test of the process (workers.py); `make test-times` shows where the time goes (times.py). samples.py judges one IR.
"""
