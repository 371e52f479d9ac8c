"""Operations with a batch as first dimension, into which the steps go: [T, N, ...] becomes [T * N, ...] and back."""

from __future__ import annotations

from collections import abc
from typing import Any, TypeAlias

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.ops.lengths import dimension
from mo_loop.ops.recurrent import Cell, Sequence
from mo_loop.transforms.loops.lifted import Lifted, Rule, Steps, again

Inputs: TypeAlias = abc.Sequence[Lifted | None]


def over_batch(node: Any, xs: Inputs, steps: Steps, batched: int = 1) -> Any:
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


def cell(node: Cell, xs: Inputs, steps: Steps) -> Any:
    """a recurrent cell: x and states have the batch"""
    return over_batch(node, xs, steps, 3 if isinstance(node, ops.LSTMCell) else 2)


def sequence(node: Sequence, xs: Inputs, steps: Steps) -> Any:
    """a recurrent layer: x, states and lengths have the batch"""
    return over_batch(node, xs, steps, 4 if isinstance(node, ops.LSTMSequence) else 3)


def two(node: Any, xs: Inputs, steps: Steps) -> Value | None:
    """f(x [N, ...], y [N, ...])"""
    return over_batch(node, xs, steps, 2)


RULES: dict[type, Rule] = {
    ops.Filtered: over_batch,
    ops.Pooling: over_batch,
    ops.BatchNormInference: over_batch,
    ops.DepthToSpace: over_batch,
    ops.SpaceToDepth: over_batch,
    ops.GridSample: two,
    Cell: cell,
    Sequence: sequence,
}
