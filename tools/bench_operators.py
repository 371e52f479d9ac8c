"""Measure operators one by one on one processor: the IR of mo_loop, the IR of ovc, and ONNX Runtime.

    python tools/bench_operators.py --results out/operators.jsonl    every operator with 1e3 and 1e5 elements
    python tools/bench_operators.py TopK /1e5/dynamic                rows whose names contain one of these
    python tools/bench_operators.py --sizes 1e3,1e5,1e7 --kinds float,float16,int8,int64 --draws 3
    python tools/bench_operators.py --quick                          the rows of `make bench-inference`

A row is OPERATOR/typical/static|dynamic/WHAT, in a size that networks have (tools/benching/typical_operators.py), or
OPERATOR/ELEMENTS/static|dynamic/TYPE/DRAW: attributes and shapes are drawn as by tools/fuzz_ops.py, at the newest opset
of ONNX Runtime, with about as many elements in the largest tensor. `dynamic` models declare no size. All sides run in
turn in one process; the shortest times count, and those of a row above its goal are taken again. The goal is 1.1 of
ovc's time where ovc's numbers are right, and twice ONNX Runtime's, both with an allowance for the start of an
inference. The table is sorted by how far rows are above it; tools/benching/slow_operators.py has the reasons. The exit
code is 1 if a row is above its goal without a reason, if a reason no longer holds, or if our numbers are wrong. With
--results FILE the rows in FILE are not measured again.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.support.workers import Pool
from tools.benching.loop_times import Row
from tools.benching.operator_models import FORMS, operators
from tools.benching.slow_operators import goal, reason, stale
from tools.benching.typical_operators import ROWS_OF
from tools.measuring import NO_TELEMETRY
from tools.real.records import append, lines

MEMORY = 6 << 30
_OF_ORT = ("draw", "onnxruntime")
"""The beginnings of stages in which ONNX Runtime fails, not a converter."""


def tasks(options: argparse.Namespace) -> Iterator[tuple[Any, ...]]:
    """The rows whose names contain one of the wanted parts."""
    for name in _names(options):
        if not options.names or any(each in name[0] for each in options.names):
            yield *name, options.rounds, options.clock == "cpu", True


def _names(options: argparse.Namespace) -> Iterator[tuple[Any, ...]]:
    """The name of each row, and its text."""
    for each in ROWS_OF:
        op, _, what = each.partition("/")
        yield from ((f"{op}/typical/{form}/{what}".rstrip("/"), each, None, form, "", 0) for form in FORMS)
    if options.quick:
        return
    for size, number, kind in product(options.sizes.split(","), range(options.draws), options.kinds.split(",")):
        for op, form in product(operators(), FORMS):
            yield f"{op}/{size}/{form}/{kind}/{number}", op, int(float(size)), form, kind, number


def table(rows: Sequence[Row], most: int) -> str:
    """The rows that are farthest above their goals; times in microseconds."""
    width = max((len(row.name) for row in rows), default=5)
    sides = ("ours", "ovc", "ort")
    found = [f"{'row':{width}}" + "".join(f"  {side:>10}" for side in sides) + "   of ovc  of ort  compile  kB"]
    for row in sorted(rows, key=goal, reverse=True)[:most]:
        times = "".join(_cell(row.times.get(side), 10, 1) for side in sides)
        parts = [row.times["ours"] / row.times[side] if side in row.times else None for side in sides[1:]]
        ratios = "".join(_cell(each, 6, 2) for each in parts)
        compiled = row.compilation.get("ours", 0) / row.compilation.get("ovc", float("inf"))
        end = row.problem or f"{times} {ratios}   {compiled:6.2f}  {row.kilobytes:.0f}"
        found.append(f"{row.name:{width}}{end}  {row.refused.get('ovc', '')[:60]}".rstrip())
    return "\n".join(found)


def _measured(pool: Pool, task: tuple[Any, ...]) -> Row:
    """The row of a task: without ovc's IR if that ends the worker, and measured again if it is above its goal."""
    outcome = pool.call(task)
    if not outcome.ok and outcome.stage == "ovc":
        outcome = pool.call((*task[:-1], False))
    if not outcome.ok:
        problem = f"{outcome.status} at {outcome.stage}: {outcome.message}"
        return Row(task[0], f"left out: {problem}" if outcome.stage.startswith(_OF_ORT) else problem)
    row: Row = outcome.value
    if not row.problem and goal(row) > 1 and (again := pool.call(task)).ok:
        row.times = {side: min(each, again.value.times.get(side, each)) for side, each in row.times.items()}
    return row


def _cell(number: float | None, width: int, digits: int) -> str:
    return f"  {'-':>{width}}" if number is None else f"  {number:{width}.{digits}f}"


def main(arguments: list[str] | None = None) -> int:
    """Measure and report; 1 if a row is above its goal without a reason."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", help="parts of names of rows; default: all")
    parser.add_argument("--sizes", default="1e3,1e5", help="elements of the largest tensor (1e3,1e5)")
    parser.add_argument("--kinds", default="float", help="element types, as ONNX spells them (float)")
    parser.add_argument("--draws", type=int, default=1, help="configurations of each operator and type (1)")
    parser.add_argument("--rounds", type=int, default=15, help="number of runs of each row (15)")
    parser.add_argument("--limit", type=float, default=60, help="seconds for one row (60)")
    parser.add_argument("--most", type=int, default=40, help="rows of the table (40)")
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall", help="cpu where the machine has other work")
    parser.add_argument("--results", type=Path, help="add the rows to this file; measure those it lacks")
    parser.add_argument("--quick", action="store_true", help="only operators in the sizes that networks have")
    options = parser.parse_args(arguments)
    done = {each["name"]: Row(**each) for each in lines(options.results)} if options.results else {}
    chosen = list(tasks(options))
    limits: dict[str, Any] = {"limit": options.limit, "memory": MEMORY, "env": NO_TELEMETRY}
    with Pool("tools.benching.operator_times:measure", jobs=1, **limits) as pool:
        for task in (each for each in chosen if each[0] not in done):
            row = done[task[0]] = _measured(pool, task)
            if options.results:
                append(options.results, row)
            print(f"{row.name}: {row.problem or f'{goal(row):.2f}'}", file=sys.stderr, flush=True)
    rows = [done[each[0]] for each in chosen if not done[each[0]].problem.startswith("left out")]
    missed = [row for row in rows if row.problem or (goal(row) > 1 and not reason(row))]
    outdated = [] if options.names or options.quick else stale(rows)
    print(table(rows, options.most))
    above = sum(bool(row.problem) or goal(row) > 1 for row in rows)
    print(f"\n{len(rows)} rows, {above} above their goals, {len(missed)} of them without a reason")
    print("\n".join([*(f"without a reason: {row.name} {row.problem}" for row in missed), *outdated]))
    return int(bool(missed) or bool(outdated))


if __name__ == "__main__":
    sys.exit(main())
