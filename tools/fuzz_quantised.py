"""Convert random quantised networks, run the IR, and compare the results with ONNX Runtime's without optimisation.

    python tools/fuzz_quantised.py --count 300 --seed 1 -j 2
    python tools/fuzz_quantised.py --style ort_u8s8,nncf --quantization exact
    python tools/fuzz_quantised.py --seed 1 --only 17 --verbose
    python tools/fuzz_quantised.py --count 100 --against ovc
    python tools/fuzz_quantised.py --count 100 --runtime 2024.6.0
    ONEDNN_MAX_CPU_ISA=AVX2 python tools/fuzz_quantised.py --style ort_dynamic,ort_dynamic_u8

The networks are those of tests/fuzz/quantised, in the styles of the tools that write quantised models. The difference
of a result is the norm of the deviation, as a share of the norm of the expected values around their mean; `limit_of` in
tests/fuzz/quantised/measuring.py says how large it may be. The exit code is 1 if a network is not right. A line of the
table shows the median and the largest difference of a style, and how many of its products (convolutions and matrix
products) the runtime computes with 8 bits, or with weights of 8 bits.
"""

import argparse
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.printable import aligned
from mo_loop.support.workers import Pool
from tests.fuzz.quantised import draw
from tests.fuzz.quantised.measuring import Found, Task, verdict_of
from tests.fuzz.quantised.styles import STYLES
from tests.running.samples import CONVERTERS, OURS
from tools.fuzzing import add_device, add_quantization, fuzzer, numbers_of, parse


def main(arguments: list[str] | None = None) -> int:
    """Run the fuzzer; 1 if a network is not right."""
    options = _options(arguments)
    print(f"seed {options.seed}", flush=True)
    styles = options.style.split(",")
    tasks = [
        Task(
            options.seed, each, styles[each % len(styles)], options.against, options.quantization, options.python,
            options.device,
        )
        for each in numbers_of(options)
    ]
    rows: dict[str, list[tuple[str, Found | None]]] = defaultdict(list)
    with Pool("tests.fuzz.quantised.measuring:measure", jobs=options.jobs, limit=120) as pool:
        for outcome in pool.map(tasks):
            case = draw(outcome.task.seed, outcome.task.index, outcome.task.style)
            verdict = verdict_of(case, outcome)
            rows[case.facts["style"]].append((verdict, outcome.value if outcome.ok else None))
            if verdict or options.verbose:
                shown = f"{outcome.value.difference:.2g}" if outcome.ok else ""
                print(f"{case.name} {shown} {verdict or 'right'} {case.facts}", flush=True)
    print(_table(rows))
    return int(any(verdict for each in rows.values() for verdict, _ in each))


def _table(rows: dict[str, list[tuple[str, Found | None]]]) -> str:
    lines = [("style", "networks", "right", "median", "largest", "products", "8 bits")]
    for style in sorted(rows):
        lines.append(_line(style, rows[style]))
    lines.append(_line("all", [each for style in rows.values() for each in style]))
    return aligned(lines, right=range(1, len(lines[0])))


def _line(name: str, rows: Sequence[tuple[str, Found | None]]) -> tuple[str, ...]:
    found = [each for _, each in rows if each is not None]
    sizes = [each.difference for each in found] or [float("nan")]
    right = sum(not verdict for verdict, _ in rows)
    numbers = str(len(rows)), str(right), f"{statistics.median(sizes):.2g}", f"{max(sizes):.2g}"
    return name, *numbers, str(sum(each.products for each in found)), str(sum(each.narrow for each in found))


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = fuzzer(__doc__, "network", 200)
    parser.add_argument("--style", default=",".join(STYLES), help="styles, separated by commas; default: all in turn")
    parser.add_argument("--against", choices=sorted(CONVERTERS), default=OURS, help="the converter")
    add_device(parser)
    add_quantization(parser)
    return parse(parser, arguments, "style", STYLES, "style")


if __name__ == "__main__":
    sys.exit(main())
