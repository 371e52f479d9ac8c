"""A batch on a cluster of Dask: `mo-loop batch --scheduler ADDRESS`.

==============  ================================================================================
`connecting`    a client of a scheduler, or of a cluster on this machine; its errors, its log
`agreement`     the versions on scheduler and workers, and the folder that all of them see
`requirements`  what a worker has to have, checked on the worker; the answer of one that lacks it
`sent_files`    extension files and inputs, sent to the workers
`on_worker`     what a Dask worker has and does: a pool of worker processes, one model at a time
`dask_engine`   the engine: submits models, largest first, a bounded number at once
`portions`      the models that are submitted together
`watching`      workers that come and go while a batch runs, and their memory
==============  ================================================================================

This package alone imports dask and distributed, and it is imported only for --scheduler. A model is converted in a
worker process of `mo_loop.support.workers`, a child of the Dask worker: a crash, a hang or too much memory ends the
child.
"""
