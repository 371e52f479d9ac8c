"""The comparisons of the inner nodes of decision trees.

A test that takes x <= limit to its `yes` branch is the opposite of x > limit with the branches changed over, so most
forests make one kind of comparison alone, which NaN fails. In others, NaN is replaced in x by an infinity that takes
the branch of NaN; where nodes of one feature differ in that, x has the feature twice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from mo_loop import ops as operations
from mo_loop.frontend.vocabulary import Value, ops
from mo_loop.graph.types import ElementType, f64

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
LEQ, LT, GTE, GT, EQ, NEQ = range(len(MODES))

OPPOSITE = np.array([GT, GTE, LT, LEQ, NEQ, EQ])
"""For each of `MODES` the opposite mode, NaN aside."""

ORDERED = (LEQ, LT, GTE, GT)
_NAMES = {LEQ: "at most", LT: "below", GTE: "at least", GT: "above", EQ: "equal"}

Found = Callable[[Any], Any]
"""Returns the items of the tested nodes, of an array with an item for each node."""


@dataclass
class Tests:
    """The tests of the nodes of all trees, arrays with an item for each node; those of leaves have no meaning."""

    columns: Any
    limits: Any
    """In f32."""
    kinds: dict[str, Any]
    """The nodes of each kind of test; None if all inner nodes are of this kind."""
    infinities: Sequence[float] = ()
    """The values that replace NaN in the columns: the columns of x with the first one come before those with the second
    one."""

    def columns_of(self, x: Value, axis: int) -> Value:
        """The columns that tests read, of x, whose columns are along an axis."""
        # NaN is neither below nor above anything.
        parts = [
            ops.Select(x < np.float32(np.inf) if each > 0 else ops.Less(np.float32(-np.inf), x), x, np.float32(each))
            for each in self.infinities
        ]
        return ops.Concat(*parts, axis=axis) if len(parts) > 1 else parts[0] if parts else x

    def met(self, values: Value, found: Found) -> Value:
        """Whether values, of the columns of nodes, meet the tests of these nodes."""
        limits = found(self.limits)
        made: dict[str, Callable[[], Any]] = {
            "below": lambda: values < limits, "at most": lambda: ops.LessEqual(values, limits),
            "above": lambda: ops.Less(limits, values), "at least": lambda: ops.LessEqual(limits, values),
            "equal": lambda: ops.Equal(values, limits), "missing": lambda: ops.IsNaN(values),
        }  # fmt: skip
        tests = [(made[name](), nodes) for name, nodes in self.kinds.items()]
        return reduce(ops.LogicalOr, [each if nodes is None else each & found(nodes) for each, nodes in tests])


_KEEPS_NUMBERS = (
    operations.Convert, operations.Gather, operations.Identity, operations.Reshape, operations.Slice,
    operations.Squeeze, operations.Transpose, operations.Unsqueeze,
)  # fmt: skip


def numbers_of(x: Value) -> ElementType:
    """The element type that holds all numbers of x: of numbers that become f64, their type before."""
    while x.dtype is f64 and isinstance(x.node, _KEEPS_NUMBERS):
        x = x.node.operands[0]
    return x.dtype


def tests_of(width: int | None, numbers: ElementType, features, thresholds, modes, missing, is_leaf) -> Tests:
    """The tests x[:, feature] <= threshold, or another of `modes`; `missing` marks those that NaN meets. `width` is the
    number of features, if it is known, and `numbers` the type of x before it is converted to f32."""
    columns, inner = features.astype(np.int32), ~is_leaf
    limits = _thresholds_in_f32(thresholds, modes, numbers)
    flags = {name: modes == mode for mode, name in _NAMES.items()}
    infinities: list[float] = []
    if missing[inner].any():
        upwards = flags["above"] == missing  # which infinity takes the branch of NaN
        infinities = [sign * np.inf for sign in (1, -1) if np.any(upwards[inner] == (sign > 0))]
        if (
            flags["equal"][inner].any()
            or not np.isfinite(limits[inner & missing]).all()
            or (width is None and len(infinities) > 1)
        ):
            flags["missing"], infinities = missing, []
        elif len(infinities) > 1:
            columns += np.where(upwards, 0, width or 0).astype(np.int32)
    kinds = {name: None if each[inner].all() else each for name, each in flags.items() if each[inner].any()}
    return Tests(columns, limits, kinds, infinities)


def _thresholds_in_f32(limits, modes, numbers: ElementType):
    """Thresholds of f64 so that comparisons with x, which the runtime has in f32, come out the same.

    The runtime rounds f64 and large integers to the nearest f32, f64 within its finite numbers; so a threshold that x
    is equal to is rounded. Numbers that f32 holds are compared with the threshold's neighbour on the side that changes
    nothing.
    """
    sides = [np.isin(modes, (LEQ, GT)), np.isin(modes, (LT, GTE))]
    if numbers is f64:
        most = np.finfo(np.float32).max
        return np.clip(limits, -most, most).astype(np.float32)
    if numbers.is_integer:
        whole = np.where(np.floor(limits) == limits, limits, np.nan)  # no integer is equal to another number
        return np.select(sides, [np.floor(limits), np.ceil(limits)], whole).astype(np.float32)
    with np.errstate(over="ignore"):  # beyond f32; and of numbers that have no neighbour, which are not selected
        near = limits.astype(np.float32)
        below = np.where(near > limits, np.nextafter(near, np.float32(-np.inf)), near)
        above = np.where(near < limits, np.nextafter(near, np.float32(np.inf)), near)
    unequal = np.where(near != limits, np.float32(np.nan), near)  # no f32 is equal to it, so NaN takes its place
    return np.select(sides, [below, above], unequal)
