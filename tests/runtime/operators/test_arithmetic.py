"""Arithmetic, comparison, logic and bits, compared with ONNX Runtime."""

import numpy as np
import pytest
from onnx import helper

from tests.cases import read_cases
from tests.harness import check_model, check_node, every, graph_model, has_gap

RNG = np.random.default_rng(7)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5, 100.0], np.float32)
LIMITED = [np.uint32, np.uint64] if has_gap("unsigned-of-32-bits") else []
"""Types of which numbers above 2^31 - 1 are wrong on this release."""


def floats(*shape, dtype=np.float32):
    return RNG.uniform(-2, 2, shape).astype(dtype)


def integers(dtype, *shape, low=1, high=9):
    return RNG.integers(low, high, shape).astype(dtype)


@every(dtype=[np.int8, np.uint8, np.int32, np.int64], steps=[1, 65], dynamic=[False, True])
def test_division_is_not_rounded(dtype, steps, dynamic):
    """The runtime's own division rounds if it is merged into a preceding reduction, with other operations between."""
    x = np.array([[7, 3], [5, 6]], dtype)
    check_node("Div", {"a": x, "b": np.array(2, dtype)}, opset=14, dynamic=dynamic, expected=[x // 2])
    nodes = [
        helper.make_node("ReduceSum", ["x", "axes"], ["m"]),
        *(helper.make_node("Add", [f"a{n}" if n else "m", "one"], [f"a{n + 1}"]) for n in range(steps)),
        helper.make_node("Div", [f"a{steps}", "two"], ["y"]),
    ]
    constants = {"axes": np.array([1]), "one": np.array(1, dtype), "two": np.array(2, dtype)}
    model = graph_model(nodes, {"x": x}, ["y"], opset=14, constants=constants, dynamic=dynamic)
    check_model(model, {"x": x}, expected=[(x.sum(1, keepdims=True, dtype=dtype) + dtype(steps)) // dtype(2)])


@pytest.mark.parametrize("fmod", [0, 1])
def test_mod_of_infinity(fmod):
    a = np.array([5.5, -5.5, 0, 5.5, -5.5, np.inf, np.nan], np.float32)
    b = np.array([np.inf, np.inf, np.inf, -np.inf, 2, 2, np.inf], np.float32)
    with np.errstate(invalid="ignore"):
        check_node("Mod", {"a": a, "b": b}, {"fmod": fmod}, opset=28, expected=[(np.fmod if fmod else np.mod)(a, b)])


MIXED = "f4 i8", "f4 f8", "i4 f4", "i8 i4", "f2 i4"


UNARY = {"Abs": 13, "Ceil": 13, "Floor": 13, "Neg": 13, "Sign": 13, "Sqrt": 13, "Exp": 13, "Log": 13, "Sin": 7,
         "Cos": 7, "Tan": 7, "Asin": 7, "Acos": 7, "Atan": 7, "Sinh": 9, "Cosh": 9, "Asinh": 9, "Acosh": 9, "Atanh": 9,
         "Tanh": 13, "Erf": 13, "Round": 11, "Reciprocal": 13}


read_cases(globals())
