"""Sequences and optionals: their lowered forms on the runtime, and refusals."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

import mo_loop
from mo_loop import ops as ops
from mo_loop.api import convert_model
from mo_loop.errors import UsageError
from mo_loop.ops.control import Iteration as Iteration
from mo_loop.ops.control import Loop
from mo_loop.ops.port_map import Concatenated as Concatenated
from mo_loop.ops.port_map import Merged as Merged
from mo_loop.ops.sequences import OnSequences as OnSequences
from tests.cases import read_cases
from tests.harness import check, floats, oracle, parsed, raised, refusal


def loops(model: Any) -> list[Any]:
    graph = convert_model(model).graph
    return [node for scope in graph.scopes() for node in scope.of(Loop)]


# -- lists that a loop appends to, or reads


ASSIGNMENTS = {
    # where an element is erased, where the new one is inserted, and whether that replaces it for sure
    "remainder": ("p = Mod (i, three)", "p", "p", True),
    "iteration number": ("z = Identity (i)", "i", "i", True),
    "number": ("z = Identity (i)", "one", "one", False),  # the elements are states of their own
    "other place": ("p = Mod (i, three)", "p", "one", False),
    "from the end": ("p = Mod (i, two)\n m = Sub (p, two)", "m", "m", False),
    "of the run": ("z = Identity (i)", "k", "k", False),
}


@pytest.mark.parametrize("split", ["", "chunk", "sizes"])
def test_a_tensor_in_pieces_read_in_a_loop(split: str) -> None:
    model = parsed(f"""main (float[R,2] x, int64 chunk, int64[K] sizes) => (float[2] y, int64 n) {{
          s = SplitToSequence <axis=0> (x{f", {split}" if split else ""})  n = SequenceLength (s)
          zero = Constant <value = float[2] {{0, 0}}> ()  axes = Constant <value_ints=[0]> ()
          y = Loop (n, "", zero) <body = step (int64 i, bool c, float[2] a) => (bool d, float[2] r) {{
            d = Identity (c)  e = SequenceAt (s, i)  f = ReduceSum <keepdims=0> (e, axes)
            two = Constant <value = float {{2}}> ()  h = Mul (a, two)  r = Add (h, f) }}>
          chunk2 = Identity (chunk) }}""")
    del model.graph.node[-1]
    sizes = [np.array(each, np.int64) for each in ([2, 3, 1], [6], [0, 4, 1, 1])]
    feeds = [{"x": floats(6, 2), "chunk": np.int64(k), "sizes": s} for k, s in zip((2, 4, 7), sizes, strict=True)]
    check(model, *feeds)


ONES = {
    "constant of shape": "sizes = ConstantOfShape <value = int64[1] {1}> (count)",
    "int32": "sizes = ConstantOfShape <value = int32[1] {1}> (count)",
    "expand": "sizes = Expand (one, count)",
    "tile": "sizes = Tile (one, count)",
    "sum": "zeros = ConstantOfShape <value = int64[1] {0}> (count)  sizes = Add (zeros, one)",
    "cast": "zeros = ConstantOfShape (count)  f = Exp (zeros)  sizes = Cast <to = 7> (f)",
    "scalar": "sizes = Constant <value_int = 1> ()",
}


def test_a_split_without_keepdims_by_a_size_of_the_run_is_refusal() -> None:
    model = parsed("""main (float[3,4] x, int64 k) => (float[?,4] y) {
          s = SplitToSequence <axis=0, keepdims=0> (x, k)  y = ConcatFromSequence <axis=0> (s) }""")
    assert "known only at run time, without keepdims" in refusal(model).message


# -- the general case


@pytest.mark.parametrize("made", ["SequenceConstruct (x, x2)", "SplitToSequence <axis=0> (x, two)"])
def test_a_map_whose_body_reads_outer_values_and_declares_no_types(made: str) -> None:
    """As PyTorch exports hstack: the body declares no output types and captures a constant."""
    model = parsed(f"""main (float[4,3] x, float k) => (float[2,3] y, int64[2] z) {{
          two = Constant <value_int=2> ()  x2 = Neg (x)
          s = {made}
          shift = Add (k, k)
          t, u = SequenceMap (s, k) <body = each (float[?,?] e, float f) => (float[?,?] r, int64[2] n) {{
            m = Mul (e, f)  r0 = Add (m, shift)  zero = Constant <value_ints=[0]> ()
            ends = Constant <value_ints=[2]> ()  r = Slice (r0, zero, ends, zero)  n = Shape (e) }}>
          one = Constant <value_int=1> ()  y = SequenceAt (t, one)  z = SequenceAt (u, one) }}""")
    sets = [{"x": floats(4, 3, seed=n), "k": np.float32(k)} for n, k in ((0, 2), (1, -1))]
    expected = oracle(model, sets).values
    body = next(node for node in model.graph.node if node.op_type == "SequenceMap").attribute[0].g
    for port in (*body.input, *body.output):
        port.ClearField("type")
    check(model, *sets, expected=expected)


def test_a_refused_map_is_reported_with_its_path() -> None:
    for made in ("SequenceConstruct (x, x)", "SplitToSequence <axis=0> (x)"):
        error = refusal(parsed(f"""main (string[N,3] w, float[N,3] x, int64 p) => (float[?,3] y) {{
              s = {made}
              t = SequenceMap (s) <body = each (float[?,?] e) => (float[?,?] r) {{
                h = RegexFullMatch <pattern="(a*)*"> (w) n = Shape (h) r = Expand (e, n) }}>
              y = SequenceAt (t, p) }}"""))
        assert (error.code, error.exit_code) == ("ML303", 3)
        assert "/each/" in error.where


# -- optionals


def test_an_optional_that_only_one_branch_fills() -> None:
    source = parsed("""main (float[N] x, bool c) => (float[N] y, bool h) {
          o = If (c) <then_branch = a () => (optional(float[N]) p) { p = Optional (x) },
                      else_branch = b () => (optional(float[N]) q) { q = Optional (x) }>
          h = OptionalHasElement (o)
          y = If (h) <then_branch = e () => (float[N] r) { r = OptionalGetElement (o) },
                      else_branch = f () => (float[N] s) { s = Neg (x) }>
        }""")
    empty = helper.make_node("Optional", [], ["q"])
    empty.attribute.append(helper.make_attribute("type", helper.make_tensor_type_proto(1, [None])))
    branch = next(each for each in source.graph.node[0].attribute if each.name == "else_branch")
    del branch.g.node[:]
    branch.g.node.append(empty)
    sets = [{"x": floats(3), "c": np.bool_(c)} for c in (True, False, True)]
    expected = [[("y", s["x"] if s["c"] else -s["x"]), ("h", np.bool_(s["c"]))] for s in sets]
    check(source, *sets, expected=expected)


# -- the boundary

BOUNDARY = """main (seq(float[?,3]) s, float[N,3] x, int64 p) => (seq(float[?,3]) t, float[?,3] y) {
      t = SequenceInsert (s, x, p)  y = SequenceAt (t, p) }"""


def test_packed_boundary() -> None:
    model = parsed(BOUNDARY)
    sets, expected = [], []
    for count, place in ((2, 1), (0, 0), (3, -2)):
        items = [floats(rows, 3, seed=rows) for rows in range(1, count + 1)]
        x = floats(2, 3, seed=9)
        data, shapes = mo_loop.pack_sequence(items, rank=2, dtype=np.float32)
        sets.append({"s.data": data, "s.shapes": shapes, "x": x, "p": np.int64(place)})
        after = [*items]
        after.insert(place, x)
        packed = mo_loop.pack_sequence(after)
        expected.append([("t.data", packed[0]), ("t.shapes", packed[1]), ("y", after[place])])
    converted = convert_model(model, sequence_io="packed")
    assert converted.inputs == ["s.data", "s.shapes", "x", "p"]
    assert converted.outputs == ["t.data", "t.shapes", "y"]
    check(model, *sets, expected=expected, sequence_io="packed")


def test_a_sequence_of_unknown_rank_gets_its_shape_from_the_caller() -> None:
    model = parsed(BOUNDARY)
    model.graph.input[0].type.sequence_type.elem_type.tensor_type.ClearField("shape")
    assert "unknown rank" in refusal(model, sequence_io="packed").message
    assert convert_model(model, sequence_io="packed", input="s[?,3]").inputs == ["s.data", "s.shapes", "x", "p"]


def test_invalid_sequence_io() -> None:
    raised(UsageError, convert_model, parsed(BOUNDARY), sequence_io="flat")


def test_packing_by_hand() -> None:
    data, shapes = mo_loop.pack_sequence([np.float32(1), np.float32(2)])
    assert (data.tolist(), shapes.tolist()) == ([1, 2], [[1], [1]])
    assert [each.shape for each in mo_loop.unpack_sequence(data, shapes, scalars=True)] == [(), ()]
    data, shapes = mo_loop.pack_sequence([], rank=2, dtype=np.int64)
    assert (data.shape, data.dtype, shapes.shape) == ((0,), np.int64, (0, 2))
    raised(UsageError, mo_loop.pack_sequence, [])
    raised(UsageError, mo_loop.pack_sequence, [np.zeros(2), np.zeros((1, 2))])
    raised(UsageError, mo_loop.unpack_sequence, np.zeros(3), [[2, 2]])


read_cases(globals())
