"""Element-wise operations, reductions and normalisations over axes."""

from __future__ import annotations

from collections.abc import Sequence

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.transforms.loops.lifted import Lifted, Rule, Steps, again, shifted, vector


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
}
