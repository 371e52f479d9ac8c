"""Sizes that become 0: what the IR refuses because the runtime would end the process or be wrong."""

from pathlib import Path

import numpy as np
import pytest
from onnx import numpy_helper

from tests.harness import check, floats, parsed
from tests.runtime.test_sizes import converted, require_refused, require_right


def test_results_of_an_input_without_elements_are_checked(tmp_path: Path) -> None:
    model = parsed("""main (float[2,0,4] x, int64[1] axes) => (float[A,B,C] y) {
      z = Mul (x, x)  y = ReduceSum (z, axes) }""")
    converted(model, tmp_path)
    axes = np.array([1])
    require_right(model, tmp_path, {"x": floats(2, 0, 4), "axes": axes})
    require_refused(tmp_path, {"x": floats(2, 0, 8), "axes": axes}, {"x": floats(2, 3, 4), "axes": axes})


@pytest.mark.parametrize(("shape", "nodes", "places"), [
    ("2,3", "i = Cast <to = 7> (x)  y = Gather (w, i)", (0, 1)),
    ("2,3,4", "y = Flatten <axis = 2> (x)", (0, 1, 2)),
    ("2,3", "y = Expand (x, target)", (0, 1)),
    ("1,1,1", "y = Transpose <perm = [1, 2, 0]> (x)", (0, 1, 2)),
    ("2,3,4", "y = ReduceMax <axes = [1]> (x)", (1,)),
    ("1,2,5", "y = ConvTranspose (x, filters)", (0, 2)),
    ("1,2,5", "y = Conv <strides = [2], pads = [1, 1]> (x, filters)", (2,)),
])
def test_sizes_that_may_not_become_0(shape: str, nodes: str, places: tuple[int, ...], tmp_path: Path) -> None:
    """The runtime ends the process, copies another size, or computes the mean of nothing."""
    constants = "float[3] w = {1,2,3}, int64[3] target = {4,1,1}"
    model = parsed(f"main (float[{shape}] x) => (y) <{constants}> {{ {nodes} }}", 13)
    model.graph.initializer.append(numpy_helper.from_array(floats(2, 2, 3), "filters"))
    sizes = [int(each) for each in shape.split(",")]
    assert converted(model, tmp_path) == {"x": ",".join("?" * len(sizes))}
    require_right(model, tmp_path, {"x": floats(*sizes) * 0})
    for place in places:
        require_refused(tmp_path, {"x": floats(*sizes[:place], 0, *sizes[place + 1 :])})


@pytest.mark.parametrize("nodes", [
    "y = Add (x, x)", "y = MatMul (x, w)", "t = Transpose (x)  y = Softmax (t)",
    "u = Unsqueeze (x, axes)  v = Sin (u)  y = Squeeze (v, axes)", "s = Shape (x)  y = Reshape (x, s)",
])
def test_sizes_that_become_0(nodes: str, tmp_path: Path) -> None:
    model = parsed(f"main (float[2,3] x) => (y) <float[3,1] w = {{1,2,3}}, int64[2] axes = {{0,2}}> {{ {nodes} }}")
    converted(model, tmp_path)
    assert "VariadicSplit" not in (tmp_path / "model.xml").read_text(encoding="utf-8")
    require_right(model, tmp_path, {"x": floats(0, 3)})


def test_results_without_elements_are_checked(tmp_path: Path) -> None:
    model = parsed("main (float[0,3,2] x) => (y) { y = Relu (x) }")
    assert converted(model, tmp_path) == {"x": "0,3,2"}
    require_right(model, tmp_path, {"x": floats(0, 3, 2)})
    require_refused(tmp_path, {"x": floats(0, 4, 2)}, {"x": floats(2, 3, 2)})


def test_a_condition_is_not_empty(tmp_path: Path) -> None:
    model = parsed("main (float[3] x, bool[3] c) => (y) { y = Compress (x, c) }")
    converted(model, tmp_path)
    require_refused(tmp_path, {"x": floats(3), "c": np.zeros(0, bool)})


@pytest.mark.parametrize("nodes", [
    "d = MatMul (c, w)  y = Add (d, b)", "s = Sin (c)  y = Mul (b, s)", "y = Tile (c, repeats)",
    "y = LpNormalization <axis = 1> (c)", "y = BatchNormalization (c, w3, w3, w3, w3)",
    "p = Mul (u, b)  q = Concat <axis = 0> (p, c)  r = Neg (q)  y = Div (r, b)",
])
def test_joined_tensors_without_elements(nodes: str, tmp_path: Path) -> None:
    """The runtime makes a constant of the Concat, and reads outside it: memory is overwritten."""
    constants = "float[4] b = {1,2,3,4}, float[3] w3 = {1,2,3}, int64[3] repeats = {1,2,1}"
    model = parsed(f"""main (float[2,3,4] x, float[2,3,4] u) => (y) <{constants}> {{
      c = Concat <axis = 0> (x, u)  {nodes} }}""")
    model.graph.initializer.append(numpy_helper.from_array(floats(4, 4), "w"))
    assert converted(model, tmp_path) == {"x": "?,?,?", "u": "?,?,?"}
    require_right(model, tmp_path, {"x": floats(2, 3, 4), "u": floats(2, 3, 4, seed=1)})
    require_refused(tmp_path, *({"x": floats(*each, 4), "u": floats(*each, 4)} for each in ((2, 0), (0, 3))))


def test_a_cache_without_elements_is_joined(tmp_path: Path) -> None:
    """The others of the Concat have elements."""
    model = parsed("""main (float[2,3,4] past, float[2,1,4] new, float scale) => (y) {
      c = Concat <axis = 1> (past, new)  y = Mul (c, scale) }""")
    converted(model, tmp_path)
    others = {"new": floats(2, 1, 4), "scale": np.float32(3)}
    require_right(model, tmp_path, {"past": floats(2, 0, 4), **others}, {"past": floats(2, 3, 4), **others})


@pytest.mark.parametrize("nodes", ["y = Sin (c)", "y = Conv (c, filters)", "y = MatMul (c, w)"])
def test_joined_tensors_without_elements_are_right(nodes: str, tmp_path: Path) -> None:
    model = parsed(f"main (float[2,3,4] x) => (y) {{ c = Concat <axis = 1> (x, x)  {nodes} }}")
    model.graph.initializer.append(numpy_helper.from_array(floats(4, 4), "w"))
    model.graph.initializer.append(numpy_helper.from_array(floats(2, 6, 1), "filters"))
    converted(model, tmp_path)
    require_right(model, tmp_path, {"x": floats(0, 3, 4)}, {"x": floats(2, 3, 4)})


@pytest.mark.parametrize("nodes", [
    "y = Gather (table, part)", "f = Cast <to = 1> (part)  y = ReduceMean <axes = [0]> (f)",
    "g = Gather (table, part)  t = Mul (g, g)  y = ReduceMax <axes = [0]> (t)",
])
@pytest.mark.parametrize("stop", ["Constant <value_ints = [9]> ()", "Size (ids)"])
def test_slices_without_elements(nodes: str, stop: str, tmp_path: Path) -> None:
    """No size of the input is 0: the Slice begins after its end."""
    end = f"stop = {stop}" if "ints" in stop else f"size = {stop}  stop = Unsqueeze (size, zero)"
    model = parsed(f"""main (int64[3,2] ids) => (y)
      <float[2,3] table = {{1,2,3,4,5,6}}, int64[1] zero = {{0}}, int64[1] start = {{4}}, int64[1] all = {{-1}}> {{
      flat = Reshape (ids, all)  {end}  part = Slice (flat, start, stop, zero)  {nodes} }}""", 13)
    converted(model, tmp_path)
    feeds = [{"ids": np.arange(size * 2).reshape(size, 2) % 2} for size in (1, 2, 3, 4)]
    require_right(model, tmp_path, *feeds[2:])
    require_refused(tmp_path, *feeds[:2])


def test_slices_of_unknown_size_may_be_empty(tmp_path: Path) -> None:
    """The runtime is right if the size of a Slice is known at the inference only."""
    model = parsed("""main (int64[3] ids, int64[1] stop) => (y) <float[2] table = {1,2}, int64[1] zero = {0}> {
      part = Slice (ids, zero, stop)  y = Gather (table, part) }""")
    converted(model, tmp_path)
    feeds = ({"ids": np.array([1, 0, 1]), "stop": np.array([stop])} for stop in (2, 0))
    require_right(model, tmp_path, *feeds)


def test_lists_of_unknown_lengths_may_be_empty(tmp_path: Path) -> None:
    model = parsed("""main (float[3] x, float[3] u, float k) => (y) {
      a = NonZero (x)  b = NonZero (u)  c = Concat <axis = 1> (a, b)  f = Cast <to = 1> (c)  y = Mul (f, k) }""")
    converted(model, tmp_path)
    k = np.float32(2)
    require_right(model, tmp_path, *({"x": floats(3) * each, "u": floats(3) * each, "k": k} for each in (1, 0)))


def test_a_spectrum_of_no_signals_is_refused(tmp_path: Path) -> None:
    """The runtime ends the process."""
    model = parsed("""main (float[2,16,1] x) => (y) <int64 step = {4}, int64 length = {8}> {
      y = STFT <onesided = 1> (x, step, "", length) }""", 17)
    converted(model, tmp_path)
    require_right(model, tmp_path, {"x": floats(2, 16, 1)}, {"x": floats(3, 16, 1)})
    require_refused(tmp_path, {"x": floats(0, 16, 1)})


def test_a_loop_that_does_not_run_returns_the_declared_sizes() -> None:
    """A result that is computed for all steps at once then has the sizes that ONNX Runtime knows from the file."""
    model = parsed("""main (int64[2,3] x, int64 n) => (int64[a,b,c] y) {
      y = Loop (n, "") <body = step (int64 i, bool c) => (bool d, t) { d = Identity (c)  t = Identity (x) }> }""")
    check(model, *({"x": np.ones((2, 3), np.int64), "n": np.array(steps)} for steps in (2, -1, 0)))


@pytest.mark.parametrize("count", [0, -1])
def test_a_loop_that_never_runs_fixes_the_sizes_of_its_results(count: int, tmp_path: Path) -> None:
    """They are constants, in which a size that the file declares is not 0."""
    model = parsed(f"""main (float[2] x, float[p] z) => (float[a,b] y, float[p] w) <int64 n = {{{count}}}> {{
      both = Concat <axis = 0> (x, x)  w = Sin (z)
      y = Loop (n, "") <body = step (int64 i, bool c) => (bool d, t) {{ d = Identity (c)  t = Sin (both) }}> }}""")
    check(model, {"x": floats(2), "z": floats(3)})
    assert converted(model, tmp_path) == {"x": "2", "z": "?"}
    require_refused(tmp_path, {"x": floats(3), "z": floats(3)})
