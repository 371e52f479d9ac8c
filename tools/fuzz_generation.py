"""Convert random models that generate text, and compare their tokens and scores with those of ONNX Runtime.

    python tools/fuzz_generation.py --count 100 --seed 1
    python tools/fuzz_generation.py --operator BeamSearch --seed 1 --only 17
    python tools/fuzz_generation.py --count 100 --runtime 2024.6.0

Every model runs several input sets in changing order on one compiled model. 1 is returned if one differs.
"""

import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.support.workers import Pool
from tests.fuzz.generation.configurations import DESCRIPTIONS
from tests.running.samples import FILLED, Sample, Verdict, settle
from tools.fuzzing import fuzzer, numbers_of, parse
from tools.runtimes import chosen_interpreter

Task = tuple[int, int, str]


def main(arguments: list[str] | None = None) -> int:
    """Run the fuzzer; 1 if a model is not converted or computes something else."""
    parser = fuzzer(__doc__, "configuration")
    parser.add_argument("--operator", default="", help="operators, separated by commas; all by default")
    options = parse(parser, arguments)
    python, numbers = options.python or chosen_interpreter(), numbers_of(options)
    failed = 0
    for operator in options.operator.split(",") if options.operator else DESCRIPTIONS:
        verdicts, skipped = run([(options.seed, number, operator) for number in numbers], options.jobs, python)
        bad = [(sample.name, verdict) for sample, verdict in verdicts if verdict.bad]
        failed += len(bad)
        print(f"{operator}: {len(verdicts) - len(bad)} of {len(verdicts)} right")
        for reason, count in skipped.most_common():
            print(f"  skipped {count}: {reason}")
        for name, verdict in bad:
            print(f"  {name}: {verdict.result} {verdict.code} {verdict.message}")
    return int(failed > 0)


def run(tasks: list[Task], jobs: int, python: str | None) -> tuple[list[tuple[Sample, Verdict]], Counter[str]]:
    """The verdicts of the configurations, and how many are skipped for which reason."""
    verdicts: list[tuple[Sample, Verdict]] = []
    skipped: Counter[str] = Counter()
    with (
        Pool("tests.fuzz.generation.configurations:oracle", jobs=jobs, limit=120) as oracle,
        Pool("tests.running.samples:judge", env=FILLED, jobs=jobs, limit=120) as judge,
    ):
        for outcome in oracle.map(iter(tasks)):
            if not outcome.ok or isinstance(outcome.value, str):
                skipped[outcome.value if outcome.ok else f"{outcome.status}: {outcome.message}"] += 1
                continue
            sample: Sample = outcome.value
            sample.python = python
            verdicts.append((sample, settle(judge.call(("mo_loop", sample)), judge.call)))
    return verdicts, skipped


if __name__ == "__main__":
    sys.exit(main())
