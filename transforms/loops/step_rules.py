"""The rules by which operators gain a dimension of steps, by class: those of elements, products and batches, and all
rules together. Those of movements and indices are in step_movements.py."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters
from typing import Any

from mo_loop import ops
from mo_loop.graph import Node, Value
from mo_loop.ops import recurrent
from mo_loop.ops.lengths import dimension
from mo_loop.ops.linear import subscripts
from mo_loop.transforms.loops.lifted import Lifted, Rule, Steps, again, shifted, squeezed, unsqueezed, vector
from mo_loop.transforms.loops.step_movements import MOVEMENTS

# -- elements, reductions and normalisations over axes


def broadcasting(node: ops.Binary, xs: Sequence[Lifted], steps: Steps) -> Value:
    """f(a, b)"""
    rank = max(x.rank for x in xs)
    made: Value = again(node, *(steps.wide(x, rank) for x in xs), auto_broadcast="numpy")
    return made


def of_first(node: ops.Op, xs: Sequence[Lifted | None], steps: Steps) -> Value | None:
    """f(x), with scalars that are the same in every step"""
    first, *others = xs
    if first is None or any(x is not None and (x.varies or x.rank) for x in others):
        return None
    made: Value = again(node, first.value, *(None if x is None else x.value for x in others))
    return made


def with_slopes(node: ops.PReLU, xs: Sequence[Lifted], steps: Steps) -> Value | None:
    """A vector of slopes has one for each element along dimension 1 of the body value, if there is one; other slopes
    broadcast to it"""
    x, slope = xs
    if slope.varies:
        return None
    if slope.rank == 1 and slope.dims[0] != 1:
        shape = vector(1, 1, -1, *[1] * (x.rank - 2)) if x.rank > 1 else vector(1, -1)
        return again(node, x.value, ops.Reshape(slope.value, shape))
    return again(node, x.value, slope.value)


# -- products


def mat_mul(node: ops.MatMul, xs: Sequence[Lifted], steps: Steps) -> Value:
    """a b for each step; vectors that vary are the rows of one matrix, if the other matrix is the same in all steps"""
    a, b = xs
    if a.rank == 1 and not b.varies and b.rank <= 2:
        return again(node, a.value, b.value, transpose_a=False)
    if b.rank == 1 and not a.varies and a.rank == 2:  # A b  ->  b A^T
        made: Value = again(node, b.value, a.value, transpose_a=False, transpose_b=not node.transpose_a)
        return made
    rank = max(a.rank, b.rank, 2)
    left = _matrices(a, rank, 1, steps)
    right = _matrices(b, rank, 2, steps)
    product: Value = again(
        node, left, right, transpose_a=node.transpose_a and a.rank > 1, transpose_b=node.transpose_b and b.rank > 1
    )
    if b.rank == 1:
        product = squeezed(product, product.type.rank - 1)
    if a.rank == 1:
        product = squeezed(product, product.type.rank - 2 + (b.rank == 1))
    return product


def _matrices(x: Lifted, rank: int, place: int, steps: Steps) -> Value:
    """An operand as matrices: a vector on the left is a row, one on the right a column."""
    if x.rank > 1:
        return steps.wide(x, rank)
    if not x.varies:
        return unsqueezed(x.value, [place - 1])
    return steps.wide(Lifted(unsqueezed(x.value, [place]), True), rank)


def einsum(node: ops.Einsum, xs: Sequence[Lifted], steps: Steps) -> Value | None:
    """ij,jk->ik  ->  Tij,jk->Tik"""
    terms, result = subscripts(node.equation)
    letter = next((each for each in ascii_letters if each not in node.equation), None)
    if letter is None or "." in node.equation:
        return None
    left = ",".join(letter + term if x.varies else term for term, x in zip(terms, xs, strict=True))
    made: Value = again(node, *(x.value for x in xs), equation=f"{left}->{letter}{result}")
    return made


# -- a batch as first dimension, into which the steps go: [T, N, ...] becomes [T * N, ...] and back


def over_batch(node: Any, xs: Sequence[Lifted | None], steps: Steps, batched: int = 1) -> Any:
    """f(x [N, ...], weights)  ->  f(x [T * N, ...], weights); the first `batched` inputs have the batch"""
    inner, others = xs[:batched], xs[batched:]
    # The second output of a MaxPool counts places from the first batch.
    counts_places = batched == 1 and any(output.is_used for output in node.outputs[1:])
    if counts_places or any(x is not None and x.varies for x in others):
        return None
    first = next(x for x in inner if x is not None and x.varies)
    batch = dimension(first.value, 1)
    rest = [None if x is None else x.value for x in others]
    made = again(node, *(None if x is None else steps.folded(x) for x in inner), *rest)
    values = made if isinstance(made, tuple) else (made,)
    unfolded = tuple(steps.unfolded(each, batch) for each in values)
    return unfolded[0] if len(unfolded) == 1 else unfolded


def cell(node: recurrent.Cell, xs: Sequence[Lifted | None], steps: Steps) -> Any:
    """a recurrent cell: x and states have the batch"""
    return over_batch(node, xs, steps, 3 if isinstance(node, ops.LSTMCell) else 2)


def sequence(node: recurrent.Sequence, xs: Sequence[Lifted | None], steps: Steps) -> Any:
    """a recurrent layer: x, states and lengths have the batch"""
    return over_batch(node, xs, steps, 4 if isinstance(node, ops.LSTMSequence) else 3)


def two(node: Any, xs: Sequence[Lifted | None], steps: Steps) -> Value | None:
    """f(x [N, ...], y [N, ...])"""
    return over_batch(node, xs, steps, 2)


OVER_BATCH: dict[type, Rule] = {
    ops.Filtered: over_batch,
    ops.Pooling: over_batch,
    ops.BatchNormInference: over_batch,
    ops.DepthToSpace: over_batch,
    ops.SpaceToDepth: over_batch,
    ops.GridSample: two,
    recurrent.Cell: cell,
    recurrent.Sequence: sequence,
}
RULES: dict[type, Rule] = {
    ops.Binary: broadcasting,
    ops.Select: broadcasting,
    ops.Elementwise: of_first,
    ops.Identity: of_first,
    ops.PReLU: with_slopes,
    ops.AlongAxis: shifted,
    ops.Reduction: shifted,
    ops.MVN: shifted,
    ops.NormalizeL2: shifted,
    ops.CumSum: shifted,
    ops.MatMul: mat_mul,
    ops.Einsum: einsum,
    **MOVEMENTS,
    **OVER_BATCH,
}
"""Class of an operation -> its rule; a class without an entry has that of its next base."""


def rule_of(node: Node) -> Rule | None:
    """The rule of an operation; None if it has none."""
    return next((RULES[cls] for cls in type(node).__mro__ if cls in RULES), None)
