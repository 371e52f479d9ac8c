"""Run the ONNX backend test suite: conversion, IR on disk, OpenVINO's CPU device.

    python tools/conformance.py --converter mo_loop -j 2
    python tools/conformance.py --filter '^test_(loop|scan|if)' --kinds node --json report.json
    python tools/conformance.py --runtime 2024.6.0 --json report.json
    python tools/conformance.py --runtime gpu --device GPU --filter '^test_(loop|scan|if)'
    python tools/conformance.py --filter 'quantize|qlinear|integer' --quantization exact
    python tools/conformance.py --write

The results of mo_loop are compared with tests/conformance/expectations.toml, which lists the cases that do not pass and
their reasons: the exit code is 1 if a listed case passes or an unlisted one fails. `--write` updates the lists; add the
reason of a new group by hand. For another converter every case that does not pass counts.

With --runtime the models are converted for this release and all later ones, and the cases that the file lists for this
release are the expected ones.
"""

import argparse
import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.printable import aligned
from mo_loop.support.workers import Pool
from mo_loop.target import NEWEST, shown
from tests.conformance import expectations
from tests.conformance.cases import KINDS, Entry, collect
from tests.running.samples import CLASSES, CONVERTERS, FILLED, PASSED, Verdict, settle
from tools.fuzzing import add_common, add_device, add_quantization, groups, parse
from tools.runtimes import release_of

MEMORY = 12 << 30


def main(arguments: list[str] | None = None) -> int:
    """Run the suite; 0 if the results are the expected ones."""
    options = _options(arguments)
    entries = list(collect(options.kinds.split(","), options.filter))
    kinds = {entry.name: entry.kind for entry in entries}
    verdicts: dict[str, Verdict] = {}
    limits: dict[str, Any] = {"jobs": options.jobs, "limit": options.limit, "memory": MEMORY}
    with Pool("tests.running.samples:judge", env=FILLED, **limits) as pool:
        given = {"quantization": options.quantization, "device": options.device}
        found = judged(pool, entries, options.converter, options.python, options.runtime, given)
        for done, (name, verdict) in enumerate(found, 1):
            verdicts[name] = verdict
            if options.verbose:
                print(f"{done} {name}: {verdict.result} {verdict.code} {verdict.message}", file=sys.stderr)
    print(table(verdicts, kinds))
    _print_failures(verdicts, options.list)
    if options.json:
        rows = [{"kind": kinds[name], "case": name, **asdict(verdict)} for name, verdict in sorted(verdicts.items())]
        Path(options.json).write_text(json.dumps(rows, indent=1), encoding="utf-8")
    if options.converter != "mo_loop":
        return int(any(verdict.result != PASSED for verdict in verdicts.values()))
    if options.write:
        expectations.write(
            expectations.read(options.expectations), verdicts, options.expectations, options.runtime or ""
        )
    expected = expectations.read(options.expectations).on(options.runtime or "")
    return int(_print_differences(expected, verdicts, [entry.name for entry in collect(KINDS)], options.runtime))


def judged(
    pool: Pool, entries: Iterable[Entry], converter: str = "mo_loop", python: str | None = None,
    runtime: str | None = None, arguments: Mapping[str, Any] | None = None,
) -> Iterator[tuple[str, Verdict]]:
    """Name and verdict of each case, in the order in which they end.

    `python` is the interpreter that runs the IR, which is made for the release `runtime` and all later ones.
    `arguments` are those of convert_model.
    """
    target = {"target": f"{release_of(runtime)}-{shown(NEWEST)}"} if runtime and converter == "mo_loop" else {}
    given = {**(arguments or {}), **target}
    samples = (each.sample for each in entries)
    tasks = (replace(each, python=python, arguments={**each.arguments, **given}) for each in samples)
    for outcome in pool.map((converter, task) for task in tasks):
        yield outcome.task[1].name, settle(outcome, pool.call)


def table(verdicts: Mapping[str, Verdict], kinds: Mapping[str, str]) -> str:
    """One line per kind, one column per class, and the share of passed cases."""
    columns = [name for name in CLASSES if any(v.result == name for v in verdicts.values()) or name == PASSED]
    rows = [("kind", "cases", *columns, "passed %")]
    for kind in (*(kind for kind in KINDS if kind in kinds.values()), "all"):
        found = [verdict.result for name, verdict in verdicts.items() if kind in (kinds[name], "all")]
        share = 100 * found.count(PASSED) / max(len(found), 1)
        rows.append((kind, str(len(found)), *(str(found.count(name)) for name in columns), f"{share:.1f}"))
    return aligned(rows, right=range(1, len(rows[0])))


def _print_failures(verdicts: Mapping[str, Verdict], every: bool) -> None:
    failures = [(name, verdict) for name, verdict in sorted(verdicts.items()) if verdict.result != PASSED]
    if not failures:
        return
    if every:
        print("\nfailures")
        for name, verdict in failures:
            print(f"  {name:55} {verdict.result:15} {verdict.code} {verdict.message}")
        return
    print(f"\nfailures by message (--list prints every one)\n{groups(failures, most=60)}")


def _print_differences(
    expected: expectations.Expectations, verdicts: Mapping[str, Verdict], names: list[str], runtime: str | None
) -> bool:
    """Print the differences from the file and the errors in it; returns whether there are any."""
    found = [*expectations.differences(expected, verdicts), *expectations.faults(expected, names)]
    here = expectations.versions() if runtime is None else expected.versions
    if found and expected.versions != here:
        print(f"\nthe expectations are about {_listed(expected.versions)}; installed is {_listed(here)}")
    print(f"\n{len(found)} not as expected\n" + "\n".join(found) if found else "\nall as expected")
    return bool(found)


def _listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--converter", choices=sorted(CONVERTERS), default="mo_loop")
    parser.add_argument("--kinds", default=",".join(KINDS), help="some of " + ", ".join(KINDS))
    parser.add_argument("--filter", default="", metavar="REGEX", help="only cases whose names match")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one case")
    parser.add_argument("--list", action="store_true", help="print every failure with its reason")
    parser.add_argument("--json", metavar="FILE", help="write the verdict of every case")
    parser.add_argument("--expectations", type=Path, metavar="FILE", default=expectations.FILE, help="another file")
    parser.add_argument("--write", action="store_true", help="update the file of expected results")
    add_common(parser, "case")
    add_device(parser)
    add_quantization(parser)
    return parse(parser, arguments, "kinds", KINDS, "kind")


if __name__ == "__main__":
    sys.exit(main())
