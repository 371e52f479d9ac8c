"""Compare the IR of mo_loop and of ovc with ONNX Runtime for the models in folders: numbers and speed.

    python tools/compare_models.py models                        every .onnx below the folder
    python tools/compare_models.py models --isa AVX2 --isa native int8
                                                                 those whose paths contain int8, on two instruction sets
    python tools/compare_models.py out/real --results rows.jsonl --markdown rows.md

A row is one model on one instruction set: the difference from ONNX Runtime as a part of the largest output, and the
milliseconds of one inference, for our IR, for those of --quantization portable and exact, and for ovc's. `ratio` is
ours divided by ovc's; the spread is the part of it that may be noise. ONNX Runtime computes the expected values without
saturation and with its own instruction set.

The inputs are those of MODEL.npz, of test_data_set_* next to the model, or of the cases.toml that tools/export_real.py
writes; else they are generated. `--isa` sets ONEDNN_MAX_CPU_ISA for OpenVINO (SSE41, AVX2, AVX512_CORE,
AVX512_CORE_VNNI); `native` are those of the machine. Each row is added to --results when it is measured, and the rows
of this file are not measured again. The exit code is 1 if our IR fails, if its numbers are worse than those of ovc's
IR, or if it is slower beyond the spread.
"""

import argparse
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.support.workers import Pool
from tools.real import records
from tools.real.comparison import Row, Side, Task, failed, markdown, measure, models

NATIVE = "native"
VARIABLE = "ONEDNN_MAX_CPU_ISA"


def main(arguments: list[str] | None = None) -> int:
    """Compare the chosen models; 1 if ours is worse than ovc's for one."""
    options = _options(arguments)
    done = {row.name: row for row in _known(options.results)}
    files = models([path for path in options.paths if path.exists()], [str(p) for p in options.paths if not p.exists()])
    names = []
    for isa in options.isa or [NATIVE]:
        tasks = [Task(each, isa, options.seconds, options.threads) for each in files]
        names += [each.name for each in tasks]
        with _instructions(isa), Pool(f"{measure.__module__}:measure", jobs=1, limit=options.limit) as pool:
            for outcome in pool.map(each for each in tasks if each.name not in done):
                row = outcome.value if outcome.ok else failed(outcome.task, outcome.stage, outcome.message)
                done[row.name] = row
                if options.results:
                    records.append(options.results, row)
                print(markdown([row]).splitlines()[2], file=sys.stderr, flush=True)
    rows = [done[name] for name in names]
    if not rows:
        print("no model in the folders that were given", file=sys.stderr)
        return 1
    if options.markdown:
        options.markdown.write_text(markdown(rows), encoding="utf-8")
    print(markdown(rows), end="")
    return int(any(row.missed for row in rows))


def _known(results: Path | None) -> Iterator[Row]:
    for each in records.lines(results) if results else ():
        sides = {name: Side(**side) for name, side in each["sides"].items()}
        yield Row(**each | {"sides": sides})


@contextmanager
def _instructions(isa: str) -> Iterator[None]:
    """The environment of workers that run OpenVINO with an instruction set."""
    before = os.environ.pop(VARIABLE, None)
    try:
        if isa != NATIVE:
            os.environ[VARIABLE] = isa
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        if before is not None:
            os.environ[VARIABLE] = before


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("paths", nargs="+", type=Path, help="folders and models; other words choose names by a part")
    parser.add_argument("--isa", action="append", help=f"the instruction set, or {NATIVE}; may be given more than once")
    parser.add_argument("--seconds", type=float, default=10, help="limit of the timed part of a row (10)")
    parser.add_argument("--threads", type=int, default=1, help="threads that a model runs on (1)")
    parser.add_argument("--results", type=Path, help="add the rows to this file; measure those that it lacks")
    parser.add_argument("--markdown", type=Path, help="write the table to this file as Markdown")
    parser.add_argument("--limit", type=float, default=600, help="seconds for one row (600)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
