"""Loops whose iterations do not depend on each other: the numbers, for each rule, and that no loop is left."""

import numpy as np
import onnx
import pytest

from mo_loop import convert_model, ops
from mo_loop.transforms.loops.steps_per_iteration import StepsPerIteration
from tests.harness import Array, check, floats, folded, parsed
from tests.runtime.passes.sequences import feeds, loops


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


@pytest.mark.parametrize("name", BODIES)
def test_a_loop_of_known_length(name: str) -> None:
    model = loop(*BODIES[name], "5")
    assert len(loops(model)) == 0
    check(model, *feeds(model, 5, integers=indices))


@pytest.mark.parametrize("name", BODIES)
def test_a_loop_of_any_length(name: str) -> None:
    model = loop(*BODIES[name], "T")
    assert len(loops(model)) == (name in REFUSE_NO_STEPS)
    check(model, *feeds(model, 5, 0, 1, 3, integers=indices))


@pytest.mark.parametrize("name", [each for each in BODIES if each != "a numbered step"])
@pytest.mark.parametrize(("reads", "writes"), [(0, 0), (1, 0), (1, 1), (0, 1)])
def test_a_scan(name: str, reads: int, writes: int) -> None:
    model = scan(*BODIES[name], "5", reads, writes)
    assert len(loops(model)) == 0
    check(model, *feeds(model, 5, integers=indices))


def test_other_axes() -> None:
    model = parsed("""main (float[2, 5, 3] x, float[4, 2, 5] w, float[3, 4] h) => (float[2, 4, 5] y) {
          y = Scan<num_scan_inputs=2, scan_input_axes=[1, 2], scan_input_directions=[1, 0], scan_output_axes=[-1],
            body = step (float[2, 3] a, float[4, 2] b) => (float[2, 4] c) {
              p = MatMul (a, h)  q = Transpose<perm=[1, 0]> (b)  c = Sub (p, q) }>(x, w)
        }""")
    assert len(loops(model)) == 0
    check(model, {"x": floats(2, 5, 3), "w": floats(4, 2, 5, seed=1), "h": floats(3, 4, seed=2)})


@pytest.mark.parametrize("length", ["5", "T"])
def test_a_loop_in_a_loop(length: str) -> None:
    """All pairs of rows; the inner loop reads the slice of the outer one."""
    model = parsed(f"""main (float[{length}, 3] x) => (float[{length}, {length}, 3] y) {{
          sizes = Shape (x)  zero = Constant<value=int64 {{0}}>()  n = Gather<axis=0> (sizes, zero)
          y = Loop (n, "") <body = outer (int64 i, bool go) => (bool goes, float[{length}, 3] c) {{
            goes = Identity (go)  a = Gather<axis=0> (x, i)
            c = Loop (n, "") <body = inner (int64 j, bool go2) => (bool goes2, float[3] e) {{
              goes2 = Identity (go2)  b = Gather<axis=0> (x, j)  d = Sub (a, b)  e = Abs (d) }}> }}> }}""")
    assert len(loops(model)) == 0
    check(model, *feeds(model, *((5,) if length == "5" else (4, 0, 1)), integers=indices))


BRANCHES = {
    "captured": ("flag", 'b = If (flag) <then_branch = yes () => (float[3] e) { e = Exp (a) },\n'
                         'else_branch = no () => (float[3] f) { f = Softmax<axis=-1> (a) }>', "5"),
    "of the step": ("h", "top = ReduceMax<keepdims=0> (a)\n c = Greater (top, h)\n"
                         "b = If (c) <then_branch = yes () => (float[3] e) { e = Exp (a) },\n"
                         "else_branch = no () => (float[3] f) { f = Sub (a, top) }>", "T"),
}


@pytest.mark.parametrize("name", BRANCHES)
def test_branches(name: str) -> None:
    """A captured condition chooses for all steps; for another one both branches are computed, which cannot fail."""
    _, body, length = BRANCHES[name]
    model = parsed(f"""main (float[{length}, 3] x, bool flag, float h) => (float[{length}, 3] y) {{
          sizes = Shape (x)  zero = Constant<value=int64 {{0}}>()  n = Gather<axis=0> (sizes, zero)
          y = Loop (n, "") <body = step (int64 i, bool go) => (bool goes, float[3] b) {{
            goes = Identity (go)  a = Gather<axis=0> (x, i)
            {body}
          }}>
        }}""")
    assert len(loops(model)) == 0
    lengths = (5, 5) if length == "5" else (5, 0, 1, 7)
    given = {"h": np.float32(0.3)}
    check(model, *({"x": floats(n, 3, seed=k), "flag": bool(k % 2), **given} for k, n in enumerate(lengths)))


def test_a_dear_branch_stays() -> None:
    """A product is not computed for steps that do not need it."""
    model = parsed("""main (float[5, 3] x, float[3, 3] w) => (float[5, 3] y) {
          n = Constant<value=int64 {5}>()  zero = Constant<value=float {0}>()
          y = Loop (n, "") <body = step (int64 i, bool go) => (bool goes, float[3] b) {
            goes = Identity (go)  a = Gather<axis=0> (x, i)  top = ReduceMax<keepdims=0> (a)
            c = Greater (top, zero)
            b = If (c) <then_branch = yes () => (float[3] e) { e = MatMul (a, w) },
                        else_branch = no () => (float[3] f) { f = Neg (a) }>
          }>
        }""")
    assert len(loops(model)) == 1
    check(model, {"x": floats(5, 3), "w": floats(3, 3, seed=1)})


@pytest.mark.parametrize("dims", ["2", "N"])
@pytest.mark.parametrize("pair", ["s, r", "r, s"])
def test_a_growing_state(dims: str, pair: str) -> None:
    """Rows appended to a state, or put before it, are the rows of one output."""
    model = parsed(f"""main (float[T, {dims}] x, float[K, {dims}] h) => (float[M, {dims}] y) {{
          sizes = Shape (x)  zero = Constant<value=int64 {{0}}>()  n = Gather<axis=0> (sizes, zero)
          y = Loop (n, "", h) <body = step (int64 i, bool go, float[A, {dims}] s) => (bool goes, float[B, {dims}] t) {{
            goes = Identity (go)  a = Gather<axis=0> (x, i)  e = Exp (a)
            axis = Constant<value=int64[1] {{0}}>()  r = Unsqueeze (e, axis)  t = Concat<axis=0> ({pair}) }}> }}""")
    assert len(loops(model)) == 0
    check(model, *({"x": floats(t, 2), "h": floats(k, 2, seed=1)} for t, k in ((3, 2), (0, 2), (4, 0), (1, 1), (0, 0))))


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


def test_a_condition_before_the_first_step() -> None:
    model = parsed("""main (float[5, 3] x, int64 n, bool go) => (float[T, 3] y) {
          y = Loop (n, go) <body = step (int64 i, bool g) => (bool d, float[3] c) {
            d = Identity (g)  a = Gather<axis=0> (x, i)  c = Exp (a) }> }""")
    runs = [(5, True), (5, False), (2, True), (0, True), (-1, True), (3, True), (3, False)]
    check(model, *({"x": floats(5, 3), "n": n, "go": go} for n, go in runs))


@pytest.mark.parametrize(("kind", "length"), [("scan", "6"), ("loop", "6"), ("loop", "M")])
def test_an_inner_loop_with_a_state(kind: str, length: str) -> None:
    """One inner loop for all steps: its state has a row for each of them."""
    inner = {
        "scan": """last, all = Scan <num_scan_inputs=1, scan_input_directions=[1], scan_output_axes=[1],
            body = cell (float[3] s, float[4] r) => (float[3] t, float[3] u) {
              p = MatMul (r, w) q = Mul (s, p) t = Tanh (q) u = Add (t, p) }> (z, a)""",
        "loop": """m = Constant<value=int64 {6}>() sizes = Shape (a) first = Gather<axis=0> (sizes, zero)
            last, rows = Loop (first, "", z) <body = cell (int64 j, bool g, float[3] s)
              => (bool gg, float[3] t, float[3] u) {
              gg = Identity (g) r = Gather<axis=0> (a, j)
              p = MatMul (r, w) q = Mul (s, p) t = Tanh (q) u = Add (t, p) }>
            all = Transpose<perm=[1, 0]> (rows)""",
    }
    model = parsed(f"""
        main (float[5, {length}, 4] x, float[5, 3] h, float[4, 3] w) => (float[5, 3] y, float[5, 3, {length}] v) {{
          zero = Constant<value=int64 {{0}}>()
          y, v = Scan <num_scan_inputs=2, body = outer (float[{length}, 4] a, float[3] z)
            => (float[3] last, float[3, {length}] all) {{ {inner[kind]} }}> (x, h)
        }}""")
    graph = convert_model(model, **folded()).graph
    assert sum(len(scope.of(ops.Iteration)) for scope in graph.scopes()) == 1
    lengths = (6,) if length == "6" else (6, 1, 0, 3)
    check(model, *({"x": floats(5, n, 4), "h": floats(5, 3, seed=1), "w": floats(4, 3, seed=2)} for n in lengths))


@pytest.mark.parametrize("layer", ["LSTM", "GRU", "RNN"])
def test_a_recurrent_layer_in_a_loop(layer: str) -> None:
    """The steps are part of its batch."""
    rows = {"LSTM": 12, "GRU": 9, "RNN": 3}[layer]
    model = parsed(f"""
        main (float[5, 4, 2, 6] x, float[1, {rows}, 6] w, float[1, {rows}, 3] r)
          => (float[5, 4, 1, 2, 3] y, float[5, 1, 2, 3] z) {{
          y, z = Scan <num_scan_inputs=1, body = step (float[4, 2, 6] a) => (float[4, 1, 2, 3] b, float[1, 2, 3] c) {{
            b, c = {layer}<hidden_size=3> (a, w, r) }}> (x)
        }}""")
    assert len(loops(model)) == 0
    given = {"x": floats(5, 4, 2, 6), "w": floats(1, rows, 6, seed=1) / 3, "r": floats(1, rows, 3, seed=2) / 3}
    check(model, given, rtol=1e-4, atol=1e-5)
