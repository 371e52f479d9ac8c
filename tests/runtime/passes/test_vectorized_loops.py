"""Loops whose iterations do not depend on each other: the numbers, for each rule, and that no loop is left."""

import numpy as np
import onnx
import pytest

from mo_loop import convert_model, ops
from mo_loop.transforms.loops.steps_per_iteration import StepsPerIteration
from tests.cases import read_cases
from tests.harness import Array, check, floats, folded, parsed
from tests.runtime.passes.sequences import feeds as feeds
from tests.runtime.passes.sequences import loops as loops


@pytest.fixture(autouse=True)
def single_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The loops that are left are counted."""
    monkeypatch.setattr(StepsPerIteration, "enabled_by_default", False)


K = "k = Constant<value=int64[1] {{{}}}>()\n".format
PAIR = "k = Constant<value=int64[2] {{{}}}>()\n".format

BODIES = {
    # what a step reads of x [T, ...], what it makes, how; h is captured
    "element-wise": ("float[4]", "float[4]", "b = Mul(a, h)\n c = Tanh(b)", "float[4]"),
    "a captured tensor of more dimensions": ("float[4]", "float[3, 4]", "c = Add(a, h)", "float[3, 4]"),
    "a scalar": ("float", "float[3, 4]", "c = Sub(a, h)", "float[3, 4]"),
    "a choice": ("float[4]", "float[4]", "b = Greater(a, h)\n e = Exp(a)\n c = Where(b, e, h)", "float[4]"),
    "slopes": ("float[2, 4]", "float[2, 4]", "c = PRelu(a, h)", "float[4]"),
    "row by matrix": ("float[4]", "float[3]", "c = MatMul(a, h)", "float[4, 3]"),
    "matrix by column": ("float[4]", "float[3]", "c = MatMul(h, a)", "float[3, 4]"),
    "row by column": ("float[4]", "float", "c = MatMul(a, a)", "float[4]"),
    "row by matrices": ("float[4]", "float[2, 3]", "c = MatMul(a, h)", "float[2, 4, 3]"),
    "matrix by row": ("float[2, 4]", "float[2]", "c = MatMul(a, h)", "float[4]"),
    "matrix by matrices": ("float[2, 4]", "float[3, 2, 3]", "c = MatMul(a, h)", "float[3, 4, 3]"),
    "matrix by its transposed": ("float[3, 4]", "float[3, 3]",
                                 "b = Transpose<perm=[1, 0]>(a)\n c = MatMul(a, b)", "float"),
    "affine": ("float[2, 4]", "float[2, 3]", "c = Gemm<transB=1>(a, h)", "float[3, 4]"),
    "subscripts": ("float[2, 3]", "float[2, 4]", 'c = Einsum<equation="ij,jk->ik">(a, h)', "float[3, 4]"),
    "sum": ("float[2, 4]", "float[2]", K(-1) + "c = ReduceSum<keepdims=0>(a, k)", "float"),
    "mean": ("float[2, 4]", "float[1, 4]", K(0) + "c = ReduceMean(a, k)", "float"),
    "shares": ("float[2, 4]", "float[2, 4]", "c = Softmax<axis=0>(a)", "float"),
    "normalised": ("float[2, 4]", "float[2, 4]", "c = LayerNormalization<axis=-1>(a, h)", "float[4]"),
    "running sums": ("float[2, 4]", "float[2, 4]", "k = Constant<value=int64 {1}>()\n c = CumSum(a, k)", "float"),
    "joined": ("float[4]", "float[8]", "c = Concat<axis=0>(h, a)", "float[4]"),
    "pieces": ("float[2, 4]", "float[2, 2]", "p, q = Split<axis=-1, num_outputs=2>(a)\n c = Sub(p, q)", "float"),
    "a piece": ("float[2, 4]", "float[2, 2]", K(1) +
                "l = Constant<value=int64[1] {3}>()\n c = Slice(a, k, l, k)", "float"),
    "another shape": ("float[2, 6]", "float[3, 4]", PAIR("3, -1") + "c = Reshape(a, k)", "float"),
    "copied sizes": ("float[2, 6]", "float[2, 2, 3]",
                     "k = Constant<value=int64[3] {0, 2, 3}>()\n c = Reshape(a, k)", "float"),
    "repeated": ("float[4]", "float[8]", K(2) + "c = Tile(a, k)", "float"),
    "expanded": ("float[4]", "float[3, 4]", PAIR("3, 1") + "c = Expand(a, k)", "float"),
    "padded": ("float[4]", "float[7]", PAIR("2, 1") + "c = Pad(a, k)", "float"),
    "sizes": ("float[4]", "int64[1]", "c = Shape(a)", "float"),
    "rows of a table": ("int64[2]", "float[2, 4]", "c = Gather(h, a)", "float[3, 4]"),
    "a column of a table": ("int64", "float[4]", "c = Gather<axis=1>(h, a)", "float[4, 3]"),
    "elements": ("float[2, 4]", "float[2, 2]", "k = Constant<value=int64[2, 2] {3, 0, 1, 1}>()\n"
                 "c = GatherElements<axis=1>(a, k)", "float"),
    "the largest": ("float[6]", "float[2]", K(2) + "c, places = TopK(a, k)", "float"),
    "one of three": ("int64[2]", "float[2, 3]", "k = Constant<value=int64 {3}>()\n"
                     "v = Constant<value=float[2] {0, 1}>()\n c = OneHot(a, k, v)", "float"),
    "a convolution": ("float[2, 3, 8]", "float[2, 4, 6]", "c = Conv(a, h)", "float[4, 3, 3]"),
    "the largest of windows": ("float[2, 3, 8]", "float[2, 3, 4]",
                               "c = MaxPool<kernel_shape=[2], strides=[2]>(a)", "float"),
    "a numbered step": ("float[4]", "float[4]", "number = CastLike(i, a)\n c = Mul(a, number)", "float"),
}

REFUSE_NO_STEPS = ("a convolution", "the largest of windows")
"""Bodies that could fail where there is no step, as far as the passes know."""


def loop(read: str, made: str, body: str, captured: str, length: str) -> onnx.ModelProto:
    """A Loop over the rows of x."""
    return parsed(f"""main ({_stacked(read, length)} x, {captured} h) => ({_stacked(made, length)} y) {{
          sizes = Shape (x)  zero = Constant<value=int64 {{0}}>()  n = Gather<axis=0> (sizes, zero)
          y = Loop (n, "") <body = step (int64 i, bool go) => (bool goes, {made} c) {{
            goes = Identity (go)  a = Gather<axis=0> (x, i)
            {body}
          }}>
        }}""")


def scan(read: str, made: str, body: str, captured: str, length: str, reads: int, writes: int) -> onnx.ModelProto:
    """A Scan over the rows of x, from the first or the last one."""
    return parsed(f"""main ({_stacked(read, length)} x, {captured} h) => ({_stacked(made, length)} y) {{
          y = Scan<num_scan_inputs=1, scan_input_directions=[{reads}], scan_output_directions=[{writes}],
            body = step ({read} a) => ({made} c) {{ {body} }}>(x)
        }}""")


def indices(numbers: Array) -> Array:
    """0, 1 or 2"""
    return np.clip(1 + numbers, 0, 2)


def _stacked(type_: str, length: str) -> str:
    return type_.replace("[", f"[{length}, ") if "[" in type_ else f"{type_}[{length}]"


BRANCHES = {
    "captured": ("flag", 'b = If (flag) <then_branch = yes () => (float[3] e) { e = Exp (a) },\n'
                         'else_branch = no () => (float[3] f) { f = Softmax<axis=-1> (a) }>', "5"),
    "of the step": ("h", "top = ReduceMax<keepdims=0> (a)\n c = Greater (top, h)\n"
                         "b = If (c) <then_branch = yes () => (float[3] e) { e = Exp (a) },\n"
                         "else_branch = no () => (float[3] f) { f = Sub (a, top) }>", "T"),
}


ROW, SIZE = "r = Unsqueeze(e, zero)", "w = Concat<axis=0>(k, three)"
REPEATED = {
    # how a step makes what it appends, of e [3], the state u [3] and the number k [1]; along which axis
    "rows": (f"{ROW}\n {SIZE}\n p = Expand(r, w)", 0),
    "rows of matrices": ("r = Reshape(e, [1, 1, 3])\n w = Concat<axis=0>(one, k, three)\n q = Expand(r, w)\n"
                         "p = Reshape(q, [-1, 3])", 0),
    "columns": ("r = Reshape(e, [3, 1])\n w = Concat<axis=0>(three, k)\n p = Expand(r, w)", 1),
    "states": (f"r = Unsqueeze(u, zero)\n {SIZE}\n p = Expand(r, w)", 0),
    "twice": (f"{ROW}\n {SIZE}\n q = Expand(r, w)\n p = Concat<axis=0>(q, q)", 0),
}


@pytest.mark.parametrize("name", REPEATED)
def test_repeated_pieces(name: str) -> None:
    """A piece that is repeated is a row and a number: all rows are gathered at once."""
    how, axis = REPEATED[name]
    for number, shape in enumerate(("[1, 1, 3]", "[-1, 3]", "[3, 1]")):
        how = how.replace(shape, f"shape{number}")
    state = "float[3, A]" if axis else "float[A, 3]"
    model = parsed(f"""
        main (float[T, 3] x, int64[T] d, {state.replace("A", "K")} h, float[3] z)
            => ({state.replace("A", "M")} y, float[3] last)
          <int64[1] zero = {{0}}, int64[1] one = {{1}}, int64[1] three = {{3}}, int64[3] shape0 = {{1, 1, 3}},
           int64[2] shape1 = {{-1, 3}}, int64[2] shape2 = {{3, 1}}> {{
          sizes = Shape (x)  n = Gather<axis=0> (sizes, zero)  m = Squeeze (n)
          y, last = Loop (m, "", h, z) <body = step (int64 i, bool go, {state} s, float[3] v)
            => (bool goes, {state.replace("A", "B")} t, float[3] u) {{
            goes = Identity (go)  a = Gather<axis=0> (x, i)  e = Exp (a)
            f = Mul (v, e)  u = Tanh (f)  c = Gather<axis=0> (d, i)  k = Unsqueeze (c, zero)
            {how}
            t = Concat<axis={axis}> (s, p) }}> }}""")
    assert bool(convert_model(model, **folded()).graph.of(ops.ScatterElementsUpdate12)) == (name != "twice")
    runs = [([2, 0, 3, 1], 2), ([0, 0], 0), ([4], 1), ([], 2), ([1, 0, 0, 5, 2, 0], 3)]
    check(model, *(
        {"x": floats(len(d), 3), "d": np.array(d, np.int64), "h": floats(*((3, k) if axis else (k, 3)), seed=1),
         "z": floats(3, seed=2)} for d, k in runs
    ))


read_cases(globals())
