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

The first one suits few rows, the others many; all are right for any number of rows.

A test that takes x <= limit to its `yes` branch is the opposite of x > limit with the branches changed over, so most
forests make one kind of comparison alone, which NaN fails. In others, NaN is replaced in x by an infinity that takes
the branch of NaN; where nodes of one feature differ in that, x has the feature twice.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from operator import itemgetter
from typing import Any

import numpy as np

from mo_loop.frontend.ops.shared import counted_up, first_numbers, full, repeated_numbers, zeros
from mo_loop.frontend.vocabulary import Value, ops
from mo_loop.graph.types import ElementType, f64, i32
from mo_loop.ops.lengths import Length, joined

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
        }
        tests = [(made[name](), nodes) for name, nodes in self.kinds.items()]
        return reduce(ops.LogicalOr, [each if nodes is None else each & found(nodes) for each, nodes in tests])


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


@dataclass
class Leaves:
    """[trees, N]: the leaf of each tree for each row, as `places` in `nodes`, which are indices of the forest's."""

    places: Value
    nodes: Any
    tree_of: Any = None
    """The tree of each node of the forest, if it is known."""

    def of(self, table) -> Value:
        """The entries of the leaves in a table of all nodes."""
        return looked_up(table[self.nodes], self.places)


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
        follows = self._follows(values, np.s_[None]).reshape([None, len(nodes)])
        at = ops.Gather(follows, self.places[self.roots], 1)
        for _ in range(self.depth - 1):  # a Gather crashes if the number of rows becomes 1 later
            known = self.has_known_rows
            at = ops.Gather(follows, at, 1, batch_dims=1) if known else ops.GatherElements(follows, at, axis=1)
        return Leaves(ops.Transpose(at, [1, 0]), nodes)

    def by_columns_rows_last(self) -> Leaves:
        nodes, columns = self.groups
        values = ops.Gather(self.tests.columns_of(ops.Transpose(self.x, [1, 0]), 0), columns, 0)
        follows = self._follows(ops.Unsqueeze(values, 1), np.s_[..., None]).reshape([-1])
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
        count = _as_i32(self.x.size(0))
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
        at: Any = None
        for nodes, here, more in zip(grid, first, step, strict=True):
            row = ops.Gather(values, self.tests.columns[nodes], 0)
            met = self.tests.met(row, itemgetter(nodes[:, None]))
            if at is None:
                at = ops.Select(met, more[:, None], np.float32(0))
            else:
                is_here = ops.Equal(at, ops.Select(met, here[:, None], np.float32(-1)))
                at = at + ops.Select(is_here, more[:, None], np.float32(0))
        return Leaves(at.astype(i32) + starts[:, None], leaves)

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
        at = looked_up(level.astype(np.int32), at)
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
                at, done, trees = at.reshape([-1]), [rest, *done], deeper
            at = looked_up(shared(pairs), follow(at, trees, _lookup(at, shared)))
        at = self._by_trees(at, trees)
        at = ops.Concat(at, *done, axis=0) if done else at
        return Leaves(ops.Gather(at, np.argsort(deepest), 0), first_numbers(len(self.below)))

    def _each_tree(self, trees: int) -> Any:
        """The number of the tree of each tree and row, in one dimension."""
        numbers, (count, rows) = first_numbers(trees, np.int32)[:, None], self._rows()
        if trees == 1 or not isinstance(count, Value):
            return self._each(numbers, trees)
        # The differences are below all numbers; a Broadcast along the last dimension takes ten times as long.
        return ops.Maximum(numbers, rows - count).reshape([-1])

    def _each(self, numbers: Any, trees: int) -> Any:
        """Numbers [trees, 1] or [N], for each tree and row in one dimension."""
        count = self.x.size(0)
        if trees == 1 or (isinstance(count, int) and count == 1):
            return numbers.reshape(-1) if isinstance(numbers, np.ndarray) else numbers
        return ops.Broadcast(numbers, joined([trees, count], self.x)).reshape([-1])

    def _by_trees(self, at: Value, trees: int) -> Value:
        """[trees, N]"""
        return at.reshape([trees, self.x.size(0)])

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
        rows = self._rows()[1] * _as_i32(x.size(1))
        flat, starts = x.reshape([-1]), {}

        def follow(at: Any, trees: int, found: Found) -> Value:
            if trees not in starts:
                starts[trees] = self._each(rows, trees)
            met = self.tests.met(ops.Gather(flat, starts[trees] + found(self.tests.columns), 0), found)
            return at * np.int32(2) + ops.Select(met, np.int32(1), np.int32(0))

        return follow


def _as_i32(length: Length) -> Any:
    return np.int32(length) if isinstance(length, int) else length.astype(i32)


def _lookup(at: Value, of: Callable[[Any], Any]) -> Found:
    """A lookup of `at` in the table that `of` makes of a table."""

    def found(table) -> Value:
        made = looked_up(of(table), at)
        return ops.NotEqual(made, 0) if table.dtype == bool else made

    return found


def looked_up(table, at: Value) -> Value:
    return ops.Gather(_numbers(table), at, 0)


def _numbers(table):
    """The runtime's Gather takes no booleans."""
    return table if isinstance(table, Value) or table.dtype != bool else table.astype(np.int32)


_FULL, _FIRST = 4, 4096
"""Levels of full trees have at most so many places for each node, the first ones of others at most so many in all."""
_GROUP = 40
"""The additional time of a group of tests of one column, in tests."""
