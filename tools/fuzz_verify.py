"""Plant faults in models of every kind, and count what `verify` says of the wrong IR; or let it judge right models.

    python tools/fuzz_verify.py --count 300 --seed 53
    python tools/fuzz_verify.py --first 120 --count 20 --verbose
    python tools/fuzz_verify.py --right models suite operators --count 150
    python tools/fuzz_verify.py --count 30 --converter 2024.6.0

The models are those of tests/fuzz/faults/models.py: random graphs and control flow, sums that amplify rounding,
detectors with ties, chaotic and recurrent loops of 100 steps, 8-bit networks. A fault that moves no output of ONNX
Runtime beyond the tolerance does not count. The exit code is 1 if fewer than 99 of 100 faults are found as `differs`
with their piece.

With --right, `verify --layers` judges right models: those of tests/models, ONNX's own suite, and --count random ones of
each other kind. The exit code is 1 if one differs, or more than 1 in 100 is not decided.
"""

import argparse
import sys
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.compare.results.report import DIFFERS, NOT_DECIDED, PASSED
from mo_loop.support.workers import CRASH, Pool, TaskOutcome
from tests.fuzz.faults.right import NO_MODEL, REFUSED, SOURCES, RightTrial, tasks
from tests.fuzz.faults.trial import FOUND, UNSEEN, FaultTask, Trial
from tests.running.samples import OURS

LEAST, MOST_OPEN = 0.99, 0.01
LIMIT = 300.0


def main(arguments: list[str] | None = None) -> int:
    """Plant faults, or judge right models; 1 if too few verdicts are right, else 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300, help="how many faults that change an output; random models")
    parser.add_argument("--seed", type=int, default=53)
    parser.add_argument("--first", type=int, default=0, help="the number of the first fault")
    parser.add_argument("--right", nargs="+", choices=SOURCES, help="judge right models of these sources")
    parser.add_argument("--converter", default=OURS, help="which writes the IR: ovc, a release, a folder of a version")
    parser.add_argument("--verbose", "-v", action="store_true", help="print all verdicts, not only the wrong ones")
    options = parser.parse_args(arguments)
    return _right(options) if options.right else _faults(options)


def _faults(options: Any) -> int:
    counts: Counter[str] = Counter()
    kinds: Counter[tuple[str, str]] = Counter()
    number = options.first
    with Pool("tests.fuzz.faults.trial:fault_trial", limit=LIMIT) as pool:
        while counts.total() - counts[UNSEEN] < options.count:
            outcome = _judged(pool, FaultTask(options.seed, number, options.converter))
            trial = outcome.value if outcome.ok else Trial("?", "?", outcome.status, outcome.message)
            counts[trial.result] += 1
            kinds[trial.kind, trial.result] += 1
            if options.verbose or trial.result not in (FOUND, UNSEEN):
                print(f"{number} {trial.kind}, {trial.fault}: {trial.result}\n  {trial.text}", flush=True)
            number += 1
    for kind in dict.fromkeys(kind for kind, _ in kinds):
        print(f"{kind}: {', '.join(f'{count} {result}' for (of, result), count in kinds.items() if of == kind)}")
    seen = counts.total() - counts[UNSEEN]
    print(f"{counts[FOUND]} of {seen} faults found with their piece; {counts[UNSEEN]} change no output")
    return int(counts[FOUND] < LEAST * seen)


def _judged(pool: Pool, task: Any) -> TaskOutcome:
    """The outcome of a trial in the process of the pool, or in processes of its own if that one crashes."""
    outcome = pool.call(task)
    return pool.call(task._replace(is_here=False)) if outcome.status == CRASH else outcome


def _right(options: Any) -> int:
    total: Counter[str] = Counter()
    for source in options.right:
        counts: Counter[str] = Counter()
        with Pool("tests.fuzz.faults.right:right_trial", limit=LIMIT) as pool:
            for task in tasks(source, options.count, options.seed, options.converter):
                outcome = _judged(pool, task)
                trial = outcome.value if outcome.ok else RightTrial(outcome.status, outcome.message)
                counts[trial.verdict] += 1
                counts["with tensors that are not compared"] += trial.verdict == PASSED and trial.open > 0
                if options.verbose or trial.verdict not in (PASSED, REFUSED, NO_MODEL):
                    print(f"{source} {task.name}: {trial.verdict} {trial.text}", flush=True)
        print(f"{source}: {', '.join(f'{count} {verdict}' for verdict, count in counts.items() if count)}", flush=True)
        total += counts
    judged = sum(total[each] for each in (PASSED, DIFFERS, NOT_DECIDED))
    return int(total[DIFFERS] > 0 or total[NOT_DECIDED] > MOST_OPEN * judged)


if __name__ == "__main__":
    sys.exit(main())
