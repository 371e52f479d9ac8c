"""Converts one model with both converters, runs both IRs in turn, and takes the times.

`measure` takes a `Task` and returns a `Row`. It runs in a worker process, which may crash; `report_stage` names the
converter that runs.
"""

import math
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mo_loop.errors import UnsupportedError
from mo_loop.support.workers import report_stage
from tests import MODELS
from tests.models.sources.exporting.inputs import read_cases
from tools.measuring import CONVERTERS, OURS, PEER

LEAST = 2e-3
"""The least seconds of one measurement: the inference is repeated to reach it."""


@dataclass(frozen=True)
class Task:
    """A model, its inputs, and the number of rounds."""

    name: str
    model: bytes
    feeds: Mapping[str, Any]
    rounds: int


@dataclass
class Row:
    """The result of one model. `ratio` is our time divided by ovc's; `spread` is the part of it that may be noise."""

    name: str
    problem: str = ""
    ours: float = 0.0
    peer: float = 0.0
    ratio: float = 0.0
    spread: float = 0.0
    missed: str = ""


def exported(wanted: Sequence[str] = ()) -> Iterator[tuple[str, Path, Mapping[str, Any]]]:
    """The exported models whose names contain one of `wanted`, all if it is empty: the name, the file, the largest
    inputs."""
    for listed in sorted(MODELS.glob("*/cases.toml")):
        for name, model in sorted(read_cases(listed).items()):
            full = f"{listed.parent.name}/{name}"
            if not wanted or any(each in full for each in wanted):
                yield full, listed.with_name(f"{name}.onnx"), model.largest


def measure(task: Task) -> Row:
    """Convert with both, compile each twice, compare the numbers, and time the four in turn."""
    from mo_loop.compare.results.array_comparison import compare_all

    row = Row(task.name)
    compiled: dict[str, list[Any]] = {}
    results = {}
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "model.onnx")
        source.write_bytes(task.model)
        for side in (OURS, PEER):
            report_stage(side)
            try:
                compiled[side] = _compiled_twice(side, source)
                results[side], _ = (each.run(task.feeds) for each in compiled[side])
            except Exception as error:
                refuses = " refuses" if getattr(error, "exit_code", 0) == UnsupportedError.exit_code else ""
                row.problem = f"{side}{refuses}: {_first_line(error)}"
                return row
    if not all(compare_all(results[OURS], results[PEER], rtol=1e-3, atol=1e-4)):
        row.problem = f"{PEER}: other numbers than {OURS}"
        return row
    report_stage("timing")
    times = timed([*compiled[OURS], *compiled[PEER]], task.rounds)
    row.ours, row.peer, row.ratio, spreads = pair_ratio(times)
    row.spread = max(spreads)
    return row


def alternated(first: Path, second: Path, feeds: Mapping[str, Any], rounds: int) -> float | None:
    """The shortest time of one IR divided by that of another one, compiled twice each and run in turn; None if the
    second one does not run, or gives other numbers than the first."""
    from mo_loop.compare.execution.runtime import ONE_THREAD, compile_ir
    from mo_loop.compare.results.array_comparison import compare_all

    ours = [compile_ir(first, ONE_THREAD), compile_ir(first, ONE_THREAD)]
    _, results = (each.run(feeds) for each in ours)
    try:
        others = [compile_ir(second, ONE_THREAD), compile_ir(second, ONE_THREAD)]
        if not all(all(compare_all(results, each.run(feeds), rtol=1e-3, atol=1e-4)) for each in others):
            return None
    except RuntimeError:
        return None
    a, b, c, d = timed([*ours, *others], rounds)
    return min(*a, *b) / min(*c, *d)  # what else the machine does can only add time


def _compiled_twice(side: str, source: Path) -> list[Any]:
    from mo_loop.compare.execution.runtime import ONE_THREAD, compile_ir

    target = source.with_name(f"{side}.xml")
    CONVERTERS[side](source, target)
    return [compile_ir(target, ONE_THREAD), compile_ir(target, ONE_THREAD)]


def timed(
    compiled: Sequence[Any], rounds: int, least: int = 0, seconds: float = math.inf,
    clock: Callable[[], float] = time.perf_counter,
) -> list[list[float]]:
    """Seconds of one inference, for each of `compiled` one number per round; the first one changes with the round.

    After `seconds`, rounds end as soon as there are `least` of them, which take no longer with several inferences each.
    """
    times: list[list[float]] = [[] for _ in compiled]
    once = [min(_once(each, 1, clock), _once(each, 1, clock)) for each in compiled]
    repeats = max(1, math.ceil(min(LEAST / min(once), seconds / max(least, 1) / sum(once))))
    end = time.perf_counter() + seconds
    for number in range(rounds):
        if number >= least and time.perf_counter() > end:
            break
        for step in range(len(compiled)):
            place = (number + (step if number % 2 else -step)) % len(compiled)
            times[place].append(_once(compiled[place], repeats, clock))
    return times


def pair_ratio(times: Sequence[Sequence[float]]) -> tuple[float, float, float, tuple[float, float]]:
    """Of the times of two compiled models of one side and two of another: the seconds of both sides, their ratio, and
    for each side the difference between its two."""
    rounds = list(zip(*times, strict=True))
    first = statistics.median(a + b for a, b, _, _ in rounds) / 2
    second = statistics.median(c + d for _, _, c, d in rounds) / 2
    ratio = statistics.median((a + b) / (c + d) for a, b, c, d in rounds)
    return first, second, ratio, (_apart(times[0], times[1]), _apart(times[2], times[3]))


def quick_ratio(times: Sequence[Sequence[float]]) -> tuple[float, float, float, tuple[float, float]]:
    """The same as `pair_ratio`, of the quickest tenth of rounds: other processes slow down most rounds of inferences
    that take long."""
    a, b, c, d = (statistics.mean(sorted(each)[: max(1, len(each) // 10)]) for each in times)
    return (a + b) / 2, (c + d) / 2, (a + b) / (c + d), (max(a, b) / min(a, b) - 1, max(c, d) / min(c, d) - 1)


def _apart(first: Sequence[float], second: Sequence[float]) -> float:
    """How much the slower of two exceeds the faster."""
    ratio = statistics.median(x / y for x, y in zip(first, second, strict=True))
    return max(ratio, 1 / ratio) - 1


def _once(compiled: Any, repeats: int, clock: Callable[[], float]) -> float:
    start = clock()
    for _ in range(repeats):
        compiled.again()
    return (clock() - start) / repeats


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:120]
