"""The targets of networks of real size, and the table of what was measured.

Ratios are ours divided by ovc's. A time may exceed its target by its spread, the difference between two compiled models
of the same IR: this part may be noise.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tests.models.sources.real_models.rows import FLOAT, LOOPS, QUANTISED
from tools.measuring import OURS, PEER

if TYPE_CHECKING:
    from tools.real.pairs import Task

MEANS = {FLOAT: 1.00, QUANTISED: 1.00, LOOPS: 0.60}
EACH = 1.05
"""Of every time, and of the memory of quantised rows."""
BIN = 1.01
"""Of the bytes of the .bin."""
FASTER = {"resnet50": 3.0, "mobilenet_v2": 1.5}
"""How much faster than in f32 a model must be in integers, for each static variant."""
STATIC = ("qdq_", "qoperator_")
DIFFERENCES = {FLOAT: 1e-3, QUANTISED: 0.05, LOOPS: 1e-3}
"""The part of the largest output by which a result may differ from ONNX Runtime's, unless ovc's differs as much."""
HALF = 2e-2


@dataclass
class Size:
    """One side of a row: seconds of an inference and of compilation, bytes, and the difference from ONNX Runtime."""

    seconds: float = 0.0
    spread: float = 0.0
    seconds_to_compile: float = 0.0
    bin: int = 0
    peak: int = 0
    difference: float = 0.0


@dataclass
class Row:
    """The result of one network; `ratio` is that of the seconds of an inference."""

    name: str
    group: str
    problem: str = ""
    ours: Size = field(default_factory=Size)
    peer: Size = field(default_factory=Size)
    ratio: float = 0.0
    compile_spread: float = 0.0
    missed: list[str] = field(default_factory=list)

    @property
    def spread(self) -> float:
        """The part of the ratio that may be noise."""
        return max(self.ours.spread, self.peer.spread)

    def part(self, name: str) -> float:
        """Ours by ovc's, for a number of `Size`."""
        return getattr(self.ours, name) / max(getattr(self.peer, name), 1e-30)


def failed(task: Task, stage: str, message: str) -> Row:
    """The row of a network whose worker ended; what is neither side's is the tool's."""
    side = stage if stage in (OURS, PEER) else "timing"
    return Row(task.name, task.group, f"{side}: {message}"[:160])


@dataclass(frozen=True)
class Summary:
    """Geometric means by group with the number of their rows, of inference and of compile time, and what was missed."""

    means: dict[str, tuple[float, int]]
    compile_means: dict[str, tuple[float, int]]
    missed: list[str]


def judge(rows: Sequence[Row]) -> Summary:
    """Compare the rows with the targets: sets `missed` of each, and returns the summary."""
    measured = [row for row in rows if not row.problem]
    originals = {row.name: row for row in measured}
    for row in measured:
        row.missed = [*_misses(row), *_too_slow(row, originals)]
    means = _means(measured, [row.ratio for row in measured])
    compile_means = _means(measured, [row.part("seconds_to_compile") for row in measured])
    missed = [row.name for row in measured if row.missed]
    missed += [f"mean of {group}" for group, (mean, _) in means.items() if mean > MEANS[group]]
    missed += [row.name for row in rows if f"{OURS}:" in row.problem]
    return Summary(means, compile_means, missed)


def _means(rows: Sequence[Row], ratios: Sequence[float]) -> dict[str, tuple[float, int]]:
    """The geometric means of ratios, one for each row, and their number, by group."""
    groups = {group: [ratio for row, ratio in zip(rows, ratios, strict=True) if row.group == group] for group in MEANS}
    return {group: (geometric_mean(found), len(found)) for group, found in groups.items() if found}


def geometric_mean(ratios: Sequence[float]) -> float:
    """The number whose logarithm is the mean of theirs."""
    return math.exp(statistics.mean(map(math.log, ratios)))


def _misses(row: Row) -> Iterator[str]:
    if row.ratio > EACH + row.spread:
        yield "time"
    allowed = HALF if row.name.endswith("-f16") else DIFFERENCES[row.group]
    if row.ours.difference > max(allowed, 1.5 * row.peer.difference):
        yield "numbers"
    if row.part("seconds_to_compile") > EACH + row.compile_spread:
        yield "compile time"
    if row.part("bin") > BIN:
        yield ".bin"
    if row.group == QUANTISED and row.part("peak") > EACH:
        yield "memory"


def _too_slow(row: Row, originals: dict[str, Row]) -> Iterator[str]:
    """Static integers that are not faster than f32 by their target."""
    model, _, variant = row.name.partition("-")
    if model not in FASTER or model not in originals or not variant.startswith(STATIC):
        return
    if (gain := originals[model].ours.seconds / row.ours.seconds) < FASTER[model]:
        yield f"{gain:.2f} times f32, not {FASTER[model]}"


COLUMNS = (
    f"{'ours ms':>9} {'ovc ms':>9} {'ratio':>6} {'a/a ours':>8} {'a/a ovc':>8}"
    f" {'compile s':>11} {'ratio':>6} {'.bin MB':>13} {'ratio':>6} {'peak MB':>11} {'ratio':>6}"
    f" {'diff ours':>9} {'diff ovc':>9}"
)


def line(row: Row, width: int) -> str:
    """One row as text."""
    if row.problem:
        return f"{row.name:{width}}  {row.problem}"
    ours, peer = row.ours, row.peer
    return (
        f"{row.name:{width}} {1e3 * ours.seconds:9.2f} {1e3 * peer.seconds:9.2f} {row.ratio:6.3f}"
        f" {ours.spread:8.3f} {peer.spread:8.3f}"
        f" {ours.seconds_to_compile:5.2f} {peer.seconds_to_compile:5.2f} {row.part('seconds_to_compile'):6.2f}"
        f" {ours.bin / 1e6:6.1f} {peer.bin / 1e6:6.1f} {row.part('bin'):6.2f}"
        f" {ours.peak / 1e6:5.0f} {peer.peak / 1e6:5.0f} {row.part('peak'):6.2f}"
        f" {ours.difference:9.1e} {peer.difference:9.1e}  {', '.join(row.missed)}"
    ).rstrip()


def table(rows: Sequence[Row], summary: Summary) -> str:
    """All rows by group, their means, and what was missed."""
    width = max((len(row.name) for row in rows), default=5)
    lines = []
    for group in MEANS:
        those = [row for row in rows if row.group == group]
        if those:
            lines += [f"{group:{width}} {COLUMNS}", *(line(row, width) for row in those), ""]
    for group, (mean, count) in summary.means.items():
        lines.append(f"geometric mean of {count} rows, {group}: {mean:.3f}, target {MEANS[group]:.2f}")
    for group, (mean, count) in summary.compile_means.items():
        lines.append(f"geometric mean of {count} compile times, {group}: {mean:.3f}, target of each {EACH:.2f}")
    lines.append(f"missed: {', '.join(summary.missed)}" if summary.missed else "all targets are met")
    return "\n".join(lines)
