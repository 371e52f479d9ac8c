"""Reductions, ArgMax and ArgMin, compared with ONNX Runtime or numpy."""

import numpy as np
from onnx import helper

from mo_loop import convert_model
from mo_loop.text import to_text
from tests.cases import read_cases
from tests.harness import check_model, every, folded, graph_model

RNG = np.random.default_rng(3)
X = RNG.uniform(0.1, 2, (2, 3, 4)).astype(np.float32)
OPS = ["ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
       "ReduceLogSum", "ReduceLogSumExp"]
ATTRIBUTE_FORMS = [(op, opset) for op in OPS for opset in (1, 11, 13) if (op, opset) != ("ReduceSum", 13)]


def by_numpy(op, x, axes, keep):
    y = x.astype(np.float64)
    sums = {
        "ReduceSum": lambda: np.sum(y, axes, keepdims=keep), "ReduceMean": lambda: np.mean(y, axes, keepdims=keep),
        "ReduceMax": lambda: np.max(y, axes, keepdims=keep), "ReduceMin": lambda: np.min(y, axes, keepdims=keep),
        "ReduceProd": lambda: np.prod(y, axes, keepdims=keep), "ReduceL1": lambda: np.sum(abs(y), axes, keepdims=keep),
        "ReduceL2": lambda: np.sqrt(np.sum(y * y, axes, keepdims=keep)),
        "ReduceSumSquare": lambda: np.sum(y * y, axes, keepdims=keep),
        "ReduceLogSum": lambda: np.log(np.sum(y, axes, keepdims=keep)),
        "ReduceLogSumExp": lambda: np.log(np.sum(np.exp(y), axes, keepdims=keep)),
    }
    return np.asarray(sums[op]()).astype(x.dtype)


@every(maker=["Sigmoid", "Softmax", "Relu", "Exp", "Clip"], op=["ReduceMax", "ReduceMin"])
def test_extremes_of_what_is_bounded_need_no_guard(op, maker):
    x = np.array([[-np.inf, 3, -np.inf], [-np.inf] * 3, [np.inf, 1, -2], [-1, np.inf, 0]], np.float32)[None]
    x = np.nan_to_num(x) if maker == "Softmax" else x
    inputs = ["x", "low", "high"] if maker == "Clip" else ["x"]
    nodes = [helper.make_node(maker, inputs, ["made"]),
             helper.make_node("Transpose", ["made"], ["moved"], perm=[2, 0, 1]),
             helper.make_node(op, ["moved", "axes"], ["y"])]
    constants = {"axes": np.array([0]), "low": np.float32(-1), "high": np.float32(2)}
    model = graph_model(nodes, {"x": x}, ["y"], opset=18, constants=constants)
    check_model(model, {"x": x})
    is_open = op == "ReduceMin" and maker in ("Relu", "Exp")
    assert to_text(convert_model(model, **folded()).graph).count("Multiply") == 2 * is_open


read_cases(globals())
