"""Which sizes of inputs may change: what the IR says of them, and what the runtime does when it is given them."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

from mo_loop.api import Model, convert_model, read_model, save_model
from mo_loop.compare.execution.isolated import IsolatedError, isolated
from mo_loop.compare.results.array_comparison import compare_all
from mo_loop.graph import Graph
from mo_loop.graph.dimension import Dim, Symbol, named, opened
from mo_loop.graph.types import TensorType, f32
from mo_loop.ops.base import Parameter, Result
from mo_loop.ops.control import If
from mo_loop.ops.recurrent import RNNSequence
from mo_loop.transforms.loops.pieces import loops_in
from mo_loop.transforms.write_sizes import WriteSizes
from tests.fuzz.reshaping import NUMBERS, UNKNOWN, of_unknown_sizes, run_reshaped
from tests.harness import floats, oracle, parsed

CLASSIFIER = """main (float[1,3,8,8] x) => (float[1,4] y) {
  c = Conv (x, w)  p = GlobalAveragePool (c)  y = Flatten (p) }"""
PIECES = """main (float[6,4] x) => (float[1,24] y) {
  pieces = SplitToSequence <axis = 0> (x)  y = ConcatFromSequence <axis = 1> (pieces) }"""
LOOP = """main (float[5,2,3] x, float[2,3] start) => (float[2,3] last, float[A,2,3] all) {{
  shape = Shape (x)  first = Constant <value_int = 0> ()  n = Gather (shape, first)
  fewer = Constant <value_int = {fewer}> ()  count = Sub (n, fewer)
  last, all = Loop (count, "", start) <body = step (int64 i, bool c, s) => (bool d, next, out) {{
    d = Identity (c)  e = Gather (x, i)  next = Add (s, e)  out = Mul (next, e) }}> }}"""
SCAN = """main (float[5,2,3] x, float[5,2,3] y, float[2,3] start) => (float[2,3] last, float[5,2,3] all) {
  last, all = Scan <num_scan_inputs = 2, body = step (s, e, f) => (next, out) {
    g = Mul (e, f)  next = Add (s, g)  out = Mul (next, e) }> (start, x, y) }"""


def classifier() -> Any:
    model = parsed(CLASSIFIER)
    model.graph.initializer.append(numpy_helper.from_array(floats(4, 3, 3, 3), "w"))
    return model


def converted(model: Any, folder: Path, **options: Any) -> dict[str, str]:
    """Write the IR; returns what its rt_info says of sizes, as OpenVINO reads it."""
    made: Model = convert_model(model, **options)
    save_model(made, folder / "model.xml")
    sizes: dict[str, str] = made.graph.rt_info["sizes"]
    assert read_model(folder / "model.xml").graph.rt_info["sizes"] == sizes
    assert isolated(sizes_in, folder / "model.xml", list(sizes)) == sizes
    return sizes


def sizes_in(path: Path, names: list[str]) -> dict[str, str]:
    """In the worker: the entry of each input."""
    from mo_loop.compare.execution.runtime import read_ir

    model = read_ir(path)
    return {name: model.get_rt_info(["sizes", name]).astype(str) for name in names}


def shapes_of(feeds: dict[str, Any]) -> dict[str, tuple[int, ...]]:
    return {name: array.shape for name, array in feeds.items()}


def require_right(model: Any, folder: Path, *feeds: dict[str, Any]) -> None:
    """The IR that is given the sizes of arrays has the results of the model with unknown sizes."""
    for each, wanted in zip(feeds, oracle(of_unknown_sizes(model), feeds).values, strict=True):
        for way in (NUMBERS, UNKNOWN):
            found = isolated(run_reshaped, folder / "model.xml", way, each, shapes_of(each))
            assert all(compare_all(wanted, found, rtol=1e-4, atol=1e-4))


def require_refused(folder: Path, *feeds: dict[str, Any]) -> None:
    for each, way in itertools.product(feeds, (NUMBERS, UNKNOWN)):
        with pytest.raises(IsolatedError, match="RuntimeError") as caught:
            isolated(run_reshaped, folder / "model.xml", way, each, shapes_of(each))
        assert caught.value.status == "error"


def test_all_may_change(tmp_path: Path) -> None:
    model = classifier()
    assert converted(model, tmp_path) == {"x": "?,?,?,?"}
    require_right(model, tmp_path, {"x": floats(1, 3, 8, 8)}, {"x": floats(2, 3, 11, 5)})
    require_refused(tmp_path, {"x": floats(1, 4, 8, 8)})


def test_none_may_change(tmp_path: Path) -> None:
    model = classifier()
    assert converted(model, tmp_path, static=True) == {"x": "1,3,8,8"}
    require_right(model, tmp_path, {"x": floats(1, 3, 8, 8)})
    require_refused(tmp_path, {"x": floats(2, 3, 8, 8)}, {"x": floats(1, 3, 8, 9)}, {"x": floats(1, 3, 4, 16)})


def test_one_may_change(tmp_path: Path) -> None:
    model = parsed(PIECES)
    assert converted(model, tmp_path) == {"x": "6,?"}
    require_right(model, tmp_path, {"x": floats(6, 4)}, {"x": floats(6, 5)})
    require_refused(tmp_path, {"x": floats(5, 4)}, {"x": floats(4, 6)})


@pytest.mark.parametrize(("shape", "nodes"), [
    ("4", "y = Add (x, x)"), ("2,4", "y = MatMul (x, w)"), ("4,2", "t = Transpose (x)  y = MatMul (t, w)"),
    ("2,4", "s = Shape (x)  r = Reshape (x, s)  y = MatMul (r, w)"), ("3,2,4", "y = MatMul (x, w)"),
])
def test_checks_that_openvino_does_not_remove(shape: str, nodes: str, tmp_path: Path) -> None:
    """`ov.Model.reshape` gives patterns of Reshapes before a MatMul, or to one dimension, other numbers."""
    model = parsed(f"main (float[{shape}] x) => (y) <float[4,3] w = {{1,2,3,4,5,6,7,8,9,10,11,12}}> {{ {nodes} }}")
    converted(model, tmp_path, static=True)
    sizes = [int(each) for each in shape.split(",")]
    require_right(model, tmp_path, {"x": floats(*sizes)})
    others = ([*sizes[:-1], 5], [*sizes[:-1], 8], [8, *sizes[1:]])
    require_refused(tmp_path, *({"x": floats(*each)} for each in others))


@pytest.mark.parametrize("name", ["a.b", 'a"<&> b', "a,b[0]=n1", "\u00e4", "value", "x y"])
def test_names(name: str, tmp_path: Path) -> None:
    model = parsed("main (float[6,4] x, float k) => (float[6,4] y) { y = Mul (x, k) }")
    model.graph.input[0].name = model.graph.node[0].input[0] = name
    assert converted(model, tmp_path) == {name: "?,?", "k": ""}
    model.graph.input[0].name = model.graph.node[0].input[0] = "x"
    assert converted(model, tmp_path, rename={"x": name, "k": "x"}) == {name: "?,?", "x": ""}


def test_dynamic_sizes(tmp_path: Path) -> None:
    model = parsed("main (float[N,4] x, float[6,4] y) => (float[N,4] z) { z = Mul (x, y) }")
    assert converted(model, tmp_path) == {"x": "?,?", "y": "?,?"}
    require_right(model, tmp_path, {"x": floats(6, 4), "y": floats(6, 4)}, {"x": floats(3, 5), "y": floats(3, 5)})
    assert converted(model, tmp_path, static=True) == {"x": "?,4", "y": "6,4"}


def test_what_is_assumed_of_several() -> None:
    """Sizes that are equal to each other, and at least a number."""
    graph = Graph()
    own = [opened("x", axis, 8) for axis in range(3)]
    least = Dim(((Symbol("x[0]", 4, None, 8), 1),))
    x = Parameter(graph=graph, dtype=f32, shape=(least, own[1], own[2]), name="x")
    y = Parameter(graph=graph, dtype=f32, shape=(least, own[1], 8, named("N")), name="y")
    z = Parameter(graph=graph, dtype=f32, name="z")
    x.__dict__["sizes"] = tuple(own)
    y.__dict__["sizes"] = (*(opened("y", axis, 8) for axis in range(3)), None)
    for each in (x, y, z):
        Result(each.output)
    WriteSizes().run_on_graph(graph)
    assert graph.rt_info["sizes"] == {"x": "n1=4..,n2,?", "y": "n1=4..,n2,8,?", "z": "..."}
    assert [each.value_type for each in (x, y)] == [
        TensorType(f32, (8, 8, 8)), TensorType(f32, (8, 8, 8, y.value_type.dims[3])),
    ]


@pytest.mark.parametrize(("text", "steps"), [(LOOP.format(fewer=0), 5), (LOOP.format(fewer=2), 3), (SCAN, 5)])
def test_unrolled_loops_fix_their_number_of_steps(text: str, steps: int, tmp_path: Path) -> None:
    model = parsed(text)
    names = [each.name for each in model.graph.input if each.name != "start"]

    def feeds(length: int, batch: int) -> dict[str, Any]:
        x = {name: floats(length, batch, 3, seed=seed) for seed, name in enumerate(names)}
        return {**x, "start": floats(batch, 3, seed=9)}

    sizes = converted(model, tmp_path, unroll=steps)
    assert {sizes[name].partition(",")[0] for name in names} == {"5"} and "2" not in sizes["start"].split(",")
    require_right(model, tmp_path, feeds(5, 2), feeds(5, 4))
    require_refused(tmp_path, feeds(6, 2), feeds(4, 2))
    assert "5" not in converted(model, tmp_path)["x"]


def test_a_loop_that_is_too_long_to_be_unrolled_fixes_nothing(tmp_path: Path) -> None:
    model = parsed("""main (float[5,2] x) => (float[2] last, float[A,2] all) {
      three = Constant <value_int = 3> ()  axes = Constant <value_ints = [0]> ()  shape = Shape (x)
      first = Constant <value_int = 0> ()  length = Gather (shape, first)  row = ReduceSum <keepdims = 0> (x, axes)
      s = Loop (three, "", row) <body = one (int64 i, bool c, float[2] a) => (bool d, float[2] b) {
        d = Identity (c)  b = Sin (a) }>
      last, all = Loop (length, "", s) <body = two (int64 j, bool e, float[2] p) => (bool f, float[2] q, float[2] r) {
        f = Identity (e)  g = Gather (x, j)  q = Add (p, g)  r = Identity (q) }> }""")
    assert converted(model, tmp_path, unroll=3)["x"] == "?,?"
    require_right(model, tmp_path, *({"x": floats(length, 2)} for length in (5, 7)))


def test_results_that_follow_from_sizes_alone_are_checked(tmp_path: Path) -> None:
    """They are constants, and no operation reads the input."""
    model = parsed("""main (float[6,2] x) => (int64 n, float[3,2] y) <int64 two = {2}> {
      list = SplitToSequence (x, two)  n = SequenceLength (list)
      y = Constant <value = float[3,2] {1,2,3,4,5,6}> () }""")
    assert converted(model, tmp_path)["x"] == "6,?"
    require_right(model, tmp_path, {"x": floats(6, 2)}, {"x": floats(6, 5)})
    require_refused(tmp_path, {"x": floats(8, 2)})


def of_zeros(body: str, last: str, growing: str) -> Any:
    """A loop over the rows of x with states of zeros, whose sizes are computed: s, and rows, which grows."""
    return parsed(f"""main (float[5,2,4] x, float[5,2,3,4] r) => (float[2,4] {last}, float[A,2,3] {growing})
      <int64 first = {{0}}, int64[1] none = {{0}}, int64[1] one = {{1}}, int64[1] three = {{3}}, int64[1] four = {{4}}>
      {{
      sizes = Shape (x)  n = Gather (sizes, first)  batch = Gather (sizes, one)
      of_state = Concat <axis = 0> (batch, four)  zeros = ConstantOfShape (of_state)
      of_rows = Concat <axis = 0> (none, batch, three)  empty = ConstantOfShape (of_rows)
      {last}, {growing} = Loop (n, "", zeros, empty) <body = step (int64 i, bool c, s, rows) => (bool d, next, more) {{
        d = Identity (c)  e = Gather (x, i)  {body}
        f = Gather (r, i)  wide = Unsqueeze (next, one)  g = Mul (wide, f)
        h = ReduceMax <axes = [-1], keepdims = 0> (g)  row = Unsqueeze (h, none)
        more = Concat <axis = 0> (rows, row) }}> }}""", opset=17)


@pytest.mark.parametrize("body", ["t = Tanh (s)  next = Add (t, e)", "t = Mul (s, e)  next = Add (t, e)"])
def test_states_of_zeros_follow_the_batch(body: str, tmp_path: Path) -> None:
    """With static shapes the runtime knows the zeros, and would put them into the branch for the declared sizes too."""
    model = of_zeros(body, "last", "y")
    assert converted(model, tmp_path) == {"x": "?,?,?", "r": "?,?,?,?"}
    sizes = ((5, 3), (6, 2), (1, 1))
    require_right(model, tmp_path, *({"x": floats(n, b, 4), "r": floats(n, b, 3, 4)} for n, b in sizes))
    require_refused(tmp_path, {"x": floats(5, 0, 4), "r": floats(5, 0, 3, 4)})


def test_blocks_of_steps_that_do_not_exist(tmp_path: Path) -> None:
    """A sum of constants of known shape without elements ends the process of the runtime, also in a branch that it
    does not choose; so does a Gather."""
    model = parsed("""main (float[3,4] x) => (float[3,4] y) <int64 first = {0}> {
      sizes = Shape (x)  n = Gather (sizes, first)
      y = Loop (n, "", x) <body = step (int64 i, bool c, s) => (bool d, next) {
        d = Identity (c)  e = Gather (x, i)  next = Add (s, e) }> }""")
    converted(model, tmp_path)
    require_right(model, tmp_path, *({"x": floats(n, 4)} for n in (3, 64, 130)))


def test_a_number_that_follows_from_sizes_alone_is_checked(tmp_path: Path) -> None:
    model = parsed("main (float[6,2] x) => (int64 n) { list = SplitToSequence (x)  n = SequenceLength (list) }")
    assert converted(model, tmp_path)["x"] == "6,?"
    require_right(model, tmp_path, {"x": floats(6, 5)})
    require_refused(tmp_path, {"x": floats(8, 2)})


@pytest.mark.parametrize("axis", ["", "<axis = 1>"])
def test_a_condition_longer_than_what_it_chooses_from(axis: str, tmp_path: Path) -> None:
    model = parsed(f"main (float[3,2] x, bool[2] c) => (y) {{ y = Compress {axis} (x, c) }}")
    assert converted(model, tmp_path) == {"x": "?,?", "c": "?"}
    shapes = ((3, 2, 2), (3, 1, 2), (1, 1, 5), (3, 2, 1), (4, 5, 5))
    require_right(model, tmp_path, *({"x": floats(a, b), "c": floats(c) > 0} for a, b, c in shapes))


@pytest.mark.parametrize("batch", [1, 2])
def test_one_row_in_place_of_several(batch: int, tmp_path: Path) -> None:
    """The runtime reads outside a tensor for a Gather with batch_dims of one row."""
    model = parsed(f"main (float[{batch},1,3,2,2] x, float[{batch},2,4,2,3] g) => (y) {{ y = GridSample (x, g) }}", 20)
    assert converted(model, tmp_path) == {"x": "?,?,?,?,?", "g": "?,?,?,?,?"}
    shapes = ((1, 1, 1), (1, 1, 3), (1, 2, 4), (2, 1, 3), (2, 2, 4))
    feeds = ({"x": floats(a, b, 3, 2, 2), "g": floats(a, 2, c, 2, 3) / 2} for a, b, c in shapes)
    require_right(model, tmp_path, *feeds)


def test_windows_that_find_the_largest_element_fit_into_their_input(tmp_path: Path) -> None:
    model = parsed("main (float[1,1,5,5] x) => (y, z) { y, z = MaxPool <kernel_shape = [2, 3], strides = [2, 2]> (x) }")
    assert converted(model, tmp_path) == {"x": "?,?,2..,3.."}
    require_right(model, tmp_path, {"x": floats(1, 1, 2, 3)}, {"x": floats(2, 3, 6, 7)})
    require_refused(tmp_path, {"x": floats(1, 1, 5, 2)})


def test_a_zero_point_of_one_element(tmp_path: Path) -> None:
    model = parsed("main (float[5] x, float s, uint8[1] z) => (y) { y = QuantizeLinear (x, s, z) }", 21)
    assert converted(model, tmp_path) == {"x": "?", "s": "", "z": "1"}
    one = {"s": np.float32(0.1), "z": np.array([3], np.uint8)}
    require_right(model, tmp_path, *({"x": floats(size), **one} for size in (5, 7)))


def test_as_many_heads_of_queries_as_of_keys(tmp_path: Path) -> None:
    shapes = ", ".join(f"float[1,3,4,2] {name}" for name in "qkv")
    model = parsed(f"main ({shapes}) => (y) {{ y = Attention (q, k, v) }}", 23)
    sizes = converted(model, tmp_path)
    assert sizes["q"].split(",")[1] == sizes["k"].split(",")[1] == "n1"
    feeds = [{name: floats(2, heads, 5, 2, seed=seed) for seed, name in enumerate("qkv")} for heads in (2, 6)]
    require_right(model, tmp_path, *feeds)
    require_refused(tmp_path, {**feeds[0], "q": floats(2, 6, 5, 2)})


@pytest.mark.parametrize(("condition", "steps", "forms"), [
    ("m = ReduceMax <keepdims = 0> (next)  d = Less (m, limit)", 5, []),  # a loop for the declared sizes too
    ("d = Identity (c)", 5, [[]]),
    ("d = Identity (c)", 40, [[10]]),
])
def test_forms_for_the_declared_sizes(condition: str, steps: int, forms: list[list[int]], tmp_path: Path) -> None:
    """There is one where it has no loop, or several steps in an iteration."""
    model = parsed(f"""main (float[{steps},1,3] x, float[1,3] start) => (float[1,3] last) <float limit = {{3}}> {{
      zero = Constant <value_int = 0> ()  shape = Shape (x)  n = Gather (shape, zero)
      last = Loop (n, "", start) <body = step (int64 i, bool c, s) => (bool d, next) {{
        e = Gather (x, i)  t = Tanh (s)  next = Add (t, e)  {condition} }}> }}""")
    found = convert_model(model).graph.of(If)
    assert [[loop.steps for loop in loops_in(each.then_body)] for each in found] == forms
    converted(model, tmp_path)
    feeds = ({"x": floats(length, 1, 3), "start": floats(1, 3, seed=1)} for length in (steps, 9, 1))
    require_right(model, tmp_path, *feeds)


def test_a_cell_becomes_a_sequence_and_fixes_its_features(tmp_path: Path) -> None:
    """Its constant weights do: the model refuses other sizes too."""
    model = parsed("""main (float[5,2,3] x, float[2,4] start) => (float[2,4] last, float[5,2,4] all) {
      last, all = Scan <num_scan_inputs = 1, body = step (s, e) => (next, out) {
        a = MatMul (e, w)  b = MatMul (s, r)  c = Add (a, b)  next = Tanh (c)  out = Identity (next) }> (start, x) }""")
    model.graph.initializer.append(numpy_helper.from_array(floats(3, 4), "w"))
    model.graph.initializer.append(numpy_helper.from_array(floats(4, 4, seed=1), "r"))
    assert len(convert_model(model).graph.of(RNNSequence)) == 1
    assert converted(model, tmp_path) == {"x": "?,n1,3", "start": "n1,4"}
    feeds = [{"x": floats(*each, 3), "start": floats(each[1], 4, seed=2)} for each in ((5, 2), (7, 3), (1, 1))]
    require_right(model, tmp_path, *feeds)
    require_refused(tmp_path, {"x": floats(5, 2, 5), "start": floats(2, 4)})


def test_what_a_cell_only_adds_may_have_one_column(tmp_path: Path) -> None:
    model = parsed("""main (float[5,2,4] x, float[2,4] start) => (float[2,4] last, float[5,2,4] all) {
      last, all = Scan <num_scan_inputs = 1, body = step (s, e) => (next, out) {
        b = MatMul (s, r)  c = Add (e, b)  next = Tanh (c)  out = Identity (next) }> (start, x) }""")
    model.graph.initializer.append(numpy_helper.from_array(floats(4, 4, seed=1), "r"))
    converted(model, tmp_path)
    feeds = ({"x": floats(*each), "start": floats(2, 4, seed=2)} for each in ((5, 2, 4), (5, 2, 1), (7, 2, 4)))
    require_right(model, tmp_path, *feeds)


@pytest.mark.parametrize("rows", [4, 64, 1000])
def test_trees_may_get_any_number_of_rows(rows: int, tmp_path: Path) -> None:
    model = parsed(f"""main (float[{rows},2] x) => (float[{rows},1] y) {{
      y = ai.onnx.ml.TreeEnsembleRegressor <n_targets = 1, nodes_treeids = [0,0,0,0,0], nodes_nodeids = [0,1,2,3,4],
        nodes_featureids = [0,1,0,0,0], nodes_values = [0.5,0.1,0.0,0.0,0.0], nodes_truenodeids = [1,3,0,0,0],
        nodes_falsenodeids = [2,4,0,0,0], nodes_modes = ["BRANCH_LEQ","BRANCH_LEQ","LEAF","LEAF","LEAF"],
        target_treeids = [0,0,0], target_nodeids = [2,3,4], target_ids = [0,0,0], target_weights = [1.0,2.0,3.0]> (x)
      }}""")
    model.opset_import.append(helper.make_opsetid("ai.onnx.ml", 3))
    assert converted(model, tmp_path) == {"x": "?,2"}
    require_right(model, tmp_path, *({"x": floats(each, 2)} for each in (rows, 1, 2, 100)))
