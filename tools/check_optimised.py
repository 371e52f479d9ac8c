"""Convert what ONNX Runtime's own tools make of exported models, and compare the numbers with ONNX Runtime.

    python tools/check_optimised.py -j 2                            # the committed models, every variant
    python tools/check_optimised.py bert --variant "fused dynamic"  # models whose names contain `bert`, one variant
    python tools/check_optimised.py --folder out/transformers       # models that tools/export_transformers.py wrote
    python tools/check_optimised.py --folder fused                  # those of tests/models/fused.py
    python tools/check_optimised.py --against ovc
    python tools/check_optimised.py --whole-range                   # every committed model, dynamic with 8 bits

With --whole-range a file passes if it is as right as the IR of ovc; ONEDNN_MAX_CPU_ISA=AVX2 makes OpenVINO compute as
on a CPU without VNNI. With it, OpenVINO 2026.4.1 crashes on a CPU with AVX-512 in a few models, also in f32 with ovc.

tests/models/optimising.py lists the variants: the graph optimiser at each level, the fusions for transformers, static
and dynamic quantisation, weights of 4 and 8 bits. `fused` and `f16` need the package sympy, `nbits` and `blocks` need
onnx-ir. A file passes if every output agrees with ONNX Runtime's for the same file: to FLOAT of the largest number
without quantisation, else by its cosine, converted with --quantization fast and exact. The exit code is 1 if a file
fails that tests/models/optimised.py does not list with a reason, or if a listed one passes.
"""

import argparse
import sys
from collections import Counter, defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.printable import aligned
from mo_loop.support.workers import Pool, TaskOutcome
from tests import MODELS
from tests.models import fused
from tests.models.optimised import BUILT, EXPLAINED, MAKING, NOT_MADE, PASSED, REFUSED, Row, reason
from tests.models.optimising import VARIANTS, WHOLE_RANGE
from tests.models.sources.exporting.inputs import read_cases

FOLDERS = ("transformers", "pytorch")
ALL_FOLDERS = (*FOLDERS, "pytorch_sequences", "tensorflow")
LIMIT, MEMORY = 180.0, 6 << 30


def main(arguments: list[str] | None = None) -> int:
    """Check the chosen files."""
    options = _options(arguments)
    rows = run(options)
    _print_tables(rows, options.against)
    if options.against != "mo_loop":
        return 0
    wrong = [row for row in rows if row.status not in (PASSED, NOT_MADE) and not reason(row)]
    # With --whole-range a name may be that of models in several folders.
    stale = [key for key in EXPLAINED if key[1] not in WHOLE_RANGE and any(_is_of(row, key) for row in rows)
             and all(row.status == PASSED for row in rows if _is_of(row, key))]
    for each in stale:
        print(f"{each}: listed in tests/models/optimised.py, but it passes")
    return int(bool(wrong or stale))


def run(options: argparse.Namespace) -> list[Row]:
    """The rows of the chosen models and variants."""
    tasks = [
        (options.against, folder, name, variant)
        for folder in options.folders
        for name in sorted(fused.MODELS if folder == BUILT else read_cases(Path(folder) / "cases.toml"))
        for variant in options.variant or VARIANTS
        if not options.names or any(part in name for part in options.names)
    ]
    rows = []
    with Pool("tests.models.optimised:checked", jobs=options.jobs, limit=LIMIT, memory=MEMORY) as pool:
        for outcome in pool.map(tasks):
            _, _, name, variant = outcome.task
            row = outcome.value if outcome.ok else Row(name, variant, _status(outcome), outcome.message)
            rows.append(row)
            if options.verbose and row.status not in (PASSED, NOT_MADE):
                print(f"{row.name}, {row.variant}: {row.status} {row.text}", file=sys.stderr, flush=True)
    return sorted(rows, key=lambda row: (row.name, row.variant))


def _status(outcome: TaskOutcome) -> str:
    """How a worker failed; a quantiser may not end."""
    return NOT_MADE if outcome.stage == MAKING else outcome.status


def _is_of(row: Row, key: tuple[str, str]) -> bool:
    return (row.name, row.variant) == key


def _print_tables(rows: list[Row], against: str) -> None:
    by_variant: dict[str, Counter[str]] = defaultdict(Counter)
    for row in rows:
        by_variant[row.variant][row.status] += 1
    statuses = sorted({row.status for row in rows}, key=lambda each: (each != PASSED, each))
    head = ("variant", *statuses)
    table = [(variant, *(str(count[each]) for each in statuses)) for variant, count in by_variant.items()]
    total = Counter(row.status for row in rows)
    print(f"{against}\n" + aligned([head, *table, ("all", *(str(total[each]) for each in statuses))]))
    for row in rows:
        if row.status not in (PASSED, NOT_MADE):
            print(f"{row.name}, {row.variant}: {row.status}: {row.text} {reason(row)}".rstrip())
    missing = Counter(row.text for row in rows if row.status == NOT_MADE)
    for text, count in missing.most_common(12):
        print(f"{count} not made: {text}")
    if refused := Counter(row.text for row in rows if row.status == REFUSED):
        print(f"{refused.total()} refused")


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Convert what ONNX Runtime's tools make of models, and compare.")
    parser.add_argument("names", nargs="*", help="parts of the names of models; default: all")
    parser.add_argument("--folder", dest="folders", action="append", help="a folder with a cases.toml")
    every = (*VARIANTS, *WHOLE_RANGE)
    parser.add_argument("--variant", action="append", choices=every, help="only this variant; may be repeated")
    parser.add_argument("--whole-range", action="store_true", help="dynamic quantisation with 8 bits, beside ovc")
    parser.add_argument("--against", choices=("mo_loop", "ovc"), default="mo_loop", help="the converter")
    parser.add_argument("-j", "--jobs", type=int, default=1, help="number of worker processes")
    parser.add_argument("--verbose", action="store_true", help="print every failure as it occurs")
    options = parser.parse_args(arguments)
    if options.whole_range:
        options.variant = options.variant or WHOLE_RANGE
        options.folders = options.folders or [str(MODELS / name) for name in ALL_FOLDERS]
    options.folders = options.folders or [*(str(MODELS / name) for name in FOLDERS), BUILT]
    return options


if __name__ == "__main__":
    sys.exit(main())
