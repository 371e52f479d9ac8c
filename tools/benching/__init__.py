"""The parts of tools/bench.py: the rows with their targets, the models, the processes that are measured, and the table.

    model_writers, weight_writers    models of a kind and a size; each is written by a process of its own
    works                            what one side of a row does: a command, and the model that it needs
    bench_rows                       the rows: two works, the formula of their ratio, the target
    children                         one run of a command: wall time, CPU time, peak memory
    rounds                           runs in turns, and the ratio of each round
    function_times                   rows that time functions of the library instead of commands
    cluster_load                     the row of a cluster: CPU of its workers; plans of many models
    ratio_table                      the table, and the JSON document

The process that measures imports neither onnx nor numpy: the kernel counts the memory of the parent before `exec` as
memory of the child.
"""
