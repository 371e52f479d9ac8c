"""Convert or read damaged files, and print each error that is a bug: every file is accepted, or refused with a code.

    python tools/fuzz_bytes.py --count 10000 --seed 1 -j 2
    python tools/fuzz_bytes.py --seed 1 --only 4711 --trace        # one execution again
    python tools/fuzz_bytes.py --seed 1 --only 4711 --keep 4711.onnx
    python tools/fuzz_bytes.py --kind ir --count 50000 --seed 1

The files are small models of every operator (tests/fuzz/damage) whose bytes or fields are damaged; with `--kind ir`
small pairs of .xml and .bin with every layer (tests/fuzz/ir_damage), which are read. The exit code is 1
if an execution ended in an internal error, ended its process, took more than 20 seconds or needed more than 4 GB.
Failures of one place are shown once, with the number of one execution that repeats them.
"""

import argparse
import sys
import time
from collections import defaultdict
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.fuzz.damage.execution import KINDS, Failure, Found
from tests.fuzz.damage.running import run

SHOWN_EACH = 5_000
"""After so many executions a line shows the progress."""


def main(arguments: list[str] | None = None) -> int:
    """Run the fuzzer; 1 if an execution failed."""
    options = _options(arguments)
    first, count = (options.first, options.count) if options.only is None else (options.only, 1)
    if options.keep:
        kind = KINDS[options.kind]
        kind.write(kind.damaged(options.seed, first)[1], Path(options.keep))
    start = time.perf_counter()
    print(f"seed {options.seed}, executions {first} to {first + count - 1}", flush=True)
    seen: set[str] = set()
    shown = 0

    def told(found: Found) -> None:
        nonlocal shown
        done = found.accepted + sum(found.refused.values()) + len(found.failures)
        if done >= shown + SHOWN_EACH:
            shown = done
            print(f"{done} executions, {len(found.failures)} failed", file=sys.stderr, flush=True)
        for each in found.failures:
            if each.place not in seen:
                seen.add(each.place)
                print(_shown(each, options.seed, options.trace), flush=True)

    found = run(options.kind, options.seed, first, count, options.jobs, told)
    refused = sum(found.refused.values())
    print(f"\n{found.accepted} accepted, {refused} refused, {len(found.failures)} failed", end="")
    print(f", {time.perf_counter() - start:.0f} s")
    print(" ".join(f"{code}:{count}" for code, count in sorted(found.refused.items(), key=lambda each: -each[1])))
    places: dict[str, list[int]] = defaultdict(list)
    for failure in found.failures:
        places[failure.place].append(failure.number)
    for place, numbers in sorted(places.items(), key=lambda each: -len(each[1])):
        print(f"{len(numbers):5}  {place}  {numbers[:5]}")
    return int(bool(found.failures))


def _shown(failure: Failure, seed: int, with_trace: bool) -> str:
    text = f"{failure.place}: {failure.text}\n    {failure.source}, --seed {seed} --only {failure.number}"
    return f"{text}\n{failure.trace}" if with_trace else text


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=10_000, help="number of executions")
    parser.add_argument("--first", type=int, default=0, help="number of the first execution")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--kind", choices=sorted(KINDS), default="onnx", help="the kind of the files")
    parser.add_argument("--only", type=int, metavar="NUMBER", help="one execution only")
    parser.add_argument("--keep", metavar="FILE", help="write the damaged file of --only, or of --first")
    parser.add_argument("--trace", action="store_true", help="print the end of the traceback of each failure")
    parser.add_argument("-j", "--jobs", type=int, default=1)
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
