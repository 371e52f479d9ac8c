"""Convert models of known sizes, give the IR other sizes, and compare the results with ONNX Runtime's.

    python tools/fuzz_reshape.py --of models --count 300 --seed 1 -j 2
    python tools/fuzz_reshape.py --of suite --filter '^test_lstm' --verbose
    python tools/fuzz_reshape.py --of control,operators --count 200 --seed 3 --json report.json

Sources: models (tests/models), suite (the ONNX backend test suite), operators, control (random control flow), graphs;
and folders, in which NAME.npz has the arrays for the inputs of NAME.onnx, by their names.
A model is given the sizes of its first set of inputs before it is converted. The exit code is 1 if a change gives other
numbers or ends the process, or if it is an error where the IR of ovc is right.
"""

import argparse
import json
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
import onnx

from mo_loop.support.workers import Pool
from tests.fuzz.reshaping import ERROR, LEFT_OUT, RIGHT, SIGNAL, WRONG, Found, Task, judge, of_known_sizes
from tests.running.samples import FILLED, Sample
from tools.fuzzing import fuzzer, numbers_of, parse, require_known

__all__ = ["judge"]


def main(arguments: list[str] | None = None) -> int:
    """Run the harness; 1 if it finds a fault, else 0."""
    options = _options(arguments)
    print(f"seed {options.seed}", flush=True)
    counts: Counter[str] = Counter()
    rows: list[dict[str, Any]] = []
    bad = 0
    with Pool("tests.fuzz.reshaping:judge", jobs=options.jobs, limit=300, env=FILLED) as pool:
        for outcome in pool.map(tasks(options)):
            text = f"{outcome.status} {outcome.stage}: {outcome.message}"
            found = outcome.value if outcome.ok else Found(refused=text)
            counts["models"] += 1
            if found.refused:
                counts["not converted" if outcome.ok else "harness failed"] += 1
                print(f"{outcome.task.name}: {found.refused[:200]}", flush=True)
            for change in found.changes:
                counts[change.result] += 1
                rows.append({"model": outcome.task.name, **asdict(change)})
                fault = change.result in (WRONG, SIGNAL) or (change.result == ERROR and change.peer == RIGHT)
                bad += fault
                counts["error where ovc is right"] += change.result == ERROR and change.peer == RIGHT
                if change.result not in (RIGHT, LEFT_OUT) or options.verbose:
                    peer = f" (ovc: {change.peer})" if change.peer else ""
                    said = f"{change.what} ({change.way}): {change.result}{peer} {change.message}"
                    print(f"{outcome.task.name}: {said}", flush=True)
    print(", ".join(f"{count} {name}" for name, count in counts.most_common() if count))
    if options.json:
        Path(options.json).write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return int(bool(bad))


def tasks(options: argparse.Namespace) -> Iterator[Task]:
    """The models of the sources that the options choose."""
    for source in options.of.split(","):
        models = SOURCES[source](options) if source in SOURCES else _folder(Path(source), options)
        for name, proto, feeds in models:
            named = {name: np.asarray(array) for name, array in feeds.items()}
            known = of_known_sizes(proto, named)
            yield Task(f"{source}/{name}", known.SerializeToString(), named, options.seed, options.most,
                       dict(options.argument), options.python)


Source = Iterator[tuple[str, onnx.ModelProto, Mapping[str, Any]]]


def _models(options: argparse.Namespace) -> Source:
    from tests import MODELS
    from tests.models.exported import Exported

    for folder in sorted(path.parent for path in MODELS.glob("*/cases.toml")):
        exported = Exported(folder.name)
        for name in exported.names:
            if re.search(options.filter, f"{folder.name}/{name}"):
                yield f"{folder.name}/{name}", onnx.load(exported.path(name)), exported.models[name].sets[0]


def _folder(folder: Path, options: argparse.Namespace) -> Source:
    for path in sorted(folder.glob("*.onnx")):
        if re.search(options.filter, path.stem):
            with np.load(path.with_suffix(".npz")) as arrays:
                yield path.stem, onnx.load(path), dict(arrays)


def _suite(options: argparse.Namespace) -> Source:
    from tests.conformance.cases import KINDS, collect

    for entry in collect(KINDS, options.filter):
        yield from _named(entry.sample)


def _operators(options: argparse.Namespace) -> Source:
    from tests.fuzz.operators.table import FAMILIES, operators_of

    names = [name for family in FAMILIES for name in operators_of(family) if re.search(options.filter, name)]
    wanted = ((options.seed, number, names[number % len(names)], None) for number in numbers_of(options))
    with Pool("tests.fuzz.operators.trial:oracle", jobs=1, limit=60) as pool:
        for outcome in pool.map(wanted):
            if outcome.ok and outcome.value.sample is not None:
                yield from _named(outcome.value.sample)


def _control(options: argparse.Namespace) -> Source:
    with Pool("tests.fuzz.control_flow.oracle:oracle", jobs=1, limit=60) as pool:
        for outcome in pool.map((options.seed, number) for number in numbers_of(options)):
            if outcome.ok and isinstance(outcome.value, Sample):
                yield from _named(outcome.value)


def _graphs(options: argparse.Namespace) -> Source:
    from tests.fuzz.graphs import draw

    for number in numbers_of(options):
        case = draw(options.seed, number)
        if case.model.graph.node:
            yield case.name, case.model, case.sets[0]


def _named(sample: Sample) -> Source:
    """The model and its first set of inputs by name, if all are tensors of known rank."""
    proto, feeds = onnx.load_from_string(sample.model), sample.feeds[0]
    constants = {each.name for each in proto.graph.initializer}
    inputs = [port for port in proto.graph.input if port.name not in constants]
    if not isinstance(feeds, Mapping):
        feeds = dict(zip((port.name for port in inputs), feeds, strict=False))
    if all(port.type.HasField("tensor_type") and isinstance(feeds.get(port.name), np.ndarray) for port in inputs):
        yield sample.name, proto, feeds


SOURCES = {"models": _models, "suite": _suite, "operators": _operators, "control": _control, "graphs": _graphs}


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = fuzzer(__doc__, "model")
    sources = ", ".join(SOURCES)
    parser.add_argument("--of", default="models", help=f"sources, separated by commas: {sources}, folders (models)")
    parser.add_argument("--filter", default="", metavar="REGEX", help="names of models or cases")
    parser.add_argument("--most", type=int, default=8, help="the most changes of one model (8)")
    parser.add_argument("--json", metavar="FILE", help="write all changes to this file")
    parser.set_defaults(argument={})
    options = parse(parser, arguments)
    for name in options.of.split(","):
        if not Path(name).is_dir():
            require_known(parser, name, SOURCES, "source")
    return options


if __name__ == "__main__":
    sys.exit(main())
