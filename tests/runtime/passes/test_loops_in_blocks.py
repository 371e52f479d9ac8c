"""Loops whose tensors of all steps would take too much memory: blocks of steps, with a last one of those left."""

import onnx
import pytest

from mo_loop import convert_model, ops
from mo_loop.ops.port_map import Concatenated
from mo_loop.transforms.loops import loop_pass, worth
from mo_loop.transforms.loops.steps_per_iteration import StepsPerIteration
from tests.cases import read_cases
from tests.harness import folded, parsed

BLOCK = 8
"""Steps of 40 x 40 numbers that fit into the bound of these tests."""


@pytest.fixture(autouse=True)
def small_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(worth, "ALWAYS", BLOCK * 40 * 40 * 4)
    monkeypatch.setattr(loop_pass, "LEAST", 2)
    monkeypatch.setattr(StepsPerIteration, "enabled_by_default", False)


BODY = """u = Unsqueeze(a, column) v = Unsqueeze(a, row) m = Mul(u, v) e = Tanh(m)
          r = ReduceSum<keepdims = 0>(e, last)"""


def scan(length: str, attributes: str = "", *, axis: int = 0, state: str = "") -> onnx.ModelProto:
    """Each step sums the rows of a matrix that it makes of a vector."""
    dims = f"{length}, 40" if axis == 0 else f"40, {length}"
    carried = ("float[40] s", "float[40] t", "h", f"t = {state}", "float[40] last, ", "last, ") if state else [""] * 6
    return parsed(f"""main (float[{dims}] x, float[40] h) => ({carried[4]}float[{dims}] y) {{
      column = Constant<value = int64[1] {{1}}>() row = Constant<value = int64[1] {{0}}>()
      last = Constant<value = int64[1] {{1}}>()
      {carried[5].replace("last", "final")}y = Scan<num_scan_inputs = 1 {attributes}, body = step
        ({carried[0]}{", " if state else ""}float[40] a) => ({carried[1]}{", " if state else ""}float[40] r) {{
          {BODY} {carried[3]} }}>({carried[2]}{", " if state else ""}x) }}""".replace("last, float", "final, float")
          .replace("float[40] last, ", "float[40] final, "))


def loop(length: str) -> onnx.ModelProto:
    """The same with the number of the step."""
    return parsed(f"""main (float[{length}, 40] x) => (float[{length}, 40] y) {{
      column = Constant<value = int64[1] {{1}}>() row = Constant<value = int64[1] {{0}}>()
      last = Constant<value = int64[1] {{1}}>() zero = Constant<value = int64 {{0}}>()  sizes = Shape(x)
      n = Gather<axis = 0>(sizes, zero)
      y = Loop(n, "") <body = step (int64 i, bool c) => (bool c2, float[40] o) {{
          c2 = Identity(c) a = Gather<axis = 0>(x, i) f = Cast<to = 1>(i) {BODY} o = Sub(r, f) }}> }}""")


def blocks_of(model: onnx.ModelProto) -> list[int]:
    """The sizes of the blocks of the loops that are left, each of which is one piece of an output: the Loop of the GPU
    plugin concatenates no other pieces."""
    graph = convert_model(model, **folded()).graph
    loops = [node for scope in graph.scopes() for node in scope.of(ops.Iteration)]
    assert not any(scope.of(ops.Tanh) for node in loops for scope in node.body.scopes() if scope.of(ops.Iteration))
    pieces = [entry for node in loops for entry in node.output_map if isinstance(entry, Concatenated)]
    assert all(entry.part_size == 1 for entry in pieces)
    return [entry.result.value.type.dims[entry.axis + 1] for entry in pieces]


read_cases(globals())
