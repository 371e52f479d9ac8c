"""Work of a loop that is done before it or after it: the numbers, and what is left in the body."""

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import pytest

from mo_loop import convert_model, ops
from mo_loop.graph import Node
from mo_loop.transforms.loops.steps_per_iteration import StepsPerIteration
from tests.harness import check, floats, folded, parsed


@pytest.fixture(autouse=True)
def single_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loops that are left are counted."""
    monkeypatch.setattr(StepsPerIteration, "enabled_by_default", False)


CELL = "p = MatMul(a, w)\n q = MatMul(s, u)\n r = Add(p, q)\n t = Tanh(r)"

BODIES = {
    # what a step does with a of x [T, 4] and the state s [3]; o is an output; what stays in the body
    "projections": (f"{CELL}\n z = MatMul(t, u)\n o = Softmax<axis=-1>(z)", {ops.MatMul: 1, ops.Softmax: 0}),
    "of the state before": (f"{CELL}\n z = MatMul(s, u)\n o = Softmax<axis=-1>(z)", {ops.MatMul: 1, ops.Softmax: 0}),
    "gates": ("p = MatMul(a, w)\n g = Sigmoid(p)\n h2 = MatMul(a, v)\n c = Mul(g, s)\n d = Mul(c, s)\n t = Add(d, h2)\n"
              "o = Mul(t, g)", {ops.MatMul: 0, ops.Sigmoid: 0}),
    "of the inputs alone": (f"{CELL}\n e = Exp(a)\n k = Constant<value=int64[1] {{0}}>()\n"
                            "l = Constant<value=int64[1] {3}>()\n o = Slice(e, k, l)",
                            {ops.MatMul: 1, ops.Exp: 0}),
    "of the number of the step": ("f = CastLike(i1, a)\n e = Exp(f)\n p = MatMul(a, w)\n m = Mul(p, e)\n"
                                  "c = Mul(s, s)\n t = Sub(m, c)\n o = Identity(t)", {ops.MatMul: 0, ops.Exp: 0}),
    "without a rule": (f"{CELL}\n nz = NonZero(t)\n number = Cast<to=1>(nz)\n m = ReduceSum<keepdims=0>(number)\n"
                       "o = Add(t, m)",
                       {ops.MatMul: 1, ops.NonZero: 1}),
}


def model_of(name: str, length: str, kind: str) -> onnx.ModelProto:
    body, _ = BODIES[name]
    head = (f"main (float[{length}, 4] x, float[3] h, float[4, 3] w, float[3, 3] u, float[4, 3] v) => "
            f"(float[3] last, float[{length}, 3] y)")
    number = "zero = Constant<value=int64 {0}>()\n"
    if kind == "scan":
        return parsed(f"""{head} {{ {number}
            last, y = Scan<num_scan_inputs=1, scan_input_directions=[1], body = step (float[3] s, float[4] a)
              => (float[3] t, float[3] o) {{
                i1 = Identity(zero)
                {body}
              }}>(h, x) }}""")
    return parsed(f"""{head} {{ {number}
        sizes = Shape(x)  n = Gather<axis=0>(sizes, zero)
        last, y = Loop (n, "", h) <body = step (int64 i, bool go, float[3] s) => (bool goes, float[3] t, float[3] o) {{
            goes = Identity(go)  i1 = Identity(i)  a = Gather<axis=0>(x, i)
            {body}
          }}> }}""")


def feeds(*lengths: int) -> list[dict[str, Any]]:
    sizes = {"h": (3,), "w": (4, 3), "u": (3, 3), "v": (4, 3)}
    return [{"x": floats(length, 4, seed=length), **{name: floats(*shape, seed=1) / 4 for name, shape in sizes.items()}}
            for length in lengths]


def left_in_bodies(model: onnx.ModelProto, kinds: Mapping[type[Node], int]) -> dict[type[Node], int]:
    graph = convert_model(model, **folded()).graph
    assert sum(len(scope.of(ops.Iteration)) for scope in graph.scopes()) == 1
    return {kind: sum(len(scope.of(kind)) for scope in graph.scopes() if scope.owner is not None) for kind in kinds}


@pytest.mark.parametrize("name", BODIES)
@pytest.mark.parametrize("kind", ["loop", "scan"])
def test_a_known_length(name: str, kind: str) -> None:
    model = model_of(name, "6", kind)
    assert left_in_bodies(model, BODIES[name][1]) == BODIES[name][1]
    check(model, *feeds(6), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", BODIES)
def test_any_length(name: str) -> None:
    model = model_of(name, "T", "loop")
    assert left_in_bodies(model, BODIES[name][1]) == BODIES[name][1]
    check(model, *feeds(6, 0, 1, 3), rtol=1e-4, atol=1e-5)


def test_a_projection_in_two_loops() -> None:
    """The inner loop has a state, the outer one has not: what the inner one needs of its inputs leaves both."""
    model = parsed("""main (float[5, 6, 4] x, float[3] h, float[4, 3] w) => (float[5, 3] y) {
          n = Constant<value=int64 {5}>()  m = Constant<value=int64 {6}>()
          y = Loop (n, "") <body = outer (int64 i, bool go) => (bool goes, float[3] last) {
            goes = Identity(go)  rows = Gather<axis=0>(x, i)
            last = Loop (m, "", h) <body = inner (int64 j, bool g, float[3] s) => (bool gg, float[3] t) {
              gg = Identity(g)  a = Gather<axis=0>(rows, j)  p = MatMul(a, w)
              q = Mul(s, p)  t = Tanh(q) }> }> }""")
    graph = convert_model(model, **folded()).graph
    assert not any(scope.of(ops.MatMul) for scope in graph.scopes() if scope.owner is not None)
    check(model, {"x": floats(5, 6, 4), "h": floats(3, seed=1), "w": floats(4, 3, seed=2)})


@pytest.mark.parametrize("final", [False, True])
def test_sizes_of_no_steps(final: bool) -> None:
    """The states of no steps have the sizes of their initial value for what is computed of them."""
    head = "main (float[T, N, 3] x, float[N, 3] h, float[3, 2] v) => (float[N, 3] last, float[T, N, 2] y)"
    model = parsed(f"""
        {head} {{
          sizes = Shape (x)  zero = Constant<value=int64 {{0}}>()  n = Gather<axis=0> (sizes, zero)
          last, y = Loop (n, "", h) <body = step (int64 i, bool go, float[N, 3] s)
            => (bool goes, float[N, 3] t, float[N, 2] o) {{
            goes = Identity (go)  a = Gather<axis=0> (x, i)  m = Mul (s, a)
            t = Tanh (m)  o = MatMul ({"t" if final else "s"}, v) }}> }}""")
    graph = convert_model(model, **folded()).graph
    assert not any(scope.of(ops.MatMul) for scope in graph.scopes() if scope.owner is not None)
    sizes = ((4, 2), (0, 2), (1, 3), (0, 4), (3, 1))
    runs = [{"x": floats(t, n, 3), "h": floats(n, 3, seed=1), "v": floats(3, 2, seed=2)} for t, n in sizes]
    check(model, *runs, rtol=1e-4, atol=1e-5)


def test_steps_in_reverse_order_without_states() -> None:
    """The loop stays for its If; what was computed before it was read in the order of the steps of a loop that goes."""
    check(parsed("""g (float[5,2,3] x, float[3,2] w) => (float[5,2] y) {
        at = Constant <value = int64[1,1] {1}> ()  zero = Constant <value = float {0.0}> ()
        y = Scan <num_scan_inputs = 1, scan_input_directions = [1], body = step (float[2,3] s) => (float[2] t) {
            p = MatMul (s, w)  m = ReduceMean <keepdims = 0> (p)  c = Greater (m, zero)
            t = If (c) <then_branch = yes () => (float[2] a) {
                row = Constant <value = float[1,2] {1.0, 2.0}> ()  first = ScatterND (w, at, row)
                axes = Constant <value = int64[1] {0}> ()  a = ReduceSum <keepdims = 0> (first, axes)
            }, else_branch = no () => (float[2] b) { b = Constant <value = float[2] {7.0, 8.0}> () }>
        }> (x)
    }"""), {"x": floats(5, 2, 3), "w": floats(3, 2, seed=1)})


GROWING = {
    # what a step does with the list v, the state s and the number of the step i; t is an output
    "appended": "c = Concat<axis=0>(v, s1)\n t = ReduceSum<keepdims=0>(v, zero)",
    "shortened": "c = Slice(v, one, last)\n t = ReduceSum<keepdims=0>(v, zero)",
    "found in it": "m = Mod(v, two)\n c = Sub(v, one)\n k = NonZero(m)\n t = ReduceSum<keepdims=0>(k)",
    "cut from it": "c = Sub(v, one)\n e = Unsqueeze(i, zero)\n k = Slice(c, zero, e)\n"
                   "t = ReduceSum<keepdims=0>(k, zero)",
}


@pytest.mark.parametrize("name", GROWING)
def test_a_value_of_another_size_in_each_step(name: str) -> None:
    """Its values of all steps are not a tensor; two states that are exchanged keep the loop."""
    model = parsed(f"""
        main (int64[N] x, int64 a, int64 b) => (int64 p, int64[M] q, int64 r, int64[3] t)
          <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] last = {{100}}, int64[1] two = {{2}}> {{
          n = Constant<value=int64 {{3}}>()
          p, q, r, t = Loop (n, "", a, x, b) <body = step (int64 i, bool go, int64 s, int64[K] v, int64 w)
            => (bool goes, int64 u, int64[L] c, int64 s2, int64 t) {{
              goes = Identity(go)  u = Identity(w)  s2 = Identity(s)  s1 = Unsqueeze(s, zero)
              {GROWING[name]}
            }}>
        }}""")
    numbers = {"a": np.array(3), "b": np.array(4)}
    check(model, *({"x": np.array(x), **numbers} for x in ([1, 2, -2, -2], [4, 3, 2, 1, 7])))


def test_shapes_that_are_computed_before_the_loop() -> None:
    """The runtime does not know how many numbers such a shape has, and refuses loops of unknown ranks."""
    check(parsed("""main (float[1, 4, 1] x, int64 n) => (float[1, 4, 1] last) {
          one = Constant<value=int64[1] {1}>()  three = Constant<value=int64[1] {3}>()
          four = Constant<value=int64[1] {4}>()  axis = Constant<value=int64[1] {2}>()
          number, last = Loop (n, "", n, x) <body = step (int64 i, bool go, int64 k, float[1, 4, 1] s)
            => (bool goes, int64 k2, float[1, 4, 1] t) {
            goes = Identity(go)  k2 = Identity(n)  numbers = Reshape(k, one)
            rest = Mod(numbers, three)  size = Add(rest, one)  shape = Concat<axis=0>(one, four, size)
            wide = Expand(x, shape)  m = ReduceSum(wide, axis)  p = Mul(s, m)
            t = Tanh(p) }> }""", opset=13), *({"x": floats(1, 4, 1), "n": np.int64(n)} for n in (4, 0, 1)))


EARLY = {
    # what a step does with a of x [T, 4] and the state s [3]; what stays in the body
    "before": ("p = MatMul(a, w)\n q = Tanh(p)\n r = Sigmoid(q)\n m = Mul(s, r)\n t = Add(m, q)\n o = Identity(t)",
               {ops.MatMul: 0, ops.Tanh: 0, ops.Sigmoid: 0}),
    "behind": ("m = ReduceSum<keepdims=0>(a)\n p = Mul(s, m)\n t = Cos(p)\n z = MatMul(t, u)\n"
               "o = Softmax<axis=-1>(z)", {ops.MatMul: 0, ops.Softmax: 0}),
    "both": (f"{CELL}\n z = MatMul(t, u)\n o = Softmax<axis=-1>(z)", {ops.MatMul: 1, ops.Softmax: 0}),
    "may fail": ("h2 = Slice(a, first, last)\n p = Mul(s, h2)\n t = Cos(p)\n e = Exp(a)\n n1 = Gather(e, first)\n"
                 "o = Mul(t, n1)", {ops.Slice: 1, ops.Exp: 0}),
}


@pytest.mark.parametrize("name", EARLY)
@pytest.mark.parametrize("length", ["6", "T"])
def test_a_loop_that_a_step_may_end(name: str, length: str) -> None:
    """After it, the steps are those that it has executed; before it, all that it may execute."""
    body, left = EARLY[name]
    model = parsed(f"""main (float[{length}, 4] x, float[3] h, float[4, 3] w, float[3, 3] u, float bound, bool start,
        int64[1] first, int64[1] last) => (float[3] final, float[N, 3] y) {{
        zero = Constant<value=int64 {{0}}>()  sizes = Shape(x)  n = Gather<axis=0>(sizes, zero)
        final, y = Loop (n, start, h) <body = step (int64 i, bool go, float[3] s)
          => (bool goes, float[3] t, float[3] o) {{
            a = Gather<axis=0>(x, i)
            {body}
            total = ReduceSum<keepdims=0>(t)  goes = Less(total, bound) }}> }}""")
    graph = convert_model(model, **folded()).graph
    bodies = [scope for scope in graph.scopes() if scope.owner is not None]
    assert {kind: sum(len(scope.of(kind)) for scope in bodies) for kind in left} == left
    weights = {"w": floats(4, 3, seed=1) / 4, "u": floats(3, 3, seed=2), "first": np.array([0]), "last": np.array([3])}
    rows = (6,) if length == "6" else (6, 0, 1, 9)
    runs = [{"x": floats(n, 4, seed=n), "h": floats(3), "bound": np.float32(bound), "start": np.bool_(start), **weights}
            for n in rows for bound in (99, -99, 0.6, 0.1) for start in (True, False)]
    check(model, *runs, rtol=1e-4, atol=1e-5)


def test_a_division_that_the_loop_does_not_reach() -> None:
    """Before the loop it would divide by 0, which ends the process."""
    model = parsed("""main (int64[T] x, int64 bound) => (int64 final, int64[N] y) {
        zero = Constant<value=int64 {0}>()  top = Constant<value=int64 {840}>()  sizes = Shape(x)
        n = Gather<axis=0>(sizes, zero)
        final, y = Loop (n, "", zero) <body = step (int64 i, bool go, int64 s)
          => (bool goes, int64 t, int64 o) {
            a = Gather<axis=0>(x, i)  q = Div(top, a)  d = Mul(a, a)
            o = Sub(q, d)  m = Mul(o, s)  r = Mod(m, top)
            t = Add(r, o)  goes = Less(t, bound) }> }""")
    runs = [([1, 2, 3, 0, 0], -10), ([3, 5, 7], 10**6), ([2, 0], 5)]
    check(model, *({"x": np.array(x), "bound": np.array(bound)} for x, bound in runs))
