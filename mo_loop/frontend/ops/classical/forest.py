"""Decision trees: their nodes, the votes of their leaves, and the form in which rows find them.

The form takes the least time for the declared number of rows; if none is declared, an If chooses.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mo_loop.frontend.ops.classical.tree_forms import (
    EQ,
    GTE,
    LEQ,
    LT,
    NEQ,
    OPPOSITE,
    ORDERED,
    Leaves,
    Trees,
    looked_up,
    tests_of,
)
from mo_loop.frontend.ops.shared import first_numbers, full, number, zeros
from mo_loop.frontend.vocabulary import Graph, ModelError, Value, ops
from mo_loop.graph import ElementType, now
from mo_loop.ops.base import Parameter, Result
from mo_loop.ops.port_map import Branched, Selected
from mo_loop.ops.ranges import require_parts

LEAF = "LEAF"


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
        """Nodes become ones of the opposite test: so that NaN meets none, if all then make one kind of test, else so
        that there are fewer kinds."""
        is_ordered, has_limit = ~np.isin(self.modes, (EQ, NEQ)), ~np.isnan(self.thresholds)
        can_turn = is_ordered & has_limit & ~self.is_leaf
        turned = can_turn & self.missing
        left = np.where(turned, OPPOSITE[self.modes], self.modes)[can_turn]
        kinds = [kind for kind in ORDERED if np.any(left == kind)]
        if len(kinds) > 1:
            turned, kinds = can_turn & np.isin(self.modes, (LEQ, GTE)), [LT]
        turned |= self.modes == NEQ
        self.yes, self.no = np.where(turned, self.no, self.yes), np.where(turned, self.yes, self.no)
        self.missing = np.where(turned, ~self.missing & (self.modes != NEQ), self.missing)  # NaN is unequal to all
        self.modes = np.where(turned, OPPOSITE[self.modes], self.modes)
        self.modes[is_ordered & ~has_limit] = kinds[0] if kinds else LT  # a test that nothing meets

    def levels(self) -> list[Any]:
        """The nodes of each level, from the roots on. ModelError for cycles and missing nodes."""
        for ends in (self.yes, self.no, self.roots):
            if np.any((ends < 0) | (ends >= len(self.yes))):
                raise ModelError("a tree refers to a node that it does not have", code="ML227")
        levels = [_distinct(self.roots)]
        while len(levels) <= len(self.yes):
            inner = levels[-1][~self.is_leaf[levels[-1]]]
            if not inner.size:
                return levels
            levels.append(_distinct(np.concatenate([self.yes[inner], self.no[inner]])))
        raise ModelError("the nodes of a tree form a cycle", code="ML227")

    def leaves(self, x: Value, numbers: ElementType) -> Leaves:
        """The leaf that each tree comes to for each row of x [N, F], in f32, whose numbers were of this type."""
        width = x.type.dims[1]
        if isinstance(width, int) and np.any((self.features < 0) | (self.features >= width)):
            raise ModelError(f"a tree reads a feature outside the {width} of the input", code="ML227")
        levels = self.levels()
        require_parts(len(levels) - 1, "the levels of a tree")
        if len(levels) == 1:
            count = ops.Gather(x.sizes, [0], 0)
            first = np.arange(len(self.roots), dtype=np.int32)[:, None]
            return Leaves(ops.Broadcast(first, ops.Concat(np.array([first.size]), count, axis=0)), self.roots)
        known = width if isinstance(width, int) else None
        tests = tests_of(known, numbers, self.features, self.thresholds, self.modes, self.missing, self.is_leaf)
        own = first_numbers(len(self.yes), np.int32)
        below = np.stack([np.where(self.is_leaf, own, ends) for ends in (self.no, self.yes)], 1)
        trees = Trees(x, tests, below, self.roots, self.is_leaf, levels)
        return replace(_in_form(trees), tree_of=trees.tree_of)


def _distinct(nodes):
    """Ascending; as numpy.unique, which takes several times as long for millions."""
    ordered = np.sort(nodes)
    return ordered[np.append(True, ordered[1:] != ordered[:-1])]


@dataclass
class Votes:
    """The votes of leaves: weights [nodes, outputs], and a mask of the existing ones."""

    weights: Any
    given: Any

    @classmethod
    def collected(cls, nodes: int, outputs: int, places, ids: Sequence[int], numbers, how: str = "SUM") -> "Votes":
        """From parallel lists of the node, the output and the weight of each vote. Several votes of a node for one
        output count as those of several trees do: `how` is SUM, AVERAGE, MIN or MAX."""
        if not len(places) == len(ids) == len(numbers):
            raise ModelError("votes of leaves are lists of different length", code="ML227")
        outputs_of = np.asarray(ids, np.int64)
        if np.any((outputs_of < 0) | (outputs_of >= outputs)):
            raise ModelError(f"a leaf votes for an output outside the {outputs} of the model", code="ML227")
        join, start = {"MIN": (np.minimum, np.inf), "MAX": (np.maximum, -np.inf)}.get(how, (np.add, 0.0))
        weights, given = full((nodes, outputs), start, np.float64), zeros((nodes, outputs), bool)
        at = (np.asarray(places, np.int64), outputs_of)
        join.at(weights, at, np.asarray(numbers, np.float64))
        given[at] = True
        weights[~given] = 0
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
        trees, outputs = leaves.places.type.dims[0], self.weights.shape[1]
        if trees == 1:
            return ops.Squeeze(leaves.of(self.weights), [0])
        voted = self._output_of(leaves, trees) if outputs > 1 else None
        if voted is None or np.any(np.bincount(voted, minlength=outputs) * outputs != trees):
            return ops.ReduceSum(leaves.of(self.weights), [0], keep_dims=False)
        votes = leaves.of(self.weights.sum(1))  # of which one is not 0
        order = np.argsort(voted, kind="stable")
        rows = leaves.places.size(1)
        groups = ops.Gather(votes, order, 0).reshape([outputs, trees // outputs, rows])
        return ops.Transpose(ops.ReduceSum(groups, [1], keep_dims=False), [1, 0])

    def _output_of(self, leaves: Leaves, trees: int):
        """The output that each tree votes for; None if one votes for several."""
        if leaves.tree_of is None:
            return None
        nodes, outputs = np.nonzero(self.given)
        voted = zeros((trees, self.given.shape[1]), bool)
        voted[leaves.tree_of[nodes], outputs] = True
        return np.argmax(voted, 1) if np.all(voted.sum(1) == 1) else None

    def extreme(self, leaves: Leaves, largest: bool) -> Value:
        """[N, outputs], the largest or smallest vote of all trees, 0 where there is none."""
        none = np.float32(-np.inf if largest else np.inf)
        found = leaves.of(np.where(self.given, self.weights, none))
        best = (ops.ReduceMax if largest else ops.ReduceMin)(found, [0], keep_dims=False)
        return best if self.given.all() else ops.Select(self.has_votes(leaves), best, number(best, 0))

    def has_votes(self, leaves: Leaves) -> Value:
        """[N, outputs]: whether any tree votes for an output."""
        return ops.NotEqual(ops.ReduceMax(leaves.of(self.given.astype(np.int32)), [0], keep_dims=False), 0)


def _reached(forest: Forest, root: int):
    """The leaves below a node."""
    found, level = [], np.array([root])
    while level.size:
        found.append(level[forest.is_leaf[level]])
        inner = level[~forest.is_leaf[level]]
        level = np.unique(np.concatenate([forest.yes[inner], forest.no[inner]]))
    return np.unique(np.concatenate(found))


_OPERATION, _BRANCH, _START = (0.4, 1.0), 9.0, 8.0
"""Microseconds that the runtime takes for an operation of known and of unknown shape, an If, and an inference."""
_ORDERED, _AT_ONCE = 64, 2**18
"""Trees of at most so many nodes are tried in order, forests of at most so many at once."""


@dataclass
class FormTime:
    """Microseconds of a form: those that do not grow with the rows, and those of each row."""

    form: Callable[[Trees], Leaves]
    fixed: float
    row: float
    nodes: int = 0
    """The numbers that a row has at once: above 2 MB of all rows they no longer fit the cache."""

    def of(self, rows: Any) -> Any:
        far = rows * self.nodes > 2**19
        return self.fixed + rows * (self.row + np.where(far, 0.0015, 0.00035) * self.nodes)


def _in_form(trees: Trees) -> Leaves:
    """The form for the declared number of rows, if this is known; else one for few and one for many, or one for all."""
    count = now(trees.x.type.dims[0])
    costs = _costs(trees, _OPERATION[count is None])
    if count is not None:
        return min(costs, key=lambda each: each.of(count)).form(trees)
    few, many = (min(costs, key=lambda each: each.of(rows)) for rows in (1, 1000))
    best = min(costs, key=lambda each: _mean(each.of(1), each.of(1000)))
    if _mean(few.of(1) + _BRANCH, many.of(1000) + _BRANCH) > 0.85 * _mean(best.of(1), best.of(1000)):
        return best.form(trees)
    rows = np.arange(1, 1001)
    return _either(trees, few, many, int(np.argmax(few.of(rows) > many.of(rows))))


def _mean(one: float, thousand: float) -> float:
    """The geometric mean of the times of 1 and of 1,000 rows, squared."""
    return (one + _START) * (thousand + _START)


def _costs(trees: Trees, each: float) -> list[FormTime]:
    count, depth, inner = len(trees.roots), trees.depth, int(np.sum(~trees.is_leaf))
    steps, own, width = count * depth, trees.levels_of_tables(), trees.x.type.dims[1]
    transposed = 0.0008 * (width if isinstance(width, int) else 0)
    below = int(np.sum(trees.deepest_first()[1])) - own * count
    fixed = each * (4 * own + 9 * (depth - own) + (10 if count > 1 else 4)) + 0.01 * steps
    costs = [FormTime(Trees.level_by_level, fixed, 0.003 * own * count + 0.0055 * below)]
    if inner <= _AT_ONCE:
        places, groups = map(len, trees.groups)
        fixed, row = each * (2 * depth + 6) + 0.03 * places, transposed + 0.0016 * steps
        each_step = 0.0008 if trees.has_known_rows else 0.003
        costs += [
            FormTime(Trees.by_columns, each * (depth + 6), 0.01 + 0.015 * groups + each_step * steps, places),
            FormTime(Trees.by_columns_rows_last, fixed, row, places),
        ]
    if inner <= _ORDERED * count and trees.tree_of is not None and trees.largest() <= _ORDERED:
        tests = count * trees.largest()
        fixed = each * (2 * trees.largest() + 8) + 0.05 * tests
        costs.append(FormTime(Trees.in_order, fixed, transposed + 0.0009 * tests))
    return costs


def _either(trees: Trees, few: FormTime, many: FormTime, limit: int) -> Leaves:
    """One form for up to `limit` rows, another one for more."""
    x = trees.x
    bodies = Graph("few_rows"), Graph("many_rows")
    inside = [Parameter(graph=body, type=x.type) for body in bodies]
    first, second = (
        cost.form(replace(trees, x=parameter.output)) for cost, parameter in zip((few, many), inside, strict=True)
    )
    places = np.zeros(len(trees.below), np.int32)
    places[second.nodes] = first_numbers(len(second.nodes))
    results = Selected(Result(looked_up(places[first.nodes], first.places)), Result(second.places))
    made = ops.If(
        ops.LessEqual(x.size(0), np.int64(limit)), x, then_body=bodies[0], else_body=bodies[1],
        input_map=(Branched(*inside),), output_map=(results,),
    )
    return Leaves(made[0], second.nodes)
