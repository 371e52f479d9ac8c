"""Export networks of real size to ONNX, with random weights, and quantise them.

    pip install torch==2.13.0 transformers==5.23.0 onnx onnxscript onnxruntime sympy
    pip install torchvision==0.28.0                   # for networks of images; of the same build as torch (CPU, CUDA)
    python tools/export_real.py                       # every row, into out/real (about 6 GB)
    python tools/export_real.py resnet50 bert-int4    # the rows whose names contain one of these
    python tools/export_real.py --list                # the names of the rows
    python tools/export_real.py cached                # the decoders of tools/bench_states.py (1 GB)

The rows are in tests/models/sources/real_models/rows.py. What the folder holds already is not made again. Nothing is
downloaded. tools/bench_inference.py --folder out/real measures the result.
"""

import argparse
import importlib
import importlib.util
import logging
import sys
import time
import traceback
import warnings
from concurrent.futures import Executor, ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.models.sources.exporting.inputs import read_cases
from tests.models.sources.real_models.rows import FILES, VARIANTS, WEIGHTS_ONLY, Entry, cached, matching

NEEDED = ("numpy", "onnx", "onnxruntime", "onnxscript", "sympy", "torch", "transformers")
TOOL = "tools/export_real.py"
CASES = "cases.toml"


def main(arguments: list[str] | None = None) -> int:
    """Export the rows named on the command line, or all of them; 1 if one could not be made."""
    parser = argparse.ArgumentParser(description="Export networks of real size to ONNX, and quantise them.")
    parser.add_argument("--out", type=Path, default=Path("out", "real"), help="folder to write to")
    parser.add_argument("--list", action="store_true", help="print the names of the rows, and end")
    parser.add_argument("names", nargs="*", metavar="NAME", help="parts of the names of rows; default: all")
    options = parser.parse_args(arguments)
    chosen = [*matching(options.names), *cached(options.names)]
    if not chosen:
        parser.error(f"no row is named {' or '.join(options.names)}; --list prints all names")
    if options.list:
        print("\n".join(f"{each.name:32} {VARIANTS.get(each.variant, '')}".rstrip() for each in chosen))
        return 0
    if missing := [each for each in NEEDED if importlib.util.find_spec(each) is None]:
        print(f"not installed: {', '.join(missing)}; see the first lines of {TOOL}", file=sys.stderr)
        return 1
    options.out.mkdir(parents=True, exist_ok=True)
    wanted = [each for entry in chosen for each in (Entry(entry.model), entry)]
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        failed = [each.name for each in dict.fromkeys(wanted) if not _made(process, options.out, each)]
    if failed:
        print(f"not made: {', '.join(failed)}", file=sys.stderr)
    return int(bool(failed))


def _made(process: Executor, folder: Path, entry: Entry) -> bool:
    """Whether the file of a row exists; `process` makes it if it does not."""
    target = folder / f"{entry.stem}.onnx"
    if target.exists():
        return True
    started = time.perf_counter()
    error = process.submit(make, folder, entry).exception()
    took = time.perf_counter() - started
    if error is not None:
        traceback.print_exception(error)
        print(f"{entry.stem:32} failed: {type(error).__name__}", flush=True)
        return False
    print(f"{entry.stem:32} {target.stat().st_size / 1e6:8.1f} MB  {took:5.1f} s", flush=True)
    return True


def make(folder: Path, entry: Entry) -> None:
    """Write the file of a row; that of its model in f32 must exist for a variant of it."""
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    target = folder / f"{entry.stem}.onnx"
    unfinished = target.with_suffix(".part")
    source = folder / f"{entry.model}.onnx"
    if not entry.variant:
        _export(folder, entry.model, unfinished)
    elif entry.variant == "f16":
        _halve(source, unfinished)
    elif entry.variant in WEIGHTS_ONLY:
        _compress(source, unfinished, entry.variant)
    else:
        from tests.models.sources.real_models import integers

        integers.quantise(source, unfinished, entry.variant, read_cases(folder / CASES)[entry.model].example)
    unfinished.replace(target)


def _export(folder: Path, name: str, target: Path) -> None:
    """Write a model in f32, and add its inputs to those of the folder."""
    import onnx

    from tests.models.sources.exporting.protos import strip
    from tests.models.sources.exporting.pytorch import build, convert
    from tests.models.sources.exporting.writing import cases_toml

    file = next(key for key, names in FILES.items() if name in names)
    model = importlib.import_module(f"tests.models.sources.real_models.{file}").MODELS[name]
    proto = convert(model, build(model))
    strip(proto)
    onnx.save(proto, target)
    cases = folder / CASES
    before = cases.read_text(encoding="utf-8") if cases.exists() else ""
    if f"[{name}]" not in before:
        cases.write_text(f"{before}{cases_toml({name: model}, TOOL)}", encoding="utf-8")


def _halve(source: Path, target: Path) -> None:
    import onnx
    from onnxruntime.transformers.float16 import convert_float_to_float16

    onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=True), target)


def _compress(source: Path, target: Path, variant: str) -> None:
    import onnx

    from tests.models.sources.real_models.blocked_weights import SCHEMES, quantise_weights

    onnx.save(quantise_weights(onnx.load(source), SCHEMES[variant]), target)


if __name__ == "__main__":
    sys.exit(main())
