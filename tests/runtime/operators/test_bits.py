"""Bits: values read as another type, casts out of range, counts of sequences of numbers."""

from typing import Any

import ml_dtypes as ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto as TensorProto
from onnx import helper

from mo_loop.api import convert_model
from mo_loop.errors import MoLoopError
from mo_loop.graph.types import f8e4m3, f8e5m2
from mo_loop.transforms.downgrade import INPUTS
from tests.cases import read_cases
from tests.harness import check_node, node_model, refusal, runs

# -- BitCast and TfIdfVectorizer: bits read as another type, and counts of sequences of numbers


EDGES = [0, 1, -1, 5, -5, 127, -128, 32767, -32768, 2**31 - 1, -(2**31)]


def cast(x: Any, to: Any, dynamic: bool = False, constants: tuple[str, ...] = ()) -> None:
    number = helper.np_dtype_to_tensor_dtype(np.dtype(to))
    check_node("BitCast", {"x": x}, {"to": number}, opset=26, dynamic=dynamic, constants=constants,
               expected=[np.ascontiguousarray(x).view(to).reshape(x.shape)])


@pytest.mark.parametrize(("source", "target"),
                         [(np.float32, np.int32), (np.int32, np.float32), (np.uint16, np.float16)])
def test_constants_of_any_type(source: Any, target: Any) -> None:
    """Negative zero, the smallest numbers and NaN keep every bit."""
    patterns = {4: [0, 1, 0x80000000, 0x7F800000, 0x7FC00001, 0x3F800000], 2: [0, 1, 0x8000, 0x7C00, 0x7E01, 0x3C00]}
    size = np.dtype(source).itemsize
    x = np.array(patterns[size], f"uint{8 * size}").view(source)
    found = convert_model(node_model("BitCast", {"x": x}, {"to": helper.np_dtype_to_tensor_dtype(np.dtype(target))},
                                     opset=26, constants=("x",))).graph
    (result,) = found.results
    assert result.value.constant.tobytes() == x.tobytes()
    assert result.value.dtype.numpy == np.dtype(target)


@pytest.mark.parametrize(("source", "target"), [(np.float32, np.int32), (np.int64, np.float64), (np.float16, np.int16)])
def test_floats_at_run_time_are_refused(source: Any, target: Any) -> None:
    to = helper.np_dtype_to_tensor_dtype(np.dtype(target))
    with pytest.raises(MoLoopError, match="reads the bits of one as the other") as caught:
        convert_model(node_model("BitCast", {"x": np.zeros(3, source)}, {"to": to}, opset=26))
    assert caught.value.code == "ML316"


def test_another_width() -> None:
    assert refusal(node_model("BitCast", {"x": np.zeros(3, np.float32)}, {"to": 7}, opset=26)).code == "ML227"


# -- TfIdfVectorizer


POOL = {"ngram_counts": [0, 4], "ngram_indexes": [0, 1, 2, 3, 4, 5, 6], "pool_int64s": [2, 3, 5, 4, 5, 6, 7, 8, 6, 7]}
TEXT = np.array([[1, 1, 3, 3, 3, 7], [8, 6, 7, 5, 6, 8], [5, 6, 7, 8, 6, 7]])


@pytest.mark.parametrize(("change", "code"), [
    ({"mode": "BM25"}, "ML227"), ({"ngram_indexes": [0, 1]}, "ML227"), ({"ngram_counts": [0, 3]}, "ML227"),
    ({"pool_int64s": None, "pool_strings": ["a"]}, "ML227"),
    ({"mode": "IDF", "ngram_indexes": [6, 5, 4, 3, 2, 1, 0], "weights": [1.0, 2, 3, 4, 5, 6, 7]}, "ML316"),
])
def test_what_cannot_be_counted(change: Any, code: str) -> None:
    attributes = {**POOL, "mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "max_skip_count": 0, **change}
    attributes = {name: value for name, value in attributes.items() if value is not None}
    assert refusal(node_model("TfIdfVectorizer", {"x": TEXT}, attributes, opset=9)).code == code


# -- Cast of values that are out of the range of the type


@pytest.mark.parametrize(("source", "target"), [(17, 19), (19, 17)])
def test_casts_between_floats_of_8_bits(source, target):
    """The limit of the larger type is not a value of the smaller one."""
    if not runs(max(INPUTS[f8e4m3], INPUTS[f8e5m2])):
        pytest.skip("the release reads no inputs of these types")
    x = np.array([0.5, -3, 448, -448, 0], helper.tensor_dtype_to_np_dtype(source))
    check_node("Cast", {"x": x}, {"to": target, "saturate": 1}, opset=19)


read_cases(globals())
