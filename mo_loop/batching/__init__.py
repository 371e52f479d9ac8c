"""Converts many models, each in a worker process.

==============  ================================================================================
`batch_options`  what a user can set, for the command and from Python
`prepared`      what a batch needs before its first conversion, from the command and from Python
`finding`       paths, folders, globs, lists, and URLs of the same -> a plan
`plan`          the models, and the .xml and .bin files of each
`outputs`       the .xml and .bin of a batch, in a folder or at a URL, and what is up to date there
`folder_state`  what is known of the outputs in a folder: a file of entries, and drafts
`url_state`     the same of outputs at a URL: listings, and the objects of `url_records`
`entries`       from what an .xml and .bin were made, as JSON
`estimates`     memory and time of a conversion, from its size and an earlier result
`measuring`     time and memory of a conversion, in its worker
`fingerprint`   hashes of files and options; whether the .xml and .bin files are up to date
`declared_files`  the files that an extension names
`task`, `job`   the task and the answer of a worker; the conversion of one model in a worker
`assignment`    what an engine gets and answers, and what it does with one model
`engine`        who does the work: worker processes of this machine; mo_loop/batching/cluster is another one
`run`           plan, engine, results, signals
`outcomes`      the result of a model, from the answer of its worker
`result`        the results of one model and of a batch
`report`        the results as JSON; `junit` and `markdown` as JUnit XML and Markdown
==============  ================================================================================

Only `job`, which workers load, imports onnx and numpy: a batch in which all models are up to date does not load them.
The modules for URLs are loaded only if there is one.
"""
