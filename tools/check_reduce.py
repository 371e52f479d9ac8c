"""Reduce models that show a fault, and count the nodes that are left.

    python tools/check_reduce.py --count 30 --seed 7           # faults planted in converted models
    python tools/check_reduce.py --rules --count 10 --seed 7   # random models that differ when runtime rules are off

The median of the nodes, the longest time, and each row are printed; the exit code is 1 if the median is above 10, a
search takes more than 120 s, or a reduced model does not show the fault.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.compare.reducing import reduce
from mo_loop.compare.verifying import verify
from mo_loop.errors import InputError, MoLoopError
from mo_loop.options import ConvertOptions
from mo_loop.transforms.config import PassConfig
from mo_loop.transforms.pipelines import default_pipeline
from tests.fuzz.control_flow.generator import generate
from tests.fuzz.planted.extension import VARIABLE, described
from tests.fuzz.planted.planting import planted

MEDIAN, SECONDS = 10, 120.0


@dataclass(frozen=True)
class Row:
    """One search: the nodes before and after, its time, and whether the result shows the fault."""

    name: str
    before: int
    after: int
    seconds: float
    shows: bool


def main() -> int:
    """Run the searches."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=30)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--rules", action="store_true", help="switch off the rules for the runtime instead of planting")
    options = parser.parse_args()
    rows = []
    for name, model, feeds, settings in (_with_rules_off if options.rules else _planted)(options.seed):
        row = _reduced(name, model, feeds, settings, options.jobs)
        if row is None:
            continue
        rows.append(row)
        print(f"{row.name:28} {row.before:4} -> {row.after:3} nodes {row.seconds:6.1f} s {'' if row.shows else 'LOST'}",
              flush=True)
        if len(rows) == options.count:
            break
    median, longest = statistics.median(row.after for row in rows), max(row.seconds for row in rows)
    lost = sum(not row.shows for row in rows)
    print(f"{len(rows)} searches: median {median} nodes, longest {longest:.1f} s, {lost} lost")
    return int(median > MEDIAN or longest > SECONDS or lost > 0)


def _planted(seed: int) -> Iterator[tuple[str, Any, Any, ConvertOptions]]:
    extension = str(Path(__file__).resolve().parents[1] / "tests" / "planted_extension.py")
    for each in planted(1000, seed):
        os.environ[VARIABLE] = described(each.fault, seed)
        yield f"{each.name} {each.fault.kind}", each.model, each.feeds, ConvertOptions(extensions=[extension])


def _with_rules_off(seed: int) -> Iterator[tuple[str, Any, Any, ConvertOptions]]:
    config = PassConfig()
    rules = {each.name for each in default_pipeline() if type(each).__module__.startswith("mo_loop.transforms.runtime")}
    config.disable(*rules)
    for index in range(10_000):
        case = generate(seed, index)
        yield case.name, case.model, case.feeds, ConvertOptions(config=config)


def _reduced(name: str, model: Any, feeds: Any, settings: ConvertOptions, jobs: int) -> Row | None:
    """None if the fault does not show in the first place."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.onnx")
        path.write_bytes(model.SerializeToString())
        start = time.perf_counter()
        try:
            found = reduce(path, "differs", inputs=list(feeds), options=settings, jobs=jobs, seconds=SECONDS - 5)
        except InputError:
            return None
        seconds = time.perf_counter() - start
        small = Path(folder, "small.onnx")
        onnx.save(found.best.proto, small)
        try:
            shows = not verify(small, inputs=list(found.best.sets), options=settings)
        except MoLoopError:
            shows = False
        return Row(name, found.start.size.all_nodes, found.best.size.all_nodes, seconds, shows)


if __name__ == "__main__":
    sys.exit(main())
