"""Older versions of an operator: what they share with the newest version has the same meaning."""

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from mo_loop.api import convert_model
from mo_loop.text import to_text

HIDDEN, SIZE = 3, 2


def gru(opset: int, linear_before_reset: int) -> str:
    """The translation of a GRU."""
    rng = np.random.default_rng(3)
    weights = {
        name: rng.standard_normal(shape).astype(np.float32)
        for name, shape in (("w", (1, 3 * HIDDEN, SIZE)), ("r", (1, 3 * HIDDEN, HIDDEN)), ("b", (1, 6 * HIDDEN)))
    }
    node = helper.make_node(
        "GRU", ["x", "w", "r", "b"], ["y"], hidden_size=HIDDEN, linear_before_reset=linear_before_reset
    )
    x = helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, (4, 1, SIZE))
    y = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, (4, 1, 1, HIDDEN))
    graph = helper.make_graph([node], "g", [x], [y], [numpy_helper.from_array(each, n) for n, each in weights.items()])
    model = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", opset)])
    return to_text(convert_model(model).graph, canonical=True)


@pytest.mark.parametrize("linear_before_reset", [0, 1])
@pytest.mark.parametrize("opset", [3, 7])
def test_gru_resets_where_it_is_said(opset: int, linear_before_reset: int) -> None:
    assert gru(opset, linear_before_reset) == gru(14, linear_before_reset) != gru(14, 1 - linear_before_reset)
