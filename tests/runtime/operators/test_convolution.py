"""Convolutions and pools."""

import itertools
from typing import Any

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.api import convert_model
from mo_loop.errors import ConversionErrors
from tests.cases import read_cases
from tests.harness import check_node, node_model, raised, run_converted

# -- Conv and ConvTranspose: one, two and three dimensions, groups, every kind of padding


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("op", ("Conv", "ConvTranspose", "ConvInteger"))
def test_filters_of_unknown_sizes_are_refused(op):
    inputs = {"x": normal(1, 4, 5, 5), "w": normal(4, 4, 3, 3)}
    if op == "ConvInteger":
        inputs = {name: array.astype(np.uint8) for name, array in inputs.items()}
    raised(ConversionErrors, convert_model, node_model(op, inputs, opset=11, dynamic=["w"]), match="ML329")


def test_several_columns_of_one_channel_stay_one_convolution():
    model = node_model("Conv", {"x": normal(1, 1, 9, 6), "w": normal(2, 1, 3, 3)}, {"strides": [1, 3]}, opset=22)
    assert not list(convert_model(model).graph.of(ops.Slice))


# -- Pools: sizes, pads and rounding in all combinations that differ, indices, dilations


# kernel, stride, pads, size: each rounds in another way, the last ones with a window that starts in the padding
PLACES = tuple(itertools.product((2, 3), (1, 2, 3), ((0, 0), (1, 0), (0, 1), (1, 1)), (5, 6, 7)))
SOME = PLACES[::5]


def attributes_of(place, ceil_mode):
    kernel, stride, pads, _ = place
    return {"kernel_shape": [kernel], "strides": [stride], "pads": list(pads), "ceil_mode": ceil_mode}


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


def test_equal_channels_have_equal_means() -> None:
    """ReduceMean adds the last, incomplete block of channels in another order on the CPU device."""
    value = np.float32(2.151328e9)
    x = np.full((1, 1000, 13, 13), value, np.float32)
    [[(_, mean)]] = run_converted(node_model("GlobalAveragePool", {"x": x}, opset=9), {"x": x})
    np.testing.assert_allclose(mean, np.full((1, 1000, 1, 1), value), rtol=1e-5)
    assert len(np.unique(mean)) == 1


# -- Col2Im of shapes known only at run time, compared with the model with constants and with the reference evaluator


CASES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((3, 4, 5), (1, 2, 3), {}),
    ((5, 4, 6), (2, 1, 3), {"strides": [2, 1, 2], "pads": [1, 0, 2, 0, 1, 1]}),
    ((5, 5, 7), (2, 2, 3), {"dilations": [2, 1, 3]}),
    ((7,), (3,), {"strides": [2], "pads": [1, 1]}),
]


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


read_cases(globals())
