"""Conv and ConvTranspose: one, two and three dimensions, groups, every kind of padding."""

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.api import convert_model
from mo_loop.errors import ConversionErrors
from tests.harness import check_node, every, node_model

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
