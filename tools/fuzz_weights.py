"""Convert random models with quantised weights, run the IR, and compare the results with those of numpy in f64.

    python tools/fuzz_weights.py --count 1000 --seed 1 -j 2
    python tools/fuzz_weights.py --seed 1 --only 17 --verbose
    python tools/fuzz_weights.py --count 200 --against ovc

The models are those of tests/fuzz/weights.py. A result is right if it differs from the expected one by at most 1e-3 of
the largest expected number. The runtime does not quantise activations (DYNAMIC_QUANTIZATION_GROUP_SIZE is 0). The exit
code is 1 if a model is not right.
"""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.support.workers import Pool
from tests.fuzz.weights import Case, draw
from tools.measuring import CONVERTERS, OURS

TOLERANCE = 1e-3
Task = tuple[str, int, int]


def main(arguments: list[str] | None = None) -> int:
    """Run the fuzzer; 1 if a model is not right, else 0."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, metavar="INDEX", help="one model only")
    parser.add_argument("--against", choices=tuple(CONVERTERS), default=OURS, help="the converter")
    parser.add_argument("--jobs", "-j", type=int, default=1)
    parser.add_argument("--verbose", "-v", action="store_true", help="print all models, not only the failing ones")
    options = parser.parse_args(arguments)
    print(f"seed {options.seed}", flush=True)
    indices = range(options.count) if options.only is None else [options.only]
    counts: Counter[str] = Counter()
    with Pool("tools.fuzz_weights:difference", jobs=options.jobs, limit=120) as pool:
        for outcome in pool.map((options.against, options.seed, index) for index in indices):
            verdict = _verdict(outcome)
            counts[verdict.partition(":")[0]] += 1
            if verdict != "right" or options.verbose:
                print(f"{outcome.task[2]} {verdict} {draw(*outcome.task[1:]).facts}", flush=True)
    print(", ".join(f"{count} {name}" for name, count in counts.most_common()))
    return int(set(counts) != {"right"})


def _verdict(outcome: Any) -> str:
    if not outcome.ok:
        return f"{outcome.status}: {outcome.message.strip().splitlines()[-1][:200]}"
    return "right" if outcome.value <= TOLERANCE else f"wrong: {outcome.value:.3g} of the largest number"


def difference(task: Task) -> float:
    """The largest difference of a model, as a share of the largest expected number; infinite for another shape."""
    converter, seed, index = task
    case = draw(seed, index)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.xml")
        _write(case, converter, path)
        return largest_difference(case, path)


def largest_difference(case: Case, path: Path) -> float:
    """The largest difference of the results of an IR from the expected ones, relative to the largest number."""
    from mo_loop.compare.execution.runtime import compile_ir

    compiled = compile_ir(path)
    worst = 0.0
    for feeds, expected in zip(case.sets, case.expected, strict=True):
        for name, found in compiled.run(feeds):
            wanted = expected[name]
            if found.shape != wanted.shape or not np.all(np.isfinite(found)):
                return float("inf")
            worst = max(worst, float(np.abs(found - wanted).max() / np.abs(wanted).max()))
    return worst


def _write(case: Case, converter: str, path: Path) -> None:
    import onnx

    source = path.with_suffix(".onnx")
    onnx.save(case.model, source)
    CONVERTERS[converter](source, path)


if __name__ == "__main__":
    sys.exit(main())
