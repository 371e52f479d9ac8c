"""Inputs frozen at a value by `input`: the other inputs remain, and the numbers are those of the whole model."""

import numpy as np

from mo_loop.api import convert_model
from tests.harness import check, floats, parsed
from tests.unit.frontend.test_input_text import LOOP, MODEL


def test_numbers() -> None:
    x, w = floats(2, 3), floats(3, 2)
    check(parsed(MODEL), {"x": x, "w": w}, expected=[[("y", x @ w + 7)]], input="k->7", rtol=1e-5)


def test_trip_count() -> None:
    """A loop of a frozen trip count has outputs of a known length."""
    converted = convert_model(parsed(LOOP), input="m->3,x[4]")
    assert [str(each.value.type) for each in converted.graph.results] == ["f32[4]", "f32[3,4]"]
    x = floats(4)
    expected = [[("y", 4 * x), ("ys", np.stack([2 * x, 3 * x, 4 * x]))]]
    check(parsed(LOOP), {"x": x}, expected=expected, input="m->3", rtol=1e-6)
