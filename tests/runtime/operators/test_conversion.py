"""Cast of values that are out of the range of the type."""

import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto, helper

from mo_loop.graph.types import f8e4m3, f8e5m2
from mo_loop.transforms.downgrade import INPUTS
from tests.harness import check_model, check_node, graph_model, runs


@pytest.mark.parametrize(
    ("to", "largest", "dtype"),
    [(TensorProto.FLOAT8E4M3FN, 448, ml_dtypes.float8_e4m3fn), (TensorProto.FLOAT8E5M2, 57344, ml_dtypes.float8_e5m2)],
)
def test_float8_saturates_and_keeps_nan(to: int, largest: float, dtype: type) -> None:
    """The runtime's own conversion gives NaN or infinity beyond the range."""
    x = np.array([1e6, -1e6, np.nan, 1.5, 0], np.float32)
    expected = np.array([largest, -largest, np.nan, 1.5, 0]).astype(dtype)
    check_node("Cast", {"x": x}, {"to": to}, opset=19, expected=[expected])


@pytest.mark.parametrize(("source", "target"), [(17, 19), (19, 17)])
def test_casts_between_floats_of_8_bits(source, target):
    """The limit of the larger type is not a value of the smaller one."""
    if not runs(max(INPUTS[f8e4m3], INPUTS[f8e5m2])):
        pytest.skip("the release reads no inputs of these types")
    x = np.array([0.5, -3, 448, -448, 0], helper.tensor_dtype_to_np_dtype(source))
    check_node("Cast", {"x": x}, {"to": target, "saturate": 1}, opset=19)


@pytest.mark.parametrize("to", [TensorProto.INT4, TensorProto.UINT4])
@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int32, np.uint32, np.int64])
def test_integers_keep_their_lowest_four_bits(to, dtype):
    """Also if another node computes with the result, which then has 8 bits in the runtime."""
    feeds = {"x": np.array([0, 1, 7, 8, 11, 15, 16, 100]).astype(dtype)}
    nodes = [helper.make_node("Cast", ["x"], ["narrow"], to=to),
             helper.make_node("Cast", ["narrow"], ["y"], to=TensorProto.INT8)]
    low = feeds["x"].astype(np.int8) % 16
    expected = np.where(low > 7, low - 16, low) if to == TensorProto.INT4 else low
    check_model(graph_model(nodes, feeds, ["y"], opset=21), feeds, expected=[expected.astype(np.int8)])
