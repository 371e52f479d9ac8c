"""Operators that extend, cut or create tensors: Expand, Tile, Pad, Range, EyeLike ..."""

from typing import Any

import numpy as np
import pytest
from onnx import helper

from mo_loop import ops
from mo_loop.api import convert_model
from mo_loop.errors import ConversionWarning
from tests.harness import NEWEST, check_model, check_node, every, graph_model, node_model, pairs, parsed, refusal

from .test_movement import DYNAMIC, both, floats, given, ints


@both
@given
@pytest.mark.parametrize(
    ("shape", "target"),
    [((3, 1), (2, 1, 6)), ((3, 1), (3, 4)), ((1, 3, 1), (3, 4)), ((), (2, 3)), ((2,), (1,)), ((1, 1), (0, 3)),
     ((0, 1), (1, 2)), ((2, 3), ()), ((1,), (1, 1, 1))],
)
def test_expand(shape: Any, target: Any, constants: Any, dynamic: Any) -> None:
    for opset in (8, 13):
        inputs = {"x": floats(*shape), "p": ints(*target)}
        check_node("Expand", inputs, opset=opset, constants=constants, dynamic=dynamic)


@both
@given
@pytest.mark.parametrize(("shape", "repeats"),
                         [((2, 3), (2, 2)), ((2, 3), (1, 4)), ((2, 1, 3), (3, 0, 2)), ((4,), (3,)), ((0, 2), (2, 2))])
def test_tile(shape: Any, repeats: Any, constants: Any, dynamic: Any) -> None:
    """Repeats of several dimensions at run time: one Tile gives wrong numbers in the runtime."""
    for opset in (6, 13):
        inputs = {"x": floats(*shape), "p": ints(*repeats)}
        check_node("Tile", inputs, opset=opset, constants=constants, dynamic=dynamic)


@both
@every(shape=[(), (1,)], axis=[0, 1])
def test_tile_along_one_axis(axis: int, shape: Any, dynamic: Any) -> None:
    x, times, place = floats(2, 3), np.full(shape, 3, np.float32), np.full(shape, axis, np.float32)
    inputs = {"x": x, "tiles": times, "axis": place}
    expected = [np.tile(x, [3 if i == axis else 1 for i in range(2)])]
    check_node("Tile", inputs, opset=1, constants=("axis",), dynamic=dynamic, expected=expected)
    check_node("Tile", inputs, opset=1, constants=("axis", "tiles"), dynamic=dynamic, expected=expected)


MODES = ["constant", "edge", "reflect"]


@both
@pytest.mark.parametrize("mode", MODES)
def test_pad_by_attributes(mode: str, dynamic: Any) -> None:
    x = floats(3, 4)
    plain = np.pad(x, [(1, 0), (2, 1)], mode, **({"constant_values": 1.5} if mode == "constant" else {}))
    given = {"mode": mode, "value": 1.5}
    check_node("Pad", {"x": x}, {"paddings": [1, 2, 0, 1], **given}, opset=1, dynamic=dynamic, expected=[plain])
    check_node("Pad", {"x": x}, {"pads": [1, 2, 0, 1], **given}, opset=2, dynamic=dynamic)
    check_node("Pad", {"x": x}, {"pads": [1, -1, 0, 2], **given}, opset=2, dynamic=dynamic)


@pairs(pads=[(1, 2, 0, 1), (0, -1, 1, 1), (0, 0, 0, 0), (-1, 0, -1, 0), (1, 0, 0, -1)], mode=MODES,
       opset=[11, 13, 18, 24], constants=[(), ("p",)], dynamic=DYNAMIC)
def test_pad(pads: Any, mode: str, opset: int, constants: Any, dynamic: Any) -> None:
    inputs = {"x": floats(3, 4), "p": ints(*pads)}
    check_node("Pad", inputs, {"mode": mode}, opset=opset, constants=constants, dynamic=dynamic)


@pairs(dtype=[np.float32, np.int64, np.int32, np.uint8, np.bool_, np.float16], late=[False, True],
       constants=[(), ("p",)], dynamic=DYNAMIC)
def test_pad_with_a_value(dtype: Any, late: bool, constants: Any, dynamic: Any) -> None:
    """The runtime does not read a computed value if the pads are constants."""
    inputs = {"x": (floats(3, 4) * 3).astype(dtype), "p": ints(1, 2, 0, 1), "v": np.array(5).astype(dtype)}
    names = (*constants, *(() if late else ("v",)))
    check_node("Pad", inputs, opset=13, constants=names, dynamic=dynamic)
    check_node("Pad", inputs | {"p": ints(1, -1, 0, 1)}, opset=13, constants=names, dynamic=dynamic)


@pytest.mark.parametrize("pads", [(1, 2, 0, 1), (0, -1, 1, 1), (1, 0, 0, -1)])
def test_only_the_newer_operation_removes_elements(pads: tuple[int, ...]) -> None:
    graph = convert_model(node_model("Pad", {"x": floats(3, 4)}, {"pads": pads}, opset=2)).graph
    assert len(graph.of(ops.Pad12)) == (min(pads) < 0)


def test_pad_with_a_value_that_changes() -> None:
    inputs = {"x": floats(3, 4), "p": ints(1, 2, 0, 1), "v": np.float32(1)}
    model = node_model("Pad", inputs, opset=13, constants=("p",))
    check_model(model, inputs, inputs | {"v": np.float32(2)}, inputs | {"v": np.float32(3)})


@pairs(axes=[(1,), (-1, 0), (2, 1)], mode=[*MODES, "wrap"], constants=[("p", "axes"), ("p",), ("axes",), ()],
       dynamic=DYNAMIC)
def test_pad_of_some_axes(axes: Any, mode: str, constants: Any, dynamic: Any) -> None:
    pads = [1, 0, 2, 1][: 2 * len(axes)]
    inputs = {"x": floats(3, 4, 5), "p": ints(*pads), "v": None, "axes": ints(*axes)}
    expected = [np.pad(inputs["x"], _widths(3, axes, pads), mode)]
    check_node("Pad", inputs, {"mode": mode}, opset=19, constants=constants, dynamic=dynamic, expected=expected)


def _widths(rank: int, axes: Any, pads: Any) -> Any:
    widths = [(0, 0)] * rank
    for i, axis in enumerate(axes):
        widths[axis] = (pads[i], pads[len(axes) + i])
    return widths


@both
@given
@pytest.mark.parametrize("pads", [(1, 2, 0, 1), (7, 0, 0, 9), (0, -1, 1, 2)])
def test_pad_wraps(pads: Any, constants: Any, dynamic: Any) -> None:
    x = floats(3, 4)
    rows, columns = (np.arange(-pads[i], x.shape[i] + pads[i + 2]) % x.shape[i] for i in (0, 1))
    expected = [x[rows][:, columns]]
    inputs = {"x": x, "p": ints(*pads)}
    check_node("Pad", inputs, {"mode": "wrap"}, opset=19, constants=constants, dynamic=dynamic, expected=expected)


@both
@given
@pytest.mark.parametrize("target", [(7, 2), (2, 7), (4, 5), (5, 4), (1, 1), (9, 10)])
def test_center_crop_pad(target: Any, constants: Any, dynamic: Any) -> None:
    inputs = {"x": floats(4, 5), "p": ints(*target)}
    check_node("CenterCropPad", inputs, opset=18, constants=constants, dynamic=dynamic)


@both
@given
def test_center_crop_pad_of_some_axes(constants: Any, dynamic: Any) -> None:
    """ONNX Runtime does not load its function for sizes of 32 bits."""
    inputs = {"x": floats(4, 5, 3), "p": np.array([2, 6], np.int32)}
    check_node("CenterCropPad", inputs, {"axes": [-1, 0]}, opset=18, constants=constants, dynamic=dynamic,
               expected=[np.pad(inputs["x"][..., :2], ((1, 1), (0, 0), (0, 0)))])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int16, np.int32, np.int64])
@pytest.mark.parametrize("bounds", [(0, 5, 1), (5, 0, -2), (1, 8, 3), (3, 3, 1), (4, 1, 1)])
def test_range(bounds: Any, dtype: Any) -> None:
    inputs = dict(zip("abc", (np.array(each, dtype) for each in bounds), strict=True))
    for constants in ((), ("a", "c"), ("a", "b", "c")):
        check_node("Range", inputs, opset=11, constants=constants)


def test_range_of_fractions() -> None:
    inputs = {"a": np.float32(0.5), "b": np.float32(2.1), "c": np.float32(0.25)}
    check_node("Range", inputs, opset=11)
    check_node("Range", {name: value.astype(np.float16) for name, value in inputs.items()}, opset=NEWEST)


@pairs(shape=[(3, 4), (4, 3), (0, 2)], k=[0, 1, -2, 9, -9], typed=[{}, {"dtype": 7}], opset=[9, 22], dynamic=DYNAMIC)
def test_eye_like(shape: Any, k: int, typed: dict[str, int], opset: int, dynamic: Any) -> None:
    check_node("EyeLike", {"x": floats(*shape)}, {"k": k, **typed}, opset=opset, dynamic=dynamic)


@pairs(shape=[(3, 4), (2, 4, 3), (0, 3), (1, 2, 3, 3)], k=[None, 0, 1, -2, 9, -9], upper=[0, 1], constants=[(), ("k",)],
       dynamic=DYNAMIC)
def test_trilu(shape: Any, k: int | None, upper: int, constants: Any, dynamic: Any) -> None:
    inputs = {"x": floats(*shape)} | ({} if k is None else {"k": np.array(k, np.int64)})
    names = constants if k is not None else ()
    check_node("Trilu", inputs, {"upper": upper}, opset=14, constants=names, dynamic=dynamic)


@both
@pytest.mark.parametrize("dtype", [np.bool_, np.int64, np.float16, np.uint8])
def test_trilu_of_other_types(dtype: Any, dynamic: Any) -> None:
    check_node("Trilu", {"x": (floats(3, 4) * 9).astype(dtype)}, opset=14, dynamic=dynamic)


def test_shapes_that_are_computed_stay_visible() -> None:
    """Shape -> Gather -> Concat -> Expand: the rank and the static dimensions of the result are known."""
    nodes = [helper.make_node("Shape", ["x"], ["dims"]), helper.make_node("Gather", ["dims", "first"], ["n"]),
             helper.make_node("Concat", ["n", "four"], ["shape"], axis=0),
             helper.make_node("Expand", ["y", "shape"], ["z"])]
    feeds = {"x": floats(3, 2), "y": floats(1)}
    constants = {"first": ints(0), "four": ints(4)}
    model = graph_model(nodes, feeds, ["z"], opset=13, constants=constants, dynamic=True)
    check_model(model, feeds)
    assert str(convert_model(model).graph.results[0].value.type) == "f32[x_0,4]"


def test_modes_that_do_not_exist() -> None:
    assert "mode" in str(refusal(node_model("Pad", {"x": floats(2)}, {"pads": [0, 1], "mode": "mirror"}, opset=2)))


def test_the_last_of_two_constants_of_one_name_holds_for_all_readers():
    """As in ONNX Runtime, which makes them initializers before it runs a node."""
    made = parsed("""main (float[2] x) => (float[2] y, float[2] z) {
        t = Constant <value_float = 3.0> ()  y = Mul (x, t)  t = Constant <value_float = 4.0> ()  z = Add (x, t) }""")
    x = np.array([1, 2], np.float32)
    with pytest.warns(ConversionWarning, match="two nodes make 't'"):
        check_model(made, {"x": x}, expected=[x * 4, x + 4])
