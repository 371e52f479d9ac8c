"""What became of a task."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

OK, ERROR, CRASH, TIMEOUT, MEMORY = "ok", "error", "crash", "timeout", "memory"


@dataclass(frozen=True)
class Outcome:
    """What became of one task.

    `status` is one of ok, error, crash, timeout, memory. `value` is what the function returned (ok only). `message`
    says what happened otherwise: the exception, or the signal by name. `stage` is the last name given to
    `report_stage`, `error` the exception's class name, `code` its `code` attribute if it has one, `detail` a traceback
    or the end of what the process printed. `first` says that the worker had done nothing before.
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
    """A worker could not import the function it should run."""
