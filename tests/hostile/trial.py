"""The trial of a hostile file in a worker: converts it, or reads it if it is IR, and writes the result."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass

from mo_loop.api import convert_model, read_model, save_model
from mo_loop.errors import MoLoopError
from mo_loop.support.process_memory import peak_memory


@dataclass(frozen=True)
class Answer:
    """The exit code and the error code, CPU seconds, and the peak memory of the process in bytes."""

    exit_code: int
    code: str
    message: str
    seconds: float
    memory: int


def attempt(task: tuple[str, str]) -> Answer:
    """Convert `task[0]` to `task[1]`. Every error that is not of this library ends the task with a traceback."""
    source, target = task
    start = time.process_time()
    exit_code, code, message = 0, "", ""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            save_model(read_model(source) if source.endswith(".xml") else convert_model(source), target)
    except MoLoopError as error:
        first = getattr(error, "errors", (error,))[0]
        exit_code, code, message = error.exit_code, first.code, str(error)
    return Answer(exit_code, code, message, time.process_time() - start, peak_memory())
