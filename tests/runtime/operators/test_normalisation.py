"""Normalisation and Dropout, compared with ONNX Runtime or the ONNX reference evaluator."""

import numpy as np
import pytest
from onnx import helper

from mo_loop.target import Processor as Processor
from tests.cases import read_cases
from tests.harness import check_model, graph_model
from tests.running.processor import wrong_under as wrong_under

RNG = np.random.default_rng(13)
dynamic_or_not = pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])


def floats(*shape, dtype=np.float32):
    return RNG.standard_normal(shape).astype(dtype)


def statistics(*shape, dtype=np.float32):
    """Scale, bias, mean and variance."""
    values = [RNG.uniform(0.5, 2, shape).astype(dtype) for _ in range(4)]
    return dict(zip(("scale", "bias", "mean", "variance"), values, strict=True))


# -- over parts of one sample


@dynamic_or_not
def test_group_in_a_loop(dynamic):
    """The runtime refuses GroupNormalization-12 in a body; it accepts the composition."""
    shape = [None if dynamic else dim for dim in (1, 4, 3, 3)]
    body = helper.make_graph(
        [helper.make_node("GroupNormalization", ["x", "scale", "bias"], ["y"], num_groups=2),
         helper.make_node("Identity", ["c"], ["c_out"])],
        "body",
        [helper.make_tensor_value_info("i", 7, []), helper.make_tensor_value_info("c", 9, []),
         helper.make_tensor_value_info("x", 1, shape)],
        [helper.make_tensor_value_info("c_out", 9, []), helper.make_tensor_value_info("y", 1, shape)],
    )
    node = helper.make_node("Loop", ["n", "", "start"], ["out"], body=body)
    arrays = {"start": floats(1, 4, 3, 3), "scale": floats(4), "bias": floats(4)}
    constants = {"n": np.array(3, np.int64), "scale": arrays["scale"], "bias": arrays["bias"]}
    model = graph_model([node], {"start": arrays["start"]}, ["out"], opset=21, constants=constants, dynamic=dynamic)
    check_model(model, {"start": arrays["start"]})


read_cases(globals())
