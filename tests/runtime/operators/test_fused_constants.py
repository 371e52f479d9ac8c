"""Constants behind reductions and products, which the runtime fuses along the wrong axis."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import numpy_helper

from tests.harness import check_model, floats, parsed

REDUCTIONS = ("Mean", "Sum", "SumSquare", "L1", "L2", "Max", "Min", "Prod", "LogSumExp")


def checked(text: str, sets: list[dict[str, object]], **constants: object) -> None:
    model = parsed(text, 18)
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(each), name) for name, each in constants.items())
    check_model(model, *sets)


@pytest.mark.parametrize("kind", REDUCTIONS)
@pytest.mark.parametrize("axis", [0, 2])
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


@pytest.mark.parametrize("columns", [4, 7])
@pytest.mark.parametrize("follower", ["Add", "Sub", "Mul", "PRelu"])
def test_a_product_of_four_dimensions_before_constants_of_channels(columns: int, follower: str) -> None:
    text = f"""main (float[B,4,S,8] x) => (float[B,4,S,M] y, float[B,4,S,M] z) {{
      p = MatMul (x, w) y = {follower} (p, c) q = MatMul (x, w) r = Add (q, b) z = {follower} (r, c) }}"""
    sets = [{"x": floats(b, 4, s, 8)} for b, s in ((3, 5), (1, 2))]
    constants = {"w": floats(8, columns, seed=1), "b": floats(columns, seed=2), "c": floats(4, 1, 1, seed=3)}
    checked(text, sets, **constants)
