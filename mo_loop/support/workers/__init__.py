"""Persistent worker processes that run native code which may crash or hang.

    with Pool("package.module:function", jobs=2, limit=30) as pool:
        for outcome in pool.map(tasks):
            print(outcome.task, outcome.status, outcome.value or outcome.message)

`function(task)` runs in a new interpreter, which also runs later tasks. A worker that crashes, exceeds the time limit
or runs out of memory is replaced, and its task ends as `crash`, `timeout` or `memory`. A task whose function raises
another exception ends as `error`.

A worker leads its own process group: Ctrl-C at a terminal reaches only the parent, and processes that a task starts
end with the worker.

Parent and worker exchange pickles. They use private copies of the worker's standard streams; the output of native code
goes to a log, and the message of a crash contains its last lines. A worker ends when its input stream ends, so it never
outlives its parent. A thread watches the stream while a task runs. If native code holds the interpreter lock forever, a
timer of `faulthandler`, which needs no lock, ends the process.

Workers of pebble and loky outlive a killed parent while a task runs, and so does what a task has started. pebble
imports the script of the caller, and loky has no limit of time and loses all tasks with one crash.
"""

from mo_loop.support.workers.pool import Pool
from mo_loop.support.workers.serve import report_stage
from mo_loop.support.workers.worker import CRASH, ERROR, MEMORY, OK, TIMEOUT, TaskOutcome, WorkerStartError

__all__ = ["CRASH", "ERROR", "MEMORY", "OK", "TIMEOUT", "Pool", "TaskOutcome", "WorkerStartError", "report_stage"]
