"""A batch on a cluster of Dask: `mo-loop batch --scheduler ADDRESS`.

==============  ================================================================================
`connecting`    a client of a scheduler, or of a cluster on this machine; versions and folders that all of them have
`requirements`  what a worker has to have, checked on the worker; extension files and inputs, sent to the workers
`on_worker`     what a Dask worker has and does: a pool of worker processes, one model at a time
`dask_engine`   the engine: submits models, largest first, a bounded number at once
`scheduling`    the models that are submitted together; workers that come and go, and their memory
==============  ================================================================================

This package alone imports dask and distributed, and it is imported only for --scheduler. A model is converted in a
worker process of `mo_loop.support.workers`, a child of the Dask worker: a crash, a hang or too much memory ends the
child.
"""
