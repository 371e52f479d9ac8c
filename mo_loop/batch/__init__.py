"""Converts many models, each in a worker process.

==============  ================================================================================
`plan`          paths, folders, globs and lists -> the models and the .xml and .bin files of each
`anywhere`      a plan and its outputs, at local paths or at URLs
`outputs`       the place of the .xml and .bin of a batch, and what is up to date there
`estimates`     memory and time of a conversion, from its size and an earlier result
`measuring`     time and memory of a conversion, in its worker
`fingerprint`   hashes of files and options; whether the .xml and .bin files are up to date
`declared_files`  the files that an extension names
`state`         the file in the output folder that stores the hashes
`task`, `job`   the task and the answer of a worker; the conversion of one model in a worker
`assignment`    what an engine gets and answers, and what it does with one model
`engine`        who does the work: worker processes of this machine; mo_loop/batch/cluster is another one
`run`           plan, engine, results, signals
`outcomes`      the result of a model, from the answer of its worker
`result`        the results of one model and of a batch
`report`        the results as JSON; `junit` and `markdown` as JUnit XML and Markdown
`remote_...`    the plan, outputs, job and stamps of models or outputs at URLs; `state_records` their state
==============  ================================================================================

Only `job`, which workers load, imports onnx and numpy: a batch in which all models are up to date does not load them.
"""
