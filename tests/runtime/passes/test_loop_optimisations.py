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
from tests.cases import read_cases
from tests.harness import check, folded, parsed, raised
from tests.runtime.passes.recurrent_models import feeds, loop, rnn
from tests.runtime.passes.recurrent_models import lstm_split as lstm_split
from tests.runtime.passes.recurrent_models import scan as scan

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


@pytest.mark.parametrize("reverse", [False, True])
def test_an_unrolled_loop(reverse: bool) -> None:
    cell = rnn("Tanh")
    model = loop(cell, reverse=reverse)
    assert kinds(model, ops.Iteration, unroll=5) == kinds(model, ops.RNNSequence, unroll=5) == 0
    check(model, *feeds(cell), unroll=5)
    raised(UsageError, convert_model, model, unroll=4, match="--unroll 4 has no effect")


def test_the_command_unrolls(tmp_path: Path) -> None:
    source, target = tmp_path / "model.onnx", tmp_path / "model.xml"
    onnx.save(loop(rnn("Tanh")), source)
    result = CliRunner().invoke(main, ["convert", str(source), "-o", str(target), "--unroll", "5"])
    assert result.exit_code == 0, result.output
    assert "RNNSequence" not in target.read_text("utf-8")
    target.unlink()
    result = CliRunner().invoke(main, ["convert", str(source), "-o", str(target), "--unroll", "4"])
    assert result.exit_code == 2 and "--unroll 4 has no effect" in result.output and not target.exists()


read_cases(globals())
