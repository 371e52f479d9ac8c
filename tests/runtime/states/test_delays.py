"""States that become an input, a view of one, a part of one, or a constant: lines of delays."""

from typing import Any

import numpy as np
import pytest

from mo_loop.compare.execution.isolated import isolated
from tests.fuzz.states.comparing import compared
from tests.fuzz.states.models import STEPS, Recurrent
from tests.harness import parsed
from tests.runtime.states.stepping import Sequence, stepped
from tools.runtimes import chosen_interpreter

BODIES = {
    "the element before": "next = Identity (e) out = Add (s, e)",
    "pre-emphasis": "k = Constant <value_float = 0.97> () p = Mul (s, k) out = Sub (e, p) next = Identity (e)",
    "of a constant": "out = Add (s, e) next = Constant <value = float[2,3] {1, 2, 3, 4, 5, 6}> ()",
    "computed": "out = Sub (s, e) next = Tanh (e)",
}
"""The bodies of a Scan: (float[2,3] s, float[2,3] e) => (float[2,3] next, float[2,3] out)."""


@pytest.mark.parametrize("name", sorted(BODIES))
@pytest.mark.parametrize("first", ["input", "zeros"])
def test_scan(name: str, first: str) -> None:
    given = ", float[2,3] start" if first == "input" else ""
    made = "" if first == "input" else "start = Constant <value = float[2,3] {0, 0, 0, 0, 0, 0}> ()"
    model = parsed(f"""main (float[T,2,3] x{given}) => (float[2,3] last, float[T,2,3] all) {{ {made}
        last, all = Scan <num_scan_inputs = 1, body = step (float[2,3] s, float[2,3] e)
          => (float[2,3] next, float[2,3] out) {{ {BODIES[name]} }}> (start, x) }}""")
    x = np.random.default_rng(0).standard_normal((STEPS, 2, 3)).astype(np.float32)
    fixed: dict[str, Any] = {"start": np.ones((2, 3), np.float32)} if first == "input" else {}
    assert isolated(compared, Recurrent(name, model, fixed, {"x": x}, {"x": 0}), chosen_interpreter()) == ""


FORMS = {
    "bare": ("2,3", "hn = Identity (x) y = Add (h, x)", "2,3"),
    "squeezed": ("2,3", "hn = Squeeze (x, nil) y = Add (h, hn)", "1,2,3"),
    "reshaped": ("6", "six = Constant <value_ints = [6]> () hn = Reshape (x, six) y = Mul (h, h)", "2,3"),
    "transposed": ("3,1", "hn = Transpose <perm = [1, 0]> (x) y = Mul (h, h)", "1,3"),
    "a part": ("2,2", "hn = Slice (x, two, far, one) y = Add (h, hn)", "2,4"),
    "last frames": ("3,2", "t = Slice (h, one, far, nil) hn = Concat <axis = 0> (t, x) y = Mul (hn, h)", "1,2"),
    "newest first": ("3,2", "a, b = Split <axis = 0> (h, parts) hn = Concat <axis = 0> (x, a) y = Mul (hn, h)", "1,2"),
    "of any batch": ("batch,3", "hn = Squeeze (x, nil) y = Add (h, hn)", "1,batch,3"),
    "written to": ("2,3", "a, b = Split <axis = 0> (h, ones) hn = ScatterElements <axis = 0> (x, at, a) y = Mul (h, h)",
                   "2,3"),
}
"""The shape of a state h, what computes its next value hn, and the shape of x."""


@pytest.mark.parametrize("name", sorted(FORMS))
@pytest.mark.parametrize("kind", ["float", "int32", "int64"])
def test_explicit_states(name: str, kind: str) -> None:
    shape, body, of_x = FORMS[name]
    model = parsed(f"""main ({kind}[{of_x}] x, {kind}[{shape}] h) => ({kind}[{shape}] y, {kind}[{shape}] hn)
      <int64[1] nil = {{0}}, int64[1] one = {{1}}, int64[1] two = {{2}}, int64[1] far = {{99}},
       int64[2] parts = {{2, 1}}, int64[2] ones = {{1, 1}}, int64[1,3] at = {{0, 0, 0}}> {{ {body} }}""")
    random = np.random.default_rng(1)
    dtype = {"float": np.float32, "int32": np.int32, "int64": np.int64}[kind]
    size = [int(each) if each != "batch" else 2 for each in of_x.split(",")]
    runs = [Sequence(2, [{"x": random.integers(-9, 9, size).astype(dtype)} for _ in range(5)]) for _ in range(2)]
    assert stepped(model, runs, pairs={"h": "hn"}).worst == 0


def test_two_stages() -> None:
    model = parsed("""main (float[2,3] x, float[2,3] a, float[6] b) => (float[2,3] y, float[2,3] an, float[6] bn) {
        six = Constant <value_ints = [6]> () s = Shape (x) c = Reshape (b, s) d = Add (c, x) y = Sub (d, a)
        an = Identity (x) bn = Reshape (a, six) }""")
    random = np.random.default_rng(2)
    runs = [Sequence(2, [{"x": random.standard_normal((2, 3)).astype(np.float32)} for _ in range(5)]) for _ in range(2)]
    assert stepped(model, runs, pairs={"a": "an", "b": "bn"}).worst < 1e-6


@pytest.mark.parametrize("kind", ["int64", "float16"])
def test_states_that_are_read_late(kind: str) -> None:
    """Their initial values are computed, as another type is stored: after a reset they had the new values at once."""
    model = parsed(f"""
      main ({kind}[T,B,1] x, {kind}[2,B,1] a, {kind}[B,1] b, {kind}[B,1] c)
        => ({kind}[2,B,1] an, {kind}[B,1] bn, {kind}[B,1] cn, float[T,B,1] all) {{
        an, bn, cn, all = Scan <num_scan_inputs = 1, body = step
          ({kind}[2,B,1] p, {kind}[B,1] q, {kind}[B,1] r, {kind}[B,1] e)
          => ({kind}[2,B,1] pn, {kind}[B,1] qn, {kind}[B,1] rn, float[B,1] out) {{
          nil = Constant <value_ints = [0]> () last = Constant <value_ints = [-1]> () early = Slice (p, nil, last, nil)
          u = Unsqueeze (e, nil) pn = Concat <axis = 0> (u, early) qn = Identity (e) rn = Identity (e)
          f = Cast <to = 1> (p) g = Cast <to = 1> (q) h = Cast <to = 1> (r) k = Cast <to = 1> (e)
          s = ReduceSum <keepdims = 0> (f, nil) t = Add (g, h) v = Add (s, t) out = Add (v, k) }}> (a, b, c, x) }}""")
    dtype = {"int64": np.int64, "float16": np.float16}[kind]
    x = np.random.default_rng(7).integers(-9, 9, (STEPS, 2, 1)).astype(dtype)
    fixed: dict[str, Any] = {"a": np.ones((2, 2, 1), dtype), "b": np.ones((2, 1), dtype), "c": np.zeros((2, 1), dtype)}
    assert isolated(compared, Recurrent(kind, model, fixed, {"x": x}, {"x": 0}), chosen_interpreter()) == ""
