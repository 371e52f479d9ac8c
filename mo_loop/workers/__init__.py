"""Persistent worker processes that run native code which may crash or hang.

    with Pool("package.module:function", jobs=2, limit=30) as pool:
        for outcome in pool.map(tasks):
            print(outcome.task, outcome.status, outcome.value or outcome.message)

`function(task)` runs in a fresh interpreter that is kept for the next task. A worker that dies, that exceeds the time
limit or that runs out of memory is replaced, and its task ends as `crash`, `timeout` or `memory`; another exception in
the function ends as `error`.

A worker leads a process group of its own: Ctrl-C at a terminal reaches the parent alone, and what a task has started
ends with its worker.

Frames are a length and a pickle. They travel on private copies of the worker's standard streams; what native code
prints goes to a log of which the last lines are put into the message of a crash. A worker ends at the end of its input
stream, so it never outlives its parent: a reader thread watches the stream while a task runs, and should native code
hold the interpreter lock forever, a timer of `faulthandler`, which needs no lock, ends the process.
"""

from mo_loop.workers.outcome import CRASH, ERROR, MEMORY, OK, TIMEOUT, Outcome, WorkerStartError
from mo_loop.workers.pool import Pool
from mo_loop.workers.serve import report_stage

__all__ = ["CRASH", "ERROR", "MEMORY", "OK", "TIMEOUT", "Outcome", "Pool", "WorkerStartError", "report_stage"]
