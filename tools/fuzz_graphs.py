"""Convert random graphs of many operators, run the IR, and compare the results with ONNX Runtime's.

    python tools/fuzz_graphs.py --count 1000 --seed 1 -j 2
    python tools/fuzz_graphs.py --seed 1 --only 17 --verbose --keep failures
    python tools/fuzz_graphs.py --count 1000 --runtime 2024.6.0
    python tools/fuzz_graphs.py --count 1000 --without ReduceBeforeUnsqueeze
    python tools/fuzz_graphs.py --count 100 --pattern recurrent,views

The graphs are those of tests/fuzz/graphs: 3 to 10 layers in any order, static or with symbolic sizes. A graph of
symbolic sizes runs for three sizes on one compiled model. With --pattern they are those of
tests/fuzz/graphs/patterns.py, the patterns in turn. The exit code is 1 if a graph is not right.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.support.workers import Pool
from tests.fuzz import SKIPPED
from tests.fuzz.graphs import draw
from tests.fuzz.graphs.patterns import PATTERNS
from tests.fuzz.graphs.trial import Task, sample_of
from tests.running.samples import CONVERTERS, FILLED, OURS, PASSED, Sample, Verdict, settle
from tools.fuzzing import counted, fuzzer, groups, keep, numbers_of, parse, pattern, require_known


def main(arguments: list[str] | None = None) -> int:
    """Run the fuzzer; 1 if a graph is not right, else 0."""
    options = parsed(arguments)
    print(f"seed {options.seed}", flush=True)
    failing, counts, skipped = [], Counter[str](), Counter[str]()
    for task, verdict in run(options):
        counts[verdict.result] += 1
        if verdict.result == SKIPPED:
            skipped[pattern(verdict.message)] += 1
        elif verdict.result != PASSED:
            failing.append((f"{task.pattern} {task.index}", verdict))
            print(f"{task.pattern} {task.index} {verdict.result} {verdict.code} {verdict.message[:300]}", flush=True)
            sample = sample_of(task) if options.keep else ""
            if isinstance(sample, Sample):
                keep(Path(options.keep), sample, task.converter, verdict)
        elif options.verbose:
            print(f"{task.index} {verdict.result} {draw(task.seed, task.index, task.pattern).facts}", flush=True)
    print(", ".join(f"{count} {name}" for name, count in counts.most_common()))
    print(groups(failing, 40))
    print(f"\nskipped\n{counted(skipped, 8)}")
    return int(bool(failing))


def run(options: argparse.Namespace) -> Iterator[tuple[Task, Verdict]]:
    """The verdicts of the graphs."""
    without = tuple(options.without.split(",")) if options.without else ()
    patterns = options.pattern.split(",")
    tasks = (
        Task(options.seed, each, options.against, without, options.python, patterns[each % len(patterns)])
        for each in numbers_of(options)
    )
    with Pool("tests.fuzz.graphs.trial:judge", jobs=options.jobs, limit=60, env=FILLED) as pool:
        for outcome in pool.map(tasks):
            yield outcome.task, settle(outcome, lambda task: pool.call(task, fresh=True))


def parsed(arguments: list[str] | None) -> argparse.Namespace:
    """The options of a run."""
    parser = fuzzer(__doc__, "graph", 500)
    parser.add_argument("--without", default="", metavar="PASSES", help="passes that do not run, separated by commas")
    text = "graphs of these patterns, separated by commas: " + ", ".join(PATTERNS)
    parser.add_argument("--pattern", default="", metavar="NAMES", help=text)
    parser.add_argument("--against", choices=sorted(CONVERTERS), default=OURS, help="the converter")
    parser.add_argument("--keep", metavar="DIR", help="save failing models with their inputs")
    options = parse(parser, arguments, "against", CONVERTERS, "converter")
    require_known(parser, options.pattern, ("", *PATTERNS), "pattern")
    return options


if __name__ == "__main__":
    sys.exit(main())
