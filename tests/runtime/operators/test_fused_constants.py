"""Constants after reductions and products, which the runtime fuses along the wrong axis."""

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.harness import check_model, every, floats, parsed

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


@pytest.mark.parametrize("pool", ["GlobalMaxPool", "GlobalAveragePool", "GlobalLpPool"])
def test_a_pool_before_normalisation(pool: str) -> None:
    text = f"main (float[N,5,T] x) => (float[N,5,1] y) {{ p = {pool} (x) y = BatchNormalization (p, s, b, b, s) }}"
    sets = [{"x": floats(n, 5, t)} for n, t in ((2, 3), (1, 5))]
    checked(text, sets, s=np.abs(floats(5)) + 1, b=floats(5, seed=2))


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


@pytest.mark.parametrize("columns", [2, 5])
def test_a_product_of_unknown_columns_before_constants(columns: int) -> None:
    text = "main (float[N,K] x, float[K,M] w) => (float[N,M] y) { p = MatMul (x, w) y = Add (p, c) }"
    sets = [{"x": floats(n, 2), "w": floats(2, columns, seed=1)} for n in (2, 1)]
    checked(text, sets, c=floats(columns, seed=2))


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
