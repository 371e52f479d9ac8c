"""Work of a loop that is done before it or after it: the numbers, and what is left in the body."""

from collections.abc import Mapping
from typing import Any

import onnx
import pytest

from mo_loop import convert_model, ops
from mo_loop.graph import Node
from mo_loop.transforms.loops.steps_per_iteration import StepsPerIteration
from tests.cases import read_cases
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


GROWING = {
    # what a step does with the list v, the state s and the number of the step i; t is an output
    "appended": "c = Concat<axis=0>(v, s1)\n t = ReduceSum<keepdims=0>(v, zero)",
    "shortened": "c = Slice(v, one, last)\n t = ReduceSum<keepdims=0>(v, zero)",
    "found in it": "m = Mod(v, two)\n c = Sub(v, one)\n k = NonZero(m)\n t = ReduceSum<keepdims=0>(k)",
    "cut from it": "c = Sub(v, one)\n e = Unsqueeze(i, zero)\n k = Slice(c, zero, e)\n"
                   "t = ReduceSum<keepdims=0>(k, zero)",
}


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


read_cases(globals())
