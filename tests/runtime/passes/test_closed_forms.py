"""States of loops whose values in all steps have a closed form: the numbers, and that no loop is left."""

from pathlib import Path

import numpy as np
import onnx

from mo_loop import convert_model, save_model
from mo_loop.compare.execution.isolated import isolated
from mo_loop.compare.execution.runtime import run_ir
from tests.harness import check, every, floats, parsed
from tests.runtime.passes.sequences import feeds, loops

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


@every(form=FORMS, outputs=OUTPUTS)
def test_a_loop_of_known_length(form: str, outputs: str) -> None:
    model = model_of(form, outputs, "9")
    assert len(loops(model)) == 0
    check(model, *feeds(model, 9), rtol=1e-5, atol=1e-6)


@every(form=FORMS, outputs=OUTPUTS)
def test_a_loop_of_any_length(form: str, outputs: str) -> None:
    model = model_of(form, outputs, "T")
    assert len(loops(model)) == (not has_form_of_any_length(form, outputs))
    check(model, *feeds(model, 9, 0, 1, 63, 64, 200), rtol=1e-5, atol=1e-6)


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


@every(name=WINDOWS, every=[True, False], length=["40", "T"])
def test_a_state_that_holds_the_last_steps(name: str, every: bool, length: str) -> None:
    """Both the rows that a step reads and those that it makes are windows of the initial rows and the input."""
    constants = "".join(f", int64[1] {key} = {{{value}}}" for key, value in
                        {"one": 1, "two": 2, "three": 3, "four": 4, "far": 2**31 - 1, "zero": 0}.items())
    model = parsed(f"""
        main (float[{length}, 3] x, float[4, 3] h) => (float[4, 3] last{f", float[{length}, 3] u" if every else ""})
          <int64[3] behind = {{1, 2, 3}}, int64[2] sizes = {{1, 3}}, float[4, 1] column = {{1, 2, 3, 4}}{constants}> {{
          number = Constant<value=int64 {{0}}>()  shape = Shape (x)  n = Gather<axis=0> (shape, number)
          last{", u" if every else ""} = Loop (n, "", h) <body = step (int64 i, bool go, float[4, 3] s)
            => (bool goes, float[4, 3] t{", float[3] u" if every else ""}) {{
            goes = Identity (go)  a = Gather<axis=0> (x, i)  e = Unsqueeze(a, zero)
            f = Concat<axis=0>(e, e)
            {WINDOWS[name]}
            r = Sin(s)  q = Add(r, t)
            {"u = ReduceSum<keepdims=0>(q, zero)" if every else ""}
          }}>
        }}""")
    assert len(loops(model)) == (name == "not the next rows")
    lengths = (40,) if length == "40" else (9, 0, 1, 3, 40)
    check(model, *feeds(model, *lengths), rtol=1e-5, atol=1e-6)


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
