"""The control flow of models as a tree: sources, port maps, functions, the same for ONNX, IR and dumps."""

from contextlib import suppress
from pathlib import Path
from typing import Any

import onnx
import pytest

from mo_loop.api import convert_model, save_model
from mo_loop.errors import MoLoopError
from mo_loop.look.inspection.contents import ControlNode, Entry, FunctionCall, Run, Skeleton, node_rows, skeleton
from mo_loop.look.inspection.description import below
from mo_loop.look.inspection.read import inspect
from mo_loop.look.records.opening import opened
from mo_loop.look.records.structure import TensorPort, port_of
from tests import MODELS
from tests.cases import read_cases
from tests.fuzz.control_flow.generator import generate
from tests.harness import folded, parsed
from tests.texts import texts

TEXTS = texts(__file__)

FILES = sorted(MODELS.glob("*/*.onnx"))


def controls(found: Skeleton) -> dict[str, ControlNode]:
    return {step.path: step for outline in found.outlines() for step in outline.controls()}


def only(model: Any) -> ControlNode:
    (found,) = controls(skeleton(opened(model))).values()
    return found


def assert_agree(model: Any) -> None:
    """`inspect`, `inspect --graph` and `inspect --nodes` show the same of one model."""
    inspection, structure = inspect(model), opened(model)
    found = skeleton(structure)
    scopes = {each.path: (each.kind, each.nodes, each.constants) for each in inspection.scopes}
    assert {each.path: (each.tag, each.nodes, each.constants) for each in found.outlines()} == scopes
    steps, known = controls(found), {each.path: each for each in below(inspection.control)}
    assert steps.keys() == known.keys()
    for name, each in known.items():
        step = steps[name]
        assert (step.operator, step.trip_count, step.condition, step.goes_on) == (
            each.operator, each.trip_count, each.condition, each.goes_on,
        ), name
        bodies = [(body.tag, body.path, body.nodes, body.constants) for body in step.bodies]
        assert bodies == [(branch.name, branch.path, branch.nodes, branch.constants) for branch in each.branches]
        assert [entry.inner["body"] for entry in step.inputs if entry.kind == "merged"] == [
            state.name for state in each.states
        ]
        for entries, kind, slices in (
            (step.inputs, "sliced", each.scan_inputs), (step.outputs, "concatenated", each.scan_outputs),
        ):
            cuts = [entry.slicing for entry in entries if entry.kind == kind]
            assert [(cut["axis"], cut["stride"] < 0) for cut in cuts] == [(cut.axis, cut.backward) for cut in slices]
        outer = {entry.value.name for entry in step.inputs if entry.kind in ("captured", "invariant", "branched")}
        assert sorted(outer) == each.captures
    rows = list(node_rows(structure))
    assert len(rows) == sum(
        outline.nodes + len(outline.inputs) + len(outline.outputs) for outline in found.outlines()
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_the_views_of_a_stored_model_agree(path: Path) -> None:
    assert_agree(path)


@pytest.mark.filterwarnings("ignore::mo_loop.errors.ConversionWarning")
@pytest.mark.sweep(2)
@pytest.mark.parametrize("index", range(140))
def test_the_views_of_a_generated_model_and_of_its_ir_agree(index: int, tmp_path: Path) -> None:
    model = generate(36, index, lists=index % 7 == 0).model
    assert_agree(model)
    if index % 5 == 0:
        with suppress(MoLoopError):  # one that is refused has no IR
            save_model(convert_model(model), tmp_path / "model.xml")
        if (tmp_path / "model.xml").exists():
            assert_agree(tmp_path / "model.xml")


LOOP = TEXTS["loop"]


def test_loop() -> None:
    loop = only(parsed(LOOP))
    assert (loop.trip_count, loop.condition, loop.goes_on) == ("input n", "none", "computed (Less)")
    assert loop.iteration == "i"
    x = TensorPort("x", "f32", [2, 3])
    assert loop.inputs == [Entry("merged", x, {"body": "s"}, "t"), Entry("captured", x)]
    assert loop.outputs == [
        Entry("final", TensorPort("y", "f32", [2, 3]), {"body": "t"}),
        Entry("concatenated", TensorPort("all", "f32", ["K", 2, 3]), {"body": "u"}, None, {"axis": 0, "stride": 1}),
    ]
    (body,) = loop.bodies
    assert (body.path, body.tag, body.nodes, body.constants) == ("loop/step", "body", 5, 1)
    assert body.steps == [Run(5, {"Add": 1, "CastLike": 1, "Less": 1, "Mul": 1, "ReduceSum": 1})]


@pytest.mark.keeps_loops
def test_loop_in_an_ir(tmp_path: Path) -> None:
    save_model(convert_model(parsed(LOOP), **folded()), tmp_path / "model.xml")
    loop = only(tmp_path / "model.xml")
    kinds = [each.kind for each in (*loop.inputs, *loop.outputs)]
    assert kinds == ["merged", "invariant", "invariant", "final", "concatenated"]
    assert loop.outputs[-1].slicing == {"axis": 0, "start": 0, "end": -1, "stride": 1, "part_size": 1}
    assert "x" in [each.value.name for each in loop.inputs] and loop.goes_on == "computed (LogicalAnd)"


SCAN = TEXTS["scan"]


@pytest.mark.keeps_loops
def test_scan_backwards(tmp_path: Path) -> None:
    scan = only(parsed(SCAN))
    assert scan.trip_count == "7 (dimension 0 of x)" and scan.condition is None
    assert scan.inputs[1].slicing == {"axis": 0, "stride": -1} == scan.outputs[1].slicing
    save_model(convert_model(parsed(SCAN), **folded()), tmp_path / "model.xml")
    iterator = only(tmp_path / "model.xml")
    assert iterator.operator == "TensorIterator" and iterator.trip_count == "7 (dimension 0 of x)"
    (sliced,) = [each for each in iterator.inputs if each.kind == "sliced"]
    assert sliced.slicing["stride"] == -1


@pytest.mark.keeps_loops
def test_slices_of_several_elements(tmp_path: Path) -> None:
    save_model(convert_model(parsed(SCAN), **folded()), tmp_path / "model.xml")
    text = (tmp_path / "model.xml").read_text()
    assert 'stride="-1"' in text
    changed = text.replace('stride="-1"', 'stride="-2"').replace('part_size="1"', 'part_size="2"')
    (tmp_path / "other.xml").write_text(changed)
    (tmp_path / "other.bin").write_bytes((tmp_path / "model.bin").read_bytes())
    assert only(tmp_path / "other.xml").trip_count == "3 (dimension 0 of x)"


CALLS = TEXTS["calls"]


def test_functions() -> None:
    found = skeleton(opened(onnx.parser.parse_model(CALLS)))
    outer = "local::outer"
    calls = [FunctionCall("first", outer, outer), FunctionCall("y", outer, outer)]
    assert found.graph.steps == [Run(1, {"local::plain": 1}), *calls]
    assert [(each.path, each.tag, each.nodes) for each in found.functions] == [
        ("local::plain", "function", 1), ("local::outer", "function", 2), ("local::repeated", "function", 1),
    ]
    assert found.functions[1].steps == [Run(1, {"Abs": 1}), FunctionCall("y", "local::repeated", "local::repeated")]
    (loop,) = found.functions[2].controls()
    assert loop.path == "local::repeated/loop" and loop.trip_count == "argument n"


def test_constant_without_outputs() -> None:
    model = parsed("main (float[2] x) => (float[2] y) { y = Relu (x)  c = Constant <value_float = 1.0> () }")
    del model.graph.node[1].output[:]
    structure = opened(model)
    found = skeleton(structure)
    assert (found.graph.nodes, found.graph.constants) == (1, 1)
    assert [row.outputs for row in node_rows(structure, operator="Constant")] == [[]]


@pytest.mark.parametrize(("dtype", "shape", "port"), [
    ("f32", "[2,N,?]", TensorPort("x", "f32", [2, "N", "?"])), ("f32", "[]", TensorPort("x", "f32", [])),
    ("f32", "[...]", TensorPort("x", "f32", None)),
    ("f32", '["a, \\"b",2..5,"c d"{1..}]', TensorPort("x", "f32", ['a, "b', "2..5", '"c d"{1..}'])),
    ("seq(f32[?])", "", TensorPort("x", "seq(f32[?])", None)), ("", "", TensorPort("x", "?", None)),
])
def test_types(dtype: str, shape: str, port: TensorPort) -> None:
    assert port_of("x", dtype, shape) == port


read_cases(globals())
