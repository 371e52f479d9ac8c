"""Matrix states to which every step adds a product of a column and a row: chunks in place of steps."""

from __future__ import annotations

import onnx
import pytest

from mo_loop import ops
from tests.harness import check, floats, parsed
from tests.runtime.passes.sequences import feeds, loops
from tools import chunk_errors

K, V = 20, 28

DECAYS = {
    "none": ("", "m = Identity(s)"),
    "constant": ("", "a = Constant<value=float {0.9}>()\n m = Mul(s, a)"),
    "of the step": ("1,1", "a = Sigmoid(g)\n m = Mul(a, s)"),
    "of each row": (f"{K},1", "a = Sigmoid(g)\n m = Mul(s, a)"),
    "of each column": (f"{V}", "a = Sigmoid(g)\n m = Mul(s, a)"),
    "of sign and zero": ("1,1", "a = Clip(g, zero, one)\n n = Sub(a, half)\n m = Mul(s, n)"),
}
"""The shape of the factor of a step, and m = a * s."""

ADDED = {
    "product": "c = Unsqueeze(k, behind)\n r = Unsqueeze(v, before)\n u = MatMul(c, r)",
    "outer": "c = Unsqueeze(k, behind)\n r = Unsqueeze(v, before)\n u = Mul(r, c)",
    "scaled": "c = Unsqueeze(k, behind)\n r = Unsqueeze(v, before)\n w = Mul(c, r)\n u = Mul(half, w)",
}
READS = {
    "left": (f"1,{V}", "q = Unsqueeze(k, before)\n y = MatMul(q, t)"),
    "right": (f"{K},1", "q = Unsqueeze(v, behind)\n y = MatMul(t, q)"),
    "state before": (f"1,{V}", "q = Unsqueeze(k, before)\n y = MatMul(q, s)"),
    "several rows": (f"3,{V}", "r3 = Unsqueeze(k, before)\n q = Mul(rows, r3)\n y = MatMul(q, t)"),
    "sum of rows": (f"{V}", "q = Unsqueeze(k, behind)\n p = Mul(t, q)\n y = ReduceSum<keepdims=0>(p, before)"),
    "sum of columns": (f"{K},1", "q = Unsqueeze(v, before)\n p = Mul(q, t)\n y = ReduceSum<keepdims=1>(p, behind)"),
    "both": (
        f"1,{2 * V}",
        "q = Unsqueeze(k, before)\n y1 = MatMul(q, t)\n y2 = MatMul(q, s)\n y = Concat<axis=-1>(y1, y2)",
    ),
}
"""The shape of y, and how it is made."""

NOT_CHUNKED = {
    *((read, "of each row") for read in ("right", "sum of columns")),
    *((read, "of each column") for read in READS if read not in ("right", "sum of columns")),
}
"""Where the factors differ along what the product leaves."""


def model_of(decay: str, added: str, read: str, length: str, batch: tuple[int, ...] = ()) -> onnx.ModelProto:
    """A Scan over keys, values and factors; the state s is [*batch, K, V]."""
    lead = "".join(f"{each}," for each in batch)
    shape, kept = DECAYS[decay]
    made, reading = READS[read]
    y = f"{lead}{made}"
    sources = [f"float[{length},{lead}{K}] ks", f"float[{length},{lead}{V}] vs"]
    inner = [f"float[{lead}{K}] k", f"float[{lead}{V}] v"]
    if shape:
        sources.append(f"float[{length},{lead if ',' in shape else ''}{shape}] gs")
        inner.append(f"float[{lead if ',' in shape else ''}{shape}] g")
    names = ", ".join(["h", *(each.split()[1] for each in sources)])
    return parsed(f"""
        main (float[{lead}{K},{V}] h, {", ".join(sources)}) => (float[{lead}{K},{V}] last, float[{length},{y}] ys)
        <float zero = {{0.0}}, float one = {{1.0}}, float half = {{0.5}}, float[3,1] rows = {{1.0, -0.5, 0.25}},
         int64[1] before = {{-2}}, int64[1] behind = {{-1}}> {{
          last, ys = Scan <num_scan_inputs = {len(sources)}, body = step (float[{lead}{K},{V}] s, {", ".join(inner)})
            => (float[{lead}{K},{V}] t, float[{y}] y) {{
            {kept}
            {ADDED[added]}
            t = Add(m, u)
            {reading}
          }}>({names}) }}""")


def loops_around_steps(model: onnx.ModelProto) -> int:
    """The loops that make a product in each step."""
    return sum(any(isinstance(node, ops.MatMul | ops.ReduceSum) for node in loop.body) for loop in loops(model))


@pytest.mark.parametrize("decay", DECAYS)
@pytest.mark.parametrize("read", READS)
def test_a_state_is_computed_in_chunks(decay: str, read: str) -> None:
    model = model_of(decay, "product", read, "T")
    if (read, decay) not in NOT_CHUNKED:
        assert loops_around_steps(model) == 0
    check(model, *feeds(model, 70, 1, 15, 16, 17, 33), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("batch", [(2,), (2, 3)])
@pytest.mark.parametrize("decay", DECAYS)
def test_states_of_several_heads(decay: str, batch: tuple[int, ...]) -> None:
    read = "right" if decay == "of each column" else "several rows"
    model = model_of(decay, "outer", read, "T", batch)
    assert loops_around_steps(model) == 0
    check(model, *feeds(model, 40, 1, 16), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("added", ADDED)
@pytest.mark.parametrize("length", [32, 48, 77])
def test_a_known_number_of_steps(added: str, length: int) -> None:
    for decay in ("none", "constant", "of the step", "of each row"):
        model = model_of(decay, added, "both", str(length))
        assert loops_around_steps(model) == 0
        check(model, *feeds(model, length), rtol=1e-4, atol=1e-4)


def test_queries_of_an_unknown_number_of_rows() -> None:
    model = parsed(f"""
        main (float[{K},{V}] h, float[T,{K}] ks, float[T,{V}] vs, float[T,R,{K}] qs)
            => (float[{K},{V}] last, float[T,R,{V}] ys) <int64[1] before = {{-2}}, int64[1] behind = {{-1}}> {{
          last, ys = Scan <num_scan_inputs = 3,
            body = step (float[{K},{V}] s, float[{K}] k, float[{V}] v, float[R,{K}] q)
            => (float[{K},{V}] t, float[R,{V}] y) {{
            {DECAYS["constant"][1]}
            {ADDED["product"]}
            t = Add(m, u)
            y = MatMul(q, t)
          }}>(h, ks, vs, qs) }}""")
    shapes = {"h": (K, V), "ks": (40, K), "vs": (40, V), "qs": (40, 3, K)}
    check(model, {name: floats(*shape) for name, shape in shapes.items()}, rtol=1e-4, atol=1e-4)


def test_chunks_are_as_exact_as_steps() -> None:
    """The errors against f64, for factors from 0 to 1; docs/loops.md has those of longer sequences."""
    for row in chunk_errors.rows([300]):
        assert row.ratio < chunk_errors.WORST, row
