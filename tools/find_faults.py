"""Plant faults in converted models with control flow, and see whether `first_difference` and `verify` find them.

    python tools/find_faults.py --count 100 --seed 1
    python tools/find_faults.py --count 20 --verbose
    python tools/find_faults.py --verdicts --count 100 --roundings 40

The faults are those of tests/fuzz/planted/planting.py; a fault that changes no output does not count.
tests/fuzz/planted/judging.py says what the right answer is: the ONNX node and the iteration. The exit code is 1 if
fewer than 97 of 100 answers are right.

With --verdicts `verify` judges the same faults, which all have to fail, and IR that differ by rounding alone and right
random models, which all have to pass (tests/fuzz/planted/verdicts.py).
"""

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.support.workers import Pool
from tests.fuzz.planted.judging import RIGHT, UNJUDGED, UNSEEN, Trial
from tests.fuzz.planted.verdicts import FAILS, NOT_COMPARED, PASSES

LEAST = 0.97


def main(arguments: list[str] | None = None) -> int:
    """Look for faults; 1 if too few are found, else 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="the number of the first fault")
    parser.add_argument("--verbose", "-v", action="store_true", help="print all faults, not only those that are missed")
    parser.add_argument("--verdicts", action="store_true", help="let `verify` judge faults and roundings instead")
    parser.add_argument("--roundings", type=int, default=40, help="how many of them")
    parser.add_argument("--right", type=int, default=40, metavar="N", help="how many right models")
    options = parser.parse_args(arguments)
    if options.verdicts:
        return _verdicts(options)
    counts: Counter[str] = Counter()
    kinds: Counter[str] = Counter()
    judged = 0
    with Pool("tests.fuzz.planted.judging:tried_number", limit=300) as pool:
        for number in range(options.first, 100 * options.count):
            what, kind, depth, trial = _trial(pool, options.seed, number)
            counts[trial.result] += 1
            missed = trial.result not in (RIGHT, UNSEEN)
            if missed or options.verbose:
                print(f"{number} {what}: {trial.result}", flush=True)
            if missed:
                print(f"  expected: {trial.expected}\n  found: {trial.found}", flush=True)
            if trial.result in (UNSEEN, UNJUDGED):
                continue
            kinds[f"{kind}, depth {depth}"] += 1
            judged += 1
            if judged == options.count:
                break
    print(", ".join(f"{count} {name}" for name, count in counts.most_common()))
    print("; ".join(f"{count} of {name}" for name, count in sorted(kinds.items())))
    return int(counts[RIGHT] < LEAST * judged)


def _verdicts(options: argparse.Namespace) -> int:
    """Print the verdicts of `verify` on faults, roundings and right models; 1 if one of them is wrong."""
    wrong = 0
    kinds = (("fault", FAILS, options.count), ("rounding", PASSES, options.roundings), ("right", PASSES, options.right))
    for kind, right, wanted in kinds:
        counts: Counter[str] = Counter()
        with Pool(f"tests.fuzz.planted.verdicts:{kind}_verdict", limit=600) as pool:
            for number in range(options.first, 100 * wanted + 1):
                if counts[FAILS] + counts[PASSES] >= wanted:
                    break
                outcome = pool.call((options.seed, number))
                stage, _, chosen = outcome.stage.partition(" ")
                if not outcome.ok and stage == "whole":  # the IR with the fault crashes with this set
                    outcome = pool.call((options.seed, number, int(chosen)))
                what, verdict, text = outcome.value if outcome.ok else (f"{number}", outcome.status, outcome.message)
                counts[verdict] += 1
                if options.verbose or verdict not in (right, UNSEEN, NOT_COMPARED):
                    print(f"{what}: {verdict} {text}", flush=True)
        wrong += sum(count for name, count in counts.items() if name not in (right, UNSEEN, NOT_COMPARED))
        print(f"{kind}: {', '.join(f'{count} {name}' for name, count in counts.items())}", flush=True)
    return int(wrong > 0)


def _trial(pool: Pool, seed: int, number: int) -> tuple[str, str, int, Trial]:
    """One fault. If the whole graph crashes with some inputs, then or later, the fault is looked for with these."""
    outcome = pool.call((seed, number, None))
    if not outcome.ok:
        stage, _, chosen = outcome.stage.partition(" ")
        outcome = pool.call((seed, number, int(chosen) if stage == "whole" else 0))
    if outcome.ok:
        found: tuple[str, str, int, Trial] = outcome.value
        return found
    return f"fault {number}", outcome.status, 0, Trial(outcome.status, None, f"{outcome.stage}: {outcome.message}")


if __name__ == "__main__":
    sys.exit(main())
