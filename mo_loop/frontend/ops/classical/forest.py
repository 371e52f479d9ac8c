"""Decision trees as tables, one for each level. Each step descends one level, for all rows and all trees at once.

    at[n, t] = 2 at[n, t] + (x[n, feature[at]] meets threshold[at]),     at = the place of row n and tree t in a level

The two nodes below each node are side by side in the next level. What is below a leaf is the leaf itself, so all trees
take as many steps as the deepest one has levels. Where a level would repeat too many leaves, it holds each once, and a
table gives their places.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from mo_loop.frontend.arrays import zeros
from mo_loop.frontend.ops.elementwise.arithmetic import number
from mo_loop.frontend.vocabulary import ModelError, Value, ops
from mo_loop.graph.types import i32
from mo_loop.ops.ranges import require_parts

MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
LEAF = "LEAF"
_EQ, _NEQ = MODES.index("BRANCH_EQ"), MODES.index("BRANCH_NEQ")

_IS_BELOW = np.array([1, 1, 0, 0, 0], bool)
_IS_EQUAL = np.array([1, 0, 1, 0, 1], bool)
_IS_ABOVE = np.array([0, 0, 1, 1, 0], bool)
"""Of what is below, at and above its threshold: whether each of `MODES` takes it to the `yes` branch. BRANCH_NEQ is
BRANCH_EQ with its branches changed over, and NaN is unequal to everything."""


@dataclass
class Forest:
    """Nodes of all trees. `modes` are indices into MODES, of leaves any; `yes` and `no` are indices of nodes."""

    features: Any
    thresholds: Any
    """In f64."""
    modes: Any
    yes: Any
    no: Any
    missing: Any
    """Whether NaN takes the `yes` branch."""
    roots: Any
    is_leaf: Any

    def __post_init__(self) -> None:
        turned = self.modes == _NEQ
        self.yes, self.no = np.where(turned, self.no, self.yes), np.where(turned, self.yes, self.no)
        self.modes = np.where(turned, _EQ, self.modes)
        self.missing = self.missing & ~turned

    def depth(self) -> int:
        """The largest number of steps from a root to a leaf. ModelError for cycles and missing nodes."""
        for ends in (self.yes, self.no, self.roots):
            if np.any((ends < 0) | (ends >= len(self.yes))):
                raise ModelError("a tree refers to a node that it does not have", code="ML227")
        level = np.unique(self.roots)
        for depth in range(len(self.yes) + 1):
            inner = level[~self.is_leaf[level]]
            if not inner.size:
                return depth
            level = np.unique(np.concatenate([self.yes[inner], self.no[inner]]))
        raise ModelError("the nodes of a tree form a cycle", code="ML227")

    def leaves(self, x: Value) -> "Leaves":
        """The leaf that each tree comes to for each row of x [N, F], in f32."""
        width = x.type.dims[1]
        if isinstance(width, int) and np.any((self.features < 0) | (self.features >= width)):
            raise ModelError(f"a tree reads a feature outside the {width} of the input", code="ML227")
        depth = self.depth()
        require_parts(depth, "the levels of a tree")
        if not depth:
            count = ops.Gather(ops.ShapeOf(x), [0], 0)
            first = np.arange(len(self.roots), dtype=np.int32)
            return Leaves(ops.Broadcast(first, ops.Concat(count, np.array([first.size]), axis=0)), self.roots)
        limits = _thresholds_in_f32(self.thresholds, self.modes)
        is_dense = len(self.roots) << min(depth, 40) <= _DENSE * len(self.features)
        level = self.roots
        at: Value | None = None
        for _ in range(depth):
            met = ops.Convert(self._tested(x, limits, level, at), destination_type=i32)
            before = 2 * np.arange(len(level), dtype=np.int32) if at is None else at * np.int32(2)
            at = met + before
            level = np.stack([self.no[level], self.yes[level]], 1).reshape(-1)
            if not is_dense:
                level, places = np.unique(level, return_inverse=True)
                at = _looked_up(places.reshape(-1).astype(np.int32), at)
        assert at is not None
        return Leaves(at, level)

    def _tested(self, x: Value, thresholds, level, at: Value | None) -> Value:
        """Whether each row meets the test of the node of `level` where it is; it is at all of them in the first one."""

        def found(table):
            return table[level][None] if at is None else _looked_up(table[level], at)

        if at is None:
            values = ops.Gather(x, self.features[level].astype(np.int32), 1)
        else:
            values = ops.Gather(x, found(self.features.astype(np.int32)), 1, batch_dims=1)
        inner = level[~self.is_leaf[level]]
        limits = found(thresholds)
        tests: list[tuple[Any, Callable[[], Any]]] = [
            (_IS_BELOW[self.modes], lambda: values < limits),
            (_IS_EQUAL[self.modes], lambda: ops.Equal(values, limits)),
            (_IS_ABOVE[self.modes], lambda: ops.Less(limits, values)),
            (self.missing, lambda: ops.IsNaN(values)),  # NaN is not below, at or above
        ]

        def where(allowed, made):
            if allowed[inner].all():
                return made
            return made & (found(allowed) if at is None else ops.NotEqual(found(allowed.astype(np.int32)), 0))

        return reduce(ops.LogicalOr, [where(allowed, test()) for allowed, test in tests if allowed[inner].any()])


_DENSE = 4
"""Levels in which leaves repeat have at most so many places for each node of the forest."""


@dataclass
class Leaves:
    """[N, trees]: the leaf of each tree for each row, as `places` in `nodes`, which are indices of the forest's."""

    places: Value
    nodes: Any

    def of(self, table) -> Value:
        """What a table of all nodes has for the leaves."""
        return _looked_up(table[self.nodes], self.places)


def _looked_up(table, at: Value) -> Value:
    return ops.Gather(table, at, 0)


def _thresholds_in_f32(limits, modes):
    """Thresholds of f64 so that comparisons with f32 come out the same: rounded to the side that changes nothing.

    The runtime rounds numbers of f64 to f32 before they are compared: those that f32 holds come out the same, too."""
    with np.errstate(over="ignore"):  # beyond f32; and of numbers that have no neighbour, which are not selected
        near = limits.astype(np.float32)
        below = np.where(near > limits, np.nextafter(near, np.float32(-np.inf)), near)
        above = np.where(near < limits, np.nextafter(near, np.float32(np.inf)), near)
    names = np.asarray(MODES)[modes]
    rounded_down = np.isin(names, ("BRANCH_LEQ", "BRANCH_GT"))
    rounded_up = np.isin(names, ("BRANCH_LT", "BRANCH_GTE"))
    unequal = np.where(near != limits, np.float32(np.nan), near)  # no f32 is equal to it, so NaN takes its place
    return np.where(rounded_down, below, np.where(rounded_up, above, unequal)).astype(np.float32)


@dataclass
class Votes:
    """The votes of leaves: weights [nodes, outputs], and a mask of the existing ones."""

    weights: Any
    given: Any

    @classmethod
    def collected(cls, nodes: int, outputs: int, places, ids: Sequence[int], numbers) -> "Votes":
        """From parallel lists of the node, the output and the weight of each vote."""
        if not len(places) == len(ids) == len(numbers):
            raise ModelError("votes of leaves are lists of different length", code="ML227")
        outputs_of = np.asarray(ids, np.int64)
        if np.any((outputs_of < 0) | (outputs_of >= outputs)):
            raise ModelError(f"a leaf votes for an output outside the {outputs} of the model", code="ML227")
        weights, given = zeros((nodes, outputs), np.float64), zeros((nodes, outputs), bool)
        at = (np.asarray(places, np.int64), outputs_of)
        np.add.at(weights, at, np.asarray(numbers, np.float64))
        given[at] = True
        return cls(weights.astype(np.float32), given)

    def are_certain(self, forest: Forest) -> bool:
        """Whether every output has a vote for every row: all leaves of some tree vote for it."""
        leaves = [_reached(forest, root) for root in forest.roots]
        return bool(np.all(np.any([np.all(self.given[each], 0) for each in leaves], 0)))

    def are_opposite(self, forest: Forest) -> bool:
        """Whether each leaf votes w for one of two outputs and -w for the other."""
        given = self.given[forest.is_leaf]
        return bool(given.all()) and np.array_equal(self.weights[:, 0], -self.weights[:, 1])

    def total(self, leaves: Leaves) -> Value:
        """[N, outputs], summed over the trees."""
        return ops.ReduceSum(leaves.of(self.weights), [1], keep_dims=False)

    def extreme(self, leaves: Leaves, largest: bool) -> Value:
        """[N, outputs], the largest or smallest vote of all trees, 0 where there is none."""
        none = np.float32(-np.inf if largest else np.inf)
        found = leaves.of(np.where(self.given, self.weights, none))
        best = (ops.ReduceMax if largest else ops.ReduceMin)(found, [1], keep_dims=False)
        return best if self.given.all() else ops.Select(self.has_votes(leaves), best, number(best, 0))

    def has_votes(self, leaves: Leaves) -> Value:
        """[N, outputs]: whether any tree votes for an output."""
        votes = ops.ReduceMax(leaves.of(self.given.astype(np.int32)), [1], keep_dims=False)
        return ops.NotEqual(votes, 0)


def _reached(forest: Forest, root: int):
    """The leaves below a node."""
    found, level = [], np.array([root])
    while level.size:
        found.append(level[forest.is_leaf[level]])
        inner = level[~forest.is_leaf[level]]
        level = np.unique(np.concatenate([forest.yes[inner], forest.no[inner]]))
    return np.unique(np.concatenate(found))
