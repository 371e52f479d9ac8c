"""Buffers that the steps of a loop write: one write after the loop, with the same numbers."""

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
    "a column": ("3, M", "q = Expand(i, column)\n p = Concat<axis = -1>(places, q)\n u = Identity(v)"),
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
    "a row made of its own": (
        "M, 3", "p = Reshape(i, pair)\n b = Gather<axis = 0>(s, i)\n e = Add(b, v)\n u = Reshape(e, row)",
    ),
}
READ = {
    "rows by data": ("M, 3", "p = Reshape(k, pair)\n u = Reshape(v, row)"),
    "rows from the end": ("M, 3", "q = Sub(i, two)\n p = Reshape(q, pair)\n u = Reshape(v, row)"),
    "rows that are added": ("M, 3",
                            "p = Reshape(i, pair)\n u = Reshape(v, row)\n t = ScatterND<reduction = \"add\">(s, p, u)"),
    "one row": ("M, 3", "q = Sub(i, i)\n p = Reshape(q, pair)\n u = Reshape(v, row)"),
    "rows made of others": (
        "M, 3",
        "q = Add(i, one)\n p = Reshape(i, pair)\n b = Gather<axis = 0>(s, q)\n e = Add(b, v)\n u = Reshape(e, row)",
    ),
    "rows that are read": (
        "M, 3", "p = Reshape(i, pair)\n r = ReduceMax<keepdims = 0>(s)\n e = Add(v, r)\n u = Reshape(e, row)",
    ),
}


def model_of(shape: str, places: str, *, ends: bool = False) -> onnx.ModelProto:
    """A Loop over the length of x with the states h (a recurrence), k and the buffer; with `ends` a step may end it."""
    return parsed(f"""
        main (float[N] x, float[3] h, float[{shape}] buffer) => (float[{shape}] y, float[3] z)
        <int64[2] pair = {{1, 1}}, int64[2] row = {{1, 3}}, int64[2] column = {{3, 1}}, int64[1] single = {{1}},
         int64[3, 1] places = {{0, 1, 2}}, int64[1] first = {{0}},
         int64 one = {{1}}, int64 two = {{2}}, int64 zero = {{0}}, float limit = {{3.0}}> {{
          sizes = Shape(x)  n = Squeeze(sizes)
          z, kept, y = Loop(n, "", h, zero, buffer) <
            body = step (int64 i, bool go, float[3] g, int64 k, float[{shape}] s)
            => (bool goes, float[3] v, int64 l, float[{shape}] t) {{
            c = Sin(g)  v = Add(g, c)  l = Add(k, one)
            {places}
            {"" if " t = " in places else "t = ScatterND(s, p, u)"}
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


SLICES = {
    # what step t makes of a, which is x[:, t] + h, and of the buffer s [B, T, D]
    "any": "w = Tanh(a)",
    "the slice before": "j = Sub(t, one)\n b = Gather<axis = 1>(s, j)\n w = Sum(a, b)",
    "its own slice": (
        "b = Gather<axis = 1>(s, t)\n c = Gather<axis = 1>(s, t1)\n d = Squeeze(c, single)\n w = Sum(a, b, d)"
    ),
    "what was written": "w = Tanh(a)",
    "the last slice first": "w = Tanh(a)",
    "the last slice first, and its own": "b = Gather<axis = 1>(s, t)\n w = Add(a, b)",
    "both": "j = Sub(t, one)\n b = Gather<axis = 1>(s, j)\n c = Gather<axis = 1>(s, t)\n w = Sum(a, b, c)",
}


def model_of_slices(form: str) -> onnx.ModelProto:
    """for t in range(T): h = w of x[:, t] and h; s[:, t] = h, with all sizes known at run time only."""
    return parsed(f"""
        main (float[B,T,D] x, float[B,D] first, float[B,T,D] buffer) => (float[B,T,D] y, float[B,D] z)
        <int64[1] last = {{-1}}, int64[1] single = {{1}}, int64[1] none = {{0}}, int64 one = {{1}}, int64 zero = {{0}},
         int64[1] two = {{2}}, int64[1] three = {{3}}> {{
          sizes = Shape(x)  n = Gather<axis = 0>(sizes, one)
          z, y = Loop(n, "", first, buffer) <
            body = step (int64 i, bool go, float[B,D] h, float[B,T,D] s)
            => (bool goes, float[B,D] v, float[B,T,D] r) {{
            goes = Identity(go)
            {"c0 = Sub(n, one) t = Sub(c0, i)" if form.startswith("the last slice first") else "t = Identity(i)"}
            g = Gather<axis = 1>(x, t)  a = Add(g, h)  t1 = Reshape(t, single)
            {SLICES[form]}
            o = Sin(w)  all = Shape(s)  rest = Slice(all, two, three)
            b0 = Gather<axis = 0>(all, zero)  counted = Range(zero, b0, one)  line = Unsqueeze(counted, single)
            size = Shape(line)  rows = Unsqueeze(line, last)  column = Expand(t1, size)
            columns = Unsqueeze(column, last)  p = Concat<axis = -1>(rows, columns)
            shape = Concat<axis = 0>(size, rest)  u = Reshape(o, shape)  r = ScatterND(s, p, u)
            {"v = Gather<axis = 1>(r, t)" if form == "what was written" else "v = Identity(o)"}
          }}>
        }}""")


@pytest.mark.parametrize("form", SLICES)
def test_slices_of_a_batch_are_concatenated(form: str) -> None:
    model = model_of_slices(form)
    assert buffers(model) == 0
    graph = convert_model(model).graph
    assert not any(isinstance(node, ops.ScatterNDUpdate | ops.ScatterUpdate) for node in graph.ordered())
    sizes = ((2, 5, 3), (1, 1, 4), (2, 0, 3), (3, 7, 1), (1, 6, 1), (2, 1, 2))
    check(model, *(
        {"x": floats(*each, seed=1), "first": floats(each[0], each[2], seed=2), "buffer": floats(*each, seed=3)}
        for each in sizes
    ), rtol=1e-5, atol=1e-6)
