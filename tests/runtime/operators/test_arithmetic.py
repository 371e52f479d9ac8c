"""Arithmetic, comparison, logic and bits, compared with ONNX Runtime."""

import numpy as np
import pytest
from onnx import helper

from tests.harness import NEWEST, check_model, check_node, every, graph_model, has_gap, node_model, pairs, parsed

RNG = np.random.default_rng(7)
SPECIAL = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 1.5, -2.5, 100.0], np.float32)
FLOATS = [np.float32, np.float16, np.float64]
INTEGERS = [np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32, np.int64, np.uint64]
LIMITED = [np.uint32, np.uint64] if has_gap("unsigned-of-32-bits") else []
"""Types of which numbers above 2^31 - 1 are wrong on this release."""


def floats(*shape, dtype=np.float32):
    return RNG.uniform(-2, 2, shape).astype(dtype)


def integers(dtype, *shape, low=1, high=9):
    return RNG.integers(low, high, shape).astype(dtype)


@every(dynamic=[False, True], op=["Add", "Sub", "Mul", "Div", "Pow"])
def test_broadcasting(op, dynamic):
    check_node(op, {"a": np.abs(floats(2, 1, 4)), "b": floats(3, 1)}, opset=NEWEST, dynamic=dynamic)


@every(dtype=[*FLOATS, *INTEGERS], op=["Add", "Sub", "Mul", "Div", "Max", "Min"])
def test_types(op, dtype):
    a, b = integers(dtype, 2, 3), integers(dtype, 3)
    check_node(op, {"a": a + b if op == "Sub" and dtype in LIMITED else a, "b": b}, opset=14)


@every(dtype=[np.int8, np.uint8, np.int16, np.uint16], op=["Add", "Sub", "Mul"], dynamic=[False, True])
def test_few_bits_wrap_around(op, dtype, dynamic):
    info = np.iinfo(dtype)
    a = RNG.integers(info.min, info.max, (8, 8)).astype(dtype)
    b = RNG.integers(info.min, info.max, (8, 8)).astype(dtype)
    function = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply}[op]
    check_node(op, {"a": a, "b": b}, opset=14, dynamic=dynamic, expected=[function(a, b)])


@pytest.mark.parametrize("opset", [1, 6])
@pytest.mark.parametrize(("attributes", "shape"), [
    ({"broadcast": 1}, (4, 5)),
    ({"broadcast": 1, "axis": 1}, (3, 4)),
    ({"broadcast": 1, "axis": 0}, (2,)),
    ({"broadcast": 1, "axis": -3}, (3, 4)),
    ({}, (2, 3, 4, 5)),
])
def test_broadcasting_of_old(opset, attributes, shape):
    a, b = floats(2, 3, 4, 5), floats(*shape)
    axis = attributes.get("axis", 4 - b.ndim) % 4
    wide = b.reshape(*shape, *[1] * (4 - axis - b.ndim))
    check_node("Sub", {"a": a, "b": b}, attributes, opset=opset, expected=[a - wide])


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_integers_divide_towards_zero(dtype):
    a, b = np.array([7, -7, 7, -7, 0], dtype), np.array([2, 2, -2, -2, 5], dtype)
    check_node("Div", {"a": a, "b": b}, opset=14)
    check_node("Mod", {"a": a, "b": b}, opset=13)
    check_node("Mod", {"a": a, "b": b}, {"fmod": 1}, opset=13)


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


def test_division_by_zero():
    check_node("Div", {"a": SPECIAL, "b": np.zeros(1, np.float32)}, opset=14)
    check_node("Reciprocal", {"a": SPECIAL}, opset=13)


@pytest.mark.parametrize("fmod", [0, 1])
def test_mod_of_infinity(fmod):
    a = np.array([5.5, -5.5, 0, 5.5, -5.5, np.inf, np.nan], np.float32)
    b = np.array([np.inf, np.inf, np.inf, -np.inf, 2, 2, np.inf], np.float32)
    with np.errstate(invalid="ignore"):
        check_node("Mod", {"a": a, "b": b}, {"fmod": fmod}, opset=28, expected=[(np.fmod if fmod else np.mod)(a, b)])


MIXED = "f4 i8", "f4 f8", "i4 f4", "i8 i4", "f2 i4"


@pytest.mark.parametrize(("base", "exponent"), [each.split() for each in MIXED])
def test_power_of_mixed_types(base, exponent):
    check_node("Pow", {"a": integers(base, 5), "b": integers(exponent, 5, high=4)}, opset=15)


@pytest.mark.parametrize(("base", "exponent"),
                         [(46340, 2), (46340, 2.0), (1289, 3), (-73, 5), (-21, 7.0), (2, 30), (2**30 + 1, 1)])
def test_integer_powers_are_exact(base, exponent):
    for shape in ((), (1,)):
        check_node("Pow", {"a": np.array([base, -1]), "b": np.full(shape, exponent)}, opset=15, constants=["b"])


@every(dynamic=[False, True], op=["Max", "Min", "Sum", "Mean"],
       shapes=[[(2, 3)], [(2, 3), (2, 3)], [(2, 1), (3,), (4, 1, 1)]])
def test_any_number_of_inputs(op, shapes, dynamic):
    check_node(op, {f"x{i}": floats(*s) for i, s in enumerate(shapes)}, opset=13, dynamic=dynamic)


@every(op=["Max", "Min"], dynamic=[False, True])
def test_extremes_keep_nan(op, dynamic):
    arrays = {"x": SPECIAL, "bound": np.array([1], np.float32)}
    check_node(op, arrays, opset=13, constants=["bound"], dynamic=dynamic)
    finite = SPECIAL[~np.isinf(SPECIAL)]
    check_node("Clip", {"x": finite, "low": np.array(1, np.float32)}, opset=13, constants=["low"], dynamic=dynamic)


UNARY = {"Abs": 13, "Ceil": 13, "Floor": 13, "Neg": 13, "Sign": 13, "Sqrt": 13, "Exp": 13, "Log": 13, "Sin": 7,
         "Cos": 7, "Tan": 7, "Asin": 7, "Acos": 7, "Atan": 7, "Sinh": 9, "Cosh": 9, "Asinh": 9, "Acosh": 9, "Atanh": 9,
         "Tanh": 13, "Erf": 13, "Round": 11, "Reciprocal": 13}


@every(op=UNARY, dynamic=[False, True])
def test_unary(op, dynamic):
    x = floats(3, 4) + (3 if op == "Acosh" else 0)
    check_node(op, {"x": x / 2 if op in ("Asin", "Acos", "Atanh") else x}, opset=UNARY[op], dynamic=dynamic)


@every(op=["Abs", "Neg", "Sign"], dtype=[np.int8, np.int16, np.int32, np.int64, np.float16, np.float64])
def test_unary_types(op, dtype):
    check_node(op, {"x": integers(dtype, 9, low=-4, high=5)}, opset=13)


def test_round_halves_to_even():
    check_node("Round", {"x": np.array([0.5, 1.5, 2.5, -0.5, -1.5, -2.5, 2.4], np.float32)}, opset=11)


@every(op=["CumSum", "CumProd"], exclusive=[0, 1], reverse=[0, 1], axis=[0, 1, -1], dynamic=[False, True])
def test_running(op, exclusive, reverse, axis, dynamic):
    arrays = {"x": floats(2, 3, 4), "axis": np.array(axis, np.int32)}
    given = {"exclusive": exclusive, "reverse": reverse}
    check_node(op, arrays, given, opset=26 if op == "CumProd" else 14, constants=["axis"], dynamic=dynamic)


@pairs(length=[1, 2, 5, 8, 13], dtype=[np.float32, np.int32], exclusive=[0, 1], reverse=[0, 1], dynamic=[False, True])
def test_running_products(length, dtype, exclusive, reverse, dynamic):
    x = np.random.default_rng(length).integers(1, 3, (3, length, 2)).astype(dtype)
    given = {"exclusive": exclusive, "reverse": reverse}
    ordered = np.flip(x, 1) if reverse else x
    product = np.cumprod(ordered, 1, dtype=dtype)
    moved = np.concatenate([np.ones((3, 1, 2), dtype), product[:, :-1]], 1) if exclusive else product
    expected = [np.flip(moved, 1) if reverse else moved]
    arrays = {"x": x, "axis": np.array(1)}
    check_node("CumProd", arrays, given, opset=26, constants=["axis"], dynamic=dynamic, expected=expected)


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_running_products_of_nothing(axis):
    """A known size of 0, and a size that is known at run time."""
    arrays = {"x": np.zeros((2, 3, 0), np.float32), "axis": np.array(axis, np.int64)}
    model = node_model("CumProd", arrays, opset=26, constants=["axis"])
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "n"
    check_model(model, {"x": arrays["x"]}, expected=[arrays["x"]])


def test_a_long_running_product() -> None:
    """Its memory does not grow with the square of the length; a model runs with several lengths."""
    model = node_model("CumProd", {"x": floats(2, 3), "axis": np.array(1)}, opset=26, constants=["axis"], dynamic=True)
    signs = (np.random.default_rng(n).choice([-1, 1], (2, n)) for n in (20_000, 1, 3, 0, 65))
    check_model(model, *({"x": each.astype(np.float32)} for each in signs))


def test_running_along_an_axis_known_at_run_time():
    for axis in (0, -1):
        check_node("CumProd", {"x": floats(2, 3, 4), "axis": np.array(axis, np.int64)}, opset=26)


# -- comparison and logic


@every(op=["Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"], dtype=[*FLOATS, *INTEGERS])
def test_comparison(op, dtype):
    check_node(op, {"a": integers(dtype, 4, 5, high=4), "b": integers(dtype, 5, high=4)}, opset=16)


@every(op=["Equal", "Less", "Greater", "LessOrEqual", "GreaterOrEqual"], dynamic=[False, True])
def test_nothing_compares_to_nan(op, dynamic):
    check_node(op, {"a": SPECIAL, "b": np.roll(SPECIAL, 1)}, opset=16, dynamic=dynamic)


@every(op=["And", "Or", "Xor", "Equal"], opset=[1, 7])
def test_logic(op, opset):
    a, b = RNG.integers(0, 2, (2, 3)).astype(bool), RNG.integers(0, 2, (3,)).astype(bool)
    function = {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor, "Equal": np.equal}[op]
    check_node(op, {"a": a, "b": b}, {"broadcast": 1} if opset == 1 else {}, opset=opset, expected=[function(a, b)])


def test_not_and_where():
    c = RNG.integers(0, 2, (3, 1)).astype(bool)
    check_node("Not", {"c": c}, opset=1)
    check_node("Where", {"c": c, "x": floats(2, 3, 4), "y": floats(4)}, opset=16, dynamic=True)
    check_node("Where", {"c": c, "x": c, "y": ~c}, opset=16)


@pytest.mark.parametrize("attributes", [{}, {"detect_negative": 0}, {"detect_positive": 0}])
def test_classification(attributes):
    check_node("IsInf", {"x": SPECIAL}, attributes, opset=20)
    check_node("IsNaN", {"x": SPECIAL}, opset=20)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bits(dtype):
    a, b = integers(dtype, 4, 3, high=100), integers(dtype, 3, high=100)
    for op in ("BitwiseAnd", "BitwiseOr", "BitwiseXor"):
        check_node(op, {"a": a, "b": b}, opset=18)
    if dtype not in LIMITED:
        check_node("BitwiseNot", {"a": a}, opset=18)


@every(dtype=INTEGERS, direction=["LEFT", "RIGHT"])
def test_shifts(dtype, direction):
    signed = np.issubdtype(dtype, np.signedinteger)
    a = np.array([16, 4, 1, 100, 7, 9], dtype) * dtype(-1 if signed else 1)
    distance = np.array([1, 2, 3, 0, 64, 127], dtype)
    pairs = list(zip(a.tolist(), distance.tolist(), strict=True))
    exact = [x << n if direction == "LEFT" else x >> n for x, n in pairs]
    expected = np.array([n % 2 ** np.iinfo(dtype).bits for n in exact], np.uint64).astype(dtype)
    check_node("BitShift", {"a": a, "b": distance}, {"direction": direction}, opset=28, expected=[expected])
    check_node("BitShift", {"a": a[:3], "b": distance[:3]}, {"direction": direction}, opset=28, constants=["b"],
               expected=[expected[:3]])


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
@pytest.mark.parametrize(("operator", "exact"), [("Abs", np.abs), ("Neg", np.negative)])
def test_the_smallest_integer_without_its_sign(operator, exact, dtype):
    """It is its own one; the runtime's saturates."""
    ends = np.iinfo(dtype)
    x = np.array([ends.min, ends.min + 1, -1, 0, ends.max], dtype)
    check_node(operator, {"x": x}, opset=13, dynamic=True, expected=[exact(x)])


@every(dims=["3,2", "N,M"], order=["m, c", "c, m"], move=["Transpose", "Identity"])
def test_division_after_a_moved_sum(dims, order, move):
    """The runtime moves the division before the Transpose, into the sum, where it rounds and exchanges the operands."""
    x = np.array([[1, 2], [3, 1], [5, 6]], np.int32)
    model = parsed(f"""main (int32[{dims}] x) => (int32[P, Q] y) <int64[1] axes = {{1}}, int32[1] c = {{8}}> {{
      s = ReduceSum (x, axes)  m = {move} (s)  y = Div ({order}) }}""")
    total = x.sum(1, keepdims=True)
    total = total.T if move == "Transpose" else total
    check_model(model, {"x": x}, expected=[(total // 8 if order == "m, c" else 8 // total).astype(np.int32)])
