"""Converts many models, each in a worker process.

==============  ================================================================================
`plan`          paths, folders, globs and lists -> which model becomes which pair of files
`fingerprint`   hashes of files and options; whether a pair is still what would be made
`state`         the file in the output folder that stores the hashes
`task`, `job`   the task and the answer of a worker; the conversion of one model in a worker
`run`           workers, results, signals
`result`        the results of one model and of a batch
`report`        the results as JSON; `junit` and `summary` as JUnit XML and Markdown
==============  ================================================================================

Only `job`, which workers load, imports onnx and numpy: a batch in which all models are up to date does not load them.
"""
