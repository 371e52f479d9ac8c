"""The time to a first result: convert, compile, and the first inference, of ours and ovc's, model by model.

    python tools/benching/first_results.py first-small 5             one JSON document: the means of five rounds
    python tools/benching/first_results.py first-loops 5 --models    a table of the models, too, on stderr

Both sides run in turns in one process, on one thread, after a round that does not count; in CPU time, because the
machine may have more to do. The seconds of a side in a round are the geometric mean over the models. A model counts
if both sides convert and run it. `first-small` and `first-loops` are the exported models of tests/models without and
with a Loop, Scan or If, `first-large` are models of about 3,000 nodes.
"""

import json
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np
import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from mo_loop.compare.execution.runtime import ONE_THREAD, compile_ir
from mo_loop.support.workers import Pool, report_stage
from tools.benching.model_writers import write
from tools.measuring import CONVERTERS, NO_TELEMETRY, OURS, PEER, operators
from tools.timing import Task, exported

STAGES = ("convert", "compile", "infer")
LARGE = {"chain": (2, 4), "layers": (1, 2, 8), "cnn": (1, 4, 8, 8), "body": (2, 4)}
"""Kinds of model_writers.py, each with the shape of its input x."""

CONTROL = {"Loop", "Scan", "If", "SequenceMap"}
SIDES = (OURS, PEER)


@dataclass
class Times:
    """The seconds of one model: for each side, its rounds, each with the seconds of the three stages."""

    name: str
    rounds: dict[str, list[tuple[float, ...]]] = field(default_factory=lambda: {OURS: [], PEER: []})

    def least(self, side: str, stage: int | None = None) -> float:
        """The least seconds of a stage, or of all stages: what else the machine does can only add time."""
        taken = self.rounds[side]
        return min(sum(each) if stage is None else each[stage] for each in taken)

    def ratio(self, stage: int | None = None) -> float:
        """Our seconds divided by ovc's."""
        return self.least(OURS, stage) / self.least(PEER, stage)


def tasks(group: str, rounds: int, folder: Path) -> Iterator[Task]:
    """The models of a group."""
    if group == "first-large":
        for kind, shape in LARGE.items():
            path = folder / f"{kind}.onnx"
            write(kind, 3_000, path)
            yield Task(kind, path.read_bytes(), {"x": np.full(shape, 0.5, np.float32), "n": np.int64(3)}, rounds)
        return
    for name, path, feeds in exported():
        content = path.read_bytes()
        if CONTROL.isdisjoint(operators(onnx.load_from_string(content))) == (group == "first-small"):
            yield Task(name, content, feeds, rounds)


def measure(task: Task) -> Times:
    """Convert, compile and run one model with both converters in turn; the first round does not count."""
    times = Times(task.name)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as scratch:
        source = Path(scratch, "model.onnx")
        source.write_bytes(task.model)
        for number in range(task.rounds + 1):
            for side in SIDES if number % 2 == 0 else reversed(SIDES):
                report_stage(side)
                taken = once(side, source, source.with_name(f"{side}.xml"), task.feeds)
                if number:
                    times.rounds[side].append(taken)
    return times


def once(side: str, source: Path, target: Path, feeds: Mapping[str, Any]) -> tuple[float, ...]:
    """The seconds of the three stages, of one side."""
    start = time.process_time()
    CONVERTERS[side](source, target)
    converted = time.process_time()
    compiled = compile_ir(target, ONE_THREAD)
    ready = time.process_time()
    compiled.run(feeds)
    return converted - start, ready - converted, time.process_time() - ready


def table(rows: list[Times]) -> str:
    """The models, the dearest compilation first: our milliseconds of each stage, and the ratio to ovc's."""
    width = max(len(row.name) for row in rows)
    lines = []
    for row in sorted(rows, key=lambda row: -row.ratio(1)):
        cells = [f"{1e3 * row.least(OURS, stage):8.1f} {row.ratio(stage):6.2f}" for stage in range(len(STAGES))]
        lines.append(f"{row.name:{width}} {'  '.join(cells)}  all {row.ratio():6.2f}")
    stages = (*enumerate(STAGES), (None, "all"))
    means = [f"{stage} {geometric_mean(row.ratio(number) for row in rows):.3f}" for number, stage in stages]
    return "\n".join([*lines, f"{len(rows)} models: {', '.join(means)}"])


def main(arguments: list[str]) -> None:
    group, rounds = arguments[0], int(arguments[1])
    rows: list[Times] = []
    apart: list[str] = []
    pool = Pool("tools.benching.first_results:measure", jobs=1, limit=600, env=NO_TELEMETRY)
    with tempfile.TemporaryDirectory() as scratch, pool:
        for outcome in pool.map(tasks(group, rounds, Path(scratch))):
            if outcome.ok:
                rows.append(outcome.value)
            else:
                apart.append(f"{outcome.task.name}: {outcome.stage}: {outcome.message.strip()[:100]!r}")
    if "--models" in arguments:
        print("\n".join([*apart, table(rows)]), file=sys.stderr)
    seconds = {
        side: [geometric_mean(sum(row.rounds[side][number]) for row in rows) for number in range(rounds)]
        for side in SIDES
    }
    print(json.dumps({"seconds": seconds, "units": dict.fromkeys(SIDES, 1)}))


if __name__ == "__main__":
    main(sys.argv[1:])
