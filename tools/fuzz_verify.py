"""Plant faults in models of every kind, and count what `verify` says of the wrong IR.

    python tools/fuzz_verify.py --count 300 --seed 53
    python tools/fuzz_verify.py --first 120 --count 20 --verbose

The models are those of tests/fuzz/faults/models.py: random graphs and control flow, sums that amplify rounding,
detectors with ties, chaotic and recurrent loops of 100 steps, 8-bit networks. A fault that moves no output of ONNX
Runtime beyond the tolerance does not count. The exit code is 1 if fewer than 99 of 100 faults are found as `differs`
with their piece.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.support.workers import Pool
from tests.fuzz.faults.trial import FOUND, UNSEEN, Trial

LEAST = 0.99


def main(arguments: list[str] | None = None) -> int:
    """Plant faults; 1 if too few are found, else 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300, help="how many faults that change an output")
    parser.add_argument("--seed", type=int, default=53)
    parser.add_argument("--first", type=int, default=0, help="the number of the first fault")
    parser.add_argument("--verbose", "-v", action="store_true", help="print all faults, not only those that are missed")
    options = parser.parse_args(arguments)
    counts: Counter[str] = Counter()
    kinds: Counter[tuple[str, str]] = Counter()
    number = options.first
    with Pool("tests.fuzz.faults.trial:fault_trial", limit=300) as pool:
        while counts.total() - counts[UNSEEN] < options.count:
            outcome = pool.call((options.seed, number))
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


if __name__ == "__main__":
    sys.exit(main())
