"""Heat: the differences of all tensors of an IR, after the first difference too."""

import json
import random
import sys
from typing import Any

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.compare.execution.isolated import isolated
from mo_loop.compare.execution.runtime import Compiled
from mo_loop.compare.layers import Heat, LayerDifference, first_difference
from mo_loop.compare.layers.ir_side import IrSide
from mo_loop.compare.results.array_comparison import BEYOND
from mo_loop.graph import Graph, Value
from mo_loop.graph.tensor import ArrayTensor
from mo_loop.look.records.node_records import Describer
from mo_loop.ops.base import Constant
from mo_loop.ops.control import Iteration, Loop
from tests.fuzz.planted.judging import expected_place
from tests.fuzz.planted.planting import converted as converted_model
from tests.fuzz.planted.planting import nested, plant
from tests.runtime.test_layers import FUNCTION, LOOP, NESTED, NESTED_FEEDS, X, converted, found_in, layers, replaced

pytestmark = pytest.mark.keeps_loops


def heat_of(model: Any, graph: Graph, feeds: dict[str, Any]) -> tuple[Heat, LayerDifference | None]:
    heat = Heat()
    return heat, first_difference(model, graph, feeds, heat=heat)


def worst(heat: Heat, name: str) -> float:
    """The worst difference of the values with a tensor name."""
    return max(found.multiple for value, (found, _) in heat.tensors.items() if name in value.names)


def hot(heat: Heat) -> list[Value]:
    """The values that differ, in the order of the ONNX model."""
    return [value for value, (found, _) in heat.tensors.items() if found.multiple > 1]


def curves(heat: Heat, loop: Iteration) -> dict[str, list[Any]]:
    """The curves of a loop, as the page gets them."""
    found: dict[str, list[Any]] = heat.loops[loop].as_json()["tensors"]
    return found


@pytest.mark.parametrize("text", [LOOP, NESTED, FUNCTION])
def test_no_tensor_of_a_right_graph_is_hot(text: str) -> None:
    model, graph = converted(text)
    heat, found = heat_of(model, graph, NESTED_FEEDS)
    assert found is None and heat.first is None and not heat.notes
    assert len(heat.tensors) > 3 and all(each.multiple < 1 for each, _ in heat.tensors.values())
    for loop, each in heat.loops.items():
        assert each.iterations == 3 and all(len(curve) == 3 for curve in curves(heat, loop).values())
    assert len(heat.loops) == len(layers(graph, Iteration))


def test_a_curve_rises_in_the_iteration_of_the_difference() -> None:
    model, graph = converted(LOOP)
    (layer,) = [each for each in layers(graph, ops.Multiply) if each.graph.owner is not None]
    replaced(graph, layer, lambda inputs: ops.Multiply(ops.Minimum(inputs[0], 2.0), inputs[1]))
    heat, found = heat_of(model, graph, {"x": X, "n": np.array(6)})
    assert found.brief == found_in(model, graph, {"x": X, "n": np.array(6)}).brief, "the same without a Heat"
    first = hot(heat)
    assert "b" in first[0].names or "s" in first[0].names
    assert heat.first is not None and "b" in heat.first[0].outputs[heat.first[1]].names
    assert worst(heat, "r") < 1 < min(worst(heat, name) for name in ("b", "t", "s", "y"))
    (loop,) = layers(graph, Loop)
    for name in ("b", "t"):
        curve = curves(heat, loop)[name]
        assert max(curve[:3]) < 1 < min(curve[3:])
    assert list(curves(heat, loop)) == ["b", "t"], "where it begins, then the outputs of the body"


def test_both_sides_keep_their_own_values() -> None:
    """A difference that a later node hides is cool after it."""
    model, graph = converted("""<ir_version: 8, opset_import: ["" : 17]>
        main (float[3,4] x) => (float[3,4] y) { a = Tanh (x) b = Neg (a) c = Abs (b) y = Exp (c) }""")
    (layer,) = layers(graph, ops.Negative)
    replaced(graph, layer, lambda inputs: ops.Multiply(inputs[0], 1.0))
    heat, _ = heat_of(model, graph, {"x": X})
    assert [name for value in hot(heat) for name in value.names] == ["b"]
    assert max(worst(heat, "c"), worst(heat, "y")) < 1


def heated(task: tuple[int, int]) -> str:
    """Plant a fault in a body at depth 2 of a random model, in a worker; returns the fault in its heat."""
    seed, number = task
    rng = random.Random(f"{seed}:{number}")
    model, feeds = nested(rng, 2)
    graph = converted_model(model)
    fault = None if graph is None else plant(graph, rng, depth=2)
    if graph is None or fault is None:
        return "not planted"
    for each in feeds:
        heat, found = heat_of(model, fault.graph, each)
        if found is None:
            continue
        where = f"{fault.kind} {fault.path}: {fault.change}\n{found}"
        if str(found) != str(first_difference(model, fault.graph, each)):
            return f"{where}\nanother answer without a Heat"
        if found.kind == "failed":  # there are no numbers
            return "not computed"
        place = expected_place(model, graph, fault, each)
        assert heat.first is not None
        node, port, _ = heat.first
        if place is None or not {origin.of_node().path for origin in node.outputs[port].origins} & place.nodes:
            return f"{where}\nthe first difference is at {node.path}, and should be at {place}"
        if node.outputs[port] not in hot(heat):
            return f"{where}\nthe first difference is not hot"
        loops = [
            loop for loop in heat.loops if any(each is node for inner in loop.body.scopes() for each in inner.ordered())
        ]
        rising = [
            loop for loop in loops if any(point and point > 1 for each in curves(heat, loop).values() for point in each)
        ]
        return "right" if rising == loops else f"{where}\na curve does not rise"
    return "unseen"


def test_faults_planted_in_nested_bodies_are_hot_where_they_are_planted() -> None:
    seed = 19
    results = {number: isolated(heated, (seed, number)) for number in range(4)}
    assert "right" in results.values(), f"seed {seed}: {results}"
    wrong = [each for each in results.values() if each not in ("right", "unseen", "not planted", "not computed")]
    assert not wrong, f"seed {seed}: {wrong[0]}"


def test_a_loop_that_ends_too_early_is_compared_as_far_as_both_run() -> None:
    model, graph = converted(LOOP)
    (loop,) = layers(graph, Loop)
    graph.set_input(loop, 0, ops.Minimum(loop.inputs[0], np.array(2)).output)
    graph.validate()
    heat, found = heat_of(model, graph, {"x": X, "n": np.array(4)})
    assert found is not None and found.kind == "iterations"
    assert heat.first is not None and heat.first[0] is loop
    assert heat.loops[loop].iterations == 2 and worst(heat, "t") < 1 < worst(heat, "f") and worst(heat, "y") > 1
    (note,) = heat.notes
    assert note == (
        "loop: OpenVINO ends the loop after 2 iterations, ONNX Runtime continues. Work that only one side does is not "
        "compared."
    )


def test_the_other_branch_is_not_compared_and_what_follows_is() -> None:
    model, graph = converted(NESTED)
    (choice,) = layers(graph, ops.If)
    choice.graph.set_input(choice, 0, ops.LogicalNot(choice.inputs[0]).output)
    graph.validate()
    heat, found = heat_of(model, graph, NESTED_FEEDS)
    assert found is not None and found.kind == "branch"
    assert heat.first is not None and heat.first[:2] == (choice, 0)
    assert worst(heat, "m") > 1 and worst(heat, "y") > 1
    assert any("OpenVINO else_branch" in note or "OpenVINO then_branch" in note for note in heat.notes)
    assert not any(value.graph in choice.bodies for value in heat.tensors)


def test_a_layer_that_does_not_run_ends_the_comparison_with_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    model, graph = converted(LOOP)

    class Failing(Compiled):
        def run(self, feeds: Any) -> list[tuple[str, np.ndarray]]:
            if any(np.any(each == 3) for each in feeds):  # k in iteration 3
                raise RuntimeError("no memory")
            return super().run(feeds)

    module = sys.modules["mo_loop.compare.layers"]
    monkeypatch.setattr(module, "IrSide", lambda: IrSide(Failing))
    heat, found = heat_of(model, graph, {"x": X, "n": np.array(5)})
    assert found is not None and found.kind == "failed"
    (loop,) = layers(graph, Loop)
    assert len(curves(heat, loop)["t"]) == 3 and worst(heat, "t") < 1
    (note,) = heat.notes
    assert note.startswith("The comparison ends at the node ")
    assert note.endswith("OpenVINO: no memory.")


def test_another_shape_has_no_number_and_a_text() -> None:
    model, graph = converted(LOOP)
    (layer,) = layers(graph, ops.Sigmoid)
    replaced(graph, layer, lambda inputs: ops.Concat(inputs[0], inputs[0], axis=0))
    heat, _ = heat_of(model, graph, {"x": X, "n": np.array(2)})
    (found,) = [each for value, (each, _) in heat.tensors.items() if "y" in value.names]
    assert (found.multiple, found.message) == (BEYOND, "shape [6, 4] instead of [3, 4]")


def test_the_data_of_the_page_has_its_ids_and_is_json() -> None:
    model, graph = converted(NESTED)
    (constant,) = [each for each in layers(graph, Constant) if "half" in each.output.names]
    constant.__dict__["tensor"] = ArrayTensor(np.array(0.25, np.float32))
    heat, _ = heat_of(model, graph, NESTED_FEEDS)
    describer = Describer()
    records = describer.state(graph).nodes
    data = json.loads(json.dumps(heat.as_json(describer.id), allow_nan=False))
    names = {names for node, port, _ in data["tensors"] for names in records[node]["outputs"][port]["names"]}
    assert {"s", "t", "q", "w", "half", "y"} <= names
    assert records[data["first"]["node"]]["op"] == "Constant"
    for owner, loop in data["loops"].items():
        assert records[int(owner)]["bodies"] and loop["iterations"] == 3 and loop["per_point"] == 1
    assert [list(each["tensors"]) for each in data["loops"].values()] == [["t", "q"], ["w", "v"]]
