"""Convert random recurrent models with LowLatency2, run them one step in each inference, and compare with ONNX Runtime.

    python tools/fuzz_states.py --count 300 --seed 1 -j 2
    python tools/fuzz_states.py --seed 1 --only 17
    python tools/fuzz_states.py --count 300 --runtime 2024.6.0

N steps with states, and N again after a reset, must give the numbers of one run over N (tests/fuzz/states). 1 is
returned if one model does not.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.support.workers import Pool
from tools.fuzzing import add_device, fuzzer, numbers_of, parse
from tools.runtimes import chosen_interpreter

LIMIT = 120.0
"""Seconds for one model."""

Task = tuple[int, int, str | None]


def main(arguments: list[str] | None = None) -> int:
    """Run the fuzzer; 1 if a model is not converted or computes something else."""
    parser = fuzzer(__doc__, "model")
    add_device(parser)
    options = parse(parser, arguments)
    python, numbers = options.python or chosen_interpreter(), numbers_of(options)
    wrong = run([(options.seed, number, python, options.device) for number in numbers], options.jobs)
    print(f"seed {options.seed}: {len(numbers) - len(wrong)} of {len(numbers)} right")
    for each in wrong:
        print(f"  {each}")
    return int(bool(wrong))


def run(tasks: list[Task], jobs: int) -> list[str]:
    """The faults, a text for each model."""
    with Pool("tests.fuzz.states.comparing:compare", jobs=jobs, limit=LIMIT) as pool:
        ends = pool.map(tasks)
        found = [each.value if each.ok else f"{each.task[1]}: {each.status}: {each.message}" for each in ends]
    return [each for each in found if each]


if __name__ == "__main__":
    sys.exit(main())
