"""Outcome: the result of a task, or how it failed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

OK, ERROR, CRASH, TIMEOUT, MEMORY = "ok", "error", "crash", "timeout", "memory"


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """The result of one task, or how it failed.

    `status` is one of ok, error, crash, timeout, memory. `value` is what the function returned (ok only). `message`
    describes a failure: the exception, or the name of the signal. `stage` is the last name given to
    `report_stage`, `error` the exception's class name, `code` its `code` attribute if it has one, `detail` a traceback
    or the last lines that the process printed. `first` is true if it was the first task of its worker.
    """

    task: Any
    status: str
    value: Any = None
    message: str = ""
    stage: str = ""
    error: str = ""
    code: str = ""
    detail: str = ""
    seconds: float = 0.0
    first: bool = True

    @property
    def ok(self) -> bool:
        """Whether the function returned."""
        return self.status == OK


class WorkerStartError(RuntimeError):
    """A worker could not import its function."""
