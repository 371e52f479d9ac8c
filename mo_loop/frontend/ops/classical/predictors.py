"""ai.onnx.ml operators: linear models and support vector machines.

linear    X W^T + b
SVM       the sum over support vectors s of c_s K(x, s), plus rho

The probabilities of the classes of an SVM come from those of their pairs, as in ONNX Runtime (`coupled`).

r_ij is the probability of class i if it is i or j. The probabilities p minimise the sum of (r_ji p_i - r_ij p_j)^2:

    Q_ii = sum of r_ji^2 over j,        Q_ij = -r_ji r_ij,        minimise p Q p with sum p = 1

(Wu, Lin and Weng, "Probability estimates for multi-class classification by pairwise coupling", algorithm 2). The
iteration changes one p_i after the other. It ends for each row when no element of Qp is further than `_TOLERANCE` / k
from pQp, so early that the result depends on the number of steps.

The last step of all models is the post_transform of their scores [N, count].
"""

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mo_loop.frontend.ops import shared
from mo_loop.frontend.ops.classical.features import DOMAIN, with_labels
from mo_loop.frontend.ops.conditional import BuiltBody
from mo_loop.frontend.ops.control import loop
from mo_loop.frontend.scope import Scope
from mo_loop.frontend.vocabulary import Body, Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import f32, i64
from mo_loop.ops.ranges import Floats, Ints, NotNegatives, Positive, Strings

_TOLERANCE = 0.005
_STEPS = 100


def coupled(scores: Value, slopes: Sequence[float], offsets: Sequence[float], count: int, node: Context) -> Value:
    """[N, count] from the scores [N, pairs], whose probabilities are 1 / (1 + exp(slope * score + offset))."""
    exponent = scores * np.array(slopes, np.float32) + np.array(offsets, np.float32)
    one = np.float32(1)
    first = ops.Clamp(ops.Sigmoid(-exponent), min=1e-7, max=float(one - np.float32(1e-7)))
    both = ops.Concat(first, one - first, axis=1)
    places = shared.zeros((count, count), np.int64)
    for place, (i, j) in enumerate(itertools.combinations(range(count), 2)):
        places[i, j], places[j, i] = place, place + len(slopes)
    others = one - shared.unit_matrix(count, np.float32)
    r, turned = (ops.Gather(both, each, 1) * others for each in (places, places.T))
    products = -(r * turned)
    squares = ops.ReduceSum(turned * turned, [2], keep_dims=False)
    start = ops.Broadcast(np.float32(1 / count), ops.Concat(ops.Gather(scores.sizes, [0], 0), [count], axis=0))
    body = BuiltBody(Body(node.translation, node.proto, node.scope, node.origin), node.scope, 3, 0, _step)
    return loop(node.constant(np.int64(_STEPS)), None, start, products, squares, body=body, node=node).outputs[0]


def _step(_: Scope, iteration: Value, states: list[Value]) -> list[Value]:
    """Whether a row continues, and the states: p [N, k], Q without its diagonal [N, k, k], and its diagonal [N, k]."""
    p, products, squares = states
    count = squares.type.dims[1]
    image = ops.ReduceSum(products * ops.Unsqueeze(p, 1), [2], keep_dims=False)
    image = image + squares * p
    value = ops.ReduceSum(p * image, [1], keep_dims=True)
    error = ops.ReduceMax(ops.Abs(image - value), [1], keep_dims=True)
    goes_on = ops.LessEqual(shared.number(error, _TOLERANCE / count), error)
    changed = p
    for place in range(count):
        unit = shared.unit_matrix(count, np.float32)[[place]]
        own, slope = (each[:, place : place + 1] for each in (squares, image))
        row = ops.Gather(products, np.int64(place), 1) + own * unit
        by = (value - slope) / own
        scale = by + 1
        changed = (changed + by * unit) / scale
        grown = value + by * (by * own + slope * 2)
        value = grown / scale / scale
        image = (image + by * row) / scale
    kept = ops.Select(goes_on, changed, p)
    return [ops.ReduceLogicalOr(goes_on, [0, 1], keep_dims=False), kept, products, squares]


def transformed(scores: Value, name: str) -> Value:
    """Applies the `post_transform` of that name. ModelError if ONNX does not define it."""
    shared.require_choice("post_transform", name, TRANSFORMS)
    return TRANSFORMS[name](scores)


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
    is_zero = ops.Maximum(x, -x) <= shared.number(x, 1e-7)
    largest = ops.ReduceMax(x, [1], keep_dims=True)
    shifted = ops.Exp(x - largest)
    kept = ops.Select(is_zero, x * ops.Exp(-largest), shifted)
    total = ops.ReduceSum(kept, [1], keep_dims=True)
    share = kept / ops.Select(ops.Equal(total, 0), shared.number(x, 1), total)
    return ops.Select(ops.Equal(total, 0), shared.number(x, 0.5), share)


def _probit(x: Value) -> Value:
    """sqrt(2) erfinv(2x - 1), with Winitzki's formula for erfinv."""
    y = x * 2 - 1
    log = ops.Log((np.float32(1) - y) * (y + 1))
    v = log * 0.5 + 2 / (math.pi * 0.147)
    root = ops.Sqrt(v * v - log * (1 / 0.147))
    size = ops.Sqrt(root - v) * math.sqrt(2)
    return ops.Select(y < 0, -size, size)


TRANSFORMS: dict[str, Callable[[Value], Value]] = {
    "NONE": lambda x: x, "SOFTMAX": lambda x: ops.Softmax(x, axis=1), "LOGISTIC": ops.Sigmoid,
    "SOFTMAX_ZERO": _softmax_zero, "PROBIT": _probit,
}
"""The functions of `post_transform`, in the order of the numbers that TreeEnsemble has for them."""


def rows_of(x: Value, what: str) -> Value:
    """[N, F] in f32; a vector is one row."""
    rank = shared.ranked(x)
    if rank not in (1, 2):
        raise ModelError(f"the input has rank {rank}, and {what} needs [N, F]", code="ML227")
    y = x.astype(f32)
    return y if rank == 2 else ops.Unsqueeze(y, 0)


def _weights(coefficients: Sequence[float] | None, count: int):
    if not coefficients or count < 1 or len(coefficients) % count:
        raise ModelError(f"{len(coefficients or ())} coefficients for {count} results", code="ML227")
    return np.array(coefficients, np.float32).reshape(count, -1)


@translates("LinearRegressor", since=1, domain=DOMAIN)
def linear_regressor(
    x, *, coefficients: Floats | None = None, intercepts: Floats | None = None, post_transform: str = "NONE",
    targets: Positive = 1,
):
    """[N, targets]."""
    scores = _linear(rows_of(x, "LinearRegressor"), coefficients, intercepts, targets)
    return transformed_alone(scores, post_transform) if targets == 1 else transformed(scores, post_transform)


def _linear(x: Value, coefficients: Floats | None, intercepts: Floats | None, count: int) -> Value:
    product = ops.MatMul(x, _weights(coefficients, count), transpose_b=True)
    if not intercepts:
        return product
    if len(intercepts) != count:
        raise ModelError(f"{len(intercepts)} intercepts for {count} results", code="ML227")
    return product + np.array(intercepts, np.float32)


@translates("LinearClassifier", since=1, domain=DOMAIN, ignored="multi_class")
def linear_classifier(
    x, *, classlabels_ints: Ints | None = None, classlabels_strings: Strings | None = None, coefficients: Floats,
    intercepts: Floats | None = None, multi_class: int = 0, post_transform: str = "NONE", node: Context,
):
    """The label of the largest score, and all scores. One score for two classes belongs to the second one."""
    given = classlabels_ints or range(len(classlabels_strings or ()))
    made = _linear_classes(rows_of(x, "LinearClassifier"), given, coefficients, intercepts, post_transform)
    return with_labels(made, classlabels_strings, node)


def _linear_classes(
    rows: Value, given: Sequence[int], coefficients: Floats, intercepts: Floats | None, post_transform: str
) -> list[Any]:
    features = rows.type.dims[1]
    count = len(intercepts or ()) or len(given)
    if isinstance(features, int) and features and not intercepts:
        count = len(coefficients) // features
    scores = _linear(rows, coefficients, intercepts, count)
    if count > 1:
        return [labelled(scores, given or None), transformed(scores, post_transform)]
    labels = given or (0, 1)
    second = ops.Less(shared.number(scores, 0), scores)
    if len(labels) != 2:
        label = ops.Select(second, np.int64(labels[0]), np.int64(0))
        return [ops.Squeeze(label, 1), transformed(scores, post_transform)]
    label = ops.Select(second, np.int64(labels[1]), np.int64(labels[0]))
    made = both_sides(scores, post_transform, is_probability=True) if given else scores
    return [ops.Squeeze(label, 1), made]


def labelled(scores: Value, labels: Sequence[int] | None) -> Value:
    """[N]: the label of each row's largest score, the first of equal ones."""
    _, best = ops.TopK11(scores, 1, axis=1, mode="max", stable=True, index_element_type=i64)
    place = ops.Squeeze(best, 1)
    return place if labels is None else ops.Gather(np.array(labels, np.int64), place, 0)


@translates("SVMRegressor", since=1, domain=DOMAIN)
def svm_regressor(
    x, *, coefficients: Floats | None = None, kernel_params: Floats | None = None, kernel_type: str = "LINEAR",
    n_supports: int = 0, one_class: int = 0, post_transform: str = "NONE", rho: Floats | None = None,
    support_vectors: Floats | None = None,
):
    """[N, 1]; with `one_class`, 1 for rows of the class and -1 for all others."""
    rows = rows_of(x, "SVMRegressor")
    if n_supports > 0:
        vectors, shares = _weights(support_vectors, n_supports), _weights(coefficients, 1)
        sums = _summed(rows, vectors, kernel_type, kernel_params, shares)
        scores = sums + np.array((rho or (0.0,))[:1], np.float32)
    else:
        scores = _linear(rows, coefficients, (rho or (0.0,))[:1], 1)
    if one_class:
        is_known = ops.Less(shared.number(scores, 0), scores)
        return ops.Select(is_known, shared.number(scores, 1), shared.number(scores, -1))
    return transformed_alone(scores, post_transform)


def _summed(x: Value, vectors, kind: str, parameters: Floats | None, shares) -> Value:
    """For each row of `shares`, the sum of K(x, s) with its shares. A linear kernel is summed before the conversion:
    the sum is often small compared with its terms."""
    if shares.shape[1] != len(vectors):
        raise ModelError(f"{shares.shape[1]} coefficients for {len(vectors)} support vectors", code="ML227")
    if kind == "LINEAR":
        weights = (shares.astype(np.float64) @ vectors.astype(np.float64)).astype(np.float32)
        return ops.MatMul(x, weights, transpose_b=True)
    return ops.MatMul(_kernel(x, vectors, kind, parameters), shares, transpose_b=True)


def _kernel(x: Value, vectors, kind: str, parameters: Floats | None) -> Value:
    """K(x, s) for each row and each support vector."""
    gamma, offset, degree = (*(parameters or ()), 0.0, 0.0, 0.0)[:3]
    if kind == "RBF":
        gap = ops.Unsqueeze(x, 1) - vectors
        return ops.Exp(ops.ReduceSum(gap * gap, [2], keep_dims=False) * -gamma)
    scaled = ops.MatMul(x, vectors, transpose_b=True) * gamma + offset
    if kind == "POLY":
        return ops.Power(scaled, shared.number(scaled, degree))
    shared.require_choice("kernel_type", kind, ("LINEAR", "POLY", "RBF", "SIGMOID"))
    return ops.Tanh(scaled)


@translates("SVMClassifier", since=1, domain=DOMAIN)
def svm_classifier(
    x, *, classlabels_ints: Ints | None = None, classlabels_strings: Strings | None = None,
    coefficients: Floats | None = None, kernel_params: Floats | None = None, kernel_type: str = "LINEAR",
    post_transform: str = "NONE", prob_a: Floats | None = None, prob_b: Floats | None = None,
    rho: Floats | None = None, support_vectors: Floats | None = None, vectors_per_class: NotNegatives | None = None,
    node: Context,
):
    """Each pair of classes has a score, which is a vote for one of both; the class with most votes is the label."""
    owners = shared.repeated_numbers(len(vectors_per_class or ()), vectors_per_class or ())
    labels = classlabels_ints or range(len(classlabels_strings or ()))
    count = len(vectors_per_class or ())
    if not owners.size:
        raise UnsupportedError("SVMClassifier without support vectors is not translated", code="ML316")
    fitted = len(prob_a or ())
    if fitted != len(prob_b or ()) or fitted not in (0, count * (count - 1) // 2):
        raise ModelError(f"{fitted} prob_a and {len(prob_b or ())} prob_b for {count} classes", code="ML227")
    if len(labels) != count or len(rho or ()) != count * (count - 1) // 2:
        raise ModelError(f"{len(labels)} labels and {len(rho or ())} rho for {count} classes", code="ML227")
    pairs = list(itertools.combinations(range(count), 2))
    shared.require_room((len(pairs), max(len(owners), count)))
    vectors = _weights(support_vectors, len(owners))
    shares = _weights(coefficients, count - 1)
    # Row k of the coefficients is for class k among the other classes.
    matrix = np.stack([np.where(owners == i, shares[j - 1], np.where(owners == j, shares[i], 0)) for i, j in pairs])
    sums = _summed(rows_of(x, "SVMClassifier"), vectors, kernel_type, kernel_params, matrix.astype(np.float32))
    scores = sums + np.array(rho, np.float32)
    first, second = (shared.unit_matrix(count, np.float32)[[pair[side] for pair in pairs]] for side in (0, 1))
    won = ops.Less(shared.number(scores, 0), scores).astype(f32)
    votes = won @ first + (np.float32(1) - won) @ second
    if fitted:
        made = transformed(coupled(scores, prob_a or (), prob_b or (), count, node), post_transform)
    elif count > 2:
        made = transformed(scores, post_transform)
    else:
        made = both_sides(scores, post_transform, is_probability=post_transform != "NONE")
    return with_labels([labelled(votes, labels), made], classlabels_strings, node)
