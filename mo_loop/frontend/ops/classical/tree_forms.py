"""Ways in which rows [N, F] find their leaves in decision trees, with operations on whole tensors.

by columns       The tests of all nodes at once, those of a column of x side by side; then a lookup for each level:

                     follows[n, node] = yes[node] if x[n, column of node] meets the test else no[node]
                     at[n, t] = follows[n, at[n, t]]

by columns, rows last     The same with the rows side by side, which suits small forests:

                     at[t, n] = follows[at[t, n], n]

in order         Small trees: the nodes of each tree one after the other, those above first. `at` is the first leaf
                 below the node to which a row has come. The leaves below a `yes` branch come after those below
                 the `no` branch, so `at` is also the first leaf below that one:

                     at[t, n] += step[k, t] if x[n, column of node k] meets the test and at[t, n] = first[k, t] else 0

level by level   Each level has a table, in which the two nodes below each node are side by side:

                     at[t, n] = 2 at[t, n] + (x[n, column[at]] meets the test[at])

                 Below the first levels, trees that are not full would repeat too many leaves: there all levels read one
                 table of nodes, and one of those below, for the trees that are deep enough:

                     at[t, n] = below[2 at[t, n] + (x[n, column[at]] meets the test[at])]

The first one suits few rows, the others many. All are right for any number of rows; if none is declared, an If chooses.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from operator import itemgetter
from typing import Any

import numpy as np

from mo_loop.frontend.arrays import counted_up, first_numbers, full, repeated_numbers, zeros
from mo_loop.frontend.ops.classical.tree_tests import Found, Tests
from mo_loop.frontend.vocabulary import Graph, Value, ops
from mo_loop.graph.dimension import now
from mo_loop.graph.types import i32
from mo_loop.ops.base import Parameter, Result
from mo_loop.ops.lengths import Length, dimension, joined
from mo_loop.ops.port_map import Branched, Selected


@dataclass
class Leaves:
    """[trees, N]: the leaf of each tree for each row, as `places` in `nodes`, which are indices of the forest's."""

    places: Value
    nodes: Any
    tree_of: Any = None
    """The tree of each node of the forest, if it is known."""

    def of(self, table) -> Value:
        """The entries of the leaves in a table of all nodes."""
        return _looked_up(table[self.nodes], self.places)


@dataclass
class Trees:
    """Trees and the rows that meet their tests. `below` [nodes, 2] are the nodes of `no` and `yes`, of a leaf itself;
    `levels` the nodes of each level."""

    x: Value
    """Rows [N, F], in f32."""
    tests: Tests
    below: Any
    roots: Any
    is_leaf: Any
    levels: list[Any]

    @property
    def depth(self) -> int:
        return len(self.levels) - 1

    @property
    def has_known_rows(self) -> bool:
        return isinstance(self.x.type.dims[0], int)

    def by_columns(self) -> Leaves:
        nodes, columns = self.groups
        values = ops.Unsqueeze(ops.Gather(self.tests.columns_of(self.x, 1), columns, 1), 2)
        follows = ops.Reshape(self._follows(values, np.s_[None]), [0, len(nodes)], special_zero=True)
        at = ops.Gather(follows, self.places[self.roots], 1)
        for _ in range(self.depth - 1):  # a Gather crashes if the number of rows becomes 1 later
            known = self.has_known_rows
            at = ops.Gather(follows, at, 1, batch_dims=1) if known else ops.GatherElements(follows, at, axis=1)
        return Leaves(ops.Transpose(at, [1, 0]), nodes)

    def by_columns_rows_last(self) -> Leaves:
        nodes, columns = self.groups
        values = ops.Gather(self.tests.columns_of(ops.Transpose(self.x, [1, 0]), 0), columns, 0)
        follows = ops.Reshape(self._follows(ops.Unsqueeze(values, 1), np.s_[..., None]), [-1], special_zero=False)
        count, rows = self._rows()
        at = self.places[self.roots][:, None]
        for _ in range(self.depth):
            at = ops.Gather(follows, rows + at * count, 0)
        return Leaves(at, nodes)

    def _follows(self, values: Value, spread: Any) -> Value:
        """The place of the node after each node of the groups; `spread` gives tables a dimension for the rows."""
        nodes, columns = self.groups
        grid = nodes.reshape(len(columns), -1)
        no, yes = (self.places[ends][spread] for ends in np.moveaxis(self.below[grid], -1, 0))
        return ops.Select(self.tests.met(values, itemgetter(grid[spread])), yes, no)

    def _rows(self) -> tuple[Any, Any]:
        """The number of rows, and 0, 1, ... below it."""
        count = _as_i32(dimension(self.x, 0))
        is_known = not isinstance(count, Value)
        return count, first_numbers(count, np.int32) if is_known else ops.Range(0, count, 1, output_type=i32)

    @cached_property
    def places(self):
        """The place of each node in the groups; of one that fills up the first."""
        nodes, _ = self.groups
        places = full((len(self.below),), 0, np.int32)
        places[nodes[::-1]] = counted_up(len(nodes) - 1, -1, -1)
        return places

    @cached_property
    def groups(self) -> tuple[Any, Any]:
        """All nodes in groups of equal size, and the column that the inner nodes of each group read."""
        inner, leaves = np.flatnonzero(~self.is_leaf), np.flatnonzero(self.is_leaf)
        read, counts = np.unique(self.tests.columns[inner], return_counts=True)
        sizes = np.array([4, 8, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024])
        size = int(sizes[np.argmin([np.sum(-(-counts // each)) * (each + _GROUP) for each in sizes])])
        groups = -(-counts // size)
        columns = read[repeated_numbers(len(read), groups.tolist())]
        more = max(0, -(-len(self.below) // size) - len(columns))
        nodes = full(((len(columns) + more) * size,), -1, np.int64)
        starts = np.cumsum(groups) - groups
        ordered = inner[np.argsort(self.tests.columns[inner], kind="stable")]
        shifts = starts * size - (np.cumsum(counts) - counts)
        nodes[first_numbers(len(inner)) + shifts[np.searchsorted(read, self.tests.columns[ordered])]] = ordered
        free = np.flatnonzero(nodes < 0)
        nodes[free] = np.resize(leaves, len(free))
        return nodes, np.concatenate([columns, zeros((more,), columns.dtype)])

    @cached_property
    def tree_of(self):
        """The tree that each node belongs to; None if nodes have several."""
        is_reached = zeros((len(self.below),), bool)
        for level in self.levels:
            is_reached[level] = True
        if 2 * np.count_nonzero(is_reached & ~self.is_leaf) + len(self.roots) != np.count_nonzero(is_reached):
            return None
        tree = zeros((len(self.below),), np.int32)
        tree[self.roots] = first_numbers(len(self.roots))
        for level in self.levels:
            tree[self.below[level]] = tree[level][:, None]
        return tree

    def largest(self) -> int:
        """The number of inner nodes of the largest tree."""
        return int(np.bincount(self.tree_of[~self.is_leaf]).max())

    def in_order(self) -> Leaves:
        grid, first, step, leaves, starts = self._in_order()
        values = self.tests.columns_of(ops.Transpose(self.x, [1, 0]), 0)
        at = None
        for nodes, here, more in zip(grid, first, step, strict=True):
            row = ops.Gather(values, self.tests.columns[nodes], 0)
            met = self.tests.met(row, itemgetter(nodes[:, None]))
            if at is None:
                at = ops.Select(met, more[:, None], np.float32(0))
            else:
                is_here = ops.Equal(at, ops.Select(met, here[:, None], np.float32(-1)))
                at = at + ops.Select(is_here, more[:, None], np.float32(0))
        return Leaves(ops.Convert(at, destination_type=i32) + starts[:, None], leaves)

    def _in_order(self) -> tuple[Any, ...]:
        """[nodes of the largest tree, trees]: inner nodes, the first leaf below each, and how many are below its `no`
        branch; all leaves by trees, and where those of each tree start. Smaller trees have nodes that no row comes to.
        """
        tree, count = self.tree_of, self.is_leaf.astype(np.int64)  # leaves below each node
        start = np.zeros_like(count)
        inner = [level[~self.is_leaf[level]] for level in self.levels]
        for level in reversed(inner):
            count[level] = count[self.below[level]].sum(1)
        for level in inner:
            no, yes = self.below[level].T
            start[no], start[yes] = start[level], start[level] + count[no]
        nodes = np.concatenate(inner)
        nodes = nodes[np.argsort(tree[nodes], kind="stable")]  # of each tree from above
        numbers = np.bincount(tree[nodes], minlength=len(self.roots))
        at = (np.arange(len(nodes)) - (np.cumsum(numbers) - numbers)[tree[nodes]], tree[nodes])
        shape = (int(numbers.max()), len(self.roots))
        grid, first, step = full(shape, nodes[0], np.int64), full(shape, -1, np.float32), full(shape, 0, np.float32)
        grid[at], first[at], step[at] = nodes, start[nodes], count[self.below[nodes, 0]]
        starts = (np.cumsum(count[self.roots]) - count[self.roots]).astype(np.int32)
        places = np.concatenate([level[self.is_leaf[level]] for level in self.levels])
        leaves = zeros((int(count[self.roots].sum()),), np.int64)
        leaves[starts[tree[places]] + start[places]] = places
        return grid, first, step, leaves, starts

    def level_by_level(self) -> Leaves:
        """All rows of a tree come after those of the tree before, in one dimension: the runtime computes a last
        dimension of 1, of one row or one tree, one element at a time."""
        deepest, depths = self.deepest_first()
        first, trees, follow, level = self.levels_of_tables(), len(depths), self._follower(), self.roots[deepest]
        at = self._each_tree(trees)
        for _ in range(first):
            at = follow(at, trees, _lookup(at, itemgetter(level)) if isinstance(at, Value) else itemgetter(level))
            level = self.below[level].reshape(-1)
        if first == self.depth:
            return Leaves(self._by_trees(at, trees), level)
        at = _looked_up(level.astype(np.int32), at)
        pairs = self.below.astype(np.int32).reshape(-1)
        constants: dict[int, Value] = {}

        def shared(table) -> Value:
            if id(table) not in constants:
                constants[id(table)] = ops.Constant(_numbers(table), graph=at.graph)
            return constants[id(table)]

        done: list[Value] = []
        for number in range(first, self.depth):
            deeper = int(np.count_nonzero(depths > number))
            if deeper < 0.9 * trees:
                at, rest = ops.VariadicSplit(self._by_trees(at, trees), 0, [deeper, trees - deeper])
                at, done, trees = ops.Reshape(at, [-1]), [rest, *done], deeper
            at = _looked_up(shared(pairs), follow(at, trees, _lookup(at, shared)))
        at = self._by_trees(at, trees)
        at = ops.Concat(at, *done, axis=0) if done else at
        return Leaves(ops.Gather(at, np.argsort(deepest), 0), first_numbers(len(self.below)))

    def _each_tree(self, trees: int) -> Any:
        """The number of the tree of each tree and row, in one dimension."""
        numbers, (count, rows) = first_numbers(trees, np.int32)[:, None], self._rows()
        if trees == 1 or not isinstance(count, Value):
            return self._each(numbers, trees)
        # The differences are below all numbers; a Broadcast along the last dimension takes ten times as long.
        return ops.Reshape(ops.Maximum(numbers, rows - count), [-1])

    def _each(self, numbers: Any, trees: int) -> Any:
        """Numbers [trees, 1] or [N], for each tree and row in one dimension."""
        count = dimension(self.x, 0)
        if trees == 1 or (isinstance(count, int) and count == 1):
            return numbers.reshape(-1) if isinstance(numbers, np.ndarray) else numbers
        return ops.Reshape(ops.Broadcast(numbers, joined([trees, count], self.x)), [-1])

    def _by_trees(self, at: Value, trees: int) -> Value:
        """[trees, N]"""
        return ops.Reshape(at, joined([trees, dimension(self.x, 0)], at))

    def deepest_first(self) -> tuple[Any, Any]:
        """The order of the trees by depth, and their depths in that order."""
        depths = full((len(self.roots),), self.depth, np.int64)
        if self.levels_of_tables() == self.depth or self.tree_of is None:
            return first_numbers(len(depths)), depths
        for number, level in enumerate(self.levels):
            depths[self.tree_of[level]] = number
        order = np.argsort(-depths, kind="stable")
        return order, depths[order]

    def levels_of_tables(self) -> int:
        """The number of levels with tables of their own: all of full trees, else the first ones."""
        places = len(self.roots) << np.minimum(first_numbers(self.depth), 40)
        most = _FULL * len(self.below)
        return self.depth if 2 * places[-1] <= most else max(1, int(np.sum(places <= min(most, _FIRST))))

    def _follower(self) -> Callable[[Any, int, Found], Value]:
        """A function of the nodes of trees and rows, the number of trees, and the lookup of the tests that returns the
        places of the next nodes, in a table of the two children of each node."""
        x = self.tests.columns_of(self.x, 1)
        rows = self._rows()[1] * _as_i32(dimension(x, 1))
        flat, starts = ops.Reshape(x, [-1], special_zero=False), {}

        def follow(at: Any, trees: int, found: Found) -> Value:
            if trees not in starts:
                starts[trees] = self._each(rows, trees)
            met = self.tests.met(ops.Gather(flat, starts[trees] + found(self.tests.columns), 0), found)
            return at * np.int32(2) + ops.Select(met, np.int32(1), np.int32(0))

        return follow


def _as_i32(length: Length) -> Any:
    return np.int32(length) if isinstance(length, int) else ops.Convert(length, destination_type=i32)


def _lookup(at: Value, of: Callable[[Any], Any]) -> Found:
    """A lookup of `at` in the table that `of` makes of a table."""

    def found(table) -> Value:
        made = _looked_up(of(table), at)
        return ops.NotEqual(made, 0) if table.dtype == bool else made

    return found


def _looked_up(table, at: Value) -> Value:
    return ops.Gather(_numbers(table), at, 0)


def _numbers(table):
    """The runtime's Gather takes no booleans."""
    return table if isinstance(table, Value) or table.dtype != bool else table.astype(np.int32)


_OPERATION, _BRANCH, _START = (0.4, 1.0), 9.0, 8.0
"""Microseconds that the runtime takes for an operation of known and of unknown shape, an If, and an inference."""
_FULL, _FIRST, _ORDERED, _AT_ONCE = 4, 4096, 64, 2**18
"""Levels of full trees have at most so many places for each node, the first ones of others at most so many in all.
Trees of at most so many nodes are tried in order, forests of at most so many at once."""
_GROUP = 40
"""The additional time of a group of tests of one column, in tests."""


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


def found_leaves(trees: Trees) -> Leaves:
    """The leaves, in the form that takes the least time."""
    return replace(_in_form(trees), tree_of=trees.tree_of)


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
        looked_up = 0.0008 if trees.has_known_rows else 0.003
        costs += [
            FormTime(Trees.by_columns, each * (depth + 6), 0.01 + 0.015 * groups + looked_up * steps, places),
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
    results = Selected(Result(_looked_up(places[first.nodes], first.places)), Result(second.places))
    made = ops.If(
        ops.LessEqual(dimension(x, 0), np.int64(limit)), x, then_body=bodies[0], else_body=bodies[1],
        input_map=(Branched(*inside),), output_map=(results,),
    )  # fmt: skip
    return Leaves(made[0], second.nodes)
