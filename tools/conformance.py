"""The ONNX backend test suite through a converter, IR on disk, and OpenVINO's CPU device.

    python tools/conformance.py --converter mo_loop -j 2
    python tools/conformance.py --filter '^test_(loop|scan|if)' --kinds node --json report.json

The cases and their expected outputs are those inside the installed onnx package; nothing is downloaded. The `real`
kind is the package's light models (architectures of well-known networks whose weights are made by ConstantOfShape):
each takes 0, 1/n, 2/n, ... as input and has its expected output stored beside it.

Cases with a sequence, optional or map at the boundary of the model are listed apart: IR has tensors only.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.verify.compare import RTOL
from mo_loop.verify.workers import Pool
from tools.fuzzing.check import CLASSES, CONVERTERS, PASSED, Sample, Verdict, settle
from tools.fuzzing.options import add_common, parse
from tools.fuzzing.report import groups

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator", "real")
NOT_TENSOR = "not a tensor"
MEMORY = 12 << 30

# Their expected outputs are draws of a random generator: only shape and element type can agree.
RANDOM = re.compile(r"^test_(bernoulli|training_dropout(?!_zero_ratio)|random)")


@dataclass
class Entry:
    """A case: what to run, or why it is not run."""

    kind: str
    name: str
    sample: Sample | None


def main(arguments: list[str] | None = None) -> int:
    """Run the suite; 0 if every case with tensors at its boundary passed."""
    options = _options(arguments)
    entries = list(collect(options.kinds.split(","), options.filter))
    verdicts: dict[tuple[str, str], Verdict] = {}
    with Pool("tools.fuzzing.check:judge", jobs=options.jobs, limit=options.limit, memory=MEMORY) as pool:
        tasks = {id(entry.sample): entry for entry in entries if entry.sample is not None}
        for done, outcome in enumerate(pool.map((options.converter, entry.sample) for entry in tasks.values()), 1):
            entry = tasks[id(outcome.task[1])]
            verdicts[entry.kind, entry.name] = settle(outcome, pool.call)
            if options.verbose:
                verdict = verdicts[entry.kind, entry.name]
                print(f"{done} {entry.name}: {verdict.result} {verdict.code} {verdict.message}", file=sys.stderr)
    for entry in entries:
        verdicts.setdefault((entry.kind, entry.name), Verdict(NOT_TENSOR))
    print(table(verdicts))
    _print_failures(verdicts, options.list)
    if options.json:
        rows = [{"kind": k, "case": n, **asdict(v)} for (k, n), v in sorted(verdicts.items())]
        Path(options.json).write_text(json.dumps(rows, indent=1), encoding="utf-8")
    return int(any(verdict.result not in (PASSED, NOT_TENSOR) for verdict in verdicts.values()))


def collect(kinds: Sequence[str], pattern: str = "") -> Iterator[Entry]:
    """The cases of the given kinds whose name matches, in order of name."""
    from onnx.backend.test.loader import load_model_tests

    wanted = re.compile(pattern)
    for kind in kinds:
        with warnings.catch_warnings():
            # Building the node cases casts values out of range on purpose.
            warnings.simplefilter("ignore", RuntimeWarning)
            cases = load_model_tests(kind=kind)
        for case in sorted(cases, key=lambda case: str(case.name)):
            if wanted.search(case.name):
                yield Entry(kind, case.name, _sample(case))


def _sample(case: Any) -> Sample | None:
    """The case as a sample; None if something other than tensors goes in or out."""
    import onnx

    if case.model is not None:
        model, sets = case.model, case.data_sets
    elif case.url:
        source = Path(onnx.__file__).parents[1] / case.url
        model = onnx.load(source)
        sets = [_light_set(model, source)]
    else:
        model = onnx.load(Path(case.model_dir, "model.onnx"))
        sets = [_stored_set(model, folder) for folder in sorted(Path(case.model_dir).glob("test_data_set_*"))]
    ports = (*model.graph.input, *model.graph.output)
    if not all(port.type.HasField("tensor_type") for port in ports) or None in sets:
        return None
    names = [port.name for port in _inputs(model)]
    if len(names) < len(sets[0][0]):
        # Older models list their weights among the inputs, and some data sets give values to those too.
        names = [port.name for port in model.graph.input]
    feeds = [dict(zip(names, map(_array, inputs), strict=False)) for inputs, _ in sets]
    outputs = [port.name for port in model.graph.output]
    expected = [list(zip(outputs, map(_array, values), strict=False)) for _, values in sets]
    return Sample(
        case.name,
        model.SerializeToString(),
        feeds,
        expected,
        tuple(range(len(sets))),
        rtol=case.rtol if case.rtol > RTOL else None,
        values=not RANDOM.match(case.name),
    )


def _inputs(model: Any) -> list[Any]:
    initialised = {tensor.name for tensor in model.graph.initializer}
    return [port for port in model.graph.input if port.name not in initialised]


def _array(value: Any) -> np.ndarray:
    from onnx import TensorProto, numpy_helper

    return numpy_helper.to_array(value) if isinstance(value, TensorProto) else np.asarray(value)


def _light_set(model: Any, source: Path) -> tuple[list[Any], list[Any]]:
    """The input the suite makes for a light model, and the stored output."""
    inputs = []
    for port in _inputs(model):
        shape = [dim.dim_value if dim.HasField("dim_value") else 1 for dim in port.type.tensor_type.shape.dim]
        size = int(np.prod(shape))
        inputs.append((np.arange(size).reshape(shape) / size).astype(np.float32))
    count = len(model.graph.output)
    return inputs, [_load(source.with_name(f"{source.stem}_output_{n}.pb")) for n in range(count)]


def _stored_set(model: Any, folder: Path) -> tuple[list[Any], list[Any]] | None:
    """Inputs and outputs of a data set on disk; None if the model takes or gives other things than tensors."""
    if not all(port.type.HasField("tensor_type") for port in (*model.graph.input, *model.graph.output)):
        return None
    inputs = sorted(folder.glob("input_*.pb"), key=_number)
    outputs = sorted(folder.glob("output_*.pb"), key=_number)
    return [_load(path) for path in inputs], [_load(path) for path in outputs]


def _number(path: Path) -> int:
    return int(path.stem.rpartition("_")[2])


def _load(path: Path) -> Any:
    from onnx import TensorProto

    tensor = TensorProto()
    tensor.ParseFromString(path.read_bytes())
    return tensor


def table(verdicts: dict[tuple[str, str], Verdict]) -> str:
    """One line a kind, one column a class, and the share of passed cases."""
    kinds = [kind for kind in KINDS if any(key[0] == kind for key in verdicts)]
    shown = (*CLASSES, NOT_TENSOR)
    columns = [name for name in shown if any(v.result == name for v in verdicts.values()) or name == PASSED]
    lines = [f"{'kind':20}{'cases':>8}" + "".join(f"{name:>16}" for name in columns) + f"{'passed %':>12}"]
    for kind in (*kinds, "all"):
        found = [v.result for (k, _), v in verdicts.items() if kind in (k, "all")]
        cells = "".join(f"{found.count(name):>16}" for name in columns)
        lines.append(f"{kind:20}{len(found):>8}{cells}{100 * found.count(PASSED) / max(len(found), 1):>12.1f}")
    return "\n".join(lines)


def _print_failures(verdicts: dict[tuple[str, str], Verdict], every: bool) -> None:
    failures = [(name, v) for (_, name), v in sorted(verdicts.items()) if v.result not in (PASSED, NOT_TENSOR)]
    if not failures:
        return
    if every:
        print("\nfailures")
        for name, verdict in failures:
            print(f"  {name:55} {verdict.result:15} {verdict.code} {verdict.message}")
        return
    print(f"\nfailures by message (--list prints every one)\n{groups(failures, most=60)}")


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--converter", choices=sorted(CONVERTERS), default="mo_loop")
    parser.add_argument("--kinds", default=",".join(KINDS), help="some of " + ", ".join(KINDS))
    parser.add_argument("--filter", default="", metavar="REGEX", help="names of cases")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds for one case")
    parser.add_argument("--list", action="store_true", help="print every failure with its reason")
    parser.add_argument("--json", metavar="FILE", help="write the verdict of every case")
    add_common(parser, "case")
    return parse(parser, arguments, "kinds", KINDS, "kind")


if __name__ == "__main__":
    sys.exit(main())
