"""The trial of a hostile file in a worker: converts it, or reads it if it is IR, and writes the result."""

import warnings
from dataclasses import dataclass

from mo_loop.api import convert_model, read_model, save_model
from mo_loop.errors import MoLoopError
from mo_loop.support.process_memory import peak_memory
from tests.costs import executed_lines


@dataclass(frozen=True)
class Answer:
    """The exit code and the error code, the executed lines of Python, and the peak memory of the process in bytes."""

    exit_code: int
    code: str
    message: str
    lines: int
    memory: int


def attempt(task: tuple[str, str]) -> Answer:
    """Convert `task[0]` to `task[1]`. Every error that is not of this library ends the task with a traceback."""
    (exit_code, code, message), lines = executed_lines(lambda: _answer(*task))
    return Answer(exit_code, code, message, lines, peak_memory())


def _answer(source: str, target: str) -> tuple[int, str, str]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            save_model(read_model(source) if source.endswith(".xml") else convert_model(source), target)
    except MoLoopError as error:
        return error.exit_code, getattr(error, "errors", (error,))[0].code, str(error)
    return 0, "", ""
