"""Measure loops on one processor: the IR of mo_loop, ONNX Runtime, and the IR of ovc.

    python tools/bench_loops.py                         kinds of loops, of static and dynamic length, and exported loops
    python tools/bench_loops.py cumulative_sum/dynamic  those whose names contain one of these
    python tools/bench_loops.py --disable StepsPerIteration    ours without these passes
    python tools/bench_loops.py --json                  one JSON document on stdout, progress on stderr

A row is a model, a length and a number of threads: KIND/static|dynamic/LENGTH/THREADS, or FOLDER/MODEL for a model of
tests/models with a loop. All sides run in turn in one process; a row has the shortest time of each side in
microseconds, ours divided by that of ONNX Runtime, the size of our .xml in kB and the memory of our compiled model in
MB. For loops whose iterations are independent, `hand` is the time of the body applied to the whole tensor, in our IR.
The numbers are compared with those of ONNX Runtime; a peer that refuses a model or gives other numbers has no time. The
targets are the geometric mean of the kinds of loops (0.4) and each row (1.0) that `SLOWER` does not list with a reason;
the exit code is 1 if one is missed.
"""

import argparse
import json
import math
import statistics
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.support.workers import Pool
from tools.benching.loop_kinds import KINDS, batched, looped
from tools.benching.loop_times import Row, Task
from tools.measuring import NO_TELEMETRY, operators
from tools.timing import exported

MEAN, EACH = 0.4, 1.0
SLOWER = {
    "*/1/?": "one step: an inference costs OpenVINO about 10 microseconds, ONNX Runtime 7",
    "*/dynamic/7/?": "7 of the 16 steps in an iteration run, and inputs of unknown size cost another 10 microseconds",
    "running_maximum/dynamic/128/?": "running extremes of an unknown length have no form but the loop",
    "*/dynamic/128/2": "with two threads each inference wakes another thread",
    "pytorch*/*": "a few steps of a few numbers: each operation of dynamic shape costs OpenVINO 2 microseconds",
    "tensorflow/*": "a few steps of a few numbers: each operation of dynamic shape costs OpenVINO 2 microseconds",
    "transformers/*": "a few steps of a few numbers: each operation of dynamic shape costs OpenVINO 2 microseconds",
    "classical/*": "a few steps of a few numbers: each operation of dynamic shape costs OpenVINO 2 microseconds",
}
"""Rows that may be slower than ONNX Runtime, and why."""
LENGTHS = (1, 7, 128, 1000)


def tasks(wanted: Sequence[str], rounds: int, disabled: tuple[str, ...] = ()) -> Iterator[Task]:
    """The rows whose names contain one of `wanted`, all if it is empty."""
    for kind in KINDS:
        for form, length, threads in _forms():
            name = f"{kind.name}/{form}/{length}/{threads}"
            if not wanted or any(each in name for each in wanted):
                size = length if form == "static" else 0
                hand = batched(kind, size) if kind.is_map else b""
                yield Task(name, looped(kind, size), kind.feeds(length), threads, rounds, hand, disabled)
    for name, path, feeds in exported(wanted):
        if _has_loop(path):
            yield Task(name, path.read_bytes(), feeds, 1, rounds, b"", disabled)


def _forms() -> Iterator[tuple[str, int, int]]:
    for form in ("static", "dynamic"):
        yield from ((form, length, 1) for length in LENGTHS)
        yield form, 128, 2


def _has_loop(model: Path) -> bool:
    import onnx

    return not {"Loop", "Scan"}.isdisjoint(operators(onnx.load(model, load_external_data=False)))


def judge(rows: Sequence[Row]) -> dict[str, Any]:
    """The geometric means of the groups of rows, and what misses its target."""
    measured = [row for row in rows if not row.problem]
    groups: dict[str, list[float]] = {}
    for row in measured:
        form, *rest = row.name.split("/")[1:]
        groups.setdefault(f"{form}, {rest[0]} steps, {rest[1]} threads" if rest else "exported", []).append(row.ratio)
    means = {name: math.exp(statistics.mean(map(math.log, ratios))) for name, ratios in groups.items()}
    kinds = [math.log(row.ratio) for row in measured if row.name.count("/") > 1]
    mean = math.exp(statistics.mean(kinds)) if kinds else None
    slower = [row.name for row in rows if row.problem or row.ratio > EACH]
    missed = [name for name in slower if not any(fnmatch(name, pattern) for pattern in SLOWER)]
    listed = {pattern: sum(fnmatch(name, pattern) for name in slower) for pattern in SLOWER}
    return {"means": means, "geometric_mean": mean, "target": MEAN, "missed": missed, "listed": listed}


def table(rows: Sequence[Row], summary: Mapping[str, Any]) -> str:
    """The rows as aligned text; times in microseconds."""
    width = max((len(row.name) for row in rows), default=5)
    sides = ("ours", "ort", "ovc", "hand")
    lines = [f"{'model':{width}}" + "".join(f"  {side:>9}" for side in sides) + "   ratio  kB of .xml      MB"]
    for row in rows:
        times = [f"{row.times[side]:9.1f}" if side in row.times else f"{'-':>9}" for side in sides]
        end = row.problem or f"{'  '.join(times)}  {row.ratio:6.2f}  {row.kilobytes:10.1f}  {row.megabytes:6.1f}"
        lines.append(f"{row.name:{width}}  {end}")
    lines += ["", *(f"{name}: {mean:.3f}" for name, mean in summary["means"].items())]
    if summary["geometric_mean"] is not None:
        lines.append(f"geometric mean of the kinds {summary['geometric_mean']:.3f}, target {MEAN}")
    listed = {name: count for name, count in summary["listed"].items() if count}
    lines += [f"above {EACH}, {count} rows {name}: {SLOWER[name]}" for name, count in listed.items()]
    return "\n".join([*lines, f"others above {EACH}: {', '.join(summary['missed']) or 'none'}"])


def _measured(pool: Pool, task: Task) -> Row:
    """The row of a task: without ovc's IR if that ends the worker."""
    outcome = pool.call(task)
    if not outcome.ok and outcome.stage == "ovc":
        outcome = pool.call(replace(task, peer=False))
    return outcome.value if outcome.ok else Row(task.name, f"{outcome.status}: {outcome.message}"[:120])


def main(arguments: list[str] | None = None) -> int:
    """Measure and report; 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("names", nargs="*", help="parts of names of rows; default: all")
    parser.add_argument("--rounds", type=int, default=40, help="number of runs of each row (40)")
    parser.add_argument("--limit", type=float, default=300, help="seconds for one row (300)")
    parser.add_argument("--disable", default="", metavar="PASSES", help="passes of mo_loop to disable")
    parser.add_argument("--json", action="store_true", help="write JSON to stdout")
    options = parser.parse_args(arguments)
    rows: list[Row] = []
    disabled = tuple(name for name in options.disable.split(",") if name)
    with Pool("tools.benching.loop_times:measure", jobs=1, limit=options.limit, env=NO_TELEMETRY) as pool:
        for task in tasks(options.names, options.rounds, disabled):
            row = _measured(pool, task)
            rows.append(row)
            print(f"{row.name}: {row.problem or f'{row.ratio:.2f}'}", file=sys.stderr, flush=True)
    summary = judge(rows)
    if options.json:
        print(json.dumps({"rows": [asdict(row) for row in rows], **summary}, indent=2))
    print(table(rows, summary), file=sys.stderr if options.json else sys.stdout)
    mean = summary["geometric_mean"]
    return int(bool(summary["missed"]) or (mean or 0) > MEAN)


if __name__ == "__main__":
    sys.exit(main())
