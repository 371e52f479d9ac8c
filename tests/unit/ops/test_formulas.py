"""`evaluate` of every operation that has it, compared with a formula or numbers written by hand."""

import math
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.graph import Graph
from mo_loop.graph.types import boolean, f32, i8, i32, i64, u8
from mo_loop.ops.base import Op
from tests.unit.ops.examples import operations

INF, NAN = math.inf, math.nan
SIGNED = [-4.0, -2.5, -1.0, -0.5, 0.0, 0.25, 0.5, 1.5, 3.0, 7.0]
UNIT = [-0.75, -0.5, 0.0, 0.25, 0.5]
POSITIVE = [0.25, 1.0, 2.0, 9.0]
WHOLE = [-7, -3, -2, -1, 0, 1, 2, 5]


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def soft_plus(x: float) -> float:
    return math.log(1 + math.exp(x))


def sign(x: float) -> int:
    return (x > 0) - (x < 0)


ONE_BY_ONE: list[tuple[str, dict[str, Any], list[Any], Callable[..., Any]]] = [
    ("Abs", {}, SIGNED, abs),
    ("Abs", {}, WHOLE, abs),
    ("Negative", {}, WHOLE, lambda x: -x),
    ("Sign", {}, SIGNED, sign),
    ("Ceiling", {}, SIGNED, math.ceil),
    ("Floor", {}, SIGNED, math.floor),
    ("Round", {}, [-2.5, -1.5, -0.4, 0.5, 0.6, 1.5, 2.5], round),
    ("Round", {"mode": "half_away_from_zero"}, [-2.5, -1.5, -0.4, 0.0, 0.5, 0.6, 1.5, 2.5],
     lambda x: sign(x) * math.floor(abs(x) + 0.5)),
    ("Sqrt", {}, POSITIVE, math.sqrt),
    ("Exp", {}, SIGNED, math.exp),
    ("Log", {}, POSITIVE, math.log),
    ("Sin", {}, SIGNED, math.sin),
    ("Cos", {}, SIGNED, math.cos),
    ("Tan", {}, UNIT, math.tan),
    ("Asin", {}, UNIT, math.asin),
    ("Acos", {}, UNIT, math.acos),
    ("Atan", {}, SIGNED, math.atan),
    ("Sinh", {}, SIGNED, math.sinh),
    ("Cosh", {}, SIGNED, math.cosh),
    ("Tanh", {}, SIGNED, math.tanh),
    ("Asinh", {}, SIGNED, math.asinh),
    ("Acosh", {}, [1.0, 1.5, 8.0], math.acosh),
    ("Atanh", {}, UNIT, math.atanh),
    ("Erf", {}, SIGNED, math.erf),
    ("Identity", {}, SIGNED, lambda x: x),
    ("LogicalNot", {}, [True, False], lambda x: not x),
    ("BitwiseNot", {}, WHOLE, lambda x: -x - 1),
    ("ReLU", {}, SIGNED, lambda x: x if x > 0 else 0),
    ("Sigmoid", {}, SIGNED, sigmoid),
    ("HSigmoid", {}, SIGNED, lambda x: min(max(x + 3, 0), 6) / 6),
    ("HSwish", {}, SIGNED, lambda x: x * min(max(x + 3, 0), 6) / 6),
    ("Mish", {}, SIGNED, lambda x: x * math.tanh(soft_plus(x))),
    ("SoftPlus", {}, SIGNED, soft_plus),
    ("SoftSign", {}, SIGNED, lambda x: x / (1 + abs(x))),
    ("Gelu", {}, SIGNED, lambda x: x * (1 + math.erf(x / math.sqrt(2))) / 2),
    ("Gelu", {"approximation_mode": "TANH"}, SIGNED,
     lambda x: x * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x))) / 2),
    ("Elu", {"alpha": 1.5}, SIGNED, lambda x: x if x >= 0 else 1.5 * (math.exp(x) - 1)),
    ("Clamp", {"min": -1.0, "max": 2.0}, SIGNED, lambda x: min(max(x, -1), 2)),
    ("Clamp", {"min": -2.0, "max": 1.0}, WHOLE, lambda x: min(max(x, -2), 1)),
    ("Swish", {}, SIGNED, lambda x: x * sigmoid(x)),
    ("IsNaN", {}, [-INF, -1.0, 0.0, NAN, INF], lambda x: x != x),
    ("IsFinite", {}, [-INF, -1.0, 0.0, NAN, INF], lambda x: not (math.isnan(x) or math.isinf(x))),
    *(("IsInf", {"detect_negative": below, "detect_positive": above}, [-INF, -1.0, 0.0, 1.0, NAN, INF],
       lambda x, below=below, above=above: (below and x == -INF) or (above and x == INF))
      for below, above in product((False, True), repeat=2)),
]

PAIRS: list[tuple[str, dict[str, Any], Callable[[Any, Any], Any]]] = [
    ("Add", {}, lambda a, b: a + b), ("Subtract", {}, lambda a, b: a - b),
    ("Multiply", {}, lambda a, b: a * b), ("Maximum", {}, max), ("Minimum", {}, min),
    ("SquaredDifference", {}, lambda a, b: (a - b) * (a - b)), ("Equal", {}, lambda a, b: a == b),
    ("NotEqual", {}, lambda a, b: a != b), ("Greater", {}, lambda a, b: a > b),
    ("GreaterEqual", {}, lambda a, b: a >= b), ("Less", {}, lambda a, b: a < b),
    ("LessEqual", {}, lambda a, b: a <= b),
]

WHOLE_PAIRS: list[tuple[str, dict[str, Any], Callable[[int, int], Any]]] = [
    ("Divide", {}, lambda a, b: math.floor(a / b)),
    ("Divide", {"m_pythondiv": False}, lambda a, b: math.trunc(a / b)),
    ("FloorMod", {}, lambda a, b: a - b * math.floor(a / b)),
    ("Mod", {}, lambda a, b: a - b * math.trunc(a / b)),
]

BITS: list[tuple[str, Callable[[int, int], int]]] = [
    ("BitwiseAnd", lambda a, b: a & b), ("BitwiseOr", lambda a, b: a | b), ("BitwiseXor", lambda a, b: a ^ b),
    ("BitwiseLeftShift", lambda a, b: a * 2**b), ("BitwiseRightShift", lambda a, b: a // 2**b),
]

TRUTH: list[tuple[str, Callable[[bool, bool], bool]]] = [
    ("LogicalAnd", lambda a, b: a and b),
    ("LogicalOr", lambda a, b: a or b),
    ("LogicalXor", lambda a, b: a != b),
]

CUBE = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ROWS = [[1, -2, 3], [-4, 5, 6]]
CHANNELS = [[[1, -2], [-4, 8]], [[-1, 2], [4, -8]]]
KEYS = np.array([[[0], [math.log(3)]]], np.float32)
VALUES = np.array([[[4], [8]]], np.float32)
EXPS = [math.exp(0), math.exp(1), math.exp(3)]


def many(*rows: Any) -> Any:
    return np.array(rows, np.float32)


CASES: list[tuple[str, dict[str, Any], list[Any], Any]] = [
    ("Quantize", {"to": i8}, [many(0.25, 0.75, -0.25, 90, -90), many(0.5)], [0, 2, 0, 127, -128]),
    ("Quantize", {"to": u8, "axis": 0}, [many([1, 2], [1, 2]), many(1, 0.5), many(3, 4)], [[4, 5], [6, 8]]),
    (
        "Quantize", {"to": u8, "block_size": 2}, [many([1, 2, 3], [4, 5, 6]), many([1, 0.5], [0.25, 1])],
        [[1, 2, 6], [16, 20, 6]]),
    ("Quantize", {"to": u8}, [many(1, 2), many(0.5), many(0), many(7, 8)], NotImplemented),
    ("PReLU", {}, [many(*CHANNELS), many(10, 100)], [[[1, -20], [-400, 8]], [[-10, 2], [4, -800]]]),
    ("PReLU", {}, [many(*CHANNELS), many(10)], [[[1, -20], [-40, 8]], [[-10, 2], [4, -80]]]),
    ("PReLU", {}, [many(-3, 0, 2), np.float32(2)], [-6, 0, 2]),
    ("PReLU", {}, [many(-3, 2), many(10, 100)], [-30, 2]),
    ("PReLU", {}, [many(ROWS), many([1, 2, 3])], [[[1, -4, 3], [-4, 5, 6]]]),
    ("Selu", {}, [many(-1, 0, 2), many(3), many(0.5)], [1.5 * (math.exp(-1) - 1), 0, 1]),
    ("HardSigmoid", {}, [many(-4, -1, 0, 1, 4), np.float32(0.25), np.float32(0.5)], [0, 0.25, 0.5, 0.75, 1]),
    ("Swish", {}, [many(-1, 0, 2), np.float32(3)], [-sigmoid(-3), 0, 2 * sigmoid(6)]),
    ("Softmax", {}, [many([0, 1, 3], [4, 5, 7])], [[each / sum(EXPS) for each in EXPS]] * 2),
    ("Softmax", {"axis": 0}, [many([2, 2], [2, 2])], [[0.5, 0.5], [0.5, 0.5]]),
    ("LogSoftmax", {}, [many([0, 1, 3])], [[math.log(each / sum(EXPS)) for each in EXPS]]),
    ("LogSoftmax", {"axis": 0}, [many([0, 9], [0, 9])], [[-math.log(2)] * 2] * 2),
    ("Power", {}, [many(2, 3, 4), many(3, -1, 0.5)], [8, 1 / 3, 2]),
    ("Power", {}, [[2, -3, 5], [3, 2, 0]], [8, 9, 1]),
    ("Power", {}, [[2, 3], [1, -1]], NotImplemented),
    ("Divide", {}, [many(1, -1, 7), many(2, 4, -2)], [0.5, -0.25, -3.5]),
    ("Divide", {}, [many(1, -1), many(0, 0)], [INF, -INF]),
    *((name, {}, [[1, 2], [1, 0]], NotImplemented) for name in ("Divide", "FloorMod", "Mod")),
    ("CumSum", {}, [many(*ROWS), 1], [[1, -1, 2], [-4, 1, 7]]),
    ("CumSum", {}, [many(*ROWS), 0], [[1, -2, 3], [-3, 3, 9]]),
    ("CumSum", {"exclusive": True}, [many(*ROWS), -1], [[0, 1, -1], [0, -4, 1]]),
    ("CumSum", {"reverse": True}, [many(*ROWS), 1], [[2, 1, 3], [7, 11, 6]]),
    ("CumSum", {"reverse": True, "exclusive": True}, [many(*ROWS), 0], [[-4, 5, 6], [0, 0, 0]]),
    ("Select", {}, [[True, False, True], [1, 2, 3], [4, 5, 6]], [1, 5, 3]),
    ("Convert", {"destination_type": i32}, [many(-1.5, 0, 2.75)], [-1, 0, 2]),
    ("Convert", {"destination_type": boolean}, [many(-1.5, 0, 0.5)], [True, False, True]),
    ("ReduceSum", {}, [many(*ROWS), [1]], [2, 7]),
    ("ReduceSum", {"keep_dims": True}, [many(*ROWS), [0]], [[-3, 3, 9]]),
    ("ReduceSum", {}, [many(*ROWS), [0, -1]], 9),
    ("ReduceMean", {}, [many(*ROWS), [1]], [2 / 3, 7 / 3]),
    ("ReduceProd", {}, [many(*ROWS), [0]], [-4, -10, 18]),
    ("ReduceMax", {}, [many(*ROWS), [1]], [3, 6]),
    ("ReduceMin", {}, [many(*ROWS), [1]], [-2, -4]),
    ("ReduceL1", {}, [many(*ROWS), [1]], [6, 15]),
    ("ReduceL2", {}, [many([3, -4], [5, 12]), [1]], [5, 13]),
    *((name, {}, [many([], []), [1]], NotImplemented) for name in ("ReduceMean", "ReduceMax", "ReduceMin")),
    ("ReduceSum", {}, [many([], []), [1]], [0, 0]),
    ("ReduceLogicalAnd", {}, [[[True, False], [True, True]], [1]], [False, True]),
    ("ReduceLogicalOr", {}, [[[True, False], [False, False]], [1]], [True, False]),
    ("MatMul", {}, [many([1, 2], [3, 4]), many([5, 6], [7, 8])], [[19, 22], [43, 50]]),
    ("MatMul", {"transpose_a": True}, [many([1, 2], [3, 4]), many([5, 6], [7, 8])], [[26, 30], [38, 44]]),
    ("MatMul", {"transpose_b": True}, [many([1, 2], [3, 4]), many([5, 6], [7, 8])], [[17, 23], [39, 53]]),
    ("MatMul", {"transpose_a": True, "transpose_b": True}, [many(1, 2), many(3, 4)], 11),
    ("ScaledDotProductAttention", {}, [many([[1]]), KEYS, VALUES], [[[7]]]),
    ("ScaledDotProductAttention", {}, [many([[1]]), KEYS, VALUES, many(0, -INF)], [[[4]]]),
    ("ScaledDotProductAttention", {}, [many([[1]]), KEYS, VALUES, [False, True]], [[[8]]]),
    ("ScaledDotProductAttention", {}, [many([[1]]), KEYS, VALUES, *many(0, 2)], [[[7.6]]]),
    ("ScaledDotProductAttention", {"causal": True}, [many([[0], [0]]), KEYS, VALUES], [[[4], [6]]]),
    ("Inverse", {}, [many([2, 0], [0, 4])], [[0.5, 0], [0, 0.25]]),
    ("Inverse", {"adjoint": True}, [many([1, 2], [3, 4])], [[4, -2], [-3, 1]]),
    ("Einsum", {"equation": "ij,kj->ki"}, [many([1, 2], [3, 4]), many([5, 6])], [[17, 39]]),
    ("MVN", {"eps": 0.0}, [many([1, 3], [2, 8]), [1]], [[-1, 1], [-1, 1]]),
    ("MVN", {"eps": 3.0}, [many([1, 3]), [1]], [[-0.5, 0.5]]),
    ("MVN", {"eps": 3.0, "eps_mode": "OUTSIDE_SQRT"}, [many([1, 3]), [1]], [[-0.25, 0.25]]),
    ("MVN", {"normalize_variance": False}, [many([1, 3], [2, 8]), [0]], [[-0.5, -2.5], [0.5, 2.5]]),
    ("BatchNormInference", {"epsilon": 1.0}, [many(*CHANNELS), many(2, 3), many(10, 20), many(1, -4), many(3, 8)],
     [[[10, 7], [20, 32]], [[8, 11], [28, 16]]]),
    ("BatchNormInference", {"epsilon": 1.0}, [many([1, -2]), many(2, 3), many(10, 20), many(1, -4), many(3, 8)],
     [[10, 22]]),
    ("BatchNormInference", {"epsilon": 0.0}, [many([[[1, 2]], [[3, 4]]]), *[many(1, 2)] * 2, many(0, 0), many(1, 4)],
     [[[[2, 3]], [[5, 6]]]]),
    ("NormalizeL2", {"eps": 0.0}, [many([3, 4], [-5, 12]), [1]], [[0.6, 0.8], [-5 / 13, 12 / 13]]),
    ("NormalizeL2", {"eps": 9.0}, [many([0, 4]), 1], [[0, 0.8]]),
    ("NormalizeL2", {"eps": 16.0, "eps_mode": "max"}, [many([0, 2]), [1]], [[0, 0.5]]),
    ("Reshape", {}, [[[1, 2, 3], [4, 5, 6]], [3, -1]], [[1, 2], [3, 4], [5, 6]]),
    ("Reshape", {"special_zero": True}, [[[1, 2, 3], [4, 5, 6]], [0, 3, 1]], [[[1], [2], [3]], [[4], [5], [6]]]),
    ("Reshape", {}, [many([], []), [0, 4]], np.zeros((0, 4))),
    ("Reshape", {}, [many([], []), [-1, 4, 0]], np.zeros((0, 4, 0))),
    ("AtLeast", {"sizes": (1, 2)}, [[[1, 2], [3, 4]]], [[1, 2], [3, 4]]),
    ("Squeeze", {}, [[[[1], [2]]], [-1]], [[1, 2]]),
    ("Squeeze", {}, [[[[1], [2]]]], [1, 2]),
    ("Unsqueeze", {}, [[1, 2], [0, -1]], [[[1], [2]]]),
    ("Transpose", {}, [[[[1, 2, 3]], [[4, 5, 6]]], [2, 0, 1]], [[[1], [4]], [[2], [5]], [[3], [6]]]),
    ("Transpose", {}, [[[1, 2, 3]], np.zeros(0, np.int64)], [[1], [2], [3]]),
    ("Concat", {"axis": 1}, [[[1], [2]], [[3, 4], [5, 6]]], [[1, 3, 4], [2, 5, 6]]),
    ("Split", {"num_splits": 2}, [[[1, 2, 3, 4]], 1], ([[1, 2]], [[3, 4]])),
    ("VariadicSplit", {}, [[[1, 2, 3, 4]], 1, [1, -1, 2]], ([[1]], [[2]], [[3, 4]])),
    ("Slice", {}, [[[1, 2, 3, 4], [5, 6, 7, 8]], [1, -1], [2, 0], [1, -2], [0, 1]], [[8, 6]]),
    ("Slice", {}, [[[1, 2, 3, 4], [5, 6, 7, 8]], [1], [4], [2], [-1]], [[2, 4], [6, 8]]),
    ("Slice", {}, [[[1, 2, 3, 4], [5, 6, 7, 8]], [0, 1], [1, 3], [1, 1]], [[2, 3]]),
    *(("Slice", {}, [[1, 2, 3, 4], [-1], [stop], [-1], [0]], [4, 3, 2, 1]) for stop in (-9, -(2**31), -(2**63))),
    ("Broadcast", {}, [[[1], [2]], [2, 2, 2]], [[[1, 1], [2, 2]], [[1, 1], [2, 2]]]),
    ("Broadcast", {"mode": "bidirectional"}, [[[1], [2]], [1, 1, 2]], [[[1, 1], [2, 2]]]),
    ("Broadcast", {"mode": "explicit"}, [[1, 2], [2, 3], [0]], NotImplemented),
    ("Tile", {}, [[[1, 2]], [2, 2]], [[1, 2, 1, 2], [1, 2, 1, 2]]),
    *(("Pad" + version, {}, [[[1, 2]], [1, 0], [0, 2], 7], [[7, 7, 7, 7], [1, 2, 7, 7]]) for version in ("", "12")),
    ("Pad", {}, [[1, 2], [1], [2]], [0, 1, 2, 0, 0]),
    ("Pad", {"pad_mode": "edge"}, [[1, 2, 3], [1], [2]], [1, 1, 2, 3, 3, 3]),
    ("Pad", {"pad_mode": "reflect"}, [[1, 2, 3], [1], [2]], [2, 1, 2, 3, 2, 1]),
    ("Pad", {"pad_mode": "symmetric"}, [[1, 2, 3], [1], [2]], [1, 1, 2, 3, 3, 2]),
    ("Pad12", {}, [[1, 2, 3], [-1], [1], 7], NotImplemented),
    ("Pad12", {}, [[1, 2, 3], [1], [-1], 7], NotImplemented),
    ("Range", {"output_type": i64}, [2, 9, 3], [2, 5, 8]),
    ("Range", {"output_type": f32}, [np.float32(1), np.float32(0), np.float32(-0.5)], [1, 0.5]),
    ("Eye", {"output_type": f32}, [2, 3, 1], [[0, 1, 0], [0, 0, 1]]),
    ("Eye", {"output_type": i64}, [3, 2, -1], [[0, 0], [1, 0], [0, 1]]),
    ("Gather", {}, [[[1, 2, 3], [4, 5, 6]], [2, -3], 1], [[3, 1], [6, 4]]),
    ("Gather", {"batch_dims": 1}, [[[1, 2], [3, 4]], [[0], [1]], 1], [[1], [4]]),
    ("GatherElements", {"axis": 1}, [[[1, 2, 3], [4, 5, 6]], [[2, 0], [-1, -3]]], [[3, 1], [6, 4]]),
    ("GatherElements", {"axis": 0}, [[[1, 2, 3], [4, 5, 6]], [[1, 0, -1]]], [[4, 2, 6]]),
    ("GatherND", {}, [[[1, 2], [3, 4]], [[1, -1], [0, -2]]], [4, 1]),
    ("GatherND", {}, [[[1, 2], [3, 4]], [[-1], [-2]]], [[3, 4], [1, 2]]),
    ("GatherND", {"batch_dims": 1}, [[[1, 2], [3, 4]], [[0], [1]]], NotImplemented),
    ("ScatterUpdate", {}, [[[1, 2], [3, 4]], [-1], [[8, 9]], 0], [[1, 2], [8, 9]]),
    *(("Slice", {}, [[1, 2, 3, 4], [start], [-9], [-1], [0]], [1]) for start in (-4, -5, -(2**40))),
    ("ScatterElementsUpdate12", {}, [[1, 2, 3], [-1], [8], 0], [1, 2, 8]),
    ("ScatterElementsUpdate12", {"reduction": "sum"}, [[1, 2, 3], [-1], [8], 0], NotImplemented),
    ("ScatterElementsUpdate", {}, [[[1, 2], [3, 4]], [[-1], [0]], [[8], [9]], 1], [[1, 8], [9, 4]]),
    *((name, {}, [[[1, 2], [3, 4]], [[1, -1], [-2, 0]], [8, 9]], [[9, 2], [3, 8]])
      for name in ("ScatterNDUpdate", "ScatterNDUpdate15")),
    ("ScatterNDUpdate", {}, [[[1, 2, 3], [4, 5, 6]], [[0, 2]], [8]], [[1, 2, 8], [4, 5, 6]]),
    ("ScatterNDUpdate15", {"reduction": "sum"}, [[1, 2], [[1]], [8]], NotImplemented),
    ("NonZero", {}, [[[0, 3], [4, 0]]], [[0, 1], [1, 0]]),
    ("OneHot", {"axis": -1}, [[0, 2], 3, np.float32(5), np.float32(1)], [[5, 1, 1], [1, 1, 5]]),
    *(("OneHot", {"axis": axis}, [[0, 2], 3, np.float32(5), np.float32(1)], [[5, 1], [1, 1], [1, 5]])
      for axis in (0, -2)),
]

OUTSIDE: list[tuple[str, dict[str, Any], Callable[[int], list[Any]]]] = [
    ("Gather", {}, lambda i: [[1, 2], [i], 0]), ("GatherElements", {"axis": 0}, lambda i: [[1, 2], [i]]),
    ("GatherND", {}, lambda i: [[1, 2], [[i]]]), ("ScatterUpdate", {}, lambda i: [[1, 2], [i], [7], 0]),
    ("ScatterElementsUpdate", {}, lambda i: [[1, 2], [i], [7], 0]),
    ("ScatterNDUpdate", {}, lambda i: [[1, 2], [[i]], [7]]),
]


def named(argument: Any) -> str:
    """The text of an argument in the name of a test: functions have no stable text."""
    return str(argument) if isinstance(argument, str | dict) else ""


def given(values: Any) -> Any:
    """Numbers with a point as f32, others unchanged."""
    array = np.asarray(values)
    return array.astype(np.float32) if array.dtype == np.float64 else array


def evaluated(name: str, attributes: dict[str, Any], inputs: list[Any]) -> tuple[Any, ...]:
    """The outputs, whose types are the inferred ones."""
    arrays = [given(each) for each in inputs]
    graph = Graph()
    node = getattr(ops, name)(*(ops.Constant(each, graph=graph).output for each in arrays), **attributes)
    found = node.evaluate(*arrays)
    if found is NotImplemented:
        return (found,)
    outputs = found if isinstance(found, tuple) else (found,)
    assert [each.dtype for each in outputs] == [output.dtype.numpy for output in node.outputs]
    for each, output in zip(outputs, node.outputs, strict=True):
        assert each.ndim == output.rank
    return outputs


@pytest.mark.parametrize(("name", "attributes", "inputs", "formula"), ONE_BY_ONE, ids=named)
def test_functions_of_one_number(
    name: str, attributes: dict[str, Any], inputs: list[Any], formula: Callable[..., Any]
) -> None:
    (found,) = evaluated(name, attributes, [inputs])
    np.testing.assert_allclose(found, [formula(each) for each in inputs], rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize(("name", "attributes", "formula"), [*PAIRS, *WHOLE_PAIRS], ids=named)
def test_functions_of_two_integers(name: str, attributes: dict[str, Any], formula: Callable[..., Any]) -> None:
    pairs = [(a, b) for a, b in product(WHOLE, WHOLE) if b]
    (found,) = evaluated(name, attributes, [[a for a, _ in pairs], [b for _, b in pairs]])
    assert found.tolist() == [formula(a, b) for a, b in pairs]


@pytest.mark.parametrize(("name", "attributes", "formula"), PAIRS, ids=named)
def test_functions_of_two_fractions(name: str, attributes: dict[str, Any], formula: Callable[..., Any]) -> None:
    pairs = list(product(SIGNED, SIGNED))
    (found,) = evaluated(name, attributes, [[a for a, _ in pairs], [b for _, b in pairs]])
    assert found.tolist() == [formula(a, b) for a, b in pairs]


@pytest.mark.parametrize(("name", "formula"), BITS, ids=named)
def test_functions_of_bits(name: str, formula: Callable[[int, int], int]) -> None:
    pairs = list(product((0, 1, 2, 5, 12), (0, 1, 2, 3)))
    (found,) = evaluated(name, {}, [[a for a, _ in pairs], [b for _, b in pairs]])
    assert found.tolist() == [formula(a, b) for a, b in pairs]


@pytest.mark.parametrize(("name", "formula"), TRUTH, ids=named)
def test_functions_of_truth_values(name: str, formula: Callable[[bool, bool], bool]) -> None:
    pairs = list(product((False, True), repeat=2))
    (found,) = evaluated(name, {}, [[a for a, _ in pairs], [b for _, b in pairs]])
    assert found.tolist() == [formula(a, b) for a, b in pairs]


@pytest.mark.parametrize(
    ("name", "attributes", "inputs", "expected"), CASES,
    ids=[f"{name}-{number}" for number, (name, *_) in enumerate(CASES)],
)
def test_other_functions(name: str, attributes: dict[str, Any], inputs: list[Any], expected: Any) -> None:
    found = evaluated(name, attributes, inputs)
    if expected is NotImplemented:
        assert found[0] is NotImplemented
        return
    wanted = expected if isinstance(expected, tuple) else (expected,)
    for each, numbers in zip(found, wanted, strict=True):
        assert each.shape == np.shape(numbers)
        np.testing.assert_allclose(each, numbers, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize(("name", "attributes", "inputs"), OUTSIDE, ids=[name for name, *_ in OUTSIDE])
def test_indices_outside_a_tensor_are_left_to_the_runtime(
    name: str, attributes: dict[str, Any], inputs: Callable[[int], list[Any]]
) -> None:
    refused = [evaluated(name, attributes, inputs(place))[0] is NotImplemented for place in (-3, -2, -1, 0, 1, 2, 3)]
    assert refused == [True, False, False, False, False, True, True]


def test_every_operation_that_is_evaluated_has_a_case() -> None:
    tables: tuple[Any, ...] = (ONE_BY_ONE, PAIRS, WHOLE_PAIRS, BITS, TRUTH, CASES)
    tested = {name for table in tables for name, *_ in table}
    evaluating = {name for name in operations() if getattr(ops, name).evaluate is not Op.evaluate}
    assert evaluating - tested == {"Constant"}
