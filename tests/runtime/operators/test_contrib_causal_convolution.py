"""Causal convolutions: states, layouts, and sequences that are packed."""

import numpy as np
import pytest

from tests.harness import check_node, need_onnxruntime, node_model, refusal

RNG = np.random.default_rng(5)
STATEFUL, PACKED = "com.microsoft::CausalConvWithState", "com.microsoft::VarlenCausalConvWithState"
dynamic_or_not = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])


def floats(*shape):
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("length", [0, 1, 5])
@dynamic_or_not
def test_positions_before_the_first_are_the_state(length, dynamic):
    inputs = {"x": floats(2, 3, length), "w": floats(3, 1, 4), "b": floats(3), "past": floats(2, 3, 6)}
    attributes = {"activation": "silu", "dilation": 2}
    check_node(STATEFUL, inputs, attributes, opset=1, outputs=["y", "state"], constants=["w", "b"], dynamic=dynamic)


@dynamic_or_not
def test_several_axes_of_channels_behind_the_positions(dynamic):
    inputs = {"x": floats(2, 4, 3, 2), "w": floats(6, 1, 3), "b": None, "past": floats(2, 2, 3, 2)}
    attributes = {"channels_last": 1}
    names = ["x", "past"] if dynamic else False
    check_node(STATEFUL, inputs, attributes, opset=1, outputs=["y", "state"], constants=["w"], dynamic=names)


@dynamic_or_not
def test_a_batch_of_none_keeps_the_channels(dynamic):
    inputs = {"x": floats(0, 5, 1, 3, 3), "w": floats(9, 1, 1), "b": None, "past": floats(0, 0, 1, 3, 3)}
    attributes = {"channels_last": 1}
    names = ["x", "past"] if dynamic else False
    check_node(STATEFUL, inputs, attributes, opset=1, outputs=["y", "state"], constants=["w"], dynamic=names)


@dynamic_or_not
def test_weights_known_at_run_time(dynamic):
    inputs = {"x": floats(2, 3, 4), "w": floats(3, 1, 3)}
    names = ["x"] if dynamic else False
    check_node(STATEFUL, inputs, {}, opset=1, outputs=["y", "state"], dynamic=names)


@pytest.mark.parametrize("ends", [[0, 2, 3, 7], [0, 0, 7, 7]])
@dynamic_or_not
def test_packed_sequences_have_states_of_their_own(ends, dynamic):
    need_onnxruntime("1.32")
    inputs = {"x": floats(7, 2), "w": floats(2, 1, 3), "ends": np.array(ends, np.int32), "b": floats(2),
              "state": floats(3, 2, 4), "count": np.array([5, -1, 2], np.int32)}
    attributes = {"dilation": 2, "state_update_capacity": 3}
    outputs = ["y", "final", "update"]
    check_node(PACKED, inputs, attributes, opset=1, outputs=outputs, constants=["w", "b"], dynamic=dynamic)


@pytest.mark.parametrize("attributes", [{"ndim": 2}, {"state_window": 2}, {"channels_last": 1, "state_length": 5}])
def test_forms_without_a_kernel_are_refused(attributes):
    inputs = {"x": floats(2, 3, 4), "w": floats(3, 1, 3)}
    assert "ML316" in str(refusal(node_model(STATEFUL, inputs, attributes, opset=1, outputs=["y", "state"])))
