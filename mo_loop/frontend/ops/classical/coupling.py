"""Probabilities of classes from those of their pairs, as ONNX Runtime computes them for support vector machines.

r_ij is the probability of class i if it is i or j. The probabilities p minimise the sum of (r_ji p_i - r_ij p_j)^2:

    Q_ii = sum of r_ji^2 over j,        Q_ij = -r_ji r_ij,        minimise p Q p with sum p = 1

(Wu, Lin and Weng, "Probability estimates for multi-class classification by pairwise coupling", algorithm 2). The
iteration changes one p_i after the other. It ends for each row when no element of Qp is further than `_TOLERANCE` / k
from pQp, so early that the result depends on the number of steps.
"""

import itertools
from collections.abc import Sequence

import numpy as np

from mo_loop.frontend.arrays import unit_matrix, zeros
from mo_loop.frontend.loop_bodies import BuiltBody
from mo_loop.frontend.ops.control import loop
from mo_loop.frontend.ops.elementwise.arithmetic import number
from mo_loop.frontend.scope import Scope
from mo_loop.frontend.vocabulary import Body, Context, Value, ops

_TOLERANCE = 0.005
_STEPS = 100


def coupled(scores: Value, slopes: Sequence[float], offsets: Sequence[float], count: int, node: Context) -> Value:
    """[N, count] from the scores [N, pairs], whose probabilities are 1 / (1 + exp(slope * score + offset))."""
    exponent = scores * np.array(slopes, np.float32) + np.array(offsets, np.float32)
    one = np.float32(1)
    first = ops.Clamp(ops.Sigmoid(-exponent), min=1e-7, max=float(one - np.float32(1e-7)))
    both = ops.Concat(first, one - first, axis=1)
    places = zeros((count, count), np.int64)
    for place, (i, j) in enumerate(itertools.combinations(range(count), 2)):
        places[i, j], places[j, i] = place, place + len(slopes)
    others = one - unit_matrix(count, np.float32)
    r, turned = (ops.Gather(both, each, 1) * others for each in (places, places.T))
    products = -(r * turned)
    squares = ops.ReduceSum(turned * turned, [2], keep_dims=False)
    start = ops.Broadcast(np.float32(1 / count), ops.Concat(ops.Gather(ops.ShapeOf(scores), [0], 0), [count], axis=0))
    body = BuiltBody(Body(node.translation, node.proto, node.scope, node.origin), node.scope, 3, 0, _step)
    made = loop(node.constant(np.int64(_STEPS)), None, start, products, squares, body=body, node=node)
    return made.outputs[0]


def _step(_: Scope, iteration: Value, states: list[Value]) -> list[Value]:
    """Whether a row continues, and the states: p [N, k], Q without its diagonal [N, k, k], and its diagonal [N, k]."""
    p, products, squares = states
    count = squares.type.dims[1]
    image = ops.ReduceSum(products * ops.Unsqueeze(p, 1), [2], keep_dims=False)
    image = image + squares * p
    value = ops.ReduceSum(p * image, [1], keep_dims=True)
    error = ops.ReduceMax(ops.Abs(image - value), [1], keep_dims=True)
    goes_on = ops.LessEqual(number(error, _TOLERANCE / count), error)
    changed = p
    for place in range(count):
        unit = unit_matrix(count, np.float32)[[place]]
        own, slope = (ops.Slice(each, [place], [place + 1], [1], [1]) for each in (squares, image))
        row = ops.Gather(products, np.int64(place), 1) + own * unit
        by = (value - slope) / own
        scale = by + 1
        changed = (changed + by * unit) / scale
        grown = value + by * (by * own + slope * 2)
        value = grown / scale / scale
        image = (image + by * row) / scale
    kept = ops.Select(goes_on, changed, p)
    return [ops.ReduceLogicalOr(goes_on, [0, 1], keep_dims=False), kept, products, squares]
