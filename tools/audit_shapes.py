"""Compare the types and shapes of every port of our IR with those OpenVINO infers for the same file, bodies included.

    python tools/audit_shapes.py -j 2
    python tools/audit_shapes.py --sources models,fuzz --count 100 --seed 3 --notes less
    python tools/audit_shapes.py --against-onnx

The models are those of the conformance suites, of the tests, and random ones with control flow. A table by operation
counts the ports by class (see tools/auditing/ports.py); the inferred shapes of values in the main graph are compared
with those of actual runs. The exit code is 0 if there is no contradiction to the runtime or to a run, and at least
99.5% of the ports are equal or more precise.

--against-onnx compares the models of the tests before any pass with onnx.shape_inference with data propagation: the
number of dimensions with a value or a symbol on either side, of the tensors that both know by name.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from itertools import chain
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.support.printable import aligned
from mo_loop.support.workers import Pool, TaskOutcome
from tests.conformance.cases import KINDS
from tests.fuzz.control_flow.options import add_common, parse
from tools.auditing.ports import CLASSES, CONTRADICTION, EQUAL, LESS, MORE, Report, Task
from tools.auditing.sources import FOLDERS, RANDOM, exported, random, suites

SOURCES = (*KINDS, FOLDERS, RANDOM)
SHARE = 0.995
MEMORY = 12 << 30


def main(arguments: list[str] | None = None) -> int:
    """Audit the chosen models; 0 if there is no contradiction and enough ports are as precise as the runtime's."""
    options = _options(arguments)
    if options.against_onnx:
        from tools.auditing.against_onnx import compare

        return compare()
    reports: list[tuple[str, str, Report]] = []
    broken: list[str] = []
    with Pool("tools.auditing.ports:audit", jobs=options.jobs, limit=options.limit, memory=MEMORY) as pool:
        for outcome in pool.map(_tasks(options)):
            task: Task = outcome.task
            if options.verbose:
                print(f"{task.source} {task.name}: {outcome.status}", file=sys.stderr)
            if not outcome.ok:
                first, outcome = outcome, pool.call(Task(task.source, task.name, task.model, []))
                broken.append(_broken(task, first, outcome))
            if outcome.ok:
                reports.append((task.source, task.name, outcome.value))
    reports.sort(key=lambda entry: entry[:2])
    every = [report for _, _, report in reports]
    print(table(every))
    print(f"\n{_summary(every)}")
    _print_notes(reports, broken, options.notes)
    if options.json:
        Path(options.json).write_text(json.dumps([_row(*entry) for entry in reports], indent=1), encoding="utf-8")
    counts = total(every)
    good = counts[EQUAL] + counts[MORE] >= SHARE * counts.total()
    return int(not good or counts[CONTRADICTION] > 0 or any(report.untrue for report in every))


def _tasks(options: argparse.Namespace) -> Iterator[Task]:
    chosen = options.sources.split(",")
    kinds = [kind for kind in KINDS if kind in chosen]
    found = [suites(kinds)] if kinds else []
    if FOLDERS in chosen:
        found.append(exported())
    if RANDOM in chosen:
        found.append(random(options.count, options.seed, options.jobs))
    return (task for task in chain(*found) if options.filter in f"{task.source}/{task.name}")


def _broken(task: Task, first: TaskOutcome, second: TaskOutcome) -> str:
    end = "audited without running it" if second.ok else f"{second.stage}: {second.message}"
    return f"{task.source}/{task.name}: {first.status} at {first.stage} ({first.message}); {end}"


def total(reports: Sequence[Report]) -> Counter[str]:
    """Ports by class."""
    counts: Counter[str] = Counter()
    for report in reports:
        for (_, label), number in report.ports.items():
            counts[label] += number
    return counts


def table(reports: Sequence[Report]) -> str:
    """One line per operation, one column per class; operations with the most imprecise ports first."""
    by_kind: dict[str, Counter[str]] = {}
    for report in reports:
        for (kind, label), number in report.ports.items():
            by_kind.setdefault(kind, Counter())[label] += number
    order = sorted(by_kind, key=lambda kind: (-by_kind[kind][CONTRADICTION], -by_kind[kind][LESS], kind))
    rows = [("operation", "ports", *CLASSES)]
    for kind, counts in [*((kind, by_kind[kind]) for kind in order), ("all", total(reports))]:
        rows.append((kind, str(counts.total()), *(str(counts[label]) for label in CLASSES)))
    return aligned(rows, right=range(1, len(rows[0])))


def _summary(reports: Sequence[Report]) -> str:
    counts = total(reports)
    converted = [report for report in reports if not report.refused]
    run = [report for report in converted if report.confirmed]
    share = 100 * (counts[EQUAL] + counts[MORE]) / max(counts.total(), 1)
    return (
        f"{len(converted)} models, {len(reports) - len(converted)} refused; {counts.total()} ports, "
        f"{sum(report.in_bodies for report in converted)} of them in bodies; {share:.3f} % equal or more precise.\n"
        f"Compared with runs of {len(run)} models: {sum(report.confirmed for report in run)} ports, of which "
        f"{sum(report.verified for report in run)} are more precise than the runtime's; "
        f"{sum(len(report.untrue) for report in run)} types were contradicted by a run.\n"
        f"For {sum(len(report.overclaimed) for report in run)} of the less precise ports a run contradicted the "
        "runtime's own bounds."
    )


def _print_notes(reports: Sequence[tuple[str, str, Report]], broken: Sequence[str], wanted: str) -> None:
    labels = {"less": (CONTRADICTION, LESS), "more": (CONTRADICTION, LESS, MORE), "": (CONTRADICTION,)}[wanted]
    for source, name, report in reports:
        for kind, label, text in report.notes:
            if label in labels:
                print(f"{label}: {source}/{name}: {kind} {text}")
        for text in report.untrue:
            print(f"untrue: {source}/{name}: {text}")
        for layer, index in sorted(report.overclaimed) if wanted else ():
            print(f"overclaimed by the runtime: {source}/{name}: {layer}:{index}")
        if wanted and report.unverified:
            print(f"not run: {source}/{name}: {report.unverified}")
    for text in broken:
        print(text)


def _row(source: str, name: str, report: Report) -> dict[str, object]:
    ports = [[*key, number] for key, number in sorted(report.ports.items())]
    overclaimed = sorted(report.overclaimed)
    return {"source": source, "name": name, **asdict(report), "ports": ports, "overclaimed": overclaimed}


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", default=",".join(SOURCES), help="some of " + ", ".join(SOURCES))
    parser.add_argument("--filter", default="", metavar="TEXT", help="only models whose source/name contains this")
    parser.add_argument("--count", type=int, default=300, help="number of random models")
    parser.add_argument("--seed", type=int, default=1, help="seed of the random models")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds for one model")
    parser.add_argument("--notes", choices=("less", "more"), default="", help="list the ports of this class, too")
    parser.add_argument("--json", metavar="FILE", help="write the results of every model")
    parser.add_argument("--against-onnx", action="store_true", help="compare with ONNX's own shape inference instead")
    add_common(parser, "model")
    return parse(parser, arguments, "sources", SOURCES, "source")


if __name__ == "__main__":
    sys.exit(main())
