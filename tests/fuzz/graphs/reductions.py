"""Reductions, and what is made of them: normalisations, Softmax, sums along an axis, places of the largest."""

from collections.abc import Sequence

import numpy as np

from tests.fuzz.graphs.graph import Graph, Value

REDUCTIONS = ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare",
              "ReduceL1")


def reduction(g: Graph, x: Value) -> None:
    if x.rank:
        reduced(g, x, g.choices.sample(range(x.rank), g.choices.randint(1, min(x.rank, 2))), REDUCTIONS)


def reduced(g: Graph, x: Value, axes: Sequence[int], ops: Sequence[str]) -> Value:
    """The value reduced along axes by one of the operators."""
    axes = sorted(axes)
    keepdims = g.choices.randint(0, 1)
    shape = [1 if axis in axes else size for axis, size in enumerate(x.shape) if keepdims or axis not in axes]
    given = g.constant([axis - x.rank if g.chance(0.3) else axis for axis in axes])
    return g.add(g.choices.choice(ops), x, given, shape=shape, kind=x.kind, keepdims=keepdims)


def softmax(g: Graph, x: Value) -> None:
    if x.rank:
        axis = g.choices.randrange(-x.rank, x.rank)
        g.add(g.choice_of("Softmax", "LogSoftmax"), x, shape=x.shape, axis=axis)


def layer_normalization(g: Graph, x: Value) -> None:
    if x.rank and x.rank - 1 in x.known:
        bias = [g.normal(x.size(-1))] if g.chance(0.5) else []
        g.add("LayerNormalization", x, g.positive(x.size(-1)), *bias, shape=x.shape, axis=-1)


def l2_normalization(g: Graph, x: Value) -> None:
    if x.rank:
        (norm,) = g.node("ReduceL2", x, g.constant([g.choices.randrange(x.rank)]), keepdims=1)
        (norm,) = g.node(g.choice_of("Max", "Add"), norm, g.constant(0.01))
        g.add("Div", x, norm, shape=x.shape)


def variance_normalization(g: Graph, x: Value) -> None:
    """A mean and a variance as exporters write them; at times along two different axes."""
    if not x.rank:
        return
    axis = g.choices.randrange(x.rank)
    second = axis if g.chance(0.8) else g.choices.randrange(x.rank)
    (difference,) = g.node("Sub", x, *g.node("ReduceMean", x, g.constant([axis]), keepdims=1))
    square = ("Mul", difference, difference) if g.chance(0.5) else ("Pow", difference, g.constant(2.0))
    (variance,) = g.node("ReduceMean", *g.node(*square), g.constant([second]), keepdims=1)
    (deviation,) = g.node("Sqrt", *g.node("Add", variance, g.constant(0.1)))
    g.add("Div", difference, deviation, shape=x.shape)


def cumulative_sum(g: Graph, x: Value) -> None:
    if x.rank:
        axis = g.constant(g.choices.randrange(-x.rank, x.rank))
        order = {"exclusive": g.choices.randint(0, 1), "reverse": g.choices.randint(0, 1)}
        g.add("CumSum", x, axis, shape=x.shape, **order)


def largest(g: Graph, x: Value) -> None:
    """The values or the places of the largest or least, along an axis of known size."""
    if not x.known:
        return
    axis = g.choices.choice(x.known)
    if g.chance(0.4):
        op, keepdims = g.choice_of("ArgMax", "ArgMin"), g.choices.randint(0, 1)
        shape = x.with_size(axis, 1) if keepdims else x.shape[:axis] + x.shape[axis + 1 :]
        g.add(op, x, shape=shape, kind=np.int64, axis=axis, keepdims=keepdims)
        return
    k, largest = g.choices.randint(1, x.size(axis)), g.choices.randint(0, 1)
    values, places = g.node("TopK", x, g.constant([k]), outputs=2, axis=axis, largest=largest)
    chosen = Value(values, x.with_size(axis, k)) if g.chance(0.6) else Value(places, x.with_size(axis, k), np.int64)
    g.values.append(chosen)


def einsum(g: Graph, x: Value) -> None:
    """Sums of products of x with itself along the last axis, or x with its axes in reverse order."""
    if 2 <= x.rank <= 3:
        letters = "abc"[: x.rank]
        last, other = letters[-1], letters[-2]
        text = g.choices.choice((f"{letters},{letters}->{letters[:-1]}",
                                 f"{letters},{letters[:-2]}d{last}->{letters[:-2]}{other}d",
                                 f"{letters}->{letters[::-1]}"))
        operands = [x, x] if "," in text else [x]
        sizes = dict(zip(letters, x.shape, strict=True)) | {"d": x.shape[-2]}
        g.add("Einsum", *operands, shape=[sizes[each] for each in text.partition("->")[2]], equation=text)


LAYERS = ((3, reduction), (1, softmax), (1, layer_normalization), (1, l2_normalization), (1, variance_normalization),
          (1, cumulative_sum), (1, largest), (1, einsum))
