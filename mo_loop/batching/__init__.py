"""Converts many models, each in a worker process.

================  ================================================================================
`batch_options`   what a user can set, for the command and from Python; the files that a batch reads and writes
`plan`            paths, folders, globs, lists, and URLs of the same -> the models, and the .xml and .bin files of each
`outputs`         the .xml and .bin of a batch, and what is up to date: in a folder a file of entries, and drafts
`url_state`       the same of outputs at a URL: listings, and an object for each model
`fingerprint`     hashes of files and options; whether the .xml and .bin files are up to date
`estimates`       memory and time of a conversion, from its size and an earlier result, and measured in its worker
`engine`          what workers and engines get and answer; who does the work: worker processes of this machine;
                  mo_loop/batching/cluster is another one
`job`             the conversion of one model in a worker
`run`             what a batch needs before its first conversion; plan, engine, results, signals
`result`          the results of one model and of a batch; from what an .xml and .bin were made, as JSON
`report`          the results as JSON, JUnit XML and Markdown
================  ================================================================================

Only `job`, which workers load, imports onnx and numpy: a batch in which all models are up to date does not load them.
The modules for URLs are loaded only if there is one.
"""
