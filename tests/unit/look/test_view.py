"""The page of a model, and of two: records, port maps, and what differs."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import onnx
import pytest
from onnx import helper

import mo_loop
from mo_loop.api import convert_model, save_model
from mo_loop.errors import FileError, ModelError, UsageError
from mo_loop.text import parse, to_text
from tests.cases import read_cases
from tests.cli.commands import NESTED
from tests.harness import parsed, raised
from tests.pages import after, assert_whole, document

SCAN = """
main (float[3] h, float[4,3] x) => (float[3] y, float[3,4] z) {
  [scan] y, z = Scan <num_scan_inputs = 1, scan_input_directions = [1], scan_output_axes = [1],
                      body = step (float[3] s, float[3] v) => (float[3] t, float[3] r) {
    [sum] t = Add (s, v)
    [low] r = Neg (t) }> (h, x)
}"""


def shown(*models: Any, **options: Any) -> dict[str, Any]:
    """The document of the page, in which all references hold, in the first and in the last state."""
    data = document(mo_loop.view(*models, **options).html)
    assert (data["schema"], data["version"]) == ("mo-loop page", 1)
    assert_whole({each["id"]: each for each in data["nodes"]}, {each["id"]: each for each in data["scopes"]})
    assert_whole(*after(data))
    return data


def named(data: dict[str, Any], name: str) -> Any:
    return next(each for each in data["nodes"] if each["name"] == name)


def names(data: dict[str, Any], scope: str) -> list[str]:
    return [each["name"] or each["op"] for each in data["nodes"] if each["scope"] == scope]


# -- ONNX


def test_an_onnx_model_is_shown_as_it_is() -> None:
    data = shown(parsed(NESTED))
    assert (data["kind"], data["steps"]) == ("graph", [])
    assert names(data, "") == ["x", "n", "f", "w", "first", "loop", "y"]
    first = named(data, "first")
    assert (first["op"], first["opset"], first["outputs"]) == ("Add", 18, [{"type": "f32[3]", "names": ["a"]}])
    assert first["inputs"] == [[named(data, "x")["id"], 0], [named(data, "w")["id"], 0]]
    weight = named(data, "w")
    assert (weight["op"], weight["value"], weight["bytes"]) == ("Constant", "[1.0, 2.0, 3.0]", 12)
    assert named(data, "soft")["attributes"] == {"axis": "0"} and ["opset ai.onnx", "18"] in data["facts"]


def test_tensors_of_bodies_have_the_types_that_inference_finds() -> None:
    data = shown(parsed(NESTED))
    types = {named(data, name)["outputs"][0]["type"] for name in ("loop", "choice", "soft", "sine")}
    assert types == {"f32[3]"}


def test_inferred_types_are_no_difference_of_two_models() -> None:
    """The page of two models lists what `mo-loop diff` finds, which compares what is declared."""
    new = parsed(NESTED)
    new.graph.value_info.append(helper.make_tensor_value_info("a", onnx.TensorProto.FLOAT, [3]))
    data = shown(parsed(NESTED), new)
    assert named(data, "first")["outputs"][0]["type"] == "f32[3]"
    assert data["steps"][0]["details"] == {} and mo_loop.diff(parsed(NESTED), new).equal


def test_the_port_map_of_an_onnx_loop() -> None:
    data = shown(parsed(NESTED))
    loop = named(data, "loop")
    assert loop["bodies"] == [f"{loop['id']}/body"]
    ids = {each["name"]: each["id"] for each in data["nodes"] if each["scope"] == loop["bodies"][0]}
    assert loop["port_map"] == {
        "inputs": [
            {"role": "Merged", "port": 1, "parameter": ids["c"], "result": ids["d"]},
            {"role": "Merged", "port": 2, "parameter": ids["s"], "result": ids["t"]}],
        "outputs": [{"role": "Final", "port": 0, "result": ids["t"]}],
        "iteration": ids["i"],
        "condition": ids["d"],
        "trip_count": "n (Parameter)",
    }


def test_an_if_selects_and_its_branches_capture() -> None:
    data = shown(parsed(NESTED))
    choice = named(data, "choice")
    then, otherwise = choice["bodies"]
    assert names(data, then) == ["soft", "p"] and names(data, otherwise) == ["sine", "q"]
    assert choice["port_map"] == {
        "inputs": [],
        "outputs": [{"role": "Selected", "port": 0, "then": named(data, "p")["id"], "else_": named(data, "q")["id"]}],
    }
    assert named(data, "soft")["inputs"] == [[named(data, "s")["id"], 0]]


def test_the_slices_of_a_scan() -> None:
    data = shown(parsed(SCAN))
    scan = named(data, "scan")
    forward, backward = {"start": 0, "end": -1, "stride": 1}, {"start": -1, "end": 0, "stride": -1}
    merged, sliced = scan["port_map"]["inputs"]
    assert (merged["role"], merged["parameter"]) == ("Merged", named(data, "s")["id"])
    assert sliced == {
        "role": "Sliced", "port": 1, "parameter": named(data, "v")["id"], "axis": 0, **backward, "part_size": 1,
    }
    final, joined = scan["port_map"]["outputs"]
    assert final["role"] == "Final"
    assert joined["role"] == "Concatenated" and joined.items() >= {"axis": 1, **forward}.items()
    assert scan["port_map"]["trip_count"] == "4 (dimension 0 of x)"
    assert scan["attributes"]["scan_input_directions"] == "[1]"


@pytest.mark.parametrize("name", ["first", "body", "axis", "Softmax", "step"])
def test_a_name_that_is_no_text_is_refused(name: str) -> None:
    data = parsed(NESTED).SerializeToString().replace(name.encode(), name.encode()[:-1] + b"\xff")
    raised(ModelError, mo_loop.view, data, match="is not UTF-8 text")


def test_an_operator_with_bodies_that_is_unknown_has_no_port_map() -> None:
    body = helper.make_graph([helper.make_node("Neg", ["a"], ["b"])], "inner", [], [])
    body.input.append(onnx.ValueInfoProto(name="a"))
    body.output.append(onnx.ValueInfoProto(name="b"))
    node = helper.make_node("Repeat", ["x"], ["y"], "repeat", domain="mine", body=body)
    graph = helper.make_graph([node], "g", [onnx.ValueInfoProto(name="x")], [onnx.ValueInfoProto(name="y")])
    data = shown(helper.make_model(graph, opset_imports=[helper.make_opsetid("mine", 1)]))
    repeat = named(data, "repeat")
    assert "port_map" not in repeat and names(data, repeat["bodies"][0]) == ["a", "Neg", "b"]


def test_weights_that_are_stored_twice_have_one_content() -> None:
    values = np.arange(600, dtype=np.float32)
    weights = [onnx.numpy_helper.from_array(values, name) for name in ("v", "w")]
    weights.append(onnx.numpy_helper.from_array(values + 1, "u"))
    nodes = [helper.make_node("Add", ["x", "v"], ["a"]), helper.make_node("Add", ["a", "w"], ["b"])]
    nodes.append(helper.make_node("Add", ["b", "u"], ["y"]))
    ends = [helper.make_tensor_value_info(name, 1, [600]) for name in ("x", "y")]
    model = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:], weights))
    v, w, u = (named(shown(model), name) for name in ("v", "w", "u"))
    assert v["data"] == w["data"] != u["data"] and v["stored"] != w["stored"]


# -- IR, text and objects


def test_an_ir_and_the_graph_that_was_written_have_the_same_nodes(tmp_path: Path) -> None:
    model = convert_model(parsed(NESTED))
    save_model(model, tmp_path / "model.xml")
    sides = [shown(each) for each in (model, tmp_path / "model.xml")]
    left, right = (sorted((each["scope"], each["op"], len(each["inputs"])) for each in data["nodes"]) for data in sides)
    assert left == right
    roles = [
        sorted(entry["role"] for each in data["nodes"] for entry in each.get("port_map", {"inputs": ()})["inputs"])
        for data in sides
    ]
    assert roles[0] == roles[1] and "Merged" in roles[0]


def test_a_layer_of_an_ir_that_is_unknown_is_shown_as_it_is(tmp_path: Path) -> None:
    save_model(convert_model(parsed(NESTED)), tmp_path / "model.xml")
    text = (tmp_path / "model.xml").read_text("utf-8")
    text = text.replace('type="SoftMax" version="opset8"', 'type="Softest" version="extension"')
    (tmp_path / "model.xml").write_text(text, "utf-8")
    soft = named(shown(tmp_path / "model.xml"), "soft")
    assert (soft["op"], soft["opset"], soft["attributes"]) == ("Softest", "extension", {"axis": "0"})


def test_constants_of_an_ir_tell_where_they_are_stored(tmp_path: Path) -> None:
    save_model(convert_model(parsed(NESTED)), tmp_path / "model.xml")
    data = shown(tmp_path / "model.xml")
    weight = named(data, "w")
    assert (weight["bytes"], weight["stored"].partition(":")[0]) == (12, "model.bin")
    assert f"model.bin:{data['written']['offsets'][str(weight['id'])]}" == weight["stored"]


def test_the_ids_of_layers_are_those_of_the_file(tmp_path: Path) -> None:
    save_model(convert_model(parsed(NESTED)), tmp_path / "model.xml")
    layers = ElementTree.parse(tmp_path / "model.xml").iter("layer")
    expected = sorted((int(each.attrib["id"]), each.attrib["type"].lower()) for each in layers)
    data = shown(tmp_path / "model.xml")
    ids = data["written"]["layers"]
    found = [(ids[str(each["id"])], each["op"].lower().replace("constant", "const")) for each in data["nodes"]]
    assert sorted(found) == expected


def test_a_text_of_a_dump(tmp_path: Path) -> None:
    graph = convert_model(parsed(SCAN)).graph
    (tmp_path / "step.txt").write_text(to_text(graph), "utf-8")
    text, direct = shown(tmp_path / "step.txt"), shown(parse(to_text(graph)))
    assert text["nodes"] == direct["nodes"] and text["scopes"] == direct["scopes"]


# -- one body


def test_one_body_with_what_it_captures() -> None:
    data = shown(parsed(NESTED), scope="loop/step/choice/yes")
    assert names(data, "") == ["s", "soft", "p"] and named(data, "s")["inputs"] == []
    assert [each["id"] for each in data["scopes"]] == [""]


def test_an_unknown_body_is_refused() -> None:
    raised(UsageError, mo_loop.view, parsed(NESTED), scope="loop/stop", match="did you mean 'loop/step'")


# -- two models


def test_nodes_that_correspond_share_an_id() -> None:
    other = NESTED.replace("axis = 0", "axis = -1")
    other = other.replace("[first] a = Add (x", "b = Neg (x) [first] a = Add (b")
    data = shown(parsed(NESTED), parsed(other))
    assert data["kind"] == "diff"
    (step,) = data["steps"]
    assert [each["op"] for each in step["delta"]["added"]] == ["Neg"] and not step["delta"]["removed"]
    details = {int(number): texts for number, texts in step["details"].items()}
    assert details == {
        named(data, "soft")["id"]: ["attribute axis 0 -> -1"],
        named(data, "first")["id"]: ["input 0 x -> b"],
    }
    nodes, _ = after(data)
    assert nodes[named(data, "soft")["id"]]["attributes"] == {"axis": "-1"}
    assert nodes[named(data, "first")["id"]]["inputs"][0] == [step["delta"]["added"][0]["id"], 0]


def test_what_is_ignored_is_in_the_page_but_does_not_count() -> None:
    other = NESTED.replace("[first]", "[other]").replace("{1.0,", "{1.5,")
    data = shown(parsed(NESTED), parsed(other), ignore="names")
    assert list(data["steps"][0]["details"]) == [str(named(data, "w")["id"])]
    assert after(data)[0][named(data, "first")["id"]]["name"] == "other"


@pytest.mark.keeps_loops
def test_two_ir(tmp_path: Path) -> None:
    for name, text in (("old", NESTED), ("new", NESTED.replace("Sin", "Cos"))):
        save_model(convert_model(parsed(text)), tmp_path / f"{name}.xml")
    data = shown(tmp_path / "old.xml", tmp_path / "new.xml")
    assert data["title"] == "old.xml -> new.xml"
    assert list(data["steps"][0]["details"].values()) == [["operator Sin -> Cos"]]


def test_one_body_of_two_models() -> None:
    other = NESTED.replace("axis = 0", "axis = -1").replace("[first] a = Add", "[first] a = Sub")
    data = shown(parsed(NESTED), parsed(other), scope="loop/step")
    assert names(data, "") == ["f", "i", "c", "s", "Identity", "choice", "d", "t"]
    assert list(data["steps"][0]["details"].values()) == [["attribute axis 0 -> -1"]]


def test_properties_of_the_model_are_notes() -> None:
    old = parsed(NESTED)
    new = parsed(NESTED)
    new.producer_name = "somebody"
    data = shown(old, new)
    assert data["notes"] == ["metadata producer_name none -> somebody"]
    assert ["producer_name", "none -> somebody"] in data["facts"]


def test_models_of_two_kinds_are_refused(tmp_path: Path) -> None:
    model, dumped = parsed(NESTED), tmp_path / "dump.txt"
    dumped.write_text(to_text(convert_model(model).graph))
    raised(UsageError, mo_loop.view, model, dumped, match="is an ONNX model")


# -- the modules around a node

MODULES = """
main (float[3] x) => (float[3] z) {
  [node_relu] y = Relu (x)
  [node_cond] z = If (c) <then_branch = yes () => (float[3] p) { [node_tanh] p = Tanh (y) },
                          else_branch = no () => (float[3] q) { q = Neg (y) }>
}"""


def with_modules() -> onnx.ModelProto:
    model = parsed(MODULES.replace("=> (float[3] z) {", "=> (float[3] z) <bool c = {1}> {"))
    relu, cond = model.graph.node
    paths = {
        relu.name: (relu, "['', 'model', 'model.layers.0', 'model.layers.0.act', 'relu']"),
        "node_tanh": (cond.attribute[0].g.node[0], "['', 'model.head', 'tanh']"),
        "q": (cond.attribute[1].g.node[0], "['_empty_nn_module_stack_from_metadata_hook', 'neg']"),
        cond.name: (cond, "no list"),
    }
    for node, value in paths.values():
        node.metadata_props.add(key="pkg.torch.onnx.name_scopes", value=value)
    return model


FOUND = {"node_relu": ["model", "layers.0", "act"], "node_cond": [], "node_tanh": ["model.head"], "q": []}


def test_the_modules_of_an_exporter_are_names_of_groups(tmp_path: Path) -> None:
    """Of the model, of the model with its IR, and of a conversion: also in bodies, and of a node without a name."""
    model = with_modules()
    assert shown(model)["name_scopes"] == FOUND
    onnx.save(model, tmp_path / "m.onnx")
    save_model(convert_model(tmp_path / "m.onnx", dump=tmp_path / "dump"), tmp_path / "m.xml")
    assert document((tmp_path / "dump" / "index.html").read_text("utf-8"))["name_scopes"] == FOUND
    assert shown(tmp_path / "m.onnx", tmp_path / "m.xml")["name_scopes"] == FOUND


def test_a_model_without_such_metadata_has_none() -> None:
    assert "name_scopes" not in shown(parsed(SCAN))


# -- notebooks and files


def test_a_notebook_shows_the_page_in_a_frame() -> None:
    page = mo_loop.view(parsed(SCAN))
    found: list[Any] = []
    parser = HTMLParser()
    parser.handle_starttag = lambda tag, attributes: found.append((tag, dict(attributes)))  # type: ignore[method-assign]
    parser.feed(page._repr_html_())
    ((tag, attributes),) = found
    assert (tag, attributes["sandbox"]) == ("iframe", "allow-scripts allow-downloads")
    assert attributes["srcdoc"] == page.html


def test_a_page_is_replaced_and_another_file_is_not(tmp_path: Path) -> None:
    page = mo_loop.view(parsed(SCAN))
    page.save(tmp_path / "page.html")
    page.save(tmp_path / "page.html")
    assert (tmp_path / "page.html").read_text("utf-8") == page.html
    other = tmp_path / "other.html"
    other.write_text("<!doctype html><title>mine</title>")
    raised(FileError, page.save, other, match="not a page that mo-loop wrote")
    assert other.read_text() == "<!doctype html><title>mine</title>"


read_cases(globals())
