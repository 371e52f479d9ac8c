"""States of loops with a form of their own: closed forms, and buffers that the steps write."""

from pathlib import Path

import numpy as np
import onnx
import pytest

from mo_loop import conversion, ops
from mo_loop.api import convert_model, save_model
from mo_loop.compare.execution.isolated import isolated
from mo_loop.compare.execution.runtime import run_ir
from tests.cases import read_cases
from tests.harness import check, floats, parsed
from tests.runtime.passes.sequences import feeds as feeds
from tests.runtime.passes.sequences import loops as loops

# -- States of loops whose values in all steps have a closed form: the numbers, and that no loop is left


FORMS = {
    # the type of s and x[t], and how the next value is made
    "sum": ("float[3]", "t = Add(s, a)"),
    "sum, turned": ("float[3]", "t = Add(a, s)"),
    "difference": ("float[3]", "t = Sub(s, a)"),
    "difference, turned": ("float[3]", "t = Sub(a, s)"),
    "largest": ("float[3]", "t = Max(s, a)"),
    "smallest": ("float[3]", "t = Min(a, s)"),
    "step before": ("float[3]", "t = Identity(a)"),
    "of a function": ("float[3]", "b = Exp(a)\n t = Add(s, b)"),
    "of a scalar": ("float[3]", "k = Constant<value=float {0.5}>()\n t = Add(s, k)"),
    "of one element": ("float[3]", "b = ReduceSum(a)\n t = Add(s, b)"),
    "integers": ("int64[3]", "t = Add(s, a)"),
    "largest integer": ("int64[3]", "t = Max(s, a)"),
    "counter": ("int64", "k = Constant<value=int64 {3}>()\n t = Add(s, k)"),
    "all": ("bool[3]", "t = And(s, a)"),
    "any": ("bool[3]", "t = Or(a, s)"),
}

OUTPUTS = {"the last": ("", ""), "all made": ("u", "u = Identity(t)"), "all read": ("u", "u = Identity(s)")}


def has_form_of_any_length(form: str, outputs: str) -> bool:
    """Running extremes have none; the last ones have, but not of integers, which the runtime reduces as floats."""
    if form == "difference, turned":
        return False
    is_extreme = form in ("largest", "smallest", "largest integer")
    return not is_extreme or (outputs == "the last" and form != "largest integer")


def model_of(form: str, outputs: str, length: str) -> onnx.ModelProto:
    """A Loop over the rows of x with one state; u is an output of all steps."""
    type_, body = FORMS[form]
    more, made = OUTPUTS[outputs]
    every = type_.replace("[", f"[{length}, ") if "[" in type_ else f"{type_}[{length}]"
    return parsed(f"""main ({every} x, {type_} h) => ({type_} last{f", {every} {more}" if more else ""}) {{
          sizes = Shape (x)  zero = Constant<value=int64 {{0}}>()  n = Gather<axis=0> (sizes, zero)
          last{f", {more}" if more else ""} = Loop (n, "", h) <body = step (int64 i, bool go, {type_} s)
            => (bool goes, {type_} t{f", {type_} {more}" if more else ""}) {{
            goes = Identity (go)  a = Gather<axis=0> (x, i)
            {body}
            {made}
          }}>
        }}""")


WINDOWS = {
    # how the next rows of the state [4, 3] are made of it and of e = x[t] [1, 3]
    "slice": "k = Slice(s, one, far, zero)\n t = Concat<axis=0>(k, e)",
    "slice of a known end": "k = Slice(s, one, four, zero)\n t = Concat<axis=-2>(k, e)",
    "gather": "k = Gather<axis=0>(s, behind)\n t = Concat<axis=0>(k, e)",
    "split": "j, k = Split<axis=0>(s, sizes)\n t = Concat<axis=0>(k, e)",
    "two rows": "d = Add(e, e)\n k = Slice(s, two, far, zero)\n t = Concat<axis=0>(k, f)",
    "in front": "k = Slice(s, zero, three, zero)\n t = Concat<axis=0>(e, k)",
    "columns": "k = Slice(s, one, three, one)\n c = ReduceSum(e)\n w = Mul(c, column)\n t = Concat<axis=1>(k, w)",
    "not the next rows": "k = Slice(s, zero, three, zero)\n t = Concat<axis=0>(k, e)",
}


def test_sums_in_the_order_of_the_steps(tmp_path: Path) -> None:
    """Running sums, and with --exact-order a last sum as well, are those of one addition after another, bit by bit."""
    numbers = floats(200, 7) * np.float32(10) ** (np.arange(200, dtype=np.float32)[:, None] % 7 - 3)
    running = np.add.accumulate(np.concatenate([np.zeros((1, 7), np.float32), numbers]), dtype=np.float32)
    for text, options, wanted in (("u = Identity(t)", {}, running[1:]), ("", {"exact_order": True}, running[-1])):
        model = parsed(f"""main (float[T, 7] x, float[7] h) => (float[7] last{", float[T, 7] u" if text else ""}) {{
              last{", u" if text else ""} = Scan <num_scan_inputs=1, body = step (float[7] s, float[7] a)
                => (float[7] t{", float[7] u" if text else ""}) {{ t = Add(s, a) {text} }}>(h, x) }}""")
        path = tmp_path / "model.xml"
        save_model(convert_model(model, **options), path)
        (found,) = isolated(run_ir, path, [{"x": numbers, "h": np.zeros(7, np.float32)}])
        assert np.array_equal(found[-1][1], wanted)


# -- Buffers that the steps of a loop write: one write after the loop, with the same numbers


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


def model_of_buffer(shape: str, places: str, *, ends: bool = False) -> onnx.ModelProto:
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


def feeds_of_buffer(shape: str, *lengths: int) -> list[dict[str, np.ndarray]]:
    sizes = (12, 3) if shape.startswith("M") else (3, 12)
    return [{"x": floats(n), "h": floats(3), "buffer": floats(*sizes)} for n in lengths]


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


# -- Broadcasts that are moved after element-wise operations, among the other rules


def test_a_constant_beside_a_moved_broadcast_gets_its_last_form(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operand that replaces the Broadcast has another rank than the constant: the rules of constants
    come after the move."""
    monkeypatch.setattr(conversion, "CHECK_PASSES", True)
    model = parsed("""main (float[1] x, float[N, M] z) => (float[?, ?] y) <float[1, 1] c = {2.0}> {
          s = Shape (z)  e = Expand (x, s)  y = Max (e, c) }""")
    check(model, *({"x": floats(1), "z": floats(*shape)} for shape in ((2, 3), (0, 3), (1, 1))))


read_cases(globals())
