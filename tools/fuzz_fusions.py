"""Convert chains of operators that the CPU plugin fuses, and compare their results with those of ONNX Runtime.

    python tools/fuzz_fusions.py -j 2                             # the whole grid
    python tools/fuzz_fusions.py --count 2000 --seed 3
    python tools/fuzz_fusions.py --only Conv/4 --verbose          # cells whose names begin so
    python tools/fuzz_fusions.py --runtime 2024.6.0 --count 2000
    python tools/fuzz_fusions.py --isa AVX2
    python tools/fuzz_fusions.py --without MaximumBehindReduction --only Reduce

A cell of the grid is a producer, the rank of its result, a follower, and the axes along which the follower's constant
varies (tests/fuzz/fusions). Sizes, batch, static or symbolic dimensions, the element type and operators between are
drawn. Many chains are one model, which runs three times on two sets of inputs, in a process that fills what it
allocates and frees, so that reading there is wrong. A model that does not compile is taken apart. The exit code is 1 if
a chain is not right.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.printable import aligned
from mo_loop.support.workers import Pool, TaskOutcome
from tests.fuzz import SKIPPED
from tests.fuzz.fusions.drawing import F16, F32, INT8, Cell
from tests.fuzz.fusions.followers import cells
from tests.fuzz.fusions.trial import UNSETTLED, Row, Task
from tests.running.samples import FILLED, PASSED, Verdict, verdict_of
from tools.fuzzing import add_common, add_device, groups, parse

TOGETHER = 24
ISAS = ("SSE41", "AVX2", "AVX512_CORE", "AVX512_CORE_VNNI")
MOST_SKIPPED = 0.02


def main(arguments: list[str] | None = None) -> int:
    """Run the fuzzer; 1 if a chain is not right, else 0."""
    options = _options(arguments)
    print(f"seed {options.seed}", flush=True)
    chosen = chosen_cells(options.seed, options.count, options.only)
    without = tuple(options.without.split(",")) if options.without else ()
    rows = []
    kinds = tuple(options.types.split(","))
    task = Task((), options.seed, options.against, without, options.python, kinds, options.device)
    for row in run(chosen, task, options.jobs, options.isa):
        rows.append(row)
        cell, facts, verdict = row
        if verdict.result not in (PASSED, SKIPPED) or (options.only and options.verbose):
            print(f"{cell} {verdict.result} {verdict.code} {verdict.message} {facts}", flush=True)
    print(table(rows))
    failing = [(str(cell), verdict) for cell, _, verdict in rows if verdict.result not in (PASSED, SKIPPED)]
    print(groups(failing, 40))
    skipped = [verdict.message for _, _, verdict in rows if verdict.result == SKIPPED]
    print("\n".join(f"{count:5} skipped: {text}" for text, count in Counter(skipped).most_common(8)))
    return int(bool(failing) or len(skipped) > MOST_SKIPPED * len(rows))


def chosen_cells(seed: int, count: int | None = None, start: str = "") -> list[Cell]:
    """Cells of the grid in an order that depends on the seed."""
    found = [each for each in cells() if str(each).startswith(start)]
    random.Random(seed).shuffle(found)
    return found[:count]


def run(chosen: Sequence[Cell], task: Task, jobs: int, isa: str = "") -> Iterator[Row]:
    """The facts and the verdict of each cell; all else is that of `task`."""
    env = FILLED | ({"ONEDNN_MAX_CPU_ISA": isa} if isa else {})
    parts = [tuple(chosen[at : at + TOGETHER]) for at in range(0, len(chosen), TOGETHER)]
    with Pool("tests.fuzz.fusions.trial:judge", jobs=jobs, limit=300, env=env) as pool:
        while parts:
            again: list[tuple[Cell, ...]] = []
            for outcome in pool.map(replace(task, cells=each) for each in parts):
                is_suspect = outcome.status == "crash" and not outcome.first and len(outcome.task.cells) == 1
                # An earlier chain may have corrupted the memory of the process.
                for row in _rows(pool.call(outcome.task, fresh=True) if is_suspect else outcome):
                    if row[2].result == UNSETTLED:
                        again.append((row[0],))
                    else:
                        yield row
            parts = again


def _rows(outcome: TaskOutcome) -> list[Row]:
    if outcome.ok:
        found: list[Row] = outcome.value
        return found
    alone = len(outcome.task.cells) == 1
    verdict = verdict_of(outcome) if alone else Verdict(UNSETTLED)
    return [(cell, "", verdict) for cell in outcome.task.cells]


def table(rows: Sequence[Row]) -> str:
    """One line for each producer that is not always right, and their sum."""
    counts: dict[str, Counter[str]] = {}
    for cell, _, verdict in rows:
        for name in (cell.producer.partition(":")[0], "all"):
            counts.setdefault(name, Counter())[verdict.result] += 1
    columns = sorted({each for counter in counts.values() for each in counter})
    shown = [name for name, counter in counts.items() if name == "all" or set(counter) - {PASSED, SKIPPED}]
    lines = [("", "count", *columns)]
    lines += [
        (name, str(counts[name].total()), *(str(counts[name][each]) for each in columns)) for name in sorted(shown)
    ]
    return aligned(lines, right=range(1, len(lines[0])))


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, help="number of cells; the whole grid if it is not given")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="", metavar="START", help="the cells whose names begin so")
    parser.add_argument("--without", default="", metavar="RULES", help="rules that do not run, separated by commas")
    parser.add_argument("--types", default=f"{F32},{F16},{INT8}", help="element types, separated by commas")
    parser.add_argument("--isa", default="", choices=ISAS, help="the largest instruction set that the runtime may use")
    parser.add_argument("--against", default="mo_loop", help="the converter: mo_loop or ovc")
    add_common(parser, "cell")
    add_device(parser)
    return parse(parser, arguments, "against", ("mo_loop", "ovc"), "converter")


if __name__ == "__main__":
    sys.exit(main())
