"""Data movement that leaves each element where it is."""

from __future__ import annotations

import numpy as np

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.graph.shape import Dim, is_static
from transforms.elimination import Elimination, is_alike
from transforms.pattern import Match, any_input, constant, wrap_type
from transforms.predicates import Predicate, has_static_rank
from transforms.rewrite import MatcherPass

RESHAPING = (ops.Reshape, ops.Squeeze, ops.Unsqueeze)
"""Operations that change only the shape."""

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

    def __init__(self) -> None:
        super().__init__()
        x = any_input()
        in_order = Predicate("axes in order", lambda v: v.type.integers and is_sorted(v.type.integers))
        self.eliminate(wrap_type(ops.Transpose, x, any_input(in_order)), keeping=x)


class MergeTransposes(Elimination):
    """transpose(transpose(x, p), q)  ->  transpose(x, p[q]), or x if p[q] is the identity"""

    def __init__(self) -> None:
        super().__init__()
        self.x = any_input(has_static_rank())
        self.p, self.q = any_input(), any_input()
        self.register_matcher(wrap_type(ops.Transpose, wrap_type(ops.Transpose, self.x, self.p), self.q), self.merge)

    def merge(self, match: Match) -> bool:
        x, first, second = match[self.x], match[self.p].type.integers, match[self.q].type.integers
        if first is None or second is None:
            return False
        reverse = tuple(reversed(range(x.type.rank)))  # what an empty order means
        order = tuple((first or reverse)[axis] for axis in second or reverse)
        if is_sorted(order):
            return self.bypass(match, x)
        return self.replace(match, ops.Transpose(x, order))


def is_sorted(order: tuple[int, ...]) -> bool:
    return order == tuple(range(len(order)))


class EliminateReshape(Elimination):
    """reshape(... reshape(x)) to the shape of x  ->  x; likewise for Squeeze and Unsqueeze"""

    def __init__(self) -> None:
        super().__init__()
        self.register_matcher(wrap_type(RESHAPING), self.bypass_all)

    def bypass_all(self, match: Match) -> bool:
        node = match.root
        while isinstance(node, RESHAPING):
            value = node.operands[0]
            if is_alike(match.root.output, value):
                return self.bypass(match, value)
            node = value.node
        return False


class MergeReshapes(MatcherPass):
    """reshape(reshape(x, a), b)  ->  reshape(x, b); likewise for a Squeeze or Unsqueeze of x

    Only if inference knows as much of the result as before, and no 0 in b copies a dimension that x has elsewhere.
    """

    def __init__(self) -> None:
        super().__init__()
        self.x, self.pattern = any_input(), any_input()
        self.middle = wrap_type(RESHAPING, self.x, ...)
        self.register_matcher(wrap_type(ops.Reshape, self.middle, self.pattern), self.skip)

    def skip(self, match: Match) -> bool:
        x, pattern, old = match[self.x], match[self.pattern], match.root
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

    def __init__(self) -> None:
        super().__init__()
        x = any_input()
        self.eliminate(wrap_type(ops.Concat, x), keeping=x)


class EliminateSplit(Elimination):
    """split(x) into one part  ->  x"""

    def __init__(self) -> None:
        super().__init__()
        x = any_input()
        whole = Predicate("one piece", lambda v: len(v.node.outputs) == 1)
        self.eliminate(wrap_type((ops.Split, ops.VariadicSplit), x, ..., when=whole), keeping=x)


class EliminateSlice(Elimination):
    """slice(x) of all elements  ->  x: all steps are 1, and every dimension keeps its length"""

    def __init__(self) -> None:
        super().__init__()
        x = any_input()
        self.eliminate(wrap_type(ops.Slice, x, any_input(), any_input(), any_input(all_are(1)), ...), keeping=x)


class EliminatePad(Elimination):
    """pad(x) with widths of 0  ->  x"""

    def __init__(self) -> None:
        super().__init__()
        x = any_input()
        self.eliminate(wrap_type(ops.Pad, x, any_input(all_are(0)), any_input(all_are(0)), ...), keeping=x)


class EliminateTile(Elimination):
    """tile(x, [1, 1, ...])  ->  x"""

    def __init__(self) -> None:
        super().__init__()
        x = any_input()
        self.eliminate(wrap_type(ops.Tile, x, any_input(all_are(1))), keeping=x)


class EliminateBroadcast(Elimination):
    """broadcast(x) to the shape of x  ->  x"""

    def __init__(self) -> None:
        super().__init__()
        x = any_input()
        numpy_rules = {"mode": lambda mode: mode != "explicit"}
        self.eliminate(wrap_type(ops.Broadcast, x, any_input(), attributes=numpy_rules), keeping=x)


class EliminateGather(Elimination):
    """gather(x, [0, 1, ..., n - 1])  ->  x, where the axis has n elements"""

    def __init__(self) -> None:
        super().__init__()
        x = any_input()
        every = constant(Predicate("indices that count up from 0", _counts_up))
        self.eliminate(wrap_type(ops.Gather, x, every, any_input(), attributes={"batch_dims": 0}), keeping=x)


class EliminateReduce(Elimination):
    """reduce(x) over no axes, or over dimensions of 1 that are kept  ->  x

    Not for norms: the norm of a single element is its absolute value.
    """

    def __init__(self) -> None:
        super().__init__()
        x = any_input()
        self.eliminate(wrap_type(REDUCING, x, any_input()), keeping=x)
