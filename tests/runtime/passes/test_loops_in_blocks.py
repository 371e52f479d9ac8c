"""Loops whose tensors of all steps would take too much memory: blocks of steps, with a last one of those left."""

import onnx
import pytest

from mo_loop import convert_model, ops
from mo_loop.ops.port_map import Concatenated
from mo_loop.transforms.loops import loop_pass, worth
from mo_loop.transforms.loops.steps_per_iteration import StepsPerIteration
from tests.harness import check, floats, folded, parsed

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


@pytest.mark.parametrize(("length", "sizes"), [(24, [8]), (21, [7]), (19, [8]), (8, []), (3, [])])
@pytest.mark.parametrize("attributes", ["", ", scan_input_directions = [1]", ", scan_output_directions = [1]"])
def test_known_lengths(length: int, sizes: list[int], attributes: str) -> None:
    model = scan(str(length), attributes)
    assert blocks_of(model) == sizes
    check(model, {"x": floats(length, 40), "h": floats(40)})


@pytest.mark.parametrize("attributes", ["", ", scan_input_directions = [1], scan_output_directions = [1]",
                                        ", scan_input_directions = [1]"])
def test_any_length(attributes: str) -> None:
    model = scan("N", attributes)
    assert blocks_of(model) == [16]
    check(model, *({"x": floats(length, 40), "h": floats(40)} for length in (35, 1, 32, 16, 64, 7)))


def test_the_second_axis() -> None:
    model = scan("19", ", scan_input_axes = [1], scan_output_axes = [1]", axis=1)
    assert blocks_of(model) == [8]
    check(model, {"x": floats(40, 19), "h": floats(40)})


@pytest.mark.parametrize(("length", "state"), [("19", "Add(s, r)"), ("19", "Max(s, r)"), ("19", "Identity(r)"),
                                               ("N", "Add(s, r)"), ("N", "Identity(r)")])
def test_states_of_one_block_are_those_of_the_next_one(length: str, state: str) -> None:
    model = scan(length, state=state)
    assert blocks_of(model) == [16 if length == "N" else 8]
    lengths = (35, 1, 32, 16) if length == "N" else (19,)
    check(model, *({"x": floats(n, 40), "h": floats(40, seed=1)} for n in lengths), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("length", ["20", "N"])
def test_numbers_of_steps(length: str) -> None:
    model = loop(length)
    assert blocks_of(model) == [5 if length == "20" else 16]
    lengths = (20, 0, 3, 16, 33) if length == "N" else (20,)
    check(model, *({"x": floats(n, 40)} for n in lengths))


@pytest.mark.parametrize("length", ["37", "N"])
def test_inputs_in_both_directions(length: str) -> None:
    model = parsed(f"""main (float[{length}, 40] x, float[{length}, 40] z) => (float[{length}, 40] y) {{
      column = Constant<value = int64[1] {{1}}>() row = Constant<value = int64[1] {{0}}>()
      last = Constant<value = int64[1] {{1}}>()
      y = Scan<num_scan_inputs = 2, scan_input_directions = [0, 1], body = step (float[40] a, float[40] b)
        => (float[40] o) {{ {BODY} o = Sub(r, b) }}>(x, z) }}""")
    assert blocks_of(model) == [32 if length == "N" else 11]
    lengths = (70, 3, 64) if length == "N" else (37,)
    check(model, *({"x": floats(n, 40), "z": floats(n, 40, seed=n)} for n in lengths))


@pytest.mark.parametrize("length", ["100", "N"])
def test_work_before_and_behind_a_recurrence(length: str) -> None:
    """Each block computes what its steps need before them and what they give after them; a loop of its steps stays."""
    outer = "p = Unsqueeze(t, column) q = Unsqueeze(t, row) k = Mul(p, q) l = Exp(k)"
    model = parsed(f"""main (float[{length}, 40] x, float[40] h) => (float[40] final, float[{length}, 40] y) {{
      column = Constant<value = int64[1] {{1}}>() row = Constant<value = int64[1] {{0}}>()
      last = Constant<value = int64[1] {{1}}>()
      final, y = Scan<num_scan_inputs = 1, body = step (float[40] s, float[40] a) => (float[40] t, float[40] o) {{
          {BODY} g = Sigmoid(r) w = Mul(s, g) t = Tanh(w) {outer} o = ReduceMax<keepdims = 0>(l, last)
        }}>(h, x) }}""", opset=18)
    graph = convert_model(model, **folded()).graph
    inner = [node for scope in graph.scopes() if scope.owner is not None for node in scope.of(ops.Iteration)]
    assert (20 if length == "100" else 16) in {node.count for node in inner}
    assert not any(node.body.of(kind) for node in inner for kind in (ops.Exp, ops.ReduceMax, ops.ReduceSum))
    lengths = (100, 33, 1, 16, 5) if length == "N" else (100,)
    check(model, *({"x": floats(n, 40), "h": floats(40, seed=1)} for n in lengths), rtol=1e-4, atol=1e-5)


def test_sizes_that_no_block_tells() -> None:
    """Where there is no whole block, its output would have other sizes than that of the steps left."""
    model = parsed("""main (float[N, M] x) => (float[N, M] y) {
      column = Constant<value = int64[1] {1}>() row = Constant<value = int64[1] {0}>()
      last = Constant<value = int64[1] {1}>()
      y = Scan<num_scan_inputs = 1, body = step (float[M] a) => (float[M] r) {
      """ + BODY.replace("r =", "r2 =") + "r = Identity(r2) }>(x) }")
    check(model, *({"x": floats(*shape)} for shape in ((35, 40), (3, 5), (1, 40), (40, 1))))
