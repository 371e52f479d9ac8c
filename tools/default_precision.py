"""Run random models whose results are integers in the default precision of this processor, without a hint.

    python tools/default_precision.py --count 200 --seed 1
    python tools/default_precision.py --quantization exact

The models are those of tests/fuzz/default_precision.py. A result is right if it is equal. The exit code is 1 if one is
not, and 2 if the default precision of the processor is f32, which shows nothing.
"""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.api import convert_model, save_model
from mo_loop.compare.execution.runtime import run_ir
from tests.fuzz.default_precision import Case, draw

DEFAULT: dict[str, Any] = {"INFERENCE_PRECISION_HINT": None}


def main(arguments: list[str] | None = None) -> int:
    """Run the sweep; see above for the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--quantization", default="fast")
    options = parser.parse_args(arguments)
    precision = default_precision()
    if precision == "f32":
        print("could not run: the default precision of this processor is f32, it has no bf16")
        return 2
    counts: Counter[str] = Counter()
    for index in range(options.count):
        case = draw(options.seed, index)
        is_right = np.array_equal(result(case, options.quantization, DEFAULT), case.expected)
        counts["right" if is_right else "wrong"] += 1
        if not is_right:
            print(f"{index} {case.name}: wrong in {precision}", flush=True)
    print(f"seed {options.seed}, {precision}: {counts['right']} right, {counts['wrong']} wrong")
    return int(counts["wrong"] > 0)


def default_precision() -> str:
    """The precision of the CPU device without a hint."""
    import openvino

    return str(openvino.Core().get_property("CPU", "INFERENCE_PRECISION_HINT").to_string())


def result(case: Case, quantization: str, properties: dict[str, Any] | None = None) -> np.ndarray[Any, Any]:
    """The output of the converted model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model.xml")
        save_model(convert_model(case.model, quantization=quantization), path)
        ((_, found),) = run_ir(path, [case.feeds], properties)[0]
    return found


if __name__ == "__main__":
    sys.exit(main())
