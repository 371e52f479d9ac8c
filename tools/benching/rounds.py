"""Runs in turns, and the ratio of each round.

In every round each work runs once, in alternating order, so that load of the machine affects all sides. A ratio is
that of a round; the median over the rounds is held against the target.
"""

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tools.benching.bench_rows import FunctionRow, Row
from tools.benching.children import Run, run
from tools.benching.works import Models, Work, command_of, program

CLOCKS = ("wall", "cpu")
Say = Callable[[str], None]
Round = Mapping[Work, Run]


@dataclass
class Result:
    """The rounds of a row."""

    name: str
    what: str
    peer: str
    target: float
    ratios: list[float] = field(default_factory=list)
    """Of the clock that counts."""
    cpu_ratios: list[float] = field(default_factory=list)
    ours_s: list[float] = field(default_factory=list)
    peer_s: list[float] = field(default_factory=list)
    ours_mib: list[float] = field(default_factory=list)
    peer_mib: list[float] = field(default_factory=list)
    memory: float = float("inf")
    peak_mib: float = float("inf")
    every: bool = False
    imported: tuple[str, ...] = ()
    """Modules that must not be imported, and are."""

    @property
    def ratio(self) -> float:
        return max(self.ratios) if self.every else statistics.median(self.ratios)

    @property
    def memory_ratio(self) -> float:
        """Of the peaks; 0 where they are not known."""
        pairs = zip(self.ours_mib, self.peer_mib, strict=True)
        return statistics.median([ours / peer if peer else 0.0 for ours, peer in pairs])

    @property
    def missed(self) -> list[str]:
        """The targets that are missed, in a word each."""
        found = [] if self.ratio <= self.target else ["time"]
        if self.memory_ratio > self.memory or max(self.ours_mib) > self.peak_mib:
            found.append("memory")
        return [*found, *(f"imports {name}" for name in self.imported)]


def measure(
    chosen: Iterable[Row | FunctionRow], folder: Path, say: Say, rounds: int | None = None, clock: str = "wall"
) -> list[Result]:
    """The results of rows, in their order. `rounds` replaces those of the rows."""
    found: list[Result] = []
    models = Models(folder, say)
    pending = [replace(row, rounds=rounds or row.rounds) for row in chosen]
    for group in grouped(pending):
        if isinstance(group[0], FunctionRow):
            found += [_functions(row, folder, say) for row in group if isinstance(row, FunctionRow)]
            continue
        together = [row for row in group if isinstance(row, Row)]
        found += _commands(together, models, folder, say, clock)
        for work in {work for row in together if row.is_heavy for work in row.works}:
            if work.model is not None and work.model.kind != "chain":
                models.remove(work.model)
    order = [row.name for row in pending]
    return sorted(found, key=lambda each: order.index(each.name))


def grouped(rows: Sequence[Row | FunctionRow]) -> list[list[Row | FunctionRow]]:
    """The rows that are measured together, in the order of the first ones."""
    groups: dict[str, list[Row | FunctionRow]] = {}
    for row in rows:
        groups.setdefault((row.group if isinstance(row, Row) else "") or row.name, []).append(row)
    return list(groups.values())


def _commands(rows: Sequence[Row], models: Models, folder: Path, say: Say, clock: str) -> list[Result]:
    """The results of rows that are measured in the same rounds."""
    works = list(dict.fromkeys(work for row in rows for work in row.works))
    for work in works:
        if work.model is not None:
            models.path(work.model)
    is_heavy = any(row.is_heavy for row in rows)
    taken: list[Round] = []
    for number in range(max(row.rounds for row in rows)):
        runs = {}
        for work in works if number % 2 == 0 else reversed(works):
            if is_heavy:
                os.sync()
            runs[work] = _runs(work, models, folder)
            name = f"{work.model.kind}-{work.model.size:g}" if work.model is not None else work.command[-1]
            label, took = rows[0].group or rows[0].name, runs[work]
            say(f"{label} {number + 1}: {work.side} {name} {took.wall_s:.3f} s (CPU {took.cpu_s:.3f} s)")
        taken.append(runs)
    return [result_of(row, taken[: row.rounds], _units(row, models), clock) for row in rows]


def _runs(work: Work, models: Models, folder: Path) -> Run:
    """A run, or of several the one of the median time."""
    runs = sorted((_run(work, models, folder) for _ in range(work.times)), key=lambda each: each.wall_s)
    return runs[len(runs) // 2]


def _run(work: Work, models: Models, folder: Path) -> Run:
    out = folder / "out"
    out.mkdir()  # what a run overwrites may not be on the disk yet, which takes longer
    try:
        taken = run(command_of(work, models, out / "model"), folder)
    finally:
        shutil.rmtree(out)
    if work.reports:
        (seconds,) = json.loads(taken.printed)["seconds"][work.side]
        return replace(taken, wall_s=seconds, cpu_s=seconds)
    return taken


def _units(row: Row, models: Models) -> tuple[int, int]:
    if row.per_node and row.ours.model is not None and row.peer.model is not None:
        return models.nodes(row.ours.model), models.nodes(row.peer.model)
    return row.ours.units, row.peer.units


def result_of(row: Row, rounds: Sequence[Round], units: tuple[int, int], clock: str = "wall") -> Result:
    """The result of rounds; each round runs each work once."""
    found = Result(row.name, row.what, row.peer.side, row.target, memory=row.memory, peak_mib=row.peak_mib)
    found.every = row.every
    for runs in rounds:
        cpu = _ratio(row, {work: each.cpu_s for work, each in runs.items()}, units)
        wall = _ratio(row, {work: each.wall_s for work, each in runs.items()}, units)
        found.ratios.append(cpu if clock == "cpu" and not row.only_wall else wall)
        found.cpu_ratios.append(cpu)
        ours, peer = runs[row.ours], runs[row.peer]
        found.ours_s.append(ours.wall_s)
        found.peer_s.append(peer.wall_s)
        found.ours_mib.append(ours.peak_mib)
        found.peer_mib.append(peer.peak_mib)
    if row.banned:
        found.imported = imported(row.ours.command, row.banned)
    return found


def _ratio(row: Row, seconds: Mapping[Work, float], units: tuple[int, int]) -> float:
    start = seconds[row.start] if row.start is not None else 0.0
    ours = max(seconds[row.ours] - start, 0.0) / units[0]
    peer = (seconds[row.peer] - (start if row.both else 0.0)) / units[1]
    return ours / peer if peer > 0 else float("inf")


def imported(command: Sequence[str], names: Sequence[str]) -> tuple[str, ...]:
    """Those of the modules that one of our commands imports."""
    script, *options = [*program(command[0]), *command[1:]]
    python = [] if Path(script).name.startswith("python") else [sys.executable, "-X", "importtime"]
    text = subprocess.run([*python, script, *options], capture_output=True, text=True, check=True).stderr
    found = set(re.findall(r"^import time:.*\| +(\w+)", text, re.MULTILINE))
    if not {"mo_loop"} <= found:
        raise SystemExit(f"{script}: the list of its imports has no mo_loop")
    return tuple(name for name in names if name in found)


def _functions(row: FunctionRow, folder: Path, say: Say) -> Result:
    """The result of a row whose process runs both sides in turns."""
    taken = run([sys.executable, str(row.script), row.name, str(row.rounds)], folder)
    printed = json.loads(taken.printed)
    seconds, units = printed["seconds"], printed["units"]
    ours, peer = "mo-loop", next(name for name in seconds if name != "mo-loop")
    found = Result(row.name, row.what, peer, row.target, ours_s=seconds[ours], peer_s=seconds[peer])
    found.ratios = found.cpu_ratios = [
        one / units[ours] / (other / units[peer]) for one, other in zip(seconds[ours], seconds[peer], strict=True)
    ]
    found.ours_mib = found.peer_mib = [taken.peak_mib] * row.rounds
    say(f"{row.name}: {row.rounds} rounds, ratio {found.ratio:.2f}")
    return found
