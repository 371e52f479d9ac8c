"""Operators that move elements: Reshape, Squeeze, Transpose, Concat, Split, Slice, DepthToSpace, ReverseSequence ..."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from tests.harness import NEWEST, check_model, check_node, every, graph_model, pairs, parsed

LAST, FIRST = np.iinfo(np.int64).max, np.iinfo(np.int64).min


def floats(*shape: int) -> Any:
    return np.random.default_rng(7).uniform(-2, 2, shape).astype(np.float32)


def ints(*values: int) -> Any:
    return np.array(values, np.int64)


DYNAMIC = [(), ("x",)]
both = pytest.mark.parametrize("dynamic", DYNAMIC, ids=["static", "dynamic"])
given = pytest.mark.parametrize("constants", [(), ("p",)], ids=["run-time", "constant"])


@pairs(pattern=[(4, 6), (-1,), (0, -1), (2, 0, 4), (6, 4, 1), (0, 0, -1, 1)], opset=[5, 13, 14, 25],
       constants=[(), ("p",)], dynamic=DYNAMIC)
def test_reshape(pattern: Any, opset: int, constants: Any, dynamic: Any) -> None:
    inputs = {"x": floats(2, 3, 4), "p": ints(*pattern)}
    check_node("Reshape", inputs, opset=opset, constants=constants, dynamic=dynamic)


@every(dynamic=DYNAMIC, shape=[(), (1,), (1, 1)])
def test_reshape_to_a_scalar(shape: Any, dynamic: Any) -> None:
    check_node("Reshape", {"x": floats(*shape), "p": ints()}, opset=13, constants=("p",), dynamic=dynamic)


@both
@given
@pytest.mark.parametrize(("shape", "pattern", "allowzero"),
                         [((0, 3), (3, 0), 1), ((2, 0), (0, 5, 0), 1), ((3, 0, 2), (0, 0, 7), 1), ((0,), (0, 4), 1)])
def test_reshape_without_elements(shape: Any, pattern: Any, allowzero: int, constants: Any, dynamic: Any) -> None:
    inputs = {"x": floats(*shape), "p": ints(*pattern)}
    check_node("Reshape", inputs, {"allowzero": allowzero}, opset=14, constants=constants, dynamic=dynamic)


@both
def test_reshape_with_an_attribute(dynamic: Any) -> None:
    x = floats(2, 3, 4)
    check_node("Reshape", {"x": x}, {"shape": [0, -1]}, opset=1, dynamic=dynamic, expected=[x.reshape(2, 12)])


@every(dynamic=DYNAMIC, shape=[(), (3,), (2, 3), (2, 3, 4), (2, 3, 4, 5), (0, 3, 2), (2, 0, 3), (0, 0)])
def test_flatten(shape: Any, dynamic: Any) -> None:
    for axis in range(-len(shape), len(shape) + 1):
        check_node("Flatten", {"x": floats(*shape)}, {"axis": axis}, opset=13, dynamic=dynamic)


def test_flatten_of_no_rows_and_unknown_columns() -> None:
    model = parsed("main (float[0,2,N] x) => (float[A,B] y) { y = Flatten <axis = 2> (x) }")
    check_model(model, {"x": floats(0, 2, 3)})


@both
@pytest.mark.parametrize(("opset", "axis"), [(1, 1), (9, 2), (25, 3)])
def test_flatten_of_every_opset(opset: int, axis: int, dynamic: Any) -> None:
    check_node("Flatten", {"x": floats(2, 3, 4)}, {"axis": axis}, opset=opset, dynamic=dynamic)


@every(dynamic=DYNAMIC, axes=[(1,), (1, 3), (-1, 1), (3, -3)])
def test_squeeze(axes: Any, dynamic: Any) -> None:
    x = floats(2, 1, 3, 1)
    check_node("Squeeze", {"x": x}, {"axes": [a % 4 for a in axes]}, opset=1, dynamic=dynamic)
    check_node("Squeeze", {"x": x}, {"axes": list(axes)}, opset=11, dynamic=dynamic)
    for constants in ((), ("p",)):
        check_node("Squeeze", {"x": x, "p": ints(*axes)}, opset=13, constants=constants, dynamic=dynamic)


@pytest.mark.parametrize(("inputs", "opset"), [(("x",), 1), (("x",), 11), (("x",), 13), (("x", "p"), 25)])
def test_squeeze_of_all_ones(inputs: Any, opset: int) -> None:
    """ONNX Runtime does not accept an empty name for absent axes."""
    for shape in ((1, 3, 1), (2, 3), (1, 1), ()):
        x = floats(*shape)
        check_node("Squeeze", {"x": x, "p": None} if "p" in inputs else {"x": x}, opset=opset, expected=[x.squeeze()])


@every(dynamic=DYNAMIC, ends=[{"start": -1}, {"end": -1}, {"start": -9, "end": 2}, {"start": 1, "end": 9}])
def test_parts_of_shapes(ends: dict[str, int], dynamic: Any) -> None:
    check_node("Shape", {"x": floats(2, 3, 4)}, ends, opset=15, dynamic=dynamic)


@every(dynamic=DYNAMIC, axes=[(0,), (1,), (0, 2), (2, 0), (-1,), (-2, 0), (1, 2, 4)])
def test_unsqueeze(axes: Any, dynamic: Any) -> None:
    rank = 2 + len(axes)
    x = floats(2, 3)
    check_node("Unsqueeze", {"x": x}, {"axes": sorted(a % rank for a in axes)}, opset=1, dynamic=dynamic)
    for constants in ((), ("p",)):
        check_node("Unsqueeze", {"x": x, "p": ints(*axes)}, opset=13, constants=constants, dynamic=dynamic)
    check_node("Unsqueeze", {"x": np.float32(3), "p": ints(0)}, opset=13)


@every(dynamic=DYNAMIC, shape=[(), (3,), (2, 3), (2, 3, 4), (2, 0, 3, 4)])
def test_transpose(shape: Any, dynamic: Any) -> None:
    check_node("Transpose", {"x": floats(*shape)}, opset=1, dynamic=dynamic)
    order = [*range(1, len(shape)), 0] if shape else []
    if order:
        check_node("Transpose", {"x": floats(*shape)}, {"perm": order}, opset=13, dynamic=dynamic)


@pytest.mark.parametrize("dynamic", [False, True])
@pytest.mark.parametrize(("opset", "attributes"), [(4, {"axis": 1}), (13, {"axis": -2}), (11, {"axis": 1})])
def test_concat(opset: int, attributes: Any, dynamic: bool) -> None:
    inputs = {"a": floats(2, 3, 2), "b": floats(2, 0, 2), "c": floats(2, 1, 2)}
    check_node("Concat", inputs, attributes, opset=opset, dynamic=dynamic)
    check_node("Concat", {"a": floats(2, 3)}, {"axis": 0}, opset=13, dynamic=dynamic)


def test_concat_has_a_default_axis_in_opset_1() -> None:
    a, b = floats(2, 3), floats(2, 1)
    check_node("Concat", {"a": a, "b": b}, opset=1, expected=[np.concatenate([a, b], 1)])


@every(dynamic=DYNAMIC, axis=[0, 1, -1])
def test_split_into_equal_parts(axis: int, dynamic: Any) -> None:
    for opset in (2, 11, 13):
        check_node("Split", {"x": floats(4, 6, 2)}, {"axis": axis}, opset=opset, outputs=2, dynamic=dynamic)
    check_node("Split", {"x": floats(4, 6, 2)}, {"axis": axis, "num_outputs": 2}, opset=18, outputs=2, dynamic=dynamic)


@every(dynamic=DYNAMIC, sizes=[(1, 5), (2, 4), (6, 0), (0, 6)])
def test_split_by_sizes(sizes: Any, dynamic: Any) -> None:
    x = floats(3, 6)
    check_node("Split", {"x": x}, {"axis": 1, "split": list(sizes)}, opset=2, outputs=2, dynamic=dynamic)
    for constants in ((), ("p",)):
        inputs = {"x": x, "p": ints(*sizes)}
        for opset in (13, 18):
            check_node("Split", inputs, {"axis": -1}, opset=opset, outputs=2, constants=constants, dynamic=dynamic)


@both
@pytest.mark.parametrize(("length", "count"), [(7, 3), (6, 3), (7, 4), (3, 1)])
def test_split_into_a_number_of_parts(length: int, count: int, dynamic: Any) -> None:
    x = floats(length, 2)
    check_node("Split", {"x": x}, {"num_outputs": count}, opset=18, outputs=count, dynamic=dynamic)


def test_split_of_opset_1() -> None:
    x = floats(4, 3)
    expected = [x[:1], x[1:]]
    check_node("Split", {"x": x}, {"split": [1, 3]}, opset=1, outputs=2, expected=expected)
    check_node("Split", {"x": x, "p": np.float32([1, 3])}, {"axis": 0}, opset=1, outputs=2, expected=expected)


def test_split_with_an_output_nobody_wants() -> None:
    x = floats(6, 2)
    check_node("Split", {"x": x}, opset=13, outputs=["a", "", "c"], expected=[x[:2], x[4:]])


SLICES = [
    # starts, ends, axes, steps
    ((1,), (3,), None, None),
    ((0, 1), (2, 100), None, None),
    ((1,), (-1,), (1,), None),
    ((-3,), (LAST,), (-1,), None),
    ((0,), (LAST,), (0,), (2,)),
    ((-1,), (FIRST,), (1,), (-1,)),
    ((-1,), (-100,), (1,), (-1,)),
    ((LAST,), (FIRST,), (1,), (-2,)),
    ((3, 1), (0, 4), (2, 1), (-1, 2)),
    ((5,), (2,), (0,), None),
    ((100,), (200,), (0,), None),
    ((-100,), (2,), (1,), (1,)),
    ((2**31,), (2**40,), (0,), None),
    ((0,), (2**31 - 1,), (1,), (1,)),
    ((2,), (-(2**31),), (1,), (-1,)),
    ((0,), (5,), (1,), (2**40,)),
]


@every(dynamic=DYNAMIC, bounds=SLICES)
def test_slice(bounds: Any, dynamic: Any) -> None:
    starts, ends, axes, steps = bounds
    x = floats(4, 5, 6)
    if steps is None:
        attributes = {"starts": starts, "ends": ends} | ({} if axes is None else {"axes": [a % 3 for a in axes]})
        check_node("Slice", {"x": x}, attributes, opset=1, dynamic=dynamic)
    for kind in (np.int64, np.int32):
        values = (starts, ends, axes, steps)
        if kind is np.int32 and any(abs(v) >= 2**31 for part in values if part for v in part):
            continue
        names = dict(zip(("starts", "ends", "axes", "steps"), values, strict=True))
        inputs = {"x": x} | {k: None if v is None else np.array(v, kind) for k, v in names.items()}
        present = tuple(name for name, value in inputs.items() if value is not None and name != "x")
        for opset in (10, 13):
            check_node("Slice", inputs, opset=opset, constants=present, dynamic=dynamic)
        if all(abs(v) < 2**31 for part in values if part for v in part):
            check_node("Slice", inputs, opset=13, dynamic=dynamic)
            check_node("Slice", inputs, opset=13, dynamic=dynamic, constants=("axes", "steps"))


@every(dynamic=DYNAMIC, shape=[(0, 3), (3, 0), (1,)])
def test_slice_of_little(shape: Any, dynamic: Any) -> None:
    inputs = {"x": floats(*shape), "s": ints(0), "e": ints(LAST)}
    check_node("Slice", inputs, opset=13, constants=("s", "e"), dynamic=dynamic)


@every(shape=[(4,), (4, 3)], step=[-1, 2])
def test_slice_of_which_the_axes_alone_are_left_to_the_run(shape: Any, step: int) -> None:
    first, last = (3, 0) if step < 0 else (0, 3)
    inputs = {"x": floats(*shape), "s": ints(first), "e": ints(last), "axes": ints(0), "steps": ints(step)}
    check_node("Slice", inputs, opset=13, constants=("s", "e", "steps"))


def test_slice_bounds_that_other_nodes_compute() -> None:
    """INT64_MAX that passes through a Concat still means "to the end"."""
    nodes = [helper.make_node("Concat", ["near", "far"], ["ends"], axis=0),
             helper.make_node("Slice", ["x", "starts", "ends"], ["y"])]
    feeds = {"x": floats(5, 6), "near": ints(3)}
    model = graph_model(nodes, feeds, ["y"], opset=13, constants={"starts": ints(0, 1), "far": ints(LAST)})
    check_model(model, feeds)


@every(dynamic=DYNAMIC, dtype=[np.float32, np.int64, np.uint8, np.bool_, np.float16])
def test_depth_to_space(dtype: Any, dynamic: Any) -> None:
    x = (floats(2, 8, 2, 3) * 9).astype(dtype)
    check_node("DepthToSpace", {"x": x}, {"blocksize": 2}, opset=1, dynamic=dynamic)
    for mode in ("DCR", "CRD"):
        for opset in (11, 13, 28):
            check_node("DepthToSpace", {"x": x}, {"blocksize": 2, "mode": mode}, opset=opset, dynamic=dynamic)


@every(dynamic=DYNAMIC, dtype=[np.float32, np.int64, np.uint8, np.bool_, np.float16])
def test_space_to_depth(dtype: Any, dynamic: Any) -> None:
    x = (floats(2, 3, 4, 6) * 9).astype(dtype)
    check_node("SpaceToDepth", {"x": x}, {"blocksize": 2}, opset=1, dynamic=dynamic)
    for mode in ("DCR", "CRD"):
        check_node("SpaceToDepth", {"x": x}, {"blocksize": 2, "mode": mode}, opset=28, dynamic=dynamic)


@both
@pytest.mark.parametrize(("batch", "time"), [(0, 1), (1, 0)])
@pytest.mark.parametrize("lengths", [(4, 1, 2, 3), (1, 1, 1, 1), (0, 4, 0, 4)])
def test_reverse_sequence(batch: int, time: int, lengths: Any, dynamic: Any) -> None:
    inputs = {"x": floats(4, 4, 2), "p": ints(*lengths)}
    attributes = {"batch_axis": batch, "time_axis": time}
    for opset in (10, NEWEST):
        check_node("ReverseSequence", inputs, attributes, opset=opset, dynamic=dynamic)
    check_node("ReverseSequence", inputs, attributes, opset=10, dynamic=dynamic, constants=("p",))


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float32])
def test_a_piece_cast_to_boolean(dtype: type) -> None:
    """The runtime does not compile a Convert to boolean of an output of VariadicSplit."""
    nodes = [helper.make_node("Split", ["x", "sizes"], ["a", "b"], axis=0),
             helper.make_node("Cast", ["b"], ["y"], to=TensorProto.BOOL)]
    graph = helper.make_graph(
        nodes, "pieces", [helper.make_tensor_value_info("x", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), [2])],
        [helper.make_tensor_value_info("y", TensorProto.BOOL, [1])],
        [numpy_helper.from_array(np.array([1, 1]), "sizes")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    for last in (0, 3):
        check_model(model, {"x": np.array([1, last], dtype)})


def test_an_input_reshaped_at_run_time_and_returned():
    """The runtime kept the largest shape of a result that is such an input after a copy."""
    nodes = [helper.make_node("Reshape", ["x", "shape"], ["r"]), helper.make_node("Identity", ["r"], ["y"])]
    feeds = [{"x": floats(n), "shape": ints(n)} for n in (2, 5, 2, 1)]
    check_model(graph_model(nodes, feeds[0], ["y"], opset=13, dynamic=["x"]), *feeds)


@every(
    first=["Unsqueeze (x, zero)", "Reshape (x, groups)", "Unsqueeze (s, zero)"],
    last=["Squeeze (t, place)", "Unsqueeze (t, zero)", "Reshape (t, flat)"],
)
def test_a_first_dimension_that_is_moved_between_views(first: str, last: str) -> None:
    """The runtime takes the operations for a shuffle of channels, whose groups are the unknown first dimension."""
    order, place = ("[0, 2, 1, 3]", 0) if "(s" in first else ("[3, 1, 2, 0, 4]", 3)
    model = parsed(f"""main (float[N, 2, 1, 3] a) => (float[?] z)
      <int64[1] zero = {{0}}, int64[1] two = {{2}}, int64[1] place = {{{place}}}, int64[1] flat = {{-1}},
       int64[5] groups = {{1, -1, 2, 1, 3}}> {{
      x = Abs (a) s = Squeeze (x, two) u = {first} t = Transpose <perm={order}> (u) v = {last}
      y = Sqrt (v) z = Reshape (y, flat)
    }}""", opset=18)
    check_model(model, *({"a": floats(size, 2, 1, 3)} for size in (4, 1)))
