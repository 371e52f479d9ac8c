"""Converts, runs and compares models for the tests, by mo_loop/compare. Native code runs in a worker process.

model = parsed('''
    main (float[N] x, int64 n) => (float[N] y) {
      y = Loop (n, "", x) <body = step (int64 i, bool c, float[N] s) => (bool d, float[N] t) {
        d = Identity (c)
        t = Add (s, s)
      }>
    }''')
check(model, {"x": x, "n": 3}, {"x": x, "n": 0})                # a model, written in the text of onnx.parser
check_node("Concat", {"a": a, "b": b}, {"axis": 1}, opset=13)   # one ONNX node (tests/nodes.py)
check_graph("%x = Parameter : f32[N] ...", lambda x: [-x], [x]) # a graph of the IR, written as text

With MO_LOOP_RUNTIME=RELEASE the IR runs on another OpenVINO release (tools/runtimes.py makes its environment).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from mo_loop.api import convert_model, save_model
from mo_loop.compare.execution.isolated import IsolatedError, isolated
from mo_loop.compare.execution.runtime import run_ir
from mo_loop.compare.results.array_comparison import Named
from mo_loop.errors import ConversionErrors, MoLoopError, NotComparableError
from mo_loop.graph.verifier import invariants
from mo_loop.ir.bin import Weights
from mo_loop.ir.xml import XmlWriter
from mo_loop.target import MEASURED
from mo_loop.text import parse
from mo_loop.transforms.config import PassConfig
from mo_loop.transforms.pipelines import LOOPS, RULES
from mo_loop.transforms.runtime.lower_barriers import LowerBarriers
from tests.expected import Expected, expected_values
from tests.known_results import passed, values
from tests.nodes import node_model
from tests.processor import fail_or_skip
from tests.release import RELEASE
from tests.samples import CompiledElsewhere, Inferred, Sample, judge_ir
from tests.together import later
from tools.runtimes import chosen_interpreter

Array = np.ndarray[Any, Any]
Feeds = Mapping[str, Any]

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


def folded(**options: Any) -> dict[str, Any]:
    """Options of a conversion for the declared sizes, without checks of them: what they decide is constant."""
    config = PassConfig()
    config.disable("WriteSizes")
    return {"static": True, "config": config, **options}


def keeping_loops() -> PassConfig:
    """A configuration without the passes that shorten loops, for other processes: the mark keeps_loops does not reach
    them."""
    config = PassConfig()
    config.disable(*LOOPS)
    return config


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
    model, compare (tests/together.py).

    `expected` replaces the oracle; `arguments` go to convert_model. AssertionError when a number differs, or a shape
    is not the inferred one. Returns the expected values of each of `feeds`.
    """
    sets = [{name: np.asarray(value) for name, value in each.items()} for each in feeds] or [{}]
    converted = convert_model(model, **arguments)
    assert not invariants(converted.graph)  # tests/rotation.py chooses who checks them after each pass
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


def check_graph(text: str, oracle: Callable[..., Sequence[Any]], *feeds: Sequence[Any]) -> None:
    """Run a graph for every feed (arrays in the order of the Parameters), forwards, backwards and interleaved.

    `oracle` gets the arrays of one feed and returns what the Results must give. AssertionError when anything differs.
    """
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


def refusal(model: onnx.ModelProto, **arguments: Any) -> MoLoopError:
    """The first error of a conversion, which has to fail."""
    with pytest.raises(MoLoopError) as caught:
        convert_model(model, **arguments)
    error = caught.value
    return error.errors[0] if isinstance(error, ConversionErrors) else error
