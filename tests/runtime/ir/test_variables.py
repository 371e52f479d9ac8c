"""Variables in IR files: those that OpenVINO writes are read, shown, written, and run with the same numbers."""

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.api import Model, read_model, save_model
from mo_loop.compare.execution.isolated import isolated
from mo_loop.compare.execution.runtime import compile_ir
from mo_loop.errors import IrError
from mo_loop.look.inspection.read import inspect
from mo_loop.ops.front import Opaque
from mo_loop.text import parse, to_text
from tests.cli.commands import mo_loop
from tests.harness import raised
from tests.runtime.ir.support import layer, net, parameter, read, result, written

KINDS = ("cache", "cache_with_initial", "cells", "scalar", "zeros", "lstm", "lstm_from_inputs", "opset3")


def make(kind: str, path: str) -> list[dict[str, Any]]:
    """In the worker: OpenVINO writes a model with variables. Returns the inputs of its steps."""
    import openvino as ov
    from openvino import opset3, opset6, opset13
    from openvino.passes import LowLatency2, MakeStateful, Manager

    def port(shape: list[int], name: str) -> Any:
        node = opset13.parameter(ov.PartialShape(shape), ov.Type.f32, name=name)
        node.output(0).get_tensor().set_names({name})
        return node

    def named(node: Any, name: str) -> Any:
        node.output(0).get_tensor().set_names({name})
        return node

    def number(*shape: int) -> Any:
        return opset13.constant(np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float32))

    def changed(model: Any, change: Any) -> Any:
        manager = Manager()
        manager.register_pass(change)
        manager.run_passes(model)
        return model

    feeds = [{"x": np.full((1, 4, 1, 8), step, np.float32)} for step in (1, 2, 3)]
    if kind == "cache":  # without an initial value: the device begins with length 0
        x, past = port([1, 4, -1, 8], "x"), port([1, 4, -1, 8], "past")
        whole = named(opset13.concat([past, x], 2), "present")
        model = ov.Model([opset13.result(opset13.relu(whole)), opset13.result(whole)], [x, past], "m")
        model = changed(model, MakeStateful({"past": "present"}))
    elif kind == "cache_with_initial":
        x = port([-1, 4, -1, 8], "x")
        batch = opset13.gather(opset13.shape_of(x), opset13.constant([0]), opset13.constant(0))
        initial = opset13.broadcast(opset13.constant(np.float32(0)),
                                    opset13.concat([batch, opset13.constant([4, 0, 8])], 0))
        before = opset6.read_value(initial, "pastpresent", ov.Type.f32, ov.PartialShape([-1, 4, -1, 8]))
        whole = opset13.concat([before, x], 2)
        # The device does not compile a cache whose initial value nothing else reads.
        both = [opset13.result(whole), opset13.result(opset13.reduce_sum(initial, opset13.constant([0, 1, 2, 3])))]
        model = ov.Model(both, [opset6.assign(whole, "pastpresent")], [x], "m")
    elif kind in ("cells", "scalar", "zeros"):
        shape = {"cells": [2, 3], "scalar": [], "zeros": [0, 3]}[kind]
        x, state = port(shape, "x"), port(shape, "state")
        new = named(opset13.add(state, x), "new")
        model = ov.Model([opset13.result(opset13.relu(new)), opset13.result(new)], [x, state], "m")
        model = changed(model, MakeStateful({"state": "new"}))
        feeds = [{"x": np.full(shape, step, np.float32)} for step in (1, 2, 3)]
    elif kind.startswith("lstm"):
        x, h, c = port([2, 1, 3], "x"), port([2, 1, 4], "h"), port([2, 1, 4], "c")
        lengths = opset13.constant(np.ones(2, np.int32))
        node = opset13.lstm_sequence(x, h, c, lengths, number(1, 16, 3), number(1, 16, 4), number(1, 16), 4, "forward")
        node.set_friendly_name("lstm")
        model = ov.Model([opset13.result(node.output(0))], [x, h, c], "m")
        model = changed(model, LowLatency2(kind == "lstm"))
        feeds = [{"x": np.full((2, 1, 3), step / 4, np.float32)} for step in (1, 2, 3)]
        feeds = [each | dict.fromkeys("hc", np.full((2, 1, 4), 0.5, np.float32)) for each in feeds]
    elif kind == "opset3":
        x = port([2], "x")
        total = opset3.add(opset3.read_value(opset3.constant(np.array([1, 2], np.float32)), "total"), x)
        model = ov.Model([opset3.result(total)], [opset3.assign(total, "total")], [x], "m")
        feeds = [{"x": np.full(2, step, np.float32)} for step in (1, 2, 3)]
    else:
        raise AssertionError(kind)
    ov.save_model(model, path, compress_to_fp16=False)
    return feeds


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def steps(path: str, feeds: list[dict[str, Any]]) -> list[Any]:
    """In the worker: all outputs and states of the steps, from a reset, twice."""
    compiled = compile_ir(path)
    found = []
    for _ in range(2):
        for place, each in enumerate(feeds):
            outputs, states = compiled.step(each, reset=not place)
            found.append([*(array for _, array in outputs), *(states[name] for name in sorted(states))])
    return found


def test_files_of_openvino_are_read_and_written(kind: str, tmp_path: Path) -> None:
    theirs, ours = tmp_path / "theirs.xml", tmp_path / "ours.xml"
    feeds = isolated(make, kind, str(theirs))
    read_ = read_model(theirs)
    variables = [node for node in read_.graph.ordered() if isinstance(node, ops.ReadValue | ops.Assign)]
    if kind == "opset3":
        assert {node.kind for node in read_.graph.of(Opaque)} == {"ReadValue", "Assign"} and not variables
    else:
        assert len(variables) == (4 if kind.startswith("lstm") else 2)
    save_model(read_, ours, compress_to_fp16=False)
    wanted, found = (isolated(steps, str(path), feeds) for path in (theirs, ours))
    for left, right in zip(wanted, found, strict=True):
        for a, b in zip(left, right, strict=True):
            np.testing.assert_array_equal(a, b)
    half = len(found) // 2
    for left, right in zip(found[:half], found[half:], strict=True):  # the same again after a reset
        for a, b in zip(left, right, strict=True):
            np.testing.assert_array_equal(a, b)
    first, second = ([(array.shape, array.tolist()) for array in each] for each in found[:2])
    assert kind == "zeros" or first != second  # the state counts


def test_the_text_form_keeps_them(kind: str, tmp_path: Path) -> None:
    isolated(make, kind, str(tmp_path / "m.xml"))
    text = to_text(read_model(tmp_path / "m.xml").graph)
    assert to_text(parse(text)) == text
    assert ("variable_id" in text) and (kind == "opset3" or "Assign(" in text)


@pytest.mark.parametrize(("kind", "states"), [
    ("cache", {"pastpresent": ("f32", [1, 4, "?", 8], "none")}),
    ("cache_with_initial", {"pastpresent": ("f32", ["?", 4, "?", 8], "zeros of computed shape f32[?,4,0,8]")}),
    ("cells", {"statenew": ("f32", [2, 3], "none")}),
    ("scalar", {"statenew": ("f32", [], "none")}),
    ("lstm", {f"lstm/variable_{n}": ("f32", [2, 1, 4], "zeros") for n in (0, 1)}),
    ("lstm_from_inputs", {f"lstm/variable_{n}": ("f32", [2, 1, 4], "computed f32[2,1,4]") for n in (0, 1)}),
    ("opset3", {"total": ("f32", [2], "constant f32[2]")}),
])
def test_inspect_shows_them(tmp_path: Path, kind: str, states: dict[str, tuple[str, Any, str]]) -> None:
    path = tmp_path / "m.xml"
    isolated(make, kind, str(path))
    found = inspect(path).states
    assert {each.id: (each.type, each.shape, str(each.initial)) for each in found} == states
    for each in found:
        assert [re.sub(r"_\d+$", "", name) for name in (*each.read, *each.assigned)] == ["ReadValue", "Assign"]
    text = mo_loop("inspect", path).stdout
    lines = text[text.index("states\n") :].splitlines()
    assert lines[1].split() == ["variable", "type", "initial", "read", "assigned"]
    assert {line.split()[0] for line in lines[2 : 2 + len(states)]} == set(states)
    as_json = json.loads(mo_loop("inspect", path, "--format", "json").stdout)["states"]
    assert {each["id"] for each in as_json} == set(states)
    assert set(as_json[0]) == {"id", "type", "shape", "initial", "read", "assigned"}
    assert set(as_json[0]["initial"]) == {"kind", "value", "type", "shape"}


@pytest.mark.parametrize(("value", "shown"), [
    ("[[0.0, 0.0]]", "zeros"), ("[[-1.5, -1.5]]", "-1.5"), ("[[1.0, 2.0]]", "constant f32[1,2]"),
])
def test_a_constant_is_shown_as_its_value_if_it_has_one(tmp_path: Path, value: str, shown: str) -> None:
    about = "{variable_id: v, variable_type: f32, variable_shape: [1, 2]}"
    save_model(Model(parse(f"""
        %x = Parameter : f32[1,2]
        %s = ReadValue({value}) {about} "first"  %y = Add(%s, %x)  %a = Assign(%y) {about} "second"
        Result(%y)""")), tmp_path / "m.xml")
    (found,) = inspect(tmp_path / "m.xml").states
    assert (str(found.initial), found.read, found.assigned) == (shown, ["first"], ["second"])
    (tmp_path / "m.bin").unlink()  # without weights the value is not known
    assert str(inspect(tmp_path / "m.xml").states[0].initial) == "constant f32[1,2]"


def test_variables_in_bodies_have_the_paths_of_their_layers(tmp_path: Path) -> None:
    save_model(Model(parse("""
        %x = Parameter : f32[2]
        %y = Loop(3, true, %x) {condition: @go, input_map: [Merged(%s, @n)], output_map: [Final(@n)]} : f32[2] "loop"
          body {
            %s = Parameter : f32[2]
            %v = ReadValue([0.0, 0.0]) {variable_id: v, variable_type: f32, variable_shape: [2]} "get"
            %n = Add(%s, %v)  %k = Assign(%n) {variable_id: v, variable_type: f32, variable_shape: [2]} "put"
            %go = Constant true
            Result(%go)  Result(%n) }
        Result(%y)""")), tmp_path / "m.xml")
    (found,) = inspect(tmp_path / "m.xml").states
    assert (found.read, found.assigned) == (["loop/body/get"], ["loop/body/put"])
    again = read_model(tmp_path / "m.xml").graph
    assert [node.type for scope in again.scopes() for node in scope.of(ops.Assign)] == ["Assign"]


def test_onnx_models_have_none(tmp_path: Path) -> None:
    from tests.cli.commands import saved
    from tests.harness import parsed

    path = saved(parsed("main (float[2] x) => (float[2] y) { y = Neg (x) }"), tmp_path)
    assert inspect(path).states == []
    assert "states" not in mo_loop("inspect", path).stdout.splitlines()


# -- shapes as OpenVINO spells them


@pytest.mark.parametrize("shape", ["", "2", "?,4,?,8", "1..5,2", "..3", "2.."])
def test_shapes_of_variables_are_spelled_as_in_the_file(tmp_path: Path, shape: str) -> None:
    found = read(tmp_path, variable(shape=shape, dims=shape))
    assert len(found.of(ops.ReadValue)) == len(found.of(ops.Assign)) == 1
    text = written(tmp_path, found)
    assert f'variable_shape="{shape}"' in text and text.count('<data variable_id="v"') == 2
    assert re.search(r'<data variable_id="v" />', text), "an Assign has the id alone"


# -- faults


def variable(*, assign: str = "v", read_id: str = "v", shape: str = "2", dims: str = "2", stored: str = "FP32",
             more: str = "") -> str:
    """A variable v of f32, with a layer that stores a tensor of the type `stored` and the dimensions `dims`."""
    ends = " ".join(each if each.isdecimal() else "-1" for each in dims.split(",") if each)
    own = " ".join(each if each.isdecimal() else "-1" for each in shape.split(",") if each)
    layers = parameter(0, dims)
    edges = ["0:0 9:0"]
    if read_id:
        data = f'variable_id="{read_id}" variable_type="f32" variable_shape="{shape}"'
        layers += layer("ReadValue", 1, data, outputs={0: f"FP32 {own}"}, version="opset6")
        layers += layer("ReLU", 2, inputs={0: f"FP32 {own}"}, outputs={1: f"FP32 {own}"}) + result(3, f"FP32 {own}")
        edges += ["1:0 2:0", "2:1 3:0"]
    if assign:
        port = f"{stored} {ends}"
        if stored != "FP32":
            kind = {"FP16": "f16"}[stored]
            layers += layer("Convert", 4, f'destination_type="{kind}"', inputs={0: f"FP32 {ends}"}, outputs={1: port})
        edges += ["0:0 4:0", "4:1 5:0"] if stored != "FP32" else ["0:0 5:0"]
        layers += layer("Assign", 5, f'variable_id="{assign}"', inputs={0: port}, outputs={1: port}, version="opset6")
    return net(layers + result(9, f"FP32 {ends}") + more, *edges)


OTHER = layer("ReadValue", 7, 'variable_id="v" variable_type="f32" variable_shape="3"', outputs={0: "FP32 3"},
              version="opset6") + layer("Result", 8, inputs={0: "FP32 3"})


@pytest.mark.parametrize(("text", "said"), [
    (variable(assign=""), "nothing assigns the variable 'v'"),
    (variable(read_id=""), "nothing reads the variable 'v'"),
    (variable(assign="other"), "nothing assigns the variable 'v'"),
    (variable(stored="FP16"), "f16[2] here, and f32[2] in layer 1"),
    (variable(dims="3"), "f32[3] here, and f32[2] in layer 1"),
    (variable(dims="2,1"), "f32[2,1] here, and f32[2] in layer 1"),
    (variable().replace('data shape="2"', 'data shape="3"'), "f32[3] here, and f32[2] in layer 1"),
    (variable(more=OTHER).replace("</edges>", '<edge from-layer="7" from-port="0" to-layer="8" to-port="0" /></edges>'),
     "f32[3] here, and f32[2] in layer 1"),
    (variable(shape="2,x", dims="2"), "variable_shape is not a shape"),
])
def test_variables_that_do_not_fit_are_refused(tmp_path: Path, text: str, said: str) -> None:
    caught = raised(IrError, read, tmp_path, text)
    assert said in caught.message
    assert caught.code == ("ML250" if "not a shape" in said else "ML256")
    done = mo_loop("inspect", tmp_path / "in.xml")
    # inspect shows the contents; only an invalid shape stops it.
    assert done.returncode == (2 if "not a shape" in said else 0)


@pytest.mark.parametrize("key", ["variable_id", "variable_type", "variable_shape"])
@pytest.mark.parametrize("assign", ["v", ""])
def test_a_read_without_an_attribute_of_its_operation_is_refused(tmp_path: Path, key: str, assign: str) -> None:
    """The type of the Assign is taken from it, and a variable of unknown type does not compile."""
    whole = variable(assign=assign)
    text = re.sub(rf'(type="ReadValue" [^>]*><data [^>]*?){key}="\w+"', r"\1", whole)
    assert text != whole
    caught = raised(IrError, read, tmp_path, text)
    assert caught.code == "ML250"
    assert caught.message == f"layer 1 (ReadValue): a ReadValue of opset6 needs the attribute {key}"


@pytest.mark.parametrize("version", ["opset3", "opset6"])
def test_an_assign_without_a_variable_is_refused(tmp_path: Path, version: str) -> None:
    text = variable(read_id="").replace('<data variable_id="v" />', "<data />").replace("opset6", version)
    caught = raised(IrError, read, tmp_path, text, match=f"Assign of {version} needs the attribute variable_id")
    assert caught.code == "ML250"


def test_an_assign_beside_a_read_of_opset_3_stays_as_it_is(tmp_path: Path) -> None:
    """Its ReadValue declares no type that could complete it."""
    text = variable().replace(' variable_type="f32" variable_shape="2"', "")
    text = text.replace('type="ReadValue" version="opset6"', 'type="ReadValue" version="opset3"')
    found = read(tmp_path, text)
    assert {node.kind for node in found.of(Opaque)} == {"ReadValue", "Assign"}
