"""Data movement that leaves each element where it is."""

from __future__ import annotations

import numpy as np

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.graph.dimension import Dim
from mo_loop.graph.shape import is_static
from mo_loop.transforms.elimination import Elimination, is_alike
from mo_loop.transforms.operands import order_of
from mo_loop.transforms.pattern import Match, any_input, any_of, constant, wrap_type
from mo_loop.transforms.predicates import Predicate, has_static_rank
from mo_loop.transforms.rewrite import MatcherPass

REDUCING = (
    ops.ReduceSum, ops.ReduceMean, ops.ReduceMax, ops.ReduceMin, ops.ReduceProd, ops.ReduceLogicalAnd,
    ops.ReduceLogicalOr,
)  # fmt: skip
"""Reductions that return a single element unchanged."""

LARGEST = 1 << 16
"""Indices of more bytes are not examined."""


def all_are(wanted: int) -> Predicate:
    """A predicate: every element is known to be `wanted`. True for a tensor without elements."""
    return Predicate(f"only {wanted}", lambda v: v.type.integers is not None and set(v.type.integers) <= {wanted})


def _counts_up(value: Value) -> bool:
    if value.rank != 1 or value.node.tensor.nbytes > LARGEST:  # type: ignore[attr-defined]  # a Constant
        return False
    indices = value.constant
    return bool(np.array_equal(indices, np.arange(len(indices))))


class EliminateTranspose(Elimination):
    """transpose(x, [0, 1, ...])  ->  x"""

    keeps = x = any_input()
    in_order = Predicate("axes in order", lambda v: v.type.integers and is_sorted(v.type.integers))
    pattern = wrap_type(ops.Transpose, x, any_input(in_order))


class MergeTransposes(Elimination):
    """transpose(transpose(x, p), q)  ->  transpose(x, p[q]), or x if p[q] is the identity"""

    x = any_input(has_static_rank())
    inner = wrap_type(ops.Transpose, x, any_input())
    pattern = wrap_type(ops.Transpose, inner, any_input())

    def matched(self, match: Match) -> bool:
        x, first, second = match[self.x], order_of(match.node(self.inner)), order_of(match.root)
        if first is None or second is None:
            return False
        order = tuple(first[axis] for axis in second)
        if is_sorted(order):
            return self.bypass(match, x)
        return self.replace(match, ops.Transpose(x, order))


def is_sorted(order: tuple[int, ...]) -> bool:
    return order == tuple(range(len(order)))


class EliminateReshape(Elimination):  # before MergeReshapes: a tensor that gets its old shape again needs no Reshape
    """reshape(... reshape(x)) to the shape of x  ->  x; likewise for Squeeze and Unsqueeze"""

    pattern = wrap_type(ops.View)

    def matched(self, match: Match) -> bool:
        node = match.root
        while isinstance(node, ops.View):
            value = node.operands[0]
            if is_alike(match.root.output, value):
                return self.bypass(match, value)
            node = value.node
        return False


class MergeReshapes(MatcherPass):
    """reshape(reshape(x, a), b)  ->  reshape(x, b); likewise for a Squeeze or Unsqueeze of x

    Only if inference knows as much of the result as before, and no 0 in b copies a dimension that x has elsewhere.
    """

    x, sizes = any_input(), any_input()
    middle = wrap_type(ops.View, x, ...)
    pattern = wrap_type(ops.Reshape, middle, sizes)

    def matched(self, match: Match) -> bool:
        x, pattern, old = match[self.x], match[self.sizes], match.root
        assert isinstance(old, ops.Reshape)
        if is_static(old.output.shape):
            return self.replace(match, ops.Reshape(x, np.array(old.output.shape, np.int64)))
        if old.special_zero and not _copies_alike(x, match[self.middle], pattern):
            return False
        if old.infer(x.type, pattern.type).shape != old.output.shape:
            return False
        return self.replace(match, ops.Reshape(x, pattern, special_zero=old.special_zero))


def _copies_alike(x: Value, middle: Value, pattern: Value) -> bool:
    """Whether each element of `pattern` that is 0, or may be 0, copies the same dimension of both."""
    if pattern.known is None or x.shape is None or middle.shape is None:
        return False
    places = [i for i, item in enumerate(pattern.known.flat) if (item.lo < 1 if isinstance(item, Dim) else item == 0)]
    shortest = min(len(x.shape), len(middle.shape))
    return all(i < shortest and x.shape[i] == middle.shape[i] for i in places)


class EliminateConcat(Elimination):
    """concat(x)  ->  x"""

    keeps = x = any_input()
    pattern = wrap_type(ops.Concat, x)


class EliminateSplit(Elimination):
    """split(x) into one part  ->  x"""

    keeps = x = any_input()
    whole = Predicate("one piece", lambda v: len(v.node.outputs) == 1)
    pattern = wrap_type((ops.Split, ops.VariadicSplit), x, ..., when=whole)


class EliminateSlice(Elimination):
    """slice(x) of all elements  ->  x: all steps are 1, and every dimension keeps its length"""

    keeps = x = any_input()
    pattern = wrap_type(ops.Slice, x, any_input(), any_input(), any_input(all_are(1)), ...)


class EliminatePad(Elimination):
    """pad(x) with widths of 0  ->  x"""

    keeps = x = any_input()
    pattern = wrap_type(ops.Pad, x, any_input(all_are(0)), any_input(all_are(0)), ...)


class EliminateTile(Elimination):
    """tile(x, [1, 1, ...])  ->  x"""

    keeps = x = any_input()
    pattern = wrap_type(ops.Tile, x, any_input(all_are(1)))


class EliminateBroadcast(Elimination):
    """broadcast(x) to the shape of x  ->  x"""

    keeps = x = any_input()
    pattern = wrap_type(ops.Broadcast, x, any_input(), attributes={"mode": lambda mode: mode != "explicit"})


class EliminateGather(Elimination):
    """gather(x, [0, 1, ..., n - 1])  ->  x, where the axis has n elements"""

    keeps = x = any_input()
    every = constant(Predicate("indices that count up from 0", _counts_up))
    counted = wrap_type(ops.Range, any_input(all_are(0)), any_input(), any_input(all_are(1)))
    pattern = wrap_type(ops.Gather, x, any_of(every, counted), any_input(), attributes={"batch_dims": 0})


class EliminateReduce(Elimination):
    """reduce(x) over no axes, or over dimensions of 1 that are kept  ->  x

    Not for norms: the norm of a single element is its absolute value.
    """

    keeps = x = any_input()
    pattern = wrap_type(REDUCING, x, any_input())
