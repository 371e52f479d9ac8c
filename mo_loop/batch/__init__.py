"""Many models at once, each in a worker process.

==============  ================================================================================
`plan`          paths, folders, globs and lists -> which model becomes which pair of files
`fingerprint`   hashes of files and options; whether a pair is still what would be made
`state`         the file in the output folder that remembers them
`task`, `job`   what a worker is told, and what it does with one model
`run`           workers, results as they come, the end by a signal
`result`        what became of one model, and of all
`report`        the results as JSON; `junit` and `summary` as JUnit XML and Markdown
==============  ================================================================================

Nothing here imports onnx or numpy but `job`, which only workers load: a batch of which nothing has changed is over
before they would be imported.
"""
