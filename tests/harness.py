"""Models, checks and rows of parameters for the tests. tests/running/__init__.py explains how they run.

model = parsed('''
    main (float[N] x, int64 n) => (float[N] y) {
      y = Loop (n, "", x) <body = step (int64 i, bool c, float[N] s) => (bool d, float[N] t) {
        d = Identity (c)
        t = Add (s, s)
      }>
    }''')
check(model, {"x": x, "n": 3}, {"x": x, "n": 0})                # a model, written in the text of onnx.parser
check_node("Concat", {"a": a, "b": b}, {"axis": 1}, opset=13)   # one ONNX node
check_graph("%x = Parameter : f32[N] ...", [x])                 # a graph of the IR, written as text

@every(axis=[0, 1], dtype=[np.float32, np.int64], dynamic=[False, True])    # 8 rows: all combinations
@pairs(axis=[0, 1], dtype=[np.float32, np.int64], dynamic=[False, True])    # 4 rows: every two values meet

Most tests are texts that use these functions: tests/cases.py. A check converts here; native code runs in a worker
process. With MO_LOOP_RUNTIME=RELEASE the IR runs on another OpenVINO release (tools/runtimes.py makes its environment).
"""

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from itertools import combinations, product
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper, numpy_helper

from mo_loop.api import convert_model, save_model
from mo_loop.compare.execution.isolated import IsolatedError, isolated
from mo_loop.compare.execution.runtime import run_ir
from mo_loop.compare.results.array_comparison import Named
from mo_loop.errors import ConversionErrors, MoLoopError, NotComparableError
from mo_loop.graph.verifier import invariants
from mo_loop.ir.bin import Weights
from mo_loop.ir.xml import XmlWriter
from mo_loop.target import MEASURED, Release
from mo_loop.target import version as numbers
from mo_loop.text import parse
from mo_loop.transforms.config import PassConfig
from mo_loop.transforms.pipelines import LOOPS, RULES
from mo_loop.transforms.runtime.lower_barriers import LowerBarriers
from tests.interpreter import interpret
from tests.running.processor import fail_or_skip, processor
from tests.running.samples import CompiledElsewhere, Expected, Inferred, Sample, expected_values, judge_ir
from tests.running.together import later, passed, values
from tools.gap_table import GAPS
from tools.runtimes import VARIABLE, chosen_interpreter, release_of

Array = np.ndarray[Any, Any]
Feeds = Mapping[str, Any]
E = TypeVar("E", bound=BaseException)

NEWEST = onnx.defs.onnx_opset_version()
RELEASE = release_of(os.environ.get(VARIABLE, "")) or version("openvino").partition("-")[0]
BY_ID = {gap.id: gap for gap in GAPS}
"""RELEASE runs the IR: the installed OpenVINO, or that of MO_LOOP_RUNTIME; its gaps are those of docs/runtime.md."""

OLDER = [
    rule
    for rule in RULES
    if any(gap.is_in(RELEASE) for gap in rule.avoids) and not any(gap.is_in(MEASURED[-1]) for gap in rule.avoids)
]
"""Rules that the release needs and the newest one does not: the graphs of `check_graph` have the form of the newest."""


def parsed(text: str, opset: int = 18, **domains: int) -> onnx.ModelProto:
    """A ModelProto from the text of its graph and functions; `domains` are imported besides ONNX's own."""
    imports = ", ".join(f'"{domain}": {version}' for domain, version in {"": opset, **domains}.items())
    return onnx.parser.parse_model(f"<ir_version: 10, opset_import: [{imports}]>\n{text}")


def with_weights(model: str | onnx.ModelProto, weights: Feeds | None = None, /, **others: Any) -> onnx.ModelProto:
    """The model, or that of a text, with these arrays as initializers; one that has no array is a TensorProto."""
    made = parsed(model) if isinstance(model, str) else model
    for name, each in {**(weights or {}), **others}.items():
        is_proto = isinstance(each, onnx.TensorProto)
        made.graph.initializer.append(each if is_proto else numpy_helper.from_array(np.asarray(each), name))
    return made


def without(*passes: Any) -> PassConfig:
    """A configuration in which these passes do not run."""
    config = PassConfig()
    config.disable(*passes)
    return config


def folded(**options: Any) -> dict[str, Any]:
    """Options of a conversion for the declared sizes, without checks of them: what they decide is constant."""
    return {"static": True, "config": without("WriteSizes"), **options}


def keeping_loops() -> PassConfig:
    """A configuration without the passes that shorten loops, for other processes: the mark keeps_loops does not reach
    them."""
    return without(*LOOPS)


def check(
    model: Any,
    *feeds: Feeds,
    expected: Sequence[Named] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
    compress_to_fp16: bool = False,
    **arguments: Any,
) -> list[Named]:
    """Convert, save, and at the end of the test compile, run all `feeds` forwards and backwards on that one compiled
    model, compare (tests/running/together.py).

    `expected` replaces the oracle; `arguments` go to convert_model. AssertionError when a number differs, or a shape
    is not the inferred one. Returns the expected values of each of `feeds`.
    """
    sets = [{name: np.asarray(value) for name, value in each.items()} for each in feeds] or [{}]
    converted = convert_model(model, **arguments)
    assert not invariants(converted.graph)  # tests/running/rows.py chooses who checks them after each pass
    wanted = oracle(model, sets) if expected is None else Expected(list(expected), "the test")
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "model.xml"
    save_model(converted, path, compress_to_fp16=compress_to_fp16)
    order = (*range(len(sets)), *reversed(range(len(sets))))
    limits: dict[str, Any] = {"rtol": rtol, "atol": atol, "exact": True, "inferred": Inferred(converted.graph)}
    sample = Sample("model", b"", sets, wanted.values, order, python=chosen_interpreter(), **limits)
    later(folder, path, sample, f"expected values: {wanted.source} {wanted.reason}")
    return wanted.values


def oracle(model: Any, sets: Sequence[Feeds]) -> Expected:
    """The outputs of the model for each set of inputs, by ONNX Runtime or the reference evaluator."""
    if not isinstance(model, onnx.ModelProto):
        return _computed(model, sets)
    source = model.SerializeToString()
    known = values(source, sets)
    if known.found is None:
        known.keep(found := _computed(source, sets))
        return found
    return known.found


def _computed(model: Any, sets: Sequence[Feeds]) -> Expected:
    try:
        return isolated(expected_values, model, list(sets))
    except IsolatedError as error:
        if error.error != NotComparableError.__name__:
            raise
        said = str(error).partition(f"{NotComparableError.code}: ")[2].partition("\nTraceback")[0]
        raise NotComparableError(" ".join(said.split()), hint="give the test `expected=`") from None


def run_converted(model: Any, *feeds: Feeds) -> list[Named]:
    """The outputs of the converted model for each of `feeds`, on one compiled model."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        converted = convert_model(model)
        save_model(converted, path)
        found = isolated(_run, path, list(feeds), chosen_interpreter())
    inferred = Inferred(converted.graph)
    said = [inferred.contradiction(given, arrays) for given, arrays in zip(feeds, found, strict=True)]
    assert not any(said), said
    return found


def _run(path: Path, sets: list[Feeds], python: str | None) -> list[Named]:
    if python is None:
        return run_ir(path, sets)
    compiled = CompiledElsewhere(path, python)
    return [compiled.run(feeds) for feeds in sets]


def check_node(
    op_type: str,
    inputs: Mapping[str, Any],
    attributes: Mapping[str, Any] | None = None,
    *,
    opset: int,
    outputs: int | Sequence[str] = 1,
    constants: Sequence[str] = (),
    dynamic: bool | Sequence[str] = False,
    expected: Sequence[Any] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> list[Any]:
    """Check a model of one node, as `node_model` makes it. `expected` are arrays; returned are the expected ones."""
    model = node_model(op_type, inputs, attributes, opset=opset, outputs=outputs, constants=constants, dynamic=dynamic)
    feeds = {name: value for name, value in inputs.items() if value is not None and name not in constants}
    return check_model(model, feeds, expected=expected, rtol=rtol, atol=atol)


def check_model(
    model: onnx.ModelProto,
    *feeds: Feeds,
    expected: Sequence[Any] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> list[Any]:
    """`check`, with `expected` as arrays that all of `feeds` give. Returns the expected arrays of the last."""
    named = None if expected is None else [_named(model, expected)] * len(feeds)
    return [array for _, array in check(model, *feeds, expected=named, rtol=rtol, atol=atol)[-1]]


def check_graph(text: str, *feeds: Sequence[Any], oracle: Callable[..., Sequence[Any]] | None = None) -> None:
    """Run a graph for every feed (arrays in the order of the Parameters), forwards, backwards and interleaved.

    The Results must be those of tests/interpreter.py, or what `oracle` returns for the arrays of a feed. AssertionError
    when anything differs.
    """
    oracle = oracle or (lambda *feed: interpret(parse(text), feed))
    graph = parse(text)
    for each in (*OLDER, LowerBarriers):
        each().run(graph)
        graph.validate()
    assert not invariants(graph)
    expected = [[(f"output {n}", np.asarray(array)) for n, array in enumerate(oracle(*each))] for each in feeds]
    forwards = range(len(feeds))
    order = (*forwards, *reversed(forwards), *forwards[::2], *forwards[1::2], *forwards)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "form.xml"
        with open(path, "w", encoding="utf-8", newline="\n") as xml, open(path.with_suffix(".bin"), "wb") as data:
            XmlWriter(xml, Weights(data)).write(graph)
        sample = Sample("form", b"", feeds, expected, order, rtol=1e-5, exact=True, python=chosen_interpreter())
        known = passed(path, sample)
        if known.found:
            return
        verdict = isolated(judge_ir, path, sample)
    fail_or_skip([f"{verdict.result}: {verdict.message}"] if verdict.bad else [])
    known.keep(True)


def _named(model: onnx.ModelProto, arrays: Sequence[Any]) -> Named:
    return [(port.name, np.asarray(array)) for port, array in zip(model.graph.output, arrays, strict=True)]


# -- arrays


def floats(*shape: int, seed: int = 0) -> Array:
    """Random numbers of a normal distribution, as float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def f32(*items: float) -> Array:
    """A vector."""
    return np.array(items, np.float32)


def i64(item: Any) -> Array:
    """A scalar, or what a list makes."""
    return np.array(item, np.int64)


def boolean(item: Any) -> Array:
    """A scalar, or what a list makes."""
    return np.array(item, np.bool_)


def raised(kind: type[E], call: Callable[..., Any], *arguments: Any, match: str = "", **options: Any) -> E:
    """The error that a call has to raise, with a text that has the pattern `match`."""
    with pytest.raises(kind, match=match or None) as caught:
        call(*arguments, **options)
    return caught.value


def refusal(model: onnx.ModelProto, **arguments: Any) -> MoLoopError:
    """The first error of a conversion, which has to fail."""
    error = raised(MoLoopError, convert_model, model, **arguments)
    return error.errors[0] if isinstance(error, ConversionErrors) else error


# -- models of nodes


def node_model(
    op_type: str,
    inputs: Feeds,
    attributes: Mapping[str, Any] | None = None,
    *,
    opset: int,
    outputs: int | Sequence[str] = 1,
    constants: Sequence[str] = (),
    dynamic: bool | Sequence[str] = False,
) -> Any:
    """A ModelProto of one node; `com.microsoft::QuickGelu` is an operator of another domain, `opset` its version.

    Inputs are named arrays in the order of the operator's ports; None is an absent input. Those listed in `constants`
    become initializers, the others model inputs. `dynamic` makes every dimension symbolic, of all model inputs or of
    those it lists. (Do not list a shape that is an input: its length must be static, because ranks are static.)
    """
    domain, _, op_type = op_type.rpartition("::")
    names = [f"out{i}" for i in range(outputs)] if isinstance(outputs, int) else list(outputs)
    ports = [name if value is not None else "" for name, value in inputs.items()]
    node = helper.make_node(op_type, ports, names, name=op_type.lower(), domain=domain, **(attributes or {}))
    present = {name: value for name, value in inputs.items() if value is not None}
    return graph_model(
        [node],
        {name: value for name, value in present.items() if name not in constants},
        [name for name in names if name],
        opset=opset,
        constants={name: value for name, value in present.items() if name in constants},
        dynamic=dynamic,
        domain=domain,
    )


def graph_model(
    nodes: Sequence[Any],
    inputs: Feeds,
    outputs: Sequence[str],
    *,
    opset: int,
    constants: Feeds | None = None,
    dynamic: bool | Sequence[str] = False,
    domain: str = "",
) -> Any:
    """A ModelProto of several nodes; the arrays in `inputs` only give names, types and shapes."""
    graph = helper.make_graph(
        list(nodes),
        "test",
        [_port(name, np.asarray(value), _is_listed(name, dynamic)) for name, value in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid(domain, opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=helper.find_min_ir_version_for(opsets, True))


def need_onnxruntime(release: str) -> None:
    """Skip the test if the installed ONNX Runtime is older than the first release with the kernels that it needs."""
    installed = version("onnxruntime")
    if [*map(int, installed.split(".")[:2])] < [*map(int, release.split("."))]:
        pytest.skip(f"ONNX Runtime {installed} has no kernel, {release} has")


def _is_listed(name: str, dynamic: bool | Sequence[str]) -> bool:
    return dynamic if isinstance(dynamic, bool) else name in dynamic


def _port(name: str, array: np.ndarray[Any, Any], dynamic: bool) -> Any:
    shape = [f"{name}_{i}" if dynamic else dim for i, dim in enumerate(array.shape)]
    if array.dtype.kind in "USO":
        return helper.make_tensor_value_info(name, onnx.TensorProto.STRING, shape)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape)


# -- rows of parameters


def every(**values: Sequence[Any]) -> pytest.MarkDecorator:
    """Parametrize a test by all combinations; the values of the first parameter change first."""
    rows = [row[::-1] for row in product(*reversed(values.values()))]
    return pytest.mark.parametrize(tuple(values), rows)


def pairs(**values: Sequence[Any]) -> pytest.MarkDecorator:
    """Parametrize a test by rows of `pairwise`."""
    return pytest.mark.parametrize(tuple(values), pairwise(*values.values()))


def pairwise(*values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Rows of one value from each sequence; the same rows in every run.

    A row starts with a pair that no row has yet. Every other place takes the value that adds most new pairs; where
    several do, the one that is used least.
    """
    missing = dict.fromkeys(
        ((i, a), (j, b))
        for i, j in combinations(range(len(values)), 2)
        for a in range(len(values[i]))
        for b in range(len(values[j]))
    )
    used = {(place, choice): 0 for place, each in enumerate(values) for choice in range(len(each))}
    rows = []
    while missing:
        row = dict(next(iter(missing)))
        for place, each in enumerate(values):
            if place not in row:
                row[place] = _best(place, len(each), row, missing, used)
        ends = sorted(row.items())
        for pair in combinations(ends, 2):
            missing.pop(pair, None)
        for end in ends:
            used[end] += 1
        rows.append(tuple(values[place][choice] for place, choice in ends))
    return rows


def _best(place: int, count: int, row: dict[int, int], missing: Any, used: dict[tuple[int, int], int]) -> int:
    """The index of the value at a place that adds most missing pairs to a row."""

    def worth(choice: int) -> tuple[int, int]:
        end = (place, choice)
        return sum(tuple(sorted((end, other))) in missing for other in row.items()), -used[end]

    return max(range(count), key=worth)


# -- what the installed releases can do


def runs(first: Release) -> bool:
    """Whether the release is `first` or a later one."""
    return numbers(RELEASE)[:2] >= first


def has_gap(name: str) -> bool:
    """Whether the release has an error of docs/runtime.md on this processor."""
    return BY_ID[name].is_in(RELEASE, processor())
