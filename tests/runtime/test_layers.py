"""first_difference: the first tensor of an ONNX model that differs in its IR, also inside bodies."""

import json
import pickle
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.parser import parse_model

from mo_loop import ops
from mo_loop.api import Model, read_model, save_model
from mo_loop.compare.execution.isolated import isolated
from mo_loop.compare.execution.runtime import Compiled
from mo_loop.compare.layers import History, LayerDifference, assign_origins, first_difference
from mo_loop.compare.layers.ir_side import IrSide
from mo_loop.compare.layers.onnx_side import OnnxFrame
from mo_loop.compare.layers.tensor_differences import elements_of, is_overwritten
from mo_loop.conversion import Conversion
from mo_loop.graph import Graph, Node
from mo_loop.graph.tensor import ArrayTensor
from mo_loop.ops.base import Constant
from mo_loop.ops.control import Iteration, Loop
from mo_loop.options import ConvertOptions
from tests.cases import read_cases
from tests.fuzz.control_flow.generator import generate
from tests.fuzz.planted.judging import RIGHT, UNJUDGED, UNSEEN, tried_number
from tests.harness import folded
from tests.texts import texts

TEXTS = texts(__file__)

pytestmark = pytest.mark.keeps_loops

X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)

LOOP = TEXTS["loop"]

NESTED = TEXTS["nested"]

FUNCTION = TEXTS["function"]


def converted(text: str | onnx.ModelProto, *observers: Any, **options: Any) -> tuple[onnx.ModelProto, Graph]:
    """A model and its graph for the declared sizes: the layers are those that the tests change."""
    model = parse_model(text) if isinstance(text, str) else text
    return model, Conversion(ConvertOptions(**folded(**options)), observers).run(model)


def layers(graph: Graph, kind: type) -> list[Any]:
    return [node for each in graph.scopes() for node in each.ordered() if isinstance(node, kind)]


def replaced(graph: Graph, node: Node, make: Callable[[Any], Node]) -> None:
    """Put another layer in the place of one; it keeps the names and origins."""
    new = make(node.inputs)
    new.origins = node.origins
    new.outputs[0].take_names(node.outputs[0])
    node.outputs[0].replace_with(new.outputs[0])
    node.graph.remove(node)
    graph.validate()


def found_in(model: Any, graph: Graph, feeds: dict[str, Any], **more: Any) -> LayerDifference:
    found = first_difference(model, graph, feeds, **more)
    assert found is not None
    return found


NESTED_FEEDS = {"x": X, "z": np.stack([X + k for k in range(3)]), "n": np.array(3)}


@pytest.mark.parametrize("text", [LOOP, NESTED, FUNCTION])
def test_all_tensors_of_a_right_graph_agree(text: str) -> None:
    model = parse_model(text)
    graph = Conversion(ConvertOptions(), ()).run(model)
    for trips in (0, 3):
        assert first_difference(model, graph, {**NESTED_FEEDS, "n": np.array(trips)}) is None


def test_a_wrong_layer_in_a_loop_is_named_with_the_iteration() -> None:
    model, graph = converted(LOOP)
    (layer,) = [each for each in layers(graph, ops.Multiply) if each.graph.owner is not None]
    replaced(graph, layer, lambda inputs: ops.Maximum(inputs[0], inputs[1]))
    found = found_in(model, graph, {"x": np.zeros_like(X) + np.float32(0.5), "n": np.array(4)})
    # Iteration 0: max(tanh, 0) is not 0.
    assert (found.path, found.operator, found.tensor) == ("loop/step/b", "Mul", "b")
    assert found.iterations == (("loop", 0),)
    assert set(found.agreeing) == {"a", "k"}
    assert found.elements is not None and found.elements.expected == 0.0
    assert found.elements.count == found.elements.size == 12


def test_the_iteration_is_the_first_in_which_numbers_differ() -> None:
    model, graph = converted(LOOP)
    (layer,) = [each for each in layers(graph, ops.Multiply) if each.graph.owner is not None]
    replaced(graph, layer, lambda inputs: ops.Multiply(ops.Minimum(inputs[0], 2.0), inputs[1]))
    found = found_in(model, graph, {"x": X, "n": np.array(5)})
    assert (found.path, found.iterations) == ("loop/step/b", (("loop", 3),))


def test_a_weight_in_the_body_of_a_scan_in_a_loop_is_named_with_both_iterations() -> None:
    model, graph = converted(NESTED)
    (constant,) = [each for each in layers(graph, Constant) if "half" in each.output.names]
    constant.__dict__["tensor"] = ArrayTensor(np.array(0.25, np.float32))
    found = found_in(model, graph, NESTED_FEEDS)
    assert found.scope == ("outer", "one", "inner", "two")
    assert found.node in ("half", "w") and found.iterations == (("outer", 0), ("outer/one/inner", 0))


def test_a_reversed_slice_is_named_by_the_node_that_slices() -> None:
    model, graph = converted(NESTED)
    inner = next(each for each in layers(graph, Iteration) if each.graph.owner is not None)
    entries = list(inner.input_map)
    place = next(n for n, each in enumerate(entries) if hasattr(each, "stride"))
    old = entries[place]
    entries[place] = type(old)(old.parameter, old.axis, old.end, old.start, -old.stride, old.part_size)
    inner.input_map = tuple(entries)
    graph.validate()
    found = found_in(model, graph, NESTED_FEEDS)
    assert (found.path, found.role, found.tensor) == ("outer/one/inner", "body input", "p")
    assert [number for _, number in found.iterations] == [0, 0]


def test_a_wrong_branch_is_a_difference_of_the_if() -> None:
    model, graph = converted(NESTED)
    (choice,) = layers(graph, ops.If)
    # A layer that no tensor of ONNX belongs to: the condition itself agrees.
    choice.graph.set_input(choice, 0, ops.LogicalNot(choice.inputs[0]).output)
    graph.validate()
    found = found_in(model, graph, NESTED_FEEDS)
    assert (found.path, found.kind) == ("outer/one/choice", "branch")


def test_a_loop_that_ends_too_early_is_a_difference_of_the_loop() -> None:
    model, graph = converted(LOOP)
    (loop,) = layers(graph, Loop)
    graph.set_input(loop, 0, ops.Minimum(loop.inputs[0], np.array(2)).output)
    graph.validate()
    found = found_in(model, graph, {"x": X, "n": np.array(4)})
    assert (found.path, found.kind, found.iterations) == ("loop", "iterations", (("loop", 2),))
    assert "OpenVINO ends the loop after 2 iterations" in str(found)


def test_a_shape_is_compared_before_values() -> None:
    model, graph = converted(LOOP)
    (layer,) = layers(graph, ops.ReLU)
    replaced(graph, layer, lambda inputs: ops.Concat(ops.ReLU(inputs[0]), ops.ReLU(inputs[0]), axis=0))
    found = found_in(model, graph, {"x": X, "n": np.array(2)})
    assert (found.path, found.kind) == ("r", "shape")
    assert "[6, 4]" in found.message and "[3, 4]" in found.message


def test_a_node_of_a_function_is_named_with_its_call() -> None:
    model, graph = converted(FUNCTION)
    (layer,) = layers(graph, ops.Negative)
    replaced(graph, layer, lambda inputs: ops.Abs(inputs[0]))
    assert found_in(model, graph, {"x": X}).path == "call/n"


def test_fused_nodes_before_the_difference_are_listed() -> None:
    model, graph = converted(LOOP)
    (tanh,) = layers(graph, ops.Tanh)
    replaced(graph, tanh, lambda inputs: ops.Sigmoid(inputs[0]))
    for value in [value for node in layers(graph, ops.Sigmoid) for value in node.outputs if "a" in value.names]:
        value.origins, value.names = (), ()
    found = found_in(model, graph, {"x": X, "n": np.array(3)})
    assert (found.node, found.between) == ("b", ("a (Tanh)",))
    assert found.iterations == (("loop", 1),), "in iteration 0 the product with 0 hides it"


def test_an_output_of_the_model_that_is_connected_wrongly() -> None:
    model, graph = converted(LOOP)
    (result,) = graph.results
    (relu,) = layers(graph, ops.ReLU)
    result.value.names = ()
    graph.set_input(result, 0, relu.output)
    result.__dict__["output_names"] = ("y",)
    assert found_in(model, graph, {"x": X, "n": np.array(3)}).tensor == "y"


@pytest.mark.parametrize("index", [3, 63, 84])
def test_random_models_have_no_difference(index: int) -> None:
    """Lists, functions, Scan with axes and directions, loops without iterations, values of one layer for two nodes."""
    case = generate(2026, index)
    graph = Conversion(ConvertOptions(), ()).run(case.model)
    for feeds in case.feeds[:1]:
        assert isolated(first_difference, case.model.SerializeToString(), graph, feeds) is None


def test_two_loops_of_the_ir_for_one_of_the_model_are_one_piece() -> None:
    """Each has a part of the iterations, so that one ends before ONNX does."""
    case = generate(5301, 225)
    graph = Conversion(ConvertOptions(), ()).run(case.declared)
    assert first_difference(case.declared, graph, case.feeds[0]) is None


@pytest.mark.parametrize("number", range(2))
def test_planted_faults_are_found(number: int) -> None:
    """`make faults` plants many more."""
    what, _, _, trial = isolated(tried_number, (7, number, None))
    assert trial.result in (RIGHT, UNSEEN, UNJUDGED), f"{what}: {trial.result}\n{trial.expected}\n{trial.found}"


def test_the_memory_limit_makes_smaller_pieces_and_changes_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = "".join(f"a{n + 1} = Tanh (a{n}) b{n} = Sin (a{n + 1}) " for n in range(6))
    text = f"""<ir_version: 8, opset_import: ["" : 17]>
        main (float[N,64] a0) => (float[N,64] y) {{ {nodes} y = Sum (a6, {", ".join(f"b{n}" for n in range(6))}) }}"""
    model, graph = converted(text)
    feeds = {"a0": np.ones((256, 64), np.float32)}
    assert first_difference(model, graph, feeds, memory=1 << 18) is None
    replaced(graph, layers(graph, ops.Sin)[4], lambda inputs: ops.Cos(inputs[0]))
    held: list[int] = []

    class Measured(OnnxFrame):
        def compute(self, start: int, budget: int) -> int:
            end = super().compute(start, budget)
            held.append(self.size)
            return end

    monkeypatch.setattr("mo_loop.compare.layers.lockstep.OnnxFrame", Measured)
    size = feeds["a0"].nbytes
    for limit in (12 * size, 1 << 30):
        held.clear()
        first_difference(model, graph, feeds, memory=limit)
        assert max(held) <= limit
        assert (len(held) > 3) == (limit < 1 << 30), "a small limit makes several pieces"
    answers = {found_in(model, graph, feeds, memory=size).tensor for size in (1 << 16, 1 << 30)}
    assert answers == {"b4"}


@pytest.mark.parametrize("joint_only", [True, False])
def test_a_difference_that_vanishes_alone_is_said_to_be_one(joint_only: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As if the runtime overwrote a tensor with what is computed together with it."""
    model, graph = converted(LOOP)

    class Overwriting(Compiled):
        def run(self, feeds: Any) -> list[tuple[str, np.ndarray]]:
            found = super().run(feeds)
            spoilt = len(found) > 1 or not joint_only
            return [(name, array + spoilt if array.dtype == np.float32 else array) for name, array in found]

    module = sys.modules["mo_loop.compare.layers"]
    monkeypatch.setattr(module, "IrSide", lambda: IrSide(Overwriting))
    found = found_in(model, graph, {"x": X, "n": np.array(2)})
    assert found.vanishes == joint_only
    assert ("apart from its neighbours" in str(found)) == joint_only
    assert found.path == ("loop/step/k" if joint_only else "r")


def test_each_node_can_run_alone_and_the_stage_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    stages: list[str] = []
    monkeypatch.setattr("mo_loop.compare.layers.lockstep.report_stage", stages.append)
    model, graph = converted(LOOP)
    assert first_difference(model, graph, {"x": X, "n": np.array(2)}, one_by_one=True) is None
    assert "computing loop/step/b, iteration 1 of loop" in stages
    together = len(stages)
    stages.clear()
    assert first_difference(model, graph, {"x": X, "n": np.array(2)}) is None
    assert len(stages) < together


def test_bytes_that_are_no_booleans_are_noticed() -> None:
    assert is_overwritten(np.array([1, 78], np.uint8).view(np.bool_))
    assert not is_overwritten(np.array([1, 0], np.uint8).view(np.bool_))
    assert not is_overwritten(np.array([1, 78], np.uint8))


def test_the_history_names_the_passes() -> None:
    history = History()
    model, graph = converted(NESTED, history)
    inner = next(each for each in layers(graph, Iteration) if each.graph.owner is not None)
    assert inner.origin.node == "inner"
    assert "ScanLowering" in history.passes_of(inner.origin)
    (layer,) = layers(graph, ops.ReLU)
    replaced(graph, layer, lambda inputs: ops.Sin(inputs[0]))
    assert found_in(model, graph, NESTED_FEEDS, history=pickle.loads(pickle.dumps(history))).path == "y"


def test_an_ir_from_files_gets_its_origins_back(tmp_path: Any) -> None:
    model, graph = converted(NESTED)
    save_model(Model(graph), tmp_path / "model.xml")
    read = read_model(tmp_path / "model.xml").graph
    assign_origins(read, model)
    assert first_difference(model, read, NESTED_FEEDS) is None
    (layer,) = [each for each in layers(read, ops.Tanh) if each.graph.owner is not None]
    replaced(read, layer, lambda inputs: ops.ReLU(inputs[0]))
    assert found_in(model, read, {**NESTED_FEEDS, "x": X + 5}).path == "outer/one/choice/big/a"


def test_an_ir_with_weights_of_16_bits_gets_its_origins_back(tmp_path: Any) -> None:
    case = generate(2026, 8)
    model, graph = converted(case.model)
    save_model(Model(graph), tmp_path / "model.xml", compress_to_fp16=True)
    read = read_model(tmp_path / "model.xml").graph
    assign_origins(read, model)
    assert first_difference(model, read, case.feeds[0], rtol=1e-2, atol=1e-2) is None


def test_an_ir_whose_layers_have_other_names_is_matched_by_its_tensors(tmp_path: Any) -> None:
    model, graph = converted(LOOP)
    save_model(Model(graph), tmp_path / "model.xml")
    read = read_model(tmp_path / "model.xml").graph
    for each in read.scopes():
        for number, node in enumerate(each.ordered()):
            if not isinstance(node, Iteration):
                node.name = f"layer{number}"
    assign_origins(read, model)
    (layer,) = layers(read, ops.Tanh)
    replaced(read, layer, lambda inputs: ops.ReLU(inputs[0]))
    found = found_in(model, read, {"x": X, "n": np.array(3)})
    assert (found.path, found.iterations) == ("loop/step/a", (("loop", 0),))


def test_the_answer_is_data_and_a_text_of_sentences() -> None:
    model, graph = converted(LOOP)
    (layer,) = layers(graph, ops.Tanh)
    replaced(graph, layer, lambda inputs: ops.ReLU(inputs[0]))
    found = pickle.loads(pickle.dumps(found_in(model, graph, {"x": X, "n": np.array(3)})))
    data = json.loads(json.dumps(found.as_json(), allow_nan=False))
    assert data["path"] == "loop/step/a" and data["iterations"] == [{"loop": "loop", "iteration": 0}]
    text = str(found).splitlines()
    assert text[0] == (
        "The first tensor that differs is 'a', an output of the node loop/step/a (Tanh), in iteration 0 of loop "
        "(counted from 0)."
    )
    assert all(line.endswith(".") or " has " in line for line in text)


def test_infinities_and_nan_are_the_worst_elements() -> None:
    found = elements_of(np.array([1, 2, np.nan, 4], np.float32), np.array([1, 3, 5, 4], np.float32), 1e-3, 1e-5)
    assert (found.index, found.count, found.actual) == ((2,), 2, 5.0)


read_cases(globals())
