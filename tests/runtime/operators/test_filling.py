"""Operators that extend, cut or create tensors: Expand, Tile, Pad, Range, EyeLike ..."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

from mo_loop import ops
from mo_loop.api import convert_model
from mo_loop.errors import ConversionWarning
from tests.cases import read_cases
from tests.harness import check_model, graph_model, node_model, parsed

from .test_movement import floats, ints


@pytest.mark.parametrize("pads", [(1, 2, 0, 1), (0, -1, 1, 1), (1, 0, 0, -1)])
def test_only_the_newer_operation_removes_elements(pads: tuple[int, ...]) -> None:
    graph = convert_model(node_model("Pad", {"x": floats(3, 4)}, {"pads": pads}, opset=2)).graph
    assert len(graph.of(ops.Pad12)) == (min(pads) < 0)


def test_pad_with_a_value_that_changes() -> None:
    inputs = {"x": floats(3, 4), "p": ints(1, 2, 0, 1), "v": np.float32(1)}
    model = node_model("Pad", inputs, opset=13, constants=("p",))
    check_model(model, inputs, inputs | {"v": np.float32(2)}, inputs | {"v": np.float32(3)})


def _widths(rank: int, axes: Any, pads: Any) -> Any:
    widths = [(0, 0)] * rank
    for i, axis in enumerate(axes):
        widths[axis] = (pads[i], pads[len(axes) + i])
    return widths


def test_shapes_that_are_computed_stay_visible() -> None:
    """Shape -> Gather -> Concat -> Expand: the rank and the static dimensions of the result are known."""
    nodes = [helper.make_node("Shape", ["x"], ["dims"]), helper.make_node("Gather", ["dims", "first"], ["n"]),
             helper.make_node("Concat", ["n", "four"], ["shape"], axis=0),
             helper.make_node("Expand", ["y", "shape"], ["z"])]
    feeds = {"x": floats(3, 2), "y": floats(1)}
    constants = {"first": ints(0), "four": ints(4)}
    model = graph_model(nodes, feeds, ["z"], opset=13, constants=constants, dynamic=True)
    check_model(model, feeds)
    assert str(convert_model(model).graph.results[0].value.type) == "f32[x_0,4]"


def test_the_last_of_two_constants_of_one_name_holds_for_all_readers():
    """As in ONNX Runtime, which makes them initializers before it runs a node."""
    made = parsed("""main (float[2] x) => (float[2] y, float[2] z) {
        t = Constant <value_float = 3.0> ()  y = Mul (x, t)  t = Constant <value_float = 4.0> ()  z = Add (x, t) }""")
    x = np.array([1, 2], np.float32)
    with pytest.warns(ConversionWarning, match="two nodes make 't'"):
        check_model(made, {"x": x}, expected=[x * 4, x + 4])


read_cases(globals())
