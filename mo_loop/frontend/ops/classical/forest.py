"""Decision trees as tables. Each step descends one level, for all rows and all trees at once.

    next[n, t] = yes[at] if x[n, feature[at]] meets threshold[at] else no[at],        at = the node of tree t for row n

The next node of a leaf is the leaf itself, so that all trees take as many steps as the deepest one has levels.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from mo_loop.frontend.arrays import zeros
from mo_loop.frontend.ops.elementwise.arithmetic import number
from mo_loop.frontend.vocabulary import ModelError, Value, ops
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

    def leaves(self, x: Value) -> Value:
        """[N, trees]: the leaf that each tree comes to for each row of x [N, F], in f32."""
        width = x.type.dims[1]
        if isinstance(width, int) and np.any((self.features < 0) | (self.features >= width)):
            raise ModelError(f"a tree reads a feature outside the {width} of the input", code="ML227")
        limits = _thresholds_in_f32(self.thresholds, self.modes)
        count = ops.Gather(ops.ShapeOf(x), [0], 0)
        at = ops.Broadcast(self.roots, ops.Concat(count, np.array([len(self.roots)]), axis=0))
        depth = self.depth()
        require_parts(depth, "the levels of a tree")
        for _ in range(depth):
            at = self._step(x, limits, at)
        return at

    def _step(self, x: Value, thresholds, at: Value) -> Value:
        values = ops.GatherElements(x, _looked_up(self.features, at), axis=1)
        limits = _looked_up(thresholds, at)
        tests: list[tuple[Any, Callable[[], Any]]] = [
            (_IS_BELOW[self.modes], lambda: values < limits),
            (_IS_EQUAL[self.modes], lambda: ops.Equal(values, limits)),
            (_IS_ABOVE[self.modes], lambda: limits < values),
            (self.missing, lambda: ops.IsNaN(values)),  # NaN is not below, at or above
        ]
        taken = [self._where(allowed, test(), at) for allowed, test in tests if allowed[~self.is_leaf].any()]
        met = reduce(ops.LogicalOr, taken)
        return ops.Select(met, _looked_up(self.yes, at), _looked_up(self.no, at))

    def _where(self, allowed, test, at: Value):
        """`test` at the nodes that allow it."""
        if allowed[~self.is_leaf].all():
            return test
        return test & ops.NotEqual(_looked_up(allowed.astype(np.int32), at), 0)


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
    def collected(cls, nodes: int, outputs: int, places: Sequence[int], ids: Sequence[int], numbers) -> "Votes":
        """From parallel lists of the node, the output and the weight of each vote."""
        if not len(places) == len(ids) == len(numbers):
            raise ModelError("votes of leaves are lists of different length", code="ML227")
        if any(not 0 <= each < outputs for each in ids):
            raise ModelError(f"a leaf votes for an output outside the {outputs} of the model", code="ML227")
        weights, given = zeros((nodes, outputs), np.float64), zeros((nodes, outputs), bool)
        np.add.at(weights, (list(places), list(ids)), np.asarray(numbers, np.float64))
        given[list(places), list(ids)] = True
        return cls(weights.astype(np.float32), given)

    def are_certain(self, forest: Forest) -> bool:
        """Whether every output has a vote for every row: all leaves of some tree vote for it."""
        leaves = [_reached(forest, root) for root in forest.roots]
        return bool(np.all(np.any([np.all(self.given[each], 0) for each in leaves], 0)))

    def are_opposite(self, forest: Forest) -> bool:
        """Whether each leaf votes w for one of two outputs and -w for the other."""
        given = self.given[forest.is_leaf]
        return bool(given.all()) and np.array_equal(self.weights[:, 0], -self.weights[:, 1])

    def total(self, leaves: Value) -> Value:
        """[N, outputs], summed over the trees."""
        return ops.ReduceSum(_looked_up(self.weights, leaves), [1], keep_dims=False)

    def extreme(self, leaves: Value, largest: bool) -> Value:
        """[N, outputs], the largest or smallest vote of all trees, 0 where there is none."""
        none = np.float32(-np.inf if largest else np.inf)
        found = _looked_up(np.where(self.given, self.weights, none), leaves)
        best = (ops.ReduceMax if largest else ops.ReduceMin)(found, [1], keep_dims=False)
        return best if self.given.all() else ops.Select(self.has_votes(leaves), best, number(best, 0))

    def has_votes(self, leaves: Value) -> Value:
        """[N, outputs]: whether any tree votes for an output."""
        votes = ops.ReduceMax(_looked_up(self.given.astype(np.int32), leaves), [1], keep_dims=False)
        return ops.NotEqual(votes, 0)


def _reached(forest: Forest, root: int):
    """The leaves below a node."""
    found, level = [], np.array([root])
    while level.size:
        found.append(level[forest.is_leaf[level]])
        inner = level[~forest.is_leaf[level]]
        level = np.unique(np.concatenate([forest.yes[inner], forest.no[inner]]))
    return np.unique(np.concatenate(found))
