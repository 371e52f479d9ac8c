"""The last step of the models of ai.onnx.ml: the post_transform of their scores [N, count]."""

import math

import numpy as np

from mo_loop.frontend.ops.elementwise.arithmetic import number
from mo_loop.frontend.vocabulary import ModelError, UnsupportedError, Value, ops

TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


def transformed(scores: Value, name: str) -> Value:
    """Applies the `post_transform` of that name. ModelError if ONNX does not define it."""
    if name not in TRANSFORMS:
        raise ModelError(f"post_transform {name!r}: ONNX defines {', '.join(TRANSFORMS)}", code="ML227")
    if name == "NONE":
        return scores
    if name == "SOFTMAX":
        return ops.Softmax(scores, axis=1)
    if name == "LOGISTIC":
        return ops.Sigmoid(scores)
    return _softmax_zero(scores) if name == "SOFTMAX_ZERO" else _probit(scores)


def transformed_alone(score: Value, name: str) -> Value:
    """The post_transform of one score [N, 1]: as in ONNX Runtime, only PROBIT changes it."""
    made = transformed(score, name)
    return made if name == "PROBIT" else score


def both_sides(score: Value, name: str, is_probability: bool) -> Value:
    """The scores [N, 2] of a model of two classes from its one score [N, 1]."""
    if name == "PROBIT":
        raise UnsupportedError("PROBIT of one score for two classes: ONNX does not define the result", code="ML316")
    if name == "LOGISTIC":
        return transformed(ops.Concat(-score, score, axis=1), name)
    other = np.float32(1) - score if is_probability else -score
    return ops.Concat(other, score, axis=1)


def _softmax_zero(x: Value) -> Value:
    """Softmax in which scores of 0 stay 0."""
    is_zero = ops.Maximum(x, -x) <= number(x, 1e-7)
    largest = ops.ReduceMax(x, [1], keep_dims=True)
    shifted = ops.Exp(x - largest)
    kept = ops.Select(is_zero, x * ops.Exp(-largest), shifted)
    total = ops.ReduceSum(kept, [1], keep_dims=True)
    share = kept / ops.Select(ops.Equal(total, 0), number(x, 1), total)
    return ops.Select(ops.Equal(total, 0), number(x, 0.5), share)


def _probit(x: Value) -> Value:
    """sqrt(2) erfinv(2x - 1), with Winitzki's formula for erfinv."""
    y = x * 2 - 1
    inside = (np.float32(1) - y) * (y + 1)
    log = ops.Log(inside)
    v = log * 0.5 + 2 / (math.pi * 0.147)
    root = ops.Sqrt(v * v - log * (1 / 0.147))
    size = ops.Sqrt(root - v) * math.sqrt(2)
    return ops.Select(y < 0, -size, size)
