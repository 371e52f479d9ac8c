"""Measure the command line against `ovc` and others in the same run, as whole processes, and hold it to targets.

    python tools/bench.py                       the rows of a minute
    python tools/bench.py --full                all rows; some minutes, and files of 16 GB
    python tools/bench.py chain-100k help       these two
    python tools/bench.py --clock cpu           hold CPU times against the targets: for a machine with other work
    python tools/bench.py --json                one JSON document on stdout
    python tools/bench.py --full --gigabytes 1  smaller models in the rows of weights
    python tools/bench.py --write layers 3000 layers.onnx

Each row has two sides, which run in turns: ours, and a peer, which is ovc, a copy of the weights, the same conversion
with another option, or another model. A row's ratio is the median over these pairs of runs; the exit code is 1 if one
is above its target, if a peak of memory is above its limit, or if `--help` imports what it must not. Some rows are
above start-up: the time of a tiny conversion, which runs in the same rounds, is subtracted.

The rows of weights need gigabytes of disk. They are made smaller where the disk does not hold the model and a copy of
it twice; the row which ovc compresses, too, where a quarter of the free memory does not hold the weights.
"""

import argparse
import json
import math
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.benching.bench_rows import FunctionRow, Row, rows
from tools.benching.ratio_table import as_json, print_table
from tools.benching.rounds import CLOCKS, measure

DECODER, EXTERNAL = 8.0, 4.0
"""GB of the largest models."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the chosen rows; 0 if all targets are met, else 1."""
    parser, options = _options(arguments)
    if options.write:
        kind, size, path = options.write
        from tools.benching.model_writers import write

        print(f"{write(kind, float(size), Path(path)):,} nodes")
        return 0
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        every = rows(*sizes(Path(folder), options.gigabytes))
        chosen = _chosen(parser, options, every)
        results = measure(chosen, Path(folder), _say, options.rounds, options.clock)
    left_out = [] if options.benches else [row.name for row in every if row not in chosen]
    if options.json:
        print(json.dumps(as_json(results, left_out, options.clock), indent=2))
    else:
        print_table(results, left_out, options.clock)
    return int(any(each.missed for each in results))


def _options(arguments: Sequence[str] | None) -> tuple[argparse.ArgumentParser, argparse.Namespace]:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    short = ", ".join(row.name for row in rows() if not row.full)
    full = ", ".join(row.name for row in rows() if row.full)
    parser.add_argument("benches", nargs="*", metavar="ROW", help=f"by default: {short}; with --full also: {full}")
    parser.add_argument("--full", action="store_true", help="measure all rows")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    parser.add_argument("--rounds", type=_positive, metavar="N", help="instead of each row's own number of rounds")
    parser.add_argument("--clock", choices=CLOCKS, default=CLOCKS[0], help="the time that counts (default: wall)")
    parser.add_argument("--gigabytes", type=float, metavar="GB", help="the largest size of weights (default: 8)")
    parser.add_argument("--folder", metavar="FOLDER", help="where the files are made (default: the temporary folder)")
    parser.add_argument("--write", nargs=3, metavar=("KIND", "SIZE", "PATH"), help="only write a model of the benches")
    return parser, parser.parse_args(arguments)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def _chosen(
    parser: argparse.ArgumentParser, options: argparse.Namespace, every: Sequence[Row | FunctionRow]
) -> list[Row | FunctionRow]:
    known = {row.name: row for row in every}
    unknown = [name for name in options.benches if name not in known]
    if unknown:
        parser.error(f"no such row: {', '.join(unknown)} (there are: {', '.join(known)})")
    chosen = [known[name] for name in dict.fromkeys(options.benches)] if options.benches else every
    lacking = {row.name: row.lacks for row in chosen if isinstance(row, FunctionRow) and row.lacks}
    if options.benches and lacking:
        parser.error(f"{', '.join(lacking)}: pip install -e '.[verify,cluster]' --group cluster-tests")
    if options.benches:
        return chosen
    return [row for row in every if (options.full or not row.full) and row.name not in lacking]


def sizes(folder: Path, largest: float | None) -> tuple[float, float, float]:
    """GB of the decoder, of the external weights, and of those that ovc compresses: what the machine holds of them."""
    disk = (shutil.disk_usage(folder).free / 1e9 - 4) / 4
    holds = min(disk, largest or DECODER)
    decoder, external = min(DECODER, holds), min(EXTERNAL, holds)
    return decoder, external, min(external, _free_memory() / 4)


def _free_memory() -> float:
    """GB that processes can have without swapping; infinite where the system does not report it."""
    file = Path("/proc/meminfo")
    found = re.search(r"MemAvailable: +([0-9]+) kB", file.read_text()) if file.exists() else None
    return int(found[1]) * 1024 / 1e9 if found else math.inf


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
