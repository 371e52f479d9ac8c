"""Products of matrices, determinants, and constants after products."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.cases import read_cases
from tests.harness import check, check_model, check_node, every, floats, node_model, parsed, refusal

# -- MatMul, Gemm and Einsum, compared with ONNX Runtime


RNG = np.random.default_rng(5)


def drawn(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


@every(sizes=["2, 3, 4", "B, T, 4", "B, T, K"], scaled=["Mul (m, c)", "Div (m, c)", "ReduceMax <keepdims = 1> (m)"])
def test_scaled_products_with_a_constant_vector(sizes, scaled):
    """Attention that pools over time."""
    check(parsed(f"""main (float[{sizes}] x) => (float[A, B] y) <float[4] w = {{1, -2, 3, 4}}, float c = {{2}}>
        {{ m = MatMul (x, w)  s = {scaled}  y = Sub (m, s) }}"""), {"x": drawn(2, 3, 4)})


@pytest.mark.parametrize(
    ("a", "b", "factors"), [((3, 3), (3,), (3,)), ((2, 3, 3), (3,), (2, 1)), ((3,), (2, 3, 3), (2, 1)),
                            ((3,), (4, 3, 5), (1,)), ((2, 3, 3), (3,), (2, 2, 3))],
)
@every(constant=["a", "b"], dynamic=[False, True])
def test_factors_behind_products_with_vectors(a, b, factors, constant, dynamic):
    arrays = {"a": drawn(*a), "b": drawn(*b), "c": drawn(*factors)}
    (name,) = {"a", "b"} - {constant}
    sizes = ",".join("LMN"[: arrays[name].ndim] if dynamic else map(str, arrays[name].shape))
    made = parsed(f"m (float[{sizes}] {name}) => (float[K] y) {{ m = MatMul (a, b)  n = Mul (m, c)  y = Sub (n, c) }}")
    made.graph.initializer.extend(numpy_helper.from_array(arrays[each], each) for each in (constant, "c"))
    made.graph.output[0].type.tensor_type.ClearField("shape")
    check(made, {name: arrays[name]})


@pytest.mark.parametrize(("a", "b"), [((5, 0), (0, 3)), ((5, 2), (2, 0)), ((0, 2), (2, 3)), ((0, 0), (0, 3))])
@every(transposed=[0, 1], c=[None, (1,), "row"], dynamic=[(), ("a",), ("b",)])
def test_gemm_of_nothing(a, b, transposed, c, dynamic):
    """The result is not uninitialised memory, and the runtime does not refuse a transposed operand."""
    addend = None if c is None else np.ones((b[1],) if c == "row" else c, np.float32)
    expected = np.zeros((a[0], b[1]), np.float32) + (0 if addend is None else 2 * addend)
    inputs = {"a": np.zeros(a, np.float32), "b": np.zeros(b, np.float32), "c": addend}
    if transposed:
        inputs |= {"a": inputs["a"].T, "b": inputs["b"].T}
    given = {"alpha": 1.5, "beta": 2.0, "transA": transposed, "transB": transposed}
    constants = () if c is None else ("c",)
    check_node("Gemm", inputs, given, opset=13, constants=constants, dynamic=dynamic,
               expected=[expected.astype(np.float32)])


EQUATIONS = {"ij->ji": ["23"], "ij->": ["23"], "ij": ["23"], "ii->i": ["33"], "ii": ["33"], "ij,jk": ["23", "34"],
             "ij , jk -> ik": ["23", "34"], "...ij,...jk->...ik": ["523", "34"], "b...,b...->...": ["234", "234"],
             "bhid,bhjd->bhij": ["2345", "2365"], "i,j->ij": ["2", "3"], "i,i->": ["3", "3"],
             "ij,j,i->": ["23", "3", "2"], "...ii->...i": ["233"], "bA,Ac->bc": ["23", "34"], "i,i->i": ["3", "3"],
             "a...b->b...a": ["2345"], "...i,...i->...": ["5234", "34"]}


# -- Determinants


def matrices(*shape: int, dtype: Any = np.float32) -> Any:
    return np.random.default_rng(shape[-1]).standard_normal(shape).astype(dtype)


def check_matrices(x: Any, dynamic: bool = False, rtol: float = 1e-4, opsets: tuple[int, ...] = (11, 22)) -> None:
    expected = np.asarray(np.linalg.det(x.astype(np.float64))).astype(x.dtype)
    for opset in opsets:
        check_node("Det", {"x": x}, opset=opset, dynamic=dynamic, expected=[expected], rtol=rtol, atol=1e-4)


def test_det_in_a_loop() -> None:
    """The loop over the rows inside a loop, of a state and of a captured tensor."""
    model = parsed("""main (int64 n, float[2, 3, 3] x) => (float[2, 3, 3] y, float[N, 2] z) {
          y, z = Loop (n, "", x) <body = step (int64 i, bool c, float[2, 3, 3] s)
              => (bool d, float[2, 3, 3] t, float[2] v) {
            d = Identity (c) t = Add (s, x) u = Det (t) w = Det (x) v = Add (u, w) }> }""")
    x = matrices(2, 3, 3)
    for count in (2, 0, 3):
        states = [x * np.float32(k + 2) for k in range(count)]
        rows = [(np.linalg.det(s) + np.linalg.det(x)).astype(np.float32) for s in states]
        expected = [states[-1] if count else x, np.stack(rows) if rows else np.zeros((0, 2), np.float32)]
        check_model(model, {"n": np.array(count), "x": x}, expected=expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("shape", [(3,), (2, 3)])
def test_no_square_matrix(shape: Any) -> None:
    assert refusal(node_model("Det", {"x": np.zeros(shape, np.float32)}, opset=22)).code == "ML227"


# -- Constants after reductions and products, which the runtime fuses along the wrong axis


REDUCTIONS = ("Mean", "Sum", "SumSquare", "L1", "L2", "Max", "Min", "Prod", "LogSumExp")


def checked(text: str, sets: list[dict[str, object]], **constants: object) -> None:
    model = parsed(text, 18)
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(each), name) for name, each in constants.items())
    check_model(model, *sets)


@every(kind=REDUCTIONS, axis=[0, 2])
def test_a_reduction_of_three_dimensions_before_constants_of_channels(kind: str, axis: int) -> None:
    text = f"""main (float[N,5,T] x) => (float[A,5,B] y, float[A,5,B] z) {{
      r = Reduce{kind} (x, axes) y = Mul (r, c) s = Reduce{kind} (x, axes) t = Relu (s) z = PRelu (t, c) }}"""
    sets = [{"x": floats(n, 5, t)} for n, t in ((2, 3), (1, 5), (3, 1))]
    checked(text, sets, axes=np.array([axis]), c=floats(5, 1, seed=1))


@every(columns=[4, 7], follower=["Add", "Sub", "Mul", "PRelu"])
def test_a_product_of_four_dimensions_before_constants_of_channels(columns: int, follower: str) -> None:
    text = f"""main (float[B,4,S,8] x) => (float[B,4,S,M] y, float[B,4,S,M] z) {{
      p = MatMul (x, w) y = {follower} (p, c) q = MatMul (x, w) r = Add (q, b) z = {follower} (r, c) }}"""
    sets = [{"x": floats(b, 4, s, 8)} for b, s in ((3, 5), (1, 2))]
    constants = {"w": floats(8, columns, seed=1), "b": floats(columns, seed=2), "c": floats(4, 1, 1, seed=3)}
    checked(text, sets, **constants)


QUANTISED = "q = QuantizeLinear (x, s, z) d = DequantizeLinear (q, s, z) "
SCALES = {"s": np.float32(1 / 64), "z": np.uint8(128)}


def integers(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).integers(-60, 61, shape).astype(np.int8)


def steps(*shape: int) -> np.ndarray:
    """Multiples of the scale, which quantisation leaves unchanged."""
    return np.round(floats(*shape) * 32) / np.float32(64)


@every(follower=["Mul (p, c)", "Div (p, c)", "PRelu (p, c)"], leading=[(), (2,), (2, 3)])
def test_a_quantised_product_before_factors_of_rows(follower: str, leading: tuple[int, ...]) -> None:
    names = "".join(f"{each}," for each in "AB"[: len(leading)])
    text = f"""main (float[{names}N,3] x) => (float[{names}4,5] y) {{
      {QUANTISED} w = DequantizeLinear <axis = 1> (wi, ws) p = MatMul (d, w) y = {follower} }}"""
    constants = {"wi": integers(3, 5), "ws": np.abs(floats(5)) / 16 + np.float32(0.01), "c": floats(4, 1, seed=3)}
    checked(text, [{"x": steps(*leading, 4, 3)}], **SCALES, **constants)


def test_a_quantised_product_of_two_inputs_before_factors_of_columns() -> None:
    text = f"""main (float[N,K] x, float[K,5] v) => (float[N,5] y) {{
      {QUANTISED} r = QuantizeLinear (v, s, z) w = DequantizeLinear (r, s, z) p = MatMul (d, w) y = Mul (p, c) }}"""
    checked(text, [{"x": steps(n, 4), "v": steps(4, 5)} for n in (1, 3)], **SCALES, c=floats(5, seed=3))


@pytest.mark.parametrize("axis", [0, 2])
def test_a_quantised_product_of_several_matrices(axis: int) -> None:
    text = f"""main (float[N,4,5] x) => (float[3,4,4] y) {{
      {QUANTISED} w = DequantizeLinear <axis = {axis}> (wi, ws) y = MatMul (d, w) }}"""
    scales = np.abs(floats(3 if axis == 0 else 4)) / 16 + np.float32(0.01)
    checked(text, [{"x": steps(3, 4, 5)}], **SCALES, wi=integers(3, 5, 4), ws=scales)


@every(kind=["int4", "uint4", "int8", "uint8"], rows=[16, 32], block=[0, 16], follower=["Identity (p)", "Mul (p, c)"])
def test_several_matrices_of_weights(kind: str, rows: int, block: int, follower: str) -> None:
    """One scale for each matrix, or for each block of rows."""
    given = "axis = 1, block_size = 16" if block else "axis = 0"
    text = f"""main (float[N,2,{rows}] x) => (float[3,2,5] y) {{
      d = DequantizeLinear <{given}> (w, s) p = MatMul (x, d) y = {follower} }}"""
    scales = np.abs(floats(3, rows // 16, 5) if block else floats(3)) / 16 + np.float32(0.01)
    model = parsed(text, 21)
    constants = {"s": scales, "c": floats(5, seed=3)}
    dtype, numbers = TensorProto.DataType.Value(kind.upper()), [each % 7 for each in range(3 * rows * 5)]
    model.graph.initializer.append(helper.make_tensor("w", dtype, (3, rows, 5), numbers))
    model.graph.initializer.extend(numpy_helper.from_array(each, name) for name, each in constants.items())
    check_model(model, {"x": floats(3, 2, rows)})


@every(follower=["Add", "Mul"], shape=["N,C", "N,C,T", "N,C,T,U"])
def test_constants_of_an_unknown_number_of_channels_before_quantisation(follower: str, shape: str) -> None:
    sizes = (2, 3, 4, 2)[: len(shape.split(","))]
    text = f"""main (float[{shape}] x) => (float[{shape.replace("C", "3")}] y) {{
      v = {follower} (x, c) q = QuantizeLinear (v, s, z) y = DequantizeLinear (q, s, z) }}"""
    c = np.array([0.5, 2, 4], np.float32).reshape(3, *[1] * (len(sizes) - 2))
    checked(text, [{"x": steps(*sizes)}], s=np.float32(1 / 16), z=np.uint8(128), c=c)


@every(order=[[[0, 1], [2, 3]], [[3, 2], [1, 0]], [[1, 2], [3, -4]], [[0, 0], [1, 1]]], axis=[1, -1])
def test_channels_in_an_order_of_two_dimensions(order: list[list[int]], axis: int) -> None:
    text = f"""main (float[N,4] x) => (float[N,3,2] y) {{
      n = Neg (x) g = Gather <axis = {axis}> (n, i) y = Conv (g, w) }}"""
    checked(text, [{"x": floats(n, 4)} for n in (4, 1)], i=np.array(order), w=floats(3, 2, 1))


read_cases(globals())
