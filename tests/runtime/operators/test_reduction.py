"""Reductions, ArgMax and ArgMin, compared with ONNX Runtime or numpy."""

import numpy as np

from mo_loop.text import to_text as to_text
from tests.cases import read_cases

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


read_cases(globals())
