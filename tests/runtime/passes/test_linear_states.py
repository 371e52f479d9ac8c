"""Matrix states to which every step adds a product of a column and a row: chunks in place of steps."""

import onnx

from mo_loop import ops
from tests.cases import read_cases
from tests.harness import check, every, parsed
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

ADDED = {"product": "c = Unsqueeze(k, behind)\n r = Unsqueeze(v, before)\n u = MatMul(c, r)",
         "outer": "c = Unsqueeze(k, behind)\n r = Unsqueeze(v, before)\n u = Mul(r, c)",
         "scaled": "c = Unsqueeze(k, behind)\n r = Unsqueeze(v, before)\n w = Mul(c, r)\n u = Mul(half, w)"}
READS = {
    "left": (f"1,{V}", "q = Unsqueeze(k, before)\n y = MatMul(q, t)"),
    "right": (f"{K},1", "q = Unsqueeze(v, behind)\n y = MatMul(t, q)"),
    "state before": (f"1,{V}", "q = Unsqueeze(k, before)\n y = MatMul(q, s)"),
    "several rows": (f"3,{V}", "r3 = Unsqueeze(k, before)\n q = Mul(rows, r3)\n y = MatMul(q, t)"),
    "sum of rows": (f"{V}", "q = Unsqueeze(k, behind)\n p = Mul(t, q)\n y = ReduceSum<keepdims=0>(p, before)"),
    "sum of columns": (f"{K},1", "q = Unsqueeze(v, before)\n p = Mul(q, t)\n y = ReduceSum<keepdims=1>(p, behind)"),
    "both": (f"1,{2 * V}",
             "q = Unsqueeze(k, before)\n y1 = MatMul(q, t)\n y2 = MatMul(q, s)\n y = Concat<axis=-1>(y1, y2)"),
}
"""The shape of y, and how it is made."""

NOT_CHUNKED = {*((read, "of each row") for read in ("right", "sum of columns")),
               *((read, "of each column") for read in READS if read not in ("right", "sum of columns"))}
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


@every(decay=DECAYS, read=READS)
def test_a_state_is_computed_in_chunks(decay: str, read: str) -> None:
    model = model_of(decay, "product", read, "T")
    if (read, decay) not in NOT_CHUNKED:
        assert loops_around_steps(model) == 0
    check(model, *feeds(model, 70, 1, 15, 16, 17, 33), rtol=1e-4, atol=1e-4)


def test_chunks_are_as_exact_as_steps() -> None:
    """The errors against f64, for factors from 0 to 1; docs/loops.md has those of longer sequences."""
    for row in chunk_errors.rows([300]):
        assert row.ratio < chunk_errors.WORST, row


RETRIEVED = {
    # how x [V] is made of the keys k [K] and the state m or s, and what a step adds with k as a column c
    "product": "f = Unsqueeze(k, before)\n x1 = MatMul(f, m)\n x = Squeeze(x1, before)",
    "product of a vector": "x = MatMul(k, m)",
    "sum": "f = Mul(m, c)\n x = ReduceSum<keepdims=0>(f, before)",
    "state before": "f = Mul(s, c)\n x = ReduceSum<keepdims=0>(f, before)",
    "another key": "f = Neg(c)\n f2 = Mul(f, half)\n f3 = Mul(m, f2)\n x = ReduceSum<keepdims=0>(f3, before)",
}
RATES = {
    "none": "d = Sub(v, x)\n r = Unsqueeze(d, before)\n u = Mul(c, r)",
    "constant": "d1 = Sub(v, x)\n d = Mul(half, d1)\n r = Unsqueeze(d, before)\n u = MatMul(c, r)",
    "of the step": "w = Sigmoid(b)\n d1 = Sub(v, x)\n d = Mul(d1, w)\n r = Unsqueeze(d, before)\n u = Mul(r, c)",
    "of the row": "w = Sigmoid(b)\n w2 = Unsqueeze(w, before)\n d1 = Sub(v, x)\n r1 = Unsqueeze(d1, before)\n"
                  "r = Mul(r1, w2)\n u = Mul(r, c)",
    "of each number": "w = Sigmoid(v)\n d1 = Sub(v, x)\n d = Mul(d1, w)\n r = Unsqueeze(d, before)\n u = Mul(r, c)",
}


def delta_rule(retrieved: str, rate: str, decay: str, length: str, batch: tuple[int, ...]) -> onnx.ModelProto:
    """Each step adds the difference of a value and what the state has for its key."""
    lead = "".join(f"{each}," for each in batch)
    shape, kept = DECAYS[decay]
    sizes = {"k": f"{K}", "v": f"{V}", "b": "1", **({"g": shape} if shape else {})}
    inner = ", ".join(f"float[{lead}{size}] {name}{'0' if name == 'k' else ''}" for name, size in sizes.items())
    sources = ", ".join(f"float[{length},{lead}{size}] {name}s" for name, size in sizes.items())
    return parsed(f"""
        main (float[{lead}{K},{V}] h, {sources}) => (float[{lead}{K},{V}] last, float[{length},{lead}{V}] ys)
        <float zero = {{0.0}}, float one = {{1.0}}, float half = {{0.5}}, float small = {{0.2}},
         int64[1] before = {{-2}}, int64[1] behind = {{-1}}> {{
          last, ys = Scan <num_scan_inputs = {len(sizes)}, body = step (float[{lead}{K},{V}] s, {inner})
            => (float[{lead}{K},{V}] t, float[{lead}{V}] y) {{
            k = Mul(k0, small)  c = Unsqueeze(k, behind)
            {kept}
            {RETRIEVED[retrieved]}
            {RATES[rate]}
            t = Add(m, u)  z = Mul(t, c)  y = ReduceSum<keepdims=0>(z, before)
          }}>(h, {", ".join(name + "s" for name in sizes)}) }}""")


@every(retrieved=RETRIEVED, rate=RATES)
def test_the_delta_rule(retrieved: str, rate: str) -> None:
    batch = () if retrieved == "product of a vector" else (2, 3)
    for decay in ("none", "constant", "of the step"):
        model = delta_rule(retrieved, rate, decay, "T" if decay == "of the step" else "70", batch)
        if decay != "of the step":
            assert bool(loops(model)) == (rate == "of each number")  # the loop over 5 chunks is one iteration
        check(model, *feeds(model, *((70, 1, 15, 16, 33) if decay == "of the step" else (70,))), rtol=1e-3, atol=1e-4)


read_cases(globals())
