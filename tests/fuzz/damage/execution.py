"""Executions of damaged files: what the conversion or the reading of each gave. Runs in a worker process."""

import signal
import tempfile
import traceback
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from mo_loop.support.workers import report_stage

LIMIT = 20
"""Seconds of the processor for one execution; other processes may be busy, too."""

_OWN = ("mo_loop", "transforms")
_ROOT = str(Path(__file__).resolve().parents[3])


class Overdue(BaseException):
    """Raised in an execution that takes too long."""


@dataclass(frozen=True)
class Task:
    """Executions number `first` to `first + count - 1` of a seed, of files of one kind."""

    kind: str
    seed: int
    first: int
    count: int


@dataclass(frozen=True)
class Failure:
    """An execution that ended in an error that is a bug. `place` is the innermost line of this project."""

    number: int
    source: str
    place: str
    text: str
    trace: str = ""


@dataclass
class Found:
    """The counts of the executions of one task: how many were accepted, how many were refused with each code."""

    accepted: int = 0
    refused: dict[str, int] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)


def execute(task: Task) -> Found:
    """Run the executions of a task. The stage is the number of the one that runs."""
    found = Found()
    signal.signal(signal.SIGPROF, _end)
    for number in range(task.first, task.first + task.count):
        report_stage(str(number))
        signal.setitimer(signal.ITIMER_PROF, LIMIT)
        execute_one(task.kind, task.seed, number, found)
        signal.setitimer(signal.ITIMER_PROF, 0)
    return found


def _end(*_: object) -> None:
    raise Overdue(f"no end within {LIMIT} s")


def execute_one(kind: str, seed: int, number: int, found: Found) -> None:
    """One execution, counted in `found`."""
    from mo_loop.errors import MoLoopError

    source, damaged = KINDS[kind].damaged(seed, number)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            KINDS[kind].use(damaged)
    except MoLoopError as error:
        if error.exit_code == 4:
            found.failures.append(_failure(number, source, error))
        else:
            found.refused[error.code] = found.refused.get(error.code, 0) + 1
    except (Exception, Overdue) as error:
        found.failures.append(_failure(number, source, error))
    else:
        found.accepted += 1


class Kind(Protocol):
    """Files of one kind: how they are damaged, and what is done with each."""

    def damaged(self, seed: int, number: int) -> tuple[str, Any]:
        """The name of the source, and the damaged file of a number."""

    def use(self, damaged: Any) -> None:
        """Convert or read a file. Every error but those with a code of a refusal is a bug."""

    def write(self, damaged: Any, path: Path) -> None:
        """Write a file to `path`, and the files that belong to it next to it."""


class Onnx:
    """ONNX models, which are converted and written as IR."""

    def damaged(self, seed: int, number: int) -> tuple[str, bytes]:
        from tests.fuzz.damage.damaging import damaged

        return damaged(seed, number)

    def use(self, damaged: bytes) -> None:
        from mo_loop.api import convert_model, save_model

        model = convert_model(damaged)
        with tempfile.TemporaryDirectory() as folder:
            save_model(model, Path(folder, "model.xml"))

    def write(self, damaged: bytes, path: Path) -> None:
        path.write_bytes(damaged)


class Checked(Onnx):
    """ONNX models whose contents `mo-loop check` and `mo-loop inspect` list."""

    def use(self, damaged: bytes) -> None:
        from mo_loop.errors import InternalError
        from mo_loop.look.diagnostics.examine import examine
        from mo_loop.look.inspection.read import inspect

        report = examine(damaged)
        bugs = [each for each in report.diagnostics if each.code.startswith("ML4")]
        if bugs:
            raise InternalError(report.trouble[-300:] or bugs[0].message)
        inspect(damaged)


class Ir:
    """Pairs of an .xml and a .bin, which are read (tests/fuzz/ir_damage)."""

    def damaged(self, seed: int, number: int) -> tuple[str, Any]:
        from tests.fuzz.ir_damage.ir_damaging import damaged_pair

        return damaged_pair(seed, number)

    def use(self, damaged: Any) -> None:
        from tests.fuzz.ir_damage.reading import use

        use(damaged)

    def write(self, damaged: Any, path: Path) -> None:
        damaged.write(path)


KINDS: dict[str, Kind] = {"onnx": Onnx(), "check": Checked(), "ir": Ir()}


def _failure(number: int, source: str, error: BaseException) -> Failure:
    cause: Any = _internal(error)
    while cause.__cause__ is not None:
        cause = cause.__cause__
    own = [each for each in traceback.extract_tb(cause.__traceback__) if each.filename.startswith(_ROOT)]
    own = [each for each in own if Path(each.filename).relative_to(_ROOT).parts[0] in _OWN] or own
    place = f"{Path(own[-1].filename).relative_to(_ROOT)}:{own[-1].lineno} {own[-1].name}" if own else "?"
    trace = "".join(traceback.format_exception(cause)[-8:])
    return Failure(number, source, place, f"{type(cause).__name__}: {cause}"[:300], trace)


def _internal(error: BaseException) -> BaseException:
    """The error itself, or the one of several that is a bug."""
    several = getattr(error, "errors", ())
    return next((each for each in several if each.exit_code == 4), error)
