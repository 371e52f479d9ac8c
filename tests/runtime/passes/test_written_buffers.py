"""Buffers that the steps of a loop write: one write after the loop, with the same numbers."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from mo_loop import convert_model, ops
from tests.harness import check, floats, parsed

BUFFERS = {
    # the shape of the buffer, and the places p and elements u of step i of n, also made of the state k, which equals i
    "a row": ("M, 3", "p = Reshape(i, pair)\n u = Reshape(v, row)"),
    "a row behind others": ("M, 3", "q = Add(i, two)\n p = Reshape(q, pair)\n u = Reshape(v, row)"),
    "every second row": ("M, 3", "j = Add(i, i)\n q = Add(j, one)\n p = Reshape(q, pair)\n u = Reshape(v, row)"),
    "the last row first": ("M, 3", "m = Sub(n, one)\n q = Sub(m, i)\n p = Reshape(q, pair)\n u = Reshape(v, row)"),
    "a column": (
        "3, M", "q = Expand(i, column)\n p = Concat<axis = -1>(places, q)\n u = Identity(v)",
    ),
    "an element of a row by data": (
        "M, 3",
        "m = ArgMax<axis = 0, keepdims = 0>(v)\n a = Reshape(m, pair)\n b = Reshape(i, pair)\n"
        "p = Concat<axis = 1>(b, a)\n f = ReduceMax<keepdims = 0>(v)\n u = Unsqueeze(f, first)",
    ),
    "a row made of the one before": (
        "M, 3",
        "q = Add(i, one)\n p = Reshape(q, pair)\n b = Gather<axis = 0>(s, i)\n c2 = Reshape(i, single)\n"
        "d = Gather<axis = 0>(s, c2)\n e = Sum(b, v, d)\n u = Reshape(e, row)",
    ),
    "a row made of the one before, which is the last at first": (
        "M, 3", "j = Sub(i, one)\n p = Reshape(i, pair)\n b = Gather<axis = 0>(s, j)\n e = Add(b, v)\n"
        "u = Reshape(e, row)",
    ),
}  # fmt: skip
READ = {
    "rows by data": ("M, 3", "p = Reshape(k, pair)\n u = Reshape(v, row)"),
    "rows from the end": ("M, 3", "q = Sub(i, two)\n p = Reshape(q, pair)\n u = Reshape(v, row)"),
    "one row": ("M, 3", "q = Sub(i, i)\n p = Reshape(q, pair)\n u = Reshape(v, row)"),
    "rows made of others": (
        "M, 3", "p = Reshape(i, pair)\n b = Gather<axis = 0>(s, i)\n e = Add(b, v)\n u = Reshape(e, row)",
    ),
    "rows that are read": (
        "M, 3", "p = Reshape(i, pair)\n r = ReduceMax<keepdims = 0>(s)\n e = Add(v, r)\n u = Reshape(e, row)",
    ),
}  # fmt: skip


def model_of(shape: str, places: str, *, ends: bool = False) -> onnx.ModelProto:
    """A Loop over the length of x with the states h (a recurrence), k and the buffer; with `ends` a step may end it."""
    return parsed(f"""
        main (float[N] x, float[3] h, float[{shape}] buffer) => (float[{shape}] y, float[3] z)
        <int64[2] pair = {{1, 1}}, int64[2] row = {{1, 3}}, int64[2] column = {{3, 1}}, int64[1] single = {{1}},
         int64[3, 1] places = {{0, 1, 2}}, int64[1] first = {{0}},
         int64 one = {{1}}, int64 two = {{2}}, int64 zero = {{0}}, float limit = {{3.0}}> {{
          sizes = Shape(x)
          n = Squeeze(sizes)
          z, kept, y = Loop(n, "", h, zero, buffer) <
            body = step (int64 i, bool go, float[3] g, int64 k, float[{shape}] s)
            => (bool goes, float[3] v, int64 l, float[{shape}] t) {{
            c = Sin(g)
            v = Add(g, c)
            l = Add(k, one)
            {places}
            t = ScatterND(s, p, u)
            top = ReduceMax<keepdims = 0>(v)
            {"goes = Less(top, limit)" if ends else "goes = Identity(go)"}
          }}>
        }}""")


def buffers(model: onnx.ModelProto) -> int:
    """The writes that remain in bodies."""
    _, *bodies = convert_model(model).graph.scopes()
    return sum(isinstance(node, ops.ScatterNDUpdate) for body in bodies for node in body.ordered())


def feeds(shape: str, *lengths: int) -> list[dict[str, np.ndarray]]:
    sizes = (12, 3) if shape.startswith("M") else (3, 12)
    return [{"x": floats(n), "h": floats(3), "buffer": floats(*sizes)} for n in lengths]


@pytest.mark.parametrize("buffer", BUFFERS)
@pytest.mark.parametrize("ends", [False, True], ids=["counted", "ended by a step"])
def test_it_is_written_after_the_loop(buffer: str, ends: bool) -> None:
    shape, places = BUFFERS[buffer]
    model = model_of(shape, places, ends=ends)
    assert buffers(model) == 0
    check(model, *feeds(shape, 4, 1, 0, 5), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("buffer", READ)
def test_a_buffer_whose_places_may_repeat_or_that_is_read_stays(buffer: str) -> None:
    shape, places = READ[buffer]
    model = model_of(shape, places)
    assert buffers(model) == 1
    check(model, *feeds(shape, 4, 1, 0, 5), rtol=1e-5, atol=1e-6)
