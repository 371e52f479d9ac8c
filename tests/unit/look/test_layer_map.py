"""Which layers of an IR each node of its ONNX model became, and from which nodes each layer was made."""

from pathlib import Path
from typing import Any

import onnx
import pytest

import mo_loop
from mo_loop.api import convert_model, save_model
from mo_loop.errors import UsageError
from mo_loop.look.layer_map import LayerMap
from mo_loop.look.records.structure import Item
from mo_loop.transforms.config import PassConfig
from mo_loop.transforms.pipelines import LOOPS
from tests.harness import parsed, raised
from tests.pages import after, assert_whole, document
from tests.texts import texts

TEXTS = texts(__file__)

NESTED = TEXTS["nested"]

FUNCTION = TEXTS["function"]


def mapped(folder: Path, text: str, loops_stay: bool = False, **options: Any) -> LayerMap:
    """The map of a model and its IR in files."""
    onnx.save(parsed(text) if not text.startswith("<") else onnx.parser.parse_model(text), folder / "m.onnx")
    if loops_stay:
        options["config"] = PassConfig()
        options["config"].disable(*LOOPS)
    save_model(convert_model(folder / "m.onnx", **options), folder / "m.xml")
    return mo_loop.layer_map(folder / "m.onnx", folder / "m.xml")


def names(items: list[Item]) -> list[str]:
    return ["/".join((*item.scope.path, item.label)) for item in items if not item.is_constant]


def layers(found: LayerMap) -> dict[str, list[str]]:
    """Path of a node -> the paths of its layers."""
    nodes = [item for scope in found.model.scopes() for item in scope.nodes]
    return {names([item])[0]: names(found.layers.get(item, [])) for item in nodes}


def test_nodes_of_bodies_have_layers_of_bodies(tmp_path: Path) -> None:
    found = layers(mapped(tmp_path, NESTED, loops_stay=True))
    assert found["first"] == found["same"] == ["first"]  # a layer of both
    assert found["loop"][0] == "y_1" and found["loop/step/on"] == [] and found["loop/step/grow"] == ["y_1/body/grow"]
    assert found["loop/step/choice/yes/soft"] == ["y_1/body/choice/then_body/soft"]
    assert found["loop/step/choice/no/sine"] == ["y_1/body/choice/else_body/sine"]


def test_both_ways_say_the_same(tmp_path: Path) -> None:
    found = mapped(tmp_path, NESTED)
    there = {(node, layer) for node, made in found.layers.items() for layer in made}
    assert there and there == {(node, layer) for layer, of in found.nodes.items() for node in of}
    data = found.to_dict()
    paths = {(n["scope"], n["node"], each["scope"], each["layer"]) for n in data["nodes"] for each in n["layers"]}
    computing = {(each["scope"], each["layer"]) for each in data["layers"]}
    back = {(n["scope"], n["node"], l["scope"], l["layer"]) for l in data["layers"] for n in l["nodes"]}  # noqa: E741
    nodes = {(each["scope"], each["node"]) for each in data["nodes"]}
    assert {each for each in paths if each[2:] in computing} == {each for each in back if each[:2] in nodes}


def test_the_steps_of_one_iteration_are_layers_of_one_node(tmp_path: Path) -> None:
    grown = layers(mapped(tmp_path, NESTED))["loop/step/grow"]
    assert len(grown) == 8 and grown[:2] == ["y/body/grow", "y/body/grow_1"]


def test_the_nodes_of_a_function_have_the_layers_of_all_its_calls(tmp_path: Path) -> None:
    found = layers(mapped(tmp_path, FUNCTION))
    assert [len(found[each]) for each in ("twice", "own::twice/add", "own::twice/sine") if each in found] == [2, 2]


def test_a_fused_layer_is_of_all_its_nodes(tmp_path: Path) -> None:
    found = mapped(tmp_path, """main (float[2,3] x, float[2,3] z) => (float[2,3] y) {
      [sum] a = Add (x, z) [keep] b = Identity (a)
      [same] y = Reshape <allowzero = 0> (b, shape) }""".replace("{", "<int64[2] shape = {0, 0}> {", 1))
    assert layers(found) == {each: ["y"] for each in ("sum", "keep", "same")}


def test_the_text_names_what_has_no_partner(tmp_path: Path) -> None:
    text = mapped(tmp_path, NESTED, loops_stay=True).text()
    assert "  first (Add) -> first (Add)" in text and "  - on (Identity): no layer" in text
    assert "loop/step/choice/yes\n  soft (Softmax) -> y_1/body/choice/then_body/soft (SoftMax)" in text


def test_a_model_in_memory_has_its_origins(tmp_path: Path) -> None:
    found = mo_loop.layer_map(parsed(NESTED), convert_model(parsed(NESTED)))
    assert names(found.layers[next(item for item in found.model.main.nodes if item.label == "first")]) == ["first"]
    assert found.to_dict()["layers"][0]["id"] is None


def test_a_scope_limits_both_sides(tmp_path: Path) -> None:
    mapped(tmp_path, NESTED, loops_stay=True)
    found = mo_loop.layer_map(tmp_path / "m.onnx", tmp_path / "m.xml", scope="loop/step/choice/yes")
    assert [each["node"] for each in found.to_dict()["nodes"]] == ["soft"]
    with pytest.raises(UsageError, match="no model has a scope 'none'"):
        mo_loop.layer_map(tmp_path / "m.onnx", tmp_path / "m.xml", scope="none")


def test_two_models_of_one_kind_are_refused(tmp_path: Path) -> None:
    raised(UsageError, mo_loop.layer_map, parsed(NESTED), parsed(NESTED), match="not an ONNX model and an IR")
    raised(UsageError, mo_loop.diff, parsed(NESTED), convert_model(parsed(NESTED)), match="they have different nodes")


def test_the_page_has_both_with_pairs(tmp_path: Path) -> None:
    found = mapped(tmp_path, NESTED)
    for models in ((tmp_path / "m.onnx", tmp_path / "m.xml"), (tmp_path / "m.xml", tmp_path / "m.onnx")):
        data = document(mo_loop.view(*models).html)
        nodes, scopes = after(data)
        assert (data["kind"], data["title"]) == ("layers", "m.onnx -> m.xml")
        assert_whole({each["id"]: each for each in data["nodes"]}, {each["id"]: each for each in data["scopes"]})
        assert_whole(nodes, scopes)
        names_of = {each["id"]: each["name"] for each in data["nodes"]}
        by_name = {names_of[node]: [nodes[each]["op"] for each in made] for node, made in data["pairs"]}
        assert by_name["soft"] == ["Softmax"] * 8 and by_name["first"] == ["Add"]
        assert by_name["x"] == ["Parameter"] and by_name["y"] == ["Result"]
        assert {str(each) for each in nodes} == set(data["written"]["layers"])
    assert len(found.layers) < len(data["pairs"])


def test_options_of_a_comparison_are_refused_for_a_model_and_its_ir(tmp_path: Path) -> None:
    mapped(tmp_path, NESTED)
    for option in ({"ignore": "names"}, {"tolerance": 0.1}, {"scope": "loop/step"}):
        with pytest.raises(UsageError, match="for two models of one kind"):
            mo_loop.view(tmp_path / "m.onnx", tmp_path / "m.xml", **option)
