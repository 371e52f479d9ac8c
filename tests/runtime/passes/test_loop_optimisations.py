"""Loops that slice, compute invariants, or are unrolled: the numbers, and the remaining loops."""

from pathlib import Path
from typing import Any

import onnx
import pytest
from click.testing import CliRunner

from mo_loop import convert_model, ops
from mo_loop.cli import main
from mo_loop.errors import UsageError
from mo_loop.graph import Node
from tests.harness import check, floats, folded, parsed
from tests.runtime.passes.recurrent_models import feeds, loop, lstm_split, rnn, scan

pytestmark = pytest.mark.keeps_loops

STEP = """
      c = Constant<value=bool {{1}}>()
      y, ys = Loop (n, c, h) <body = step (int64 i, bool g, float[3] s) => (bool d, float[3] t, float[a, b] u) {{
        d = Identity (g)
        {body}
      }}>
"""


def counted(body: str, x: str = "4,3", n: str = "n = Constant<value=int64 {4}>()", more: str = "") -> Any:
    """A loop over 4 iterations whose body reads x."""
    return parsed(f"main (float[{x}] x, float[3] h{more}) => (float[3] y, float[d, e, f] ys) {{\n{n}\n"
                  f"{STEP.format(body=body)} }}")


def kinds(model: Any, kind: type[Node], **arguments: Any) -> int:
    """The number of nodes of a class in the converted model, in all scopes."""
    graph = convert_model(model, **folded(**arguments)).graph
    return sum(len(scope.of(kind)) for scope in graph.scopes())


ONE = (
    "one = Constant<value=int64 {1}>()\n last = Sub(n, one)\n k = Sub(last, i)\n zero = Constant<value=int64[1] {0}>()"
)
READS = {
    "backwards": f"{ONE}\n a = Gather<axis=0>(x, k)\n t = Add(s, a)\n u = Unsqueeze(t, zero)",
    "both directions": f"{ONE}\n a = Gather<axis=0>(x, i)\n b = Gather<axis=0>(x, k)\n ab = Sub(a, b)\n"
    "t = Add(s, ab)\n u = Unsqueeze(t, zero)",
    "slices": f"{ONE}\n j = Add(i, one)\n from = Unsqueeze(i, zero)\n to = Unsqueeze(j, zero)\n"
    "a = Slice(x, from, to, zero)\n r = Squeeze(a, zero)\n t = Add(s, r)\n u = Concat<axis=1>(a, a)",
    "slices backwards": f"{ONE}\n j = Add(k, one)\n from = Unsqueeze(k, zero)\n to = Unsqueeze(j, zero)\n"
    "a = Slice(x, from, to, zero)\n r = Squeeze(a, zero)\n t = Add(s, r)\n u = Concat<axis=1>(a, a)",
    "whole as well": f"{ONE}\n a = Gather<axis=0>(x, i)\n z = ReduceMax<keepdims=0>(x, zero)\n w = Mul(a, z)\n"
    "ws = Mul(w, s)\n v = MatMul(x, ws)\n p = ReduceSum<keepdims=0>(v)\n t = Add(s, p)\n u = Unsqueeze(t, zero)",
    "of a transposed": f"{ONE}\n xt = Transpose<perm=[1, 0]>(x)\n a = Gather<axis=1>(xt, i)\n t = Add(s, a)\n"
    "u = Unsqueeze(t, zero)",
}


@pytest.mark.parametrize("name", READS)
def test_reads_become_slices(name: str) -> None:
    model = counted(READS[name])
    assert kinds(model, ops.TensorIterator) == 1
    check(model, {"x": floats(4, 3), "h": floats(3, seed=1)}, {"x": floats(4, 3, seed=2), "h": floats(3, seed=3)})


def test_several_axes_and_tensors() -> None:
    text = (
        f"{ONE}\n a = Gather<axis=0>(x, i)\n b = Gather<axis=1>(w, i)\n c2 = Gather<axis=0>(w, k)\n bc = Add(b, c2)\n"
    )
    text += "abc = Mul(a, bc)\n m = ReduceSum<keepdims=0>(abc, zero)\n t = Add(s, m)\n u = Unsqueeze(t, zero)"
    model = counted(text, more=", float[4, 4, 3] w")
    assert kinds(model, ops.TensorIterator) == 1
    check(model, {"x": floats(4, 3), "h": floats(3, seed=1), "w": floats(4, 4, 3, seed=2)})


def test_invariants_are_computed_once() -> None:
    model = counted(f"{ONE}\n xx = MatMul(x, m)\n e = Exp(xx)\n a = Gather<axis=0>(e, i)\n f = Softmax<axis=-1>(h)\n"
                    "fa = Mul(a, f)\n t = Add(s, fa)\n u = Unsqueeze(t, zero)", more=", float[3, 3] m")
    graph = convert_model(model, **folded()).graph
    assert len(graph.of(ops.MatMul)) == len(graph.of(ops.Exp)) == len(graph.of(ops.Softmax)) == 1
    check(model, {"x": floats(4, 3), "h": floats(3, seed=1), "m": floats(3, 3, seed=2)})


def test_a_loop_without_iterations_does_not_divide_by_zero() -> None:
    """The quotient of captured integers stays inside the body: outside, it would divide by 0."""
    model = parsed("""main (float[3] h, int64 n, int64[3] k) => (float[3] y) {
          c = Constant<value=bool {1}>()
          y = Loop (n, c, h) <body = step (int64 i, bool g, float[3] s) => (bool d, float[3] t) {
            d = Identity (g)  hundred = Constant<value=int64[1] {100}>()  q = Div(hundred, k)
            f = Cast<to=1>(q)  e = Exp(f)  t = Add(s, f) }> }""")
    check(model, *[{"h": floats(3), "n": 2, "k": [1, 2, 3]}, {"h": floats(3), "n": 0, "k": [0, 0, 0]}])


@pytest.mark.parametrize("reverse", [False, True])
def test_an_unrolled_loop(reverse: bool) -> None:
    cell = rnn("Tanh")
    model = loop(cell, reverse=reverse)
    assert kinds(model, ops.Iteration, unroll=5) == kinds(model, ops.RNNSequence, unroll=5) == 0
    check(model, *feeds(cell), unroll=5)
    with pytest.raises(UsageError, match="--unroll 4 has no effect"):
        convert_model(model, unroll=4)


@pytest.mark.parametrize("batch_first", [False, True])
def test_an_unrolled_scan(batch_first: bool) -> None:
    cell = lstm_split("ifgo")
    model = scan(cell, batch_first=batch_first, reverse=True, output_reverse=True)
    assert kinds(model, ops.Iteration, unroll=5) == kinds(model, ops.LSTMSequence, unroll=5) == 0
    check(model, *feeds(cell, batch_first=batch_first), unroll=5)


@pytest.mark.parametrize(("start", "cast"), [(0, False), (0, True), (2, False)])
def test_a_while_loop_over_rows_counts(start: int, cast: bool) -> None:
    """As TensorFlow writes it, with a comparison of floats; with fewer rows than the first index nothing changes."""
    to_float = "Cast<to=1>" if cast else "Identity"
    model = parsed(f"""main (float[N, 3] x, float[3] h) => (float[3] y, float[M, 3] ys) {{
          dims = Shape (x)  zero = Constant<value=int64 {{0}}>()  j0 = Constant<value=int64 {{{start}}}>()
          n = Gather<axis=0> (dims, zero)
          fn = {to_float} (n)
          f0 = {to_float} (j0)
          go = Less (f0, fn)
          unused, y, ys = Loop ("", go, j0, h) <body = step (int64 i, bool g, int64 j, float[3] s)
            => (bool more, int64 k, float[3] t, float[3] u) {{
            one = Constant<value=int64 {{1}}>()  k = Add (j, one)
            fk = {to_float} (k)
            more = Less (fk, fn)  a = Gather<axis=0> (x, j)  t = Add (s, a)  u = Neg (t) }}> }}""")
    (found,) = convert_model(model, **folded()).graph.of(ops.Loop)
    assert found.continues_always
    check(model, *({"x": floats(rows, 3, seed=rows), "h": floats(3)} for rows in (5, 1, 0, 2, 3)))


def test_the_command_unrolls(tmp_path: Path) -> None:
    source, target = tmp_path / "model.onnx", tmp_path / "model.xml"
    onnx.save(loop(rnn("Tanh")), source)
    result = CliRunner().invoke(main, ["convert", str(source), "-o", str(target), "--unroll", "5"])
    assert result.exit_code == 0, result.output
    assert "RNNSequence" not in target.read_text("utf-8")
    target.unlink()
    result = CliRunner().invoke(main, ["convert", str(source), "-o", str(target), "--unroll", "4"])
    assert result.exit_code == 2 and "--unroll 4 has no effect" in result.output and not target.exists()
