"""Ranks of states and branches that differ by leading sizes of 1, ranks that are not declared, and frozen inputs."""

import warnings
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from mo_loop.api import convert_model
from mo_loop.errors import ConversionErrors, ConversionWarning, MoLoopError
from tests.cases import read_cases
from tests.harness import check, floats, parsed, raised, refusal
from tests.unit.frontend.test_input_text import LOOP as LOOP
from tests.unit.frontend.test_input_text import MODEL as MODEL

# -- States and branches whose ranks differ by leading sizes of 1 alone: the widest rank is carried, readers broadcast


NUMBERS = """<float zero = {0}, float[1] vector = {2}, float[1,1] matrix = {3}, int64[0] scalar = {},
  int64[1] list = {-1}, int64[1] first = {0}, int64[2] pair = {1, 1}, int64 one = {1}>"""

STEPS = {
    "an operand": "t = Add (s, vector)",
    "an operand of two axes": "t = Add (s, matrix)",
    "a longer operand": "u = Add (s, x)  v = ReduceMean <keepdims = 0> (u)  t = Add (v, vector)",
    "a chain": "u = Neg (s)  v = Exp (u)  w = Not (c)  t = Where (w, v, vector)",
    "its own rank": "u = Mul (s, s)  v = Sqrt (u)  t = Max (v, vector)",
    "all axes reduced": "u = ReduceSum (s)  v = ReduceMax <keepdims = 0> (u)  t = Add (v, vector)",
    "a reshape": "u = Reshape (s, scalar)  v = Exp (u)  t = Unsqueeze (v, first)",
    "a squeeze": "u = Squeeze (s)  v = Neg (u)  t = Unsqueeze (v, first)",
    "an axis inserted": "u = Unsqueeze (s, first)  v = ReduceSum <keepdims = 0> (u)  t = Add (v, vector)",
    "an expansion": "t = Expand (s, pair)",
    "a flat matrix": "u = Flatten <axis = 0> (s)  v = Sub (u, matrix)  t = Reshape (v, list)",
    "a place": "u = Cast <to = 7> (s)  v = Sub (u, u)  t = Gather (x, v)",
    "a concatenation": "u = Add (s, vector)  v = Concat <axis = 0> (u, x)  w = ReduceMin <keepdims = 0> (v)  "
    "t = Reshape (w, list)",
    "a trip count": "u = Cast <to = 7> (s)  v = Clip (u, one, one)  "
    'w = Loop (v, "", zero) <body = inner (int64 j, bool e, a) => (bool f, h) { f = Identity (e)  h = Exp (a) }>  '
    "t = Reshape (w, list)",
    "a state": 't = Loop (one, "", s) <body = inner (int64 j, bool e, a) => (bool f, h) { f = Identity (e)  '
    "h = Add (a, vector) }>",
    "a capture": 'w = Loop (one, "", zero) <body = inner (int64 j, bool e, a) => (bool f, h) { f = Identity (e)  '
    "h = Sub (a, s) }>  t = Add (w, vector)",
    "a condition": "u = Cast <to = 9> (s)  v = If (u) <then_branch = yes () => (a) { a = Add (s, zero) }, "
    "else_branch = no () => (b) { b = Add (s, vector) }>  t = Neg (v)",
    "branches of two ranks": "u = Less (i, one)  t = If (u) <then_branch = yes () => (a) { a = Identity (zero) }, "
    "else_branch = no () => (b) { b = Add (s, vector) }>",
}


def looped(step: str, start: str, result: str, rank: str = "[N]") -> Any:
    return parsed(f"""main (float[N] x, int64 n) => (float{rank} y) {NUMBERS} {{
          last, sums = Loop (n, "", {start}) <body = b (int64 i, bool c, s) => (bool d, t, float[1] sum) {{
            d = Identity (c)
            {step}
            total = ReduceSum <keepdims = 0> (t)  sum = Reshape (total, list) }}>
          {result}
        }}""")


RUNS = [{"x": floats(size, seed=size), "n": trips} for size, trips in ((3, 2), (2, 0), (1, 1), (4, 3))]


@pytest.mark.parametrize(("declared", "shape"), [("", ()), ("[1]", (1,))])
def test_the_rank_of_an_output_is_the_declared_one(declared: str, shape: tuple[int, ...]) -> None:
    made = looped(STEPS["an operand"], "zero", "y = Neg (last)", declared)
    with pytest.warns(ConversionWarning, match="the rank of the output 'y' is 0 to 1") as caught:
        convert_model(made)
    assert [each.message.code for each in caught] == ["ML527"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        feeds = ({"x": floats(2), "n": trips} for trips in (3, 0))
        check(made, *feeds, expected=[[("y", np.full(shape, value, np.float32))] for value in (-6, 0)])


def test_the_rank_of_a_loop_that_surely_runs_is_that_of_its_body() -> None:
    made = looped(STEPS["an operand"], "zero", "y = Neg (last)", "[1]")
    made.graph.node[0].input[0] = "one"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check(made, {"x": floats(2), "n": 0})


def test_a_loop_whose_condition_is_computed_from_constants_surely_runs() -> None:
    made = parsed("""main (float[B,3] x) => (float[B,2] y) <float zero = {0}, float most = {5}, bool stop = {0},
      int64 first = {0}, int64[1] start = {0}, int64[1] end = {2}, int64[1] axis = {1}, int64 trips = {9}> {
      limit = Cast <to = 7> (most) is_below = Less (first, limit) goes_on = Not (stop) go = And (is_below, goes_on)
      last = Loop (trips, go, zero) <body = b (int64 i, bool c, float s) => (bool d, float t) {
        d = Less (i, limit) t = Exp (x) }>
      y = Slice (last, start, end, axis) }""")
    declared = helper.make_tensor_value_info("last", 1, ["B", 3])
    made.graph.value_info.append(declared)
    check(made, {"x": floats(1, 3)}, {"x": floats(2, 3)})


def test_an_output_of_either_rank_is_refused_in_a_strict_conversion() -> None:
    assert "strict" in str(refusal(looped(STEPS["an operand"], "zero", "y = Neg (last)", "[1]"), strict=True))


@pytest.mark.parametrize("reader", ["u = Shape (s)  v = Size (u)", "v = Shape <start = 0> (s)"])
def test_a_reader_of_the_rank_is_refused(reader: str) -> None:
    step = f"{reader}  w = Cast <to = 1> (v)  a = ReduceSum <keepdims = 0> (w)  t = Add (a, vector)"
    with pytest.raises(MoLoopError, match=r"Shape reads input 0, whose rank is 0 to 1") as caught:
        convert_model(looped(step, "zero", "y = Add (last, x)"))
    assert caught.value.code == "ML328" and "b/" in str(caught.value)


def test_a_rank_that_grows_in_every_iteration_is_refused_without_naming_the_state_as_an_input() -> None:
    error = refusal(looped("t = Unsqueeze (s, first)", "zero", "y = Add (last, x)"))
    assert "rank" in str(error) and "--input" not in str(error)


BRANCHES = """
    s = If (c) <
        then_branch = yes () => (a) { a = ReduceMax <keepdims = 0> (x) },
        else_branch = no () => (b) { b = ReduceMin (x) }
    >
"""


def test_branches_as_an_output_of_the_model() -> None:
    made = parsed(f"main (float[N] x, bool c) => (float[1] s) {NUMBERS} {{ {BRANCHES} }}")
    x = floats(3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = [[("s", x.max(keepdims=True))], [("s", x.min(keepdims=True))]]
        check(made, {"x": x, "c": True}, {"x": x, "c": False}, expected=expected)


@pytest.mark.parametrize(("condition", "hint"), [
    ("d = Identity (c)", '--freeze "c=VALUE"'),
    ("n = Size (x)  d = Equal (n, one)", '--input "x[SIZES]"'),
    ("m = ReduceMax <keepdims = 0> (x)  d = Less (m, zero)", ""),
])
def test_what_decides_branches_of_other_ranks_is_named(condition: str, hint: str) -> None:
    text = BRANCHES.replace("If (c)", "If (d)").replace("ReduceMin", "Neg")
    made = parsed(f"main (float[N] x, bool c) => (s) {NUMBERS} {{ {condition} {text} }}")
    caught = raised(ConversionErrors, convert_model, made, match="ML315")
    assert hint in str(caught) and ("constant value" in str(caught)) == bool(hint)


# -- Models whose inputs have no shape, or whose shapes have an unknown length, run with the rank that nodes force


RNG = np.random.default_rng(3)
FILTERS = RNG.standard_normal((2, 3, 3, 3)).astype(np.float32)
IMAGES = RNG.standard_normal((2, 3, 6, 5)).astype(np.float32)


def test_an_image_without_shape() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["a"]), helper.make_node("Conv", ["a", "w"], ["y"])]
    ports = [helper.make_tensor_value_info("x", 1, None), helper.make_empty_tensor_value_info("y")]
    graph = helper.make_graph(nodes, "g", ports[:1], ports[1:], [numpy_helper.from_array(FILTERS, "w")])
    check(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), {"x": IMAGES},
          {"x": IMAGES[:1, :, :4]})


read_cases(globals())
