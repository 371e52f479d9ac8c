"""Compares one model on the sides of `SIDES` with ONNX Runtime: differences, and times taken in turn.

`measure` takes a `Task` and returns a `Row`. It runs in a worker process, which may crash; `report_stage` names the
side that is at work. The instruction set is that of the environment in which the worker starts.
"""

import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.batching.plan import local_models
from mo_loop.compare.oracle.oracle import ONNX_RUNTIME, OnnxRuntime
from mo_loop.support.workers import report_stage
from tests.models.sources.exporting.inputs import read_cases
from tools.measuring import EXACT, OURS, PEER, PORTABLE
from tools.real.pairs import KEEPS_ACTIVATIONS, LEAST_ROUNDS, MOST_ROUNDS, PROPERTIES, difference
from tools.real.processes import SideError, arrays, convert, message, run
from tools.timing import quick_ratio, timed

SIDES = (OURS, PORTABLE, EXACT, PEER)
ROUNDING = 1e-3
"""The part of the largest output by which ours may differ more than ovc's."""
SLOWER = 1.05
WITHOUT_VNNI = ("SSE41", "AVX2", "AVX512_CORE")


@dataclass(frozen=True)
class Task:
    """A model, the instruction set on which it runs, and how long it is timed."""

    model: Path
    isa: str
    seconds: float
    threads: int

    @property
    def name(self) -> str:
        """The name of its row."""
        return f"{self.model.stem}, {self.isa}"

    @property
    def properties(self) -> dict[str, Any]:
        """The properties with which all sides are compiled.

        Without VNNI the plugin does not quantise activations. It asks the processor, not the environment, so a
        processor with VNNI that stands for one without needs the property.
        """
        properties = PROPERTIES | {"INFERENCE_NUM_THREADS": self.threads}
        return properties | KEEPS_ACTIVATIONS if self.isa in WITHOUT_VNNI else properties


@dataclass
class Side:
    """`difference` is relative to the largest output; `ratio` is the time divided by that of ovc's IR."""

    difference: float = 0.0
    seconds: float = 0.0
    ratio: float = 0.0
    spread: float = 0.0
    problem: str = ""


@dataclass
class Row:
    """The result of one model on one instruction set; `seconds` are those of ONNX Runtime, which uses its own."""

    name: str
    inputs: str = ""
    seconds: float = 0.0
    sides: dict[str, Side] = field(default_factory=dict)
    problem: str = ""

    @property
    def missed(self) -> list[str]:
        """In what ours is worse than ovc's IR, or fails."""
        ours, peer = (self.sides.get(side, Side(problem="not run")) for side in (OURS, PEER))
        if self.problem or ours.problem:
            return [self.problem or f"{OURS}: {ours.problem}"]
        if peer.problem:
            return []
        worse = ours.difference > 1.5 * peer.difference + ROUNDING
        return ["numbers"] * worse + ["time"] * (ours.ratio > SLOWER + ours.spread)


def models(paths: list[Path], wanted: list[str]) -> list[Path]:
    """The model files in folders whose paths contain one of `wanted`, by name."""
    found = [each for path in paths for each in local_models(str(path))]
    return sorted(Path(each) for each in set(found) if not wanted or any(part in each for part in wanted))


def measure(task: Task) -> Row:
    """Convert a model on every side, run each IR in a process of its own, then time all in turn."""
    row = Row(task.name, sides={side: Side() for side in SIDES})
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        report_stage(ONNX_RUNTIME)
        row.inputs, feeds = input_set(task.model)
        np.savez(folder / "feeds.npz", **feeds)
        expected = [array for _, array in OnnxRuntime(task.model, threads=task.threads).run(feeds)]
        for name, side in row.sides.items():
            report_stage(name)
            try:
                convert(name, task.model, folder / f"{name}.xml")
                run(folder / f"{name}.xml", folder / "feeds.npz", folder / "results.npz", task.properties)
                side.difference = difference(expected, arrays(folder / "results.npz"))
            except SideError as error:
                side.problem = str(error)
        report_stage("timing")
        _time(row, task, folder, feeds)
    return row


def input_set(model: Path) -> tuple[str, dict[str, Any]]:
    """Where the inputs of a model come from, and one set of them.

    Beside it: NAME.npz, a cases.toml (tools/export_real.py), or test_data_set_*; else they are generated.
    """
    from mo_loop.api import convert_model
    from mo_loop.compare.execution.isolated import Hosted
    from mo_loop.compare.input_sets.expected_sets import SetSearch, sizes_in
    from mo_loop.compare.input_sets.generated import Generator, shapes_of
    from mo_loop.compare.input_sets.given import read_sets
    from mo_loop.compare.oracle.checked_oracle import Oracle
    from mo_loop.frontend.model import load

    file = model.with_suffix(".npz")
    cases = read_cases(model.parent / "cases.toml") if (model.parent / "cases.toml").exists() else {}
    listed = cases.get(model.stem) or cases.get(model.stem.partition("-")[0])
    if listed is not None and not file.exists():
        return "cases.toml", listed.sets[0]
    loaded = load(str(model))
    if file.exists() or list(model.parent.glob("test_data_set_*")):
        name, feeds = read_sets([file if file.exists() else model.parent], loaded)[0]
        return Path(name).name, feeds
    oracle = Hosted(Oracle, str(model))
    try:
        search = SetSearch(Generator(loaded, shapes_of(convert_model(model))), sizes_in(loaded))
        (first,) = search.accepted(1, oracle.run)[:1]
    finally:
        oracle.close()
    return first.name, first.feeds


def _time(row: Row, task: Task, folder: Path, feeds: dict[str, Any]) -> None:
    from mo_loop.compare.execution.runtime import compile_ir

    names = [name for name in SIDES if not row.sides[name].problem]
    made = [compile_ir(folder / f"{name}.xml", task.properties) for _ in range(2) for name in names]
    for each in made:
        each.run(feeds)
    times = timed([*made, _Again(task, feeds)], MOST_ROUNDS, LEAST_ROUNDS, task.seconds)
    pairs = {name: times[place : len(made) : len(names)] for place, name in enumerate(names)}
    row.seconds = min(times[-1])
    for name, own in pairs.items():
        side = row.sides[name]
        side.seconds, _, side.ratio, spreads = quick_ratio([*own, *pairs.get(PEER, own)])
        side.spread = max(spreads)


class _Again:
    """ONNX Runtime with all optimisations, as an IR is timed."""

    def __init__(self, task: Task, feeds: dict[str, Any]) -> None:
        self._runtime, self._feeds = OnnxRuntime(task.model, "all", task.threads), feeds

    def again(self) -> None:
        """One inference."""
        self._runtime.run(self._feeds)


def failed(task: Task, stage: str, printed: str) -> Row:
    """The row of a model whose worker ended."""
    return Row(task.name, problem=f"{stage or 'worker'}: {message(printed)}"[:160])


HEAD = f"""| model | ONNX Runtime, ms | {" | ".join(f"{side}, error | ms" for side in SIDES)} | ratio | spread | |
|---|--:|{"--:|--:|" * len(SIDES)}--:|--:|---|"""


def markdown(rows: list[Row]) -> str:
    """The rows as a table of Markdown, and how many are worse than ovc's IR."""
    missed = [f"{row.name} ({', '.join(row.missed)})" for row in rows if row.missed]
    counts = f"{len(rows)} rows, {len(missed)} worse than {PEER}: {', '.join(missed) or 'none'}"
    return "\n".join([HEAD, *map(_cells, rows), "", f"{counts}."]) + "\n"


def _cells(row: Row) -> str:
    if row.problem:
        return f"| {row.name} | {row.problem.replace('|', ' ')} |" + " |" * (2 * len(SIDES) + 3)
    cells = [row.name, f"{1e3 * row.seconds:.2f}"]
    for side in row.sides.values():
        problem = side.problem.replace("|", " ")[:60]
        cells += [problem, ""] if problem else [f"{side.difference:.1e}", f"{1e3 * side.seconds:.2f}"]
    ours = row.sides[OURS]
    return f"| {' | '.join([*cells, f'{ours.ratio:.2f}', f'{ours.spread:.2f}', ', '.join(row.missed)])} |"
