"""Convert random models with random pairs of options, and compare with ONNX Runtime and inputs that numpy prepares.

    python tools/fuzz_options.py --count 300 --seed 1 -j 2
    python tools/fuzz_options.py --seed 1 --only 17
    python tools/fuzz_options.py --count 300 --runtime 2024.6.0

It counts the pairs that are right, wrong, refused with a code, and converted although an option changed nothing and
nothing reports it (tests/fuzz/options). 1 is returned if one is wrong or silent.
"""

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.support.workers import Pool
from tests.fuzz.options.comparing import REFUSED, RIGHT, SILENT, WRONG, Answer
from tools.fuzzing import fuzzer, numbers_of, parse
from tools.runtimes import chosen_interpreter

LIMIT = 120.0
"""Seconds for one pair."""

Task = tuple[int, int, str | None]


def main(arguments: list[str] | None = None) -> int:
    """Run the fuzzer; 1 if a pair is wrong, or an option without effect has no message."""
    options = parse(fuzzer(__doc__, "pair"), arguments)
    python, numbers = options.python or chosen_interpreter(), numbers_of(options)
    answers = run([(options.seed, number, python) for number in numbers], options.jobs)
    counts = Counter(each.status for each in answers)
    listed = ", ".join(f"{counts[status]} {status}" for status in (RIGHT, REFUSED, WRONG, SILENT))
    print(f"seed {options.seed}: {len(answers)} pairs: {listed}")
    shown = (RIGHT, REFUSED, WRONG, SILENT) if options.verbose or options.only is not None else (WRONG, SILENT)
    for each in answers:
        if each.status in shown:
            print(f"  {each.status} {each.label}: {each.text}")
    return int(bool(counts[WRONG] or counts[SILENT]))


def run(tasks: list[Task], jobs: int) -> list[Answer]:
    """The result for each pair."""
    with Pool("tests.fuzz.options.comparing:compare", jobs=jobs, limit=LIMIT) as pool:
        return [
            each.value if each.ok else Answer(WRONG, str(each.task[1]), f"{each.status}: {each.message}")
            for each in pool.map(tasks)
        ]


if __name__ == "__main__":
    sys.exit(main())
