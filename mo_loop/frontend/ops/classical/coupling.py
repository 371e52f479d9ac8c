"""Probabilities of classes from those of their pairs, as ONNX Runtime computes them for support vector machines.

r_ij is the probability of class i if it is i or j. The probabilities p minimise the sum of (r_ji p_i - r_ij p_j)^2:

    Q_ii = sum of r_ji^2 over j,        Q_ij = -r_ji r_ij,        minimise p Q p with sum p = 1

(Wu, Lin and Weng, "Probability estimates for multi-class classification by pairwise coupling", algorithm 2). The
iteration changes one p_i after the other. It ends for each row when no element of Qp is further than `_TOLERANCE` / k
from pQp, which is so early that the number of steps shows in the result.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from mo_loop import ops
from mo_loop.frontend.arrays import unit_matrix, zeros
from mo_loop.frontend.built_body import BuiltBody
from mo_loop.frontend.context import Body, Context
from mo_loop.frontend.ops.control import loop
from mo_loop.frontend.ops.elementwise.arithmetic import number
from mo_loop.frontend.scope import Scope
from mo_loop.graph import Value

_TOLERANCE = 0.005
_STEPS = 100


def coupled(scores: Value, slopes: Sequence[float], offsets: Sequence[float], count: int, node: Context) -> Value:
    """[N, count] from the scores [N, pairs], whose probabilities are 1 / (1 + exp(slope * score + offset))."""
    exponent = ops.Add(ops.Multiply(scores, np.array(slopes, np.float32)), np.array(offsets, np.float32))
    one = np.float32(1)
    first = ops.Clamp(ops.Sigmoid(ops.Negative(exponent)), min=1e-7, max=float(one - np.float32(1e-7))).output
    both = ops.Concat(first, ops.Subtract(one, first), axis=1).output
    places = zeros((count, count), np.int64)
    for place, (i, j) in enumerate(itertools.combinations(range(count), 2)):
        places[i, j], places[j, i] = place, place + len(slopes)
    others = one - unit_matrix(count, np.float32)
    r, turned = (ops.Multiply(ops.Gather(both, each, 1), others).output for each in (places, places.T))
    products = ops.Negative(ops.Multiply(r, turned)).output
    squares = ops.ReduceSum(ops.Multiply(turned, turned), [2], keep_dims=False).output
    start = ops.Broadcast(np.float32(1 / count), ops.Concat(ops.Gather(ops.ShapeOf(scores), [0], 0), [count], axis=0))
    body = BuiltBody(Body(node.translation, node.proto, node.scope, node.origin), node.scope, 3, 0, _step)
    made = loop(node.constant(np.int64(_STEPS)), None, start.output, products, squares, body=body, node=node)
    return made.outputs[0]


def _step(_: Scope, iteration: Value, states: list[Value]) -> list[Value]:
    """Whether a row goes on, and the states: p [N, k], Q without its diagonal [N, k, k], and its diagonal [N, k]."""
    p, products, squares = states
    count = squares.type.dims[1]
    image = ops.ReduceSum(ops.Multiply(products, ops.Unsqueeze(p, 1)), [2], keep_dims=False)
    image = ops.Add(image, ops.Multiply(squares, p)).output
    value = ops.ReduceSum(ops.Multiply(p, image), [1], keep_dims=True).output
    error = ops.ReduceMax(ops.Abs(ops.Subtract(image, value)), [1], keep_dims=True).output
    goes_on = ops.LessEqual(number(error, _TOLERANCE / count), error).output
    changed = p
    for place in range(count):
        unit = unit_matrix(count, np.float32)[[place]]
        own, slope = (ops.Slice(each, [place], [place + 1], [1], [1]).output for each in (squares, image))
        row = ops.Add(ops.Gather(products, np.int64(place), 1), ops.Multiply(own, unit)).output
        by = ops.Divide(ops.Subtract(value, slope), own).output
        scale = ops.Add(by, 1).output
        changed = ops.Divide(ops.Add(changed, ops.Multiply(by, unit)), scale).output
        grown = ops.Add(value, ops.Multiply(by, ops.Add(ops.Multiply(by, own), ops.Multiply(slope, 2))))
        value = ops.Divide(ops.Divide(grown, scale), scale).output
        image = ops.Divide(ops.Add(image, ops.Multiply(by, row)), scale).output
    kept = ops.Select(goes_on, changed, p).output
    return [ops.ReduceLogicalOr(goes_on, [0, 1], keep_dims=False).output, kept, products, squares]
