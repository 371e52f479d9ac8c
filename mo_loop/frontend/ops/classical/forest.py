"""Decision trees as tables. Each step descends one level, for all rows and all trees at once; what is below a leaf is
the leaf itself, so all trees take as many steps as the deepest one has levels. There are three forms:

Full trees have a table for each level, in which the two nodes below each node are side by side:

    at[n, t] = 2 at[n, t] + (x[n, feature[at]] meets threshold[at]),     at = the place of row n and tree t in a level

Other trees would repeat too many leaves; all levels read one table of all nodes, and one of those below:

    at[n, t] = below[2 at[n, t] + (x[n, feature[at]] meets threshold[at])]

Few rows of small trees that are deep, as of LightGBM, meet the tests of all nodes at once; a step is one lookup then:

    follows[n, node] = yes[node] if x[n, feature[node]] meets threshold[node] else no[node],     at = follows[n, at]
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from mo_loop.frontend.arrays import first_numbers, zeros
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


Tables = Mapping[str, Any]
"""Arrays with an entry for each node, by what a test reads."""


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
        tables = self._tables()
        is_full = len(self.roots) << min(depth, 40) <= _FULL * len(self.features)
        if self._is_fast_at_once(x, depth, is_full):
            return self._tested_at_once(x, tables, depth)
        return (self._level_by_level if is_full else self._node_by_node)(x, tables, depth)

    def _tables(self) -> Tables:
        """What tests read: features, limits, and of each kind of test the nodes that make it."""
        return {
            "feature": self.features.astype(np.int32), "limit": _thresholds_in_f32(self.thresholds, self.modes),
            "below": _IS_BELOW[self.modes], "equal": _IS_EQUAL[self.modes], "above": _IS_ABOVE[self.modes],
            "missing": self.missing,
        }  # fmt: skip

    def _is_fast_at_once(self, x: Value, depth: int, is_full: bool) -> bool:
        """Whether all tests at once take less time than those of a node in each level; for an unknown number of rows,
        the mean over 1 and 1,000 rows."""
        count = x.type.dims[0]
        is_known = isinstance(count, int)
        rows = np.array([count] if is_known else [1, 1000])
        steps, operations, each = depth * len(self.roots), 7 if is_full else 8, _OPERATION[is_known]
        levels = each * operations * depth + rows * _ELEMENT * operations * steps
        at_once = each * (depth + 4) + rows * _ELEMENT * (3 * len(self.yes) + 2 * steps)
        return bool(np.prod(at_once) < np.prod(levels))

    def _tested_at_once(self, x: Value, tables: Tables, depth: int) -> "Leaves":
        nodes = first_numbers(len(self.yes)).astype(np.int32)
        no, yes = (ends.astype(np.int32)[None] for ends in self._below().T)
        follows = ops.Select(self._tests_of(x, tables, nodes), yes, no)
        at = ops.Gather(follows, self.roots.astype(np.int32), 1)
        for _ in range(depth - 1):
            at = ops.Gather(follows, at, 1, batch_dims=1)
        return Leaves(at, nodes)

    def _level_by_level(self, x: Value, tables: Tables, depth: int) -> "Leaves":
        below, level = self._below(), self.roots
        at = self._first_step(x, tables)
        for _ in range(depth - 1):
            level = below[level].reshape(-1)
            here = {name: _numbers(table[level]) for name, table in tables.items()}
            at = _step(at, _tests_at(x, at, here, _kinds(tables, level[~self.is_leaf[level]])))
        return Leaves(at, below[level].reshape(-1))

    def _node_by_node(self, x: Value, tables: Tables, depth: int) -> "Leaves":
        below = self._below().astype(np.int32)
        at = _looked_up(below[self.roots].reshape(-1), self._first_step(x, tables))
        kinds = _kinds(tables, ~self.is_leaf)
        shared = {name: ops.Constant(_numbers(table), graph=at.graph) for name, table in tables.items()}
        pairs = ops.Constant(below.reshape(-1), graph=at.graph)
        for _ in range(depth - 1):
            at = _looked_up(pairs, _step(at, _tests_at(x, at, shared, kinds)))
        return Leaves(at, first_numbers(len(self.yes)))

    def _below(self):
        """[nodes, 2]: the nodes of `no` and `yes`, of a leaf itself."""
        own = first_numbers(len(self.yes))
        return np.stack([np.where(self.is_leaf, own, ends) for ends in (self.no, self.yes)], 1)

    def _first_step(self, x: Value, tables: Tables) -> Value:
        return _step(first_numbers(len(self.roots)).astype(np.int32), self._tests_of(x, tables, self.roots))

    def _tests_of(self, x: Value, tables: Tables, nodes) -> Value:
        """[N, nodes]: whether each row meets the test of each of `nodes`."""
        values = ops.Gather(x, tables["feature"][nodes], 1)
        kinds = _kinds(tables, nodes[~self.is_leaf[nodes]])
        return _tests(values, kinds, lambda name: tables[name][nodes][None])


def _tests_at(x: Value, at: Value, tables: Mapping[str, Any], kinds: Mapping[str, bool]) -> Value:
    """[N, trees]: whether each row meets the test of its node in each tree."""

    def found(name: str) -> Value:
        made = _looked_up(tables[name], at)
        return ops.NotEqual(made, 0) if name in kinds else made

    return _tests(ops.Gather(x, found("feature"), 1, batch_dims=1), kinds, found)


def _tests(values: Value, kinds: Mapping[str, bool], found: Callable[[str], Any]) -> Value:
    """Whether values meet the tests of nodes, for which `found` reads a table. `kinds` says which kinds there are,
    and whether all nodes make such a test."""
    limits = found("limit")
    tests: dict[str, Callable[[], Any]] = {
        "below": lambda: values < limits, "equal": lambda: ops.Equal(values, limits),
        "above": lambda: ops.Less(limits, values),
        "missing": lambda: ops.IsNaN(values),  # NaN is not below, at or above
    }  # fmt: skip
    made = [(tests[name](), name) for name in kinds]
    return reduce(ops.LogicalOr, [each if kinds[name] else each & found(name) for each, name in made])


def _kinds(tables: Tables, inner) -> dict[str, bool]:
    """The kinds of tests of inner nodes, and whether all of them make one."""
    flags = {name: tables[name][inner] for name in ("below", "equal", "above", "missing")}
    return {name: bool(each.all()) for name, each in flags.items() if each.any()}


def _step(at: Any, met: Value) -> Value:
    """The place in a table of the two nodes below each node."""
    return ops.Convert(met, destination_type=i32) + at * np.int32(2)


def _numbers(table):
    return table.astype(np.int32) if table.dtype == bool else table  # the runtime's Gather takes no booleans


_FULL = 4
"""Levels of full trees have at most so many places for each node of the forest."""

_OPERATION, _ELEMENT = (1.0, 0.4), 0.0007
"""Microseconds that the runtime takes for an operation, of unknown and of known shape, and for an element of its
result."""


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
