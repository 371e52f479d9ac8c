"""Converts many models, each in a worker process.

==============  ================================================================================
`plan`          paths, folders, globs and lists -> the models and the .xml and .bin files of each
`fingerprint`   hashes of files and options; whether the .xml and .bin files are up to date
`state`         the file in the output folder that stores the hashes
`task`, `job`   the task and the answer of a worker; the conversion of one model in a worker
`run`           workers, results, signals
`result`        the results of one model and of a batch
`report`        the results as JSON; `junit` and `markdown` as JUnit XML and Markdown
==============  ================================================================================

Only `job`, which workers load, imports onnx and numpy: a batch in which all models are up to date does not load them.
"""
