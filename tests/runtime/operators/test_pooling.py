"""Pools: sizes, pads and rounding in all combinations that differ, indices, dilations."""

import itertools

import numpy as np
import pytest

from mo_loop.errors import ConversionErrors
from tests.harness import check, check_node, every, floats, node_model, parsed, run_converted

# kernel, stride, pads, size: each rounds in another way, the last ones with a window that starts in the padding
PLACES = tuple(itertools.product((2, 3), (1, 2, 3), ((0, 0), (1, 0), (0, 1), (1, 1)), (5, 6, 7)))
SOME = PLACES[::5]


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


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
