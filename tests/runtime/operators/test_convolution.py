"""Convolutions and pools."""

import itertools
from typing import Any

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.api import convert_model
from mo_loop.errors import ConversionErrors
from tests.harness import check, check_node, every, floats, node_model, parsed, run_converted

# -- Conv and ConvTranspose: one, two and three dimensions, groups, every kind of padding


SAME = ({"auto_pad": "SAME_UPPER"}, {"auto_pad": "SAME_LOWER"}, {"auto_pad": "VALID"})


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("dynamic", (False, True))
@pytest.mark.parametrize(("x", "w", "attributes", "opset"), (
    ((2, 4, 8, 9), (6, 4, 3, 3), {"pads": [1, 2, 0, 1], "strides": [2, 1]}, 11),
    ((2, 4, 8, 9), (6, 2, 3, 3), {"group": 2, "dilations": [2, 2], "kernel_shape": [3, 3]}, 1),
    ((2, 4, 8, 9), (4, 1, 3, 2), {"group": 4}, 22),
    ((2, 4, 8), (6, 4, 4), {"auto_pad": "SAME_UPPER", "strides": [2]}, 22),
    ((2, 4, 8), (6, 4, 4), {"auto_pad": "SAME_LOWER"}, 22),
    ((2, 4, 8, 7, 6), (6, 2, 3, 3, 2), {"auto_pad": "VALID", "strides": [1, 2, 2], "group": 2}, 22),
))
def test_conv(x, w, attributes, opset, dynamic):
    inputs = {"x": normal(*x), "w": normal(*w), "b": normal(w[0])}
    check_node("Conv", inputs, attributes, opset=opset, constants=("w", "b"), dynamic=dynamic)


@pytest.mark.parametrize("group", (1, 2))
def test_conv_with_weights_known_at_run_time(group):
    inputs = {"x": normal(1, 4, 5, 5), "w": normal(6, 4 // group, 3, 3), "b": normal(6)}
    check_node("Conv", inputs, {"group": group, "pads": [1, 1, 1, 1]}, opset=11)


@every(group=(1, 2), op=("Conv", "ConvTranspose"))
def test_unknown_sizes_of_filters_follow_from_the_other_inputs(op, group):
    w = normal(6, 4 // group, 3, 3) if op == "Conv" else normal(4, 6 // group, 3, 3)
    inputs = {"x": normal(1, 4, 5, 5), "w": w, "b": normal(6)}
    check_node(op, inputs, {"group": group, "kernel_shape": [3, 3]}, opset=11, dynamic=["w"])


@pytest.mark.parametrize("op", ("Conv", "ConvTranspose", "ConvInteger"))
def test_filters_of_unknown_sizes_are_refused(op):
    inputs = {"x": normal(1, 4, 5, 5), "w": normal(4, 4, 3, 3)}
    if op == "ConvInteger":
        inputs = {name: array.astype(np.uint8) for name, array in inputs.items()}
    with pytest.raises(ConversionErrors, match="ML329"):
        convert_model(node_model(op, inputs, opset=11, dynamic=["w"]))


@pytest.mark.parametrize("dynamic", (False, True))
@pytest.mark.parametrize(("x", "w", "attributes"), (
    ((1, 1, 9, 5), (2, 1, 3, 3), {"strides": [1, 3]}),
    ((1, 1, 9, 4), (2, 1, 3, 3), {"strides": [1, 3], "pads": [1, 1, 0, 0]}),
    ((1, 1, 9, 5), (2, 1, 3, 2), {"strides": [1, 3], "dilations": [1, 3]}),
    ((1, 1, 9, 3), (2, 1, 3, 3), {"strides": [1, 3], "auto_pad": "SAME_UPPER"}),
    ((1, 1, 9, 2), (2, 1, 3, 4), {"strides": [1, 3], "auto_pad": "SAME_LOWER"}),
    ((2, 1, 5, 5, 5), (2, 1, 2, 2, 3), {"strides": [3, 1, 3], "pads": [1, 0, 0, 0, 1, 0]}),
    ((1, 2, 9, 5), (4, 1, 3, 3), {"strides": [1, 3], "group": 2}),
))
def test_a_single_column_of_one_channel(x, w, attributes, dynamic):
    """The runtime reads other rows if only the stride along the last dimension is above 1."""
    check_node("Conv", {"x": normal(*x), "w": normal(*w)}, attributes, opset=22, constants=("w",), dynamic=dynamic)


def test_several_columns_of_one_channel_stay_one_convolution():
    model = node_model("Conv", {"x": normal(1, 1, 9, 6), "w": normal(2, 1, 3, 3)}, {"strides": [1, 3]}, opset=22)
    assert not list(convert_model(model).graph.of(ops.Slice))


@every(dynamic=(False, True), kernel=(1, 2, 3, 5), attributes=SAME)
def test_conv_transpose_pads_by_itself(attributes, kernel, dynamic):
    inputs = {"x": normal(2, 4, 3, 4), "w": normal(4, 3, kernel, kernel)}
    check_node("ConvTranspose", inputs, {"strides": [2, 2], **attributes}, opset=11, constants=("w",), dynamic=dynamic)


@every(dynamic=(False, True), group=(1, 2))
@pytest.mark.parametrize("attributes", (
    {"output_shape": [6, 6]},
    {"output_shape": [8, 7]},
    {"output_shape": [6, 6], "auto_pad": "SAME_UPPER"},
    {"output_shape": [6, 5], "output_padding": [1, 0]},
    {"pads": [1, 0, 0, 1], "output_padding": [1, 1], "dilations": [2, 1]},
))
def test_conv_transpose_to_a_shape(attributes, group, dynamic):
    inputs = {"x": normal(2, 4, 3, 3), "w": normal(4, 3, 3, 3), "b": normal(3 * group)}
    attributes = {"group": group, "strides": [2, 2], **attributes}
    check_node("ConvTranspose", inputs, attributes, opset=22, constants=("w", "b"), dynamic=dynamic)


@pytest.mark.parametrize(
    ("x", "w", "attributes"),
    (((2, 4, 5), (4, 3, 3), {"strides": [3], "pads": [1, 1]}),
     ((2, 4, 5, 4, 3), (4, 3, 3, 2, 2), {"strides": [3, 1, 2], "pads": [1, 1, 0, 0, 0, 1], "group": 2})),
)
def test_conv_transpose_of_other_ranks(x, w, attributes):
    check_node("ConvTranspose", {"x": normal(*x), "w": normal(*w)}, attributes, opset=1)


@pytest.mark.parametrize("offset_group", (1, 2))
def test_deform_conv(offset_group):
    inputs = {"x": normal(2, 4, 5, 6), "w": normal(4, 2, 3, 3), "offset": normal(2, 18 * offset_group, 5, 6),
              "b": normal(4), "mask": np.abs(normal(2, 9 * offset_group, 5, 6))}
    attributes = {"pads": [1, 1, 1, 1], "group": 2, "offset_group": offset_group}
    check_node("DeformConv", inputs, attributes, opset=19, constants=("w", "b"))


@pytest.mark.parametrize(("x", "image", "block", "strides"),
                         (((2, 12, 6), [6, 5], [2, 2], [2, 3]), ((2, 24, 18), [6, 5, 6], [2, 2, 2], [2, 3, 2])))
def test_col_2_im(x, image, block, strides):
    inputs = {"x": normal(*x), "image": np.array(image), "block": np.array(block)}
    check_node("Col2Im", inputs, {"strides": strides}, opset=18, constants=("image", "block"))


# -- Pools: sizes, pads and rounding in all combinations that differ, indices, dilations


# kernel, stride, pads, size: each rounds in another way, the last ones with a window that starts in the padding
PLACES = tuple(itertools.product((2, 3), (1, 2, 3), ((0, 0), (1, 0), (0, 1), (1, 1)), (5, 6, 7)))
SOME = PLACES[::5]


def attributes_of(place, ceil_mode):
    kernel, stride, pads, _ = place
    return {"kernel_shape": [kernel], "strides": [stride], "pads": list(pads), "ceil_mode": ceil_mode}


@every(ceil_mode=(0, 1), place=PLACES[::3])
def test_max_pool(place, ceil_mode):
    check_node("MaxPool", {"x": normal(2, 3, place[3])}, attributes_of(place, ceil_mode), opset=22, dynamic=True)


@every(dilation=(1, 2), place=SOME)
def test_max_pool_gives_indices(place, dilation):
    attributes = {**attributes_of(place, 1), "dilations": [dilation]}
    check_node("MaxPool", {"x": normal(2, 3, place[3])}, attributes, opset=12, outputs=2)


@every(kernel=([1, 1], [2, 2], [3, 3], [5, 4], [2, 3, 2]), dynamic=(False, True))
def test_max_pool_gives_the_first_of_equals(kernel, dynamic):
    count = len(kernel)
    x = np.random.default_rng(count).integers(0, 3, (2, 3, 9, 8, 7)[: 2 + count]).astype(np.float32)
    x[0, 0, 0] = -np.inf
    pads = [int(kernel[0] > 2)] * 2 * count
    attributes = {"kernel_shape": kernel, "strides": [2] * count, "ceil_mode": 1, "pads": pads}
    check_node("MaxPool", {"x": x}, attributes, opset=12, outputs=2, dynamic=dynamic)


@pytest.mark.parametrize("dynamic", (False, True))
def test_max_pool_gives_indices_column_by_column(dynamic):
    attributes = {"kernel_shape": [3, 2], "strides": [2, 1], "pads": [1, 0, 1, 1], "storage_order": 1}
    check_node("MaxPool", {"x": normal(2, 3, 7, 5)}, attributes, opset=8, outputs=2, dynamic=dynamic)


@pytest.mark.parametrize("dtype", (np.uint8, np.int8, np.float16, np.float64))
def test_max_pool_of_other_types(dtype):
    x = (normal(1, 2, 5, 5) * 40).astype(dtype)
    check_node("MaxPool", {"x": x}, {"kernel_shape": [2, 2], "pads": [1, 0, 0, 1]}, opset=12)


@every(count_include_pad=(0, 1), ceil_mode=(0, 1), place=PLACES[::2])
def test_average_pool(place, ceil_mode, count_include_pad):
    attributes = {**attributes_of(place, ceil_mode), "count_include_pad": count_include_pad}
    check_node("AveragePool", {"x": normal(2, 3, place[3])}, attributes, opset=19, dynamic=True)


@every(count_include_pad=(0, 1), ceil_mode=(0, 1), place=SOME)
def test_average_pool_dilated(place, ceil_mode, count_include_pad):
    attributes = {**attributes_of(place, ceil_mode), "count_include_pad": count_include_pad, "dilations": [2]}
    check_node("AveragePool", {"x": normal(2, 3, place[3])}, attributes, opset=22)


@every(extra=({}, {"dilations": [2]}, {"p": 1}, {"p": 3}), ceil_mode=(0, 1), place=SOME[::3])
def test_lp_pool(place, ceil_mode, extra):
    check_node("LpPool", {"x": normal(2, 3, place[3])}, {**attributes_of(place, ceil_mode), **extra}, opset=18)


@every(op=("MaxPool", "AveragePool", "LpPool"), auto_pad=("SAME_UPPER", "SAME_LOWER", "VALID"), dynamic=(False, True))
def test_pools_pad_by_themselves(op, auto_pad, dynamic):
    attributes = {"kernel_shape": [3, 4], "strides": [2, 1], "auto_pad": auto_pad}
    check_node(op, {"x": normal(2, 3, 7, 6)}, attributes, opset=11, dynamic=dynamic)


# kernel, strides, pads, dilations, size: each window, or one of its dimensions, is longer than the input
LONGER = (
    ((10,), (10,), (0, 0), (1,), (7,)),
    ((10,), (4,), (1, 0), (1,), (7,)),
    ((2,), (5,), (0, 0), (3,), (3,)),
    ((5, 3), (4, 2), (1, 0, 0, 1), (1, 1), (3, 6)),
    ((2, 3), (2, 3), (0, 0, 0, 0), (2, 1), (2, 2)),
    ((3, 1, 4), (3, 1, 2), (0, 0, 0, 0, 0, 1), (1, 1, 1), (2, 3, 2)),
)


@pytest.mark.parametrize("dynamic", (False, True))
@pytest.mark.parametrize(("op", "extra", "outputs"), (
    ("MaxPool", {}, 1),
    ("MaxPool", {}, 2),
    ("MaxPool", {"storage_order": 1}, 2),
    ("AveragePool", {"count_include_pad": 0}, 1),
    ("AveragePool", {"count_include_pad": 1}, 1),
    ("LpPool", {"p": 1}, 1),
    ("LpPool", {"p": 2}, 1),
))
@pytest.mark.parametrize("place", LONGER)
def test_a_window_longer_than_its_input_has_one_place(place, op, extra, outputs, dynamic):
    kernel, strides, pads, dilations, size = place
    attributes = {"kernel_shape": kernel, "strides": strides, "pads": pads, "dilations": dilations, "ceil_mode": 1,
                  **extra}
    if op == "LpPool" and any(s > k for s, k in zip(strides, kernel, strict=True)):
        attributes["strides"] = kernel  # ONNX Runtime pads by less than nothing otherwise
    check_node(op, {"x": normal(2, 3, *size)}, attributes, opset=22, outputs=outputs, dynamic=dynamic)


@pytest.mark.parametrize("op", ("MaxPool", "AveragePool"))
def test_pools_of_volumes(op):
    attributes = {"kernel_shape": [2, 2, 3], "strides": [2, 1, 2], "pads": [1, 0, 1, 0, 1, 1]}
    check_node(op, {"x": normal(1, 2, 5, 6, 7)}, attributes, opset=1 if op == "AveragePool" else 8)


@pytest.mark.parametrize("dynamic", (False, True))
@pytest.mark.parametrize(
    ("op", "attributes"),
    (("GlobalAveragePool", {}), ("GlobalMaxPool", {}), ("GlobalLpPool", {}), ("GlobalLpPool", {"p": 3})),
)
def test_global_pools(op, attributes, dynamic):
    check_node(op, {"x": normal(2, 3, 7, 6)}, attributes, opset=2, dynamic=dynamic)


@pytest.mark.parametrize("dynamic", (False, True))
def test_a_norm_of_degree_zero_counts(dynamic):
    """ONNX Runtime computes the root of degree 0 and gives infinity; OpenVINO's front end counts."""
    x = np.maximum(normal(2, 3, 7, 6), 0)
    expected = np.count_nonzero(x, axis=(2, 3), keepdims=True).astype(np.float32)
    check_node("GlobalLpPool", {"x": x}, {"p": 0}, opset=2, dynamic=dynamic, expected=[expected])


@pytest.mark.parametrize("output_shape", (None, (1, 1, 6, 5)))
def test_max_unpool(output_shape):
    inputs = {"x": normal(1, 1, 2, 2), "i": np.array([[[[5, 7], [13, 15]]]]),
              "output_shape": None if output_shape is None else np.array(output_shape)}
    expected = np.zeros((4, 4), np.float32)
    expected.reshape(-1)[[5, 7, 13, 15]] = inputs["x"].reshape(-1)
    if output_shape is not None:
        expected = np.pad(expected, ((0, 2), (0, 1)))
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2]}
    check_node("MaxUnpool", inputs, attributes, opset=11, expected=[expected.reshape(1, 1, *expected.shape)])


@pytest.mark.parametrize(
    ("pads", "sizes"), [((0, 0, 1, 1), (3, 3)), ((1, 1, 0, 0), (3, 3)), ((1, 0, 1, 1), (2, 3)), ((0, 0, 1, 0), (3, 4))]
)
def test_max_unpool_of_a_padded_pool(pads, sizes):
    """The tensor without padding is smaller at both ends."""
    x = normal(1, 1, 2, 2)
    expected = np.zeros(sizes, np.float32)
    expected.reshape(-1)[[0, 2, 3, 5]] = x.reshape(-1)
    attributes = {"kernel_shape": [2, 2], "strides": [2, 2], "pads": list(pads)}
    inputs = {"x": x, "i": np.array([[[[0, 2], [3, 5]]]])}
    check_node("MaxUnpool", inputs, attributes, opset=11, expected=[expected.reshape(1, 1, *sizes)])


def test_equal_channels_have_equal_means() -> None:
    """ReduceMean adds the last, incomplete block of channels in another order on the CPU device."""
    value = np.float32(2.151328e9)
    x = np.full((1, 1000, 13, 13), value, np.float32)
    [[(_, mean)]] = run_converted(node_model("GlobalAveragePool", {"x": x}, opset=9), {"x": x})
    np.testing.assert_allclose(mean, np.full((1, 1000, 1, 1), value), rtol=1e-5)
    assert len(np.unique(mean)) == 1


@pytest.mark.parametrize("rule", ("SAME_UPPER", "SAME_LOWER"))
def test_places_where_a_rule_pads_tensors_of_unknown_size(rule):
    """The runtime computes indices without the padding of the rule."""
    attributes = {"kernel_shape": [3, 2], "auto_pad": rule}
    check_node("MaxPool", {"x": normal(2, 3, 5, 4)}, attributes, opset=12, outputs=2, dynamic=True)


def test_places_where_padding_hangs_on_an_unknown_size_are_refused():
    attributes = {"kernel_shape": [3], "auto_pad": "SAME_UPPER", "strides": [2]}
    check_node("MaxPool", {"x": normal(2, 3, 5)}, attributes, opset=12, outputs=2)
    with pytest.raises(ConversionErrors, match="ML316"):
        check_node("MaxPool", {"x": normal(2, 3, 5)}, attributes, opset=12, outputs=2, dynamic=True)


def test_places_of_the_smallest_integer():
    """The runtime starts with it, and does not find an element that is not larger."""
    attributes = {"kernel_shape": [2], "strides": [2]}
    x = np.array([[[0, 0, 1, 0, 0, 0, 200, 7]]], np.uint8)
    check_node("MaxPool", {"x": x}, attributes, opset=12, outputs=2, dynamic=True)
    check_node("MaxPool", {"x": np.full((1, 1, 4), -128, np.int8)}, attributes, opset=12, outputs=2)


@pytest.mark.parametrize("pool", [
    "AveragePool <kernel_shape = [3, 3], pads = [1, 1, 1, 1]> (m)", "MaxPool <kernel_shape = [1, 1]> (m)",
])
def test_parts_of_a_pool_of_one_channel(pool: str) -> None:
    """The runtime keeps channels last, and took them for the width, if their numbers are not known: seed 53, 14."""
    model = parsed(f"""main (float[3, N, 1, 1] x, float[3, N, 1, 1] y) => (float[3, N, 1, 2] c, float[3, N, 1, 3] p) {{
      m = MaxPool <kernel_shape = [1, 1]> (x)  a = {pool}
      c = Concat <axis = -1> (a, y)
      pads = Constant <value_ints = [0, 0, 0, 1, 0, 0, 0, 1]> ()  p = Pad (a, pads)
    }}""")
    check(model, *({"x": floats(3, size, 1, 1), "y": floats(3, size, 1, 1)} for size in (1, 2, 1)))


# -- Col2Im of shapes known only at run time, compared with the model with constants and with the reference evaluator


CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((3, 4, 5), (1, 2, 3), {}),
    ((5, 4, 6), (2, 1, 3), {"strides": [2, 1, 2], "pads": [1, 0, 2, 0, 1, 1]}),
    ((5, 5, 7), (2, 2, 3), {"dilations": [2, 1, 3]}),
    ((7,), (3,), {"strides": [2], "pads": [1, 1]}),
]


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("constants", [(), ("block",), ("image",)], ids=["none", "block", "image"])
@pytest.mark.parametrize(("image", "block", "attributes"), CASES, ids=str)
def test_shapes_known_at_run_time(image: Any, block: Any, attributes: Any, constants: Any, dynamic: bool) -> None:
    count = len(image)
    pads, strides = attributes.get("pads", [0] * 2 * count), attributes.get("strides", [1] * count)
    gaps = attributes.get("dilations", [1] * count)
    windows = [
        (image[i] + pads[i] + pads[count + i] - (block[i] - 1) * gaps[i] - 1) // strides[i] + 1 for i in range(count)
    ]
    columns = np.random.default_rng(1).standard_normal((2, 3 * int(np.prod(block)), int(np.prod(windows))))
    inputs = {"x": columns.astype(np.float32), "image": np.array(image), "block": np.array(block)}
    check_node(
        "Col2Im", inputs, attributes, opset=18, constants=constants, dynamic=("x",) if dynamic else False,
        expected=None if count == 3 and not attributes else [added(inputs["x"], image, block, pads, strides, gaps)],
    )


def added(x: Any, image: Any, block: Any, pads: Any, strides: Any, gaps: Any) -> Any:
    """Element by element."""
    count = len(image)
    padded = [image[i] + pads[i] + pads[count + i] for i in range(count)]
    windows = [(padded[i] - (block[i] - 1) * gaps[i] - 1) // strides[i] + 1 for i in range(count)]
    values = x.reshape(len(x), -1, *block, *windows)
    whole = np.zeros((*values.shape[:2], *padded), np.float32)
    for place in np.ndindex(*block, *windows):
        at = tuple(place[count + i] * strides[i] + place[i] * gaps[i] for i in range(count))
        whole[(slice(None), slice(None), *at)] += values[(slice(None), slice(None), *place)]
    inner = tuple(slice(pads[i], pads[i] + image[i]) for i in range(count))
    return whole[(slice(None), slice(None), *inner)]
