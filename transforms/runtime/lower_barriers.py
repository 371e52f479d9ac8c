"""The operations that hide a fact from the runtime."""

from collections.abc import Sequence

import numpy as np

from mo_loop.graph.dimension import Dimension, high, low, now
from mo_loop.graph.types import boolean, i64
from mo_loop.ops.movement import FAR
from mo_loop.ops.port_map import Final
from mo_loop.transforms.replace import move_readers
from mo_loop.transforms.runtime.barriers import RunTimeNumbers, iterations, size_of
from mo_loop.transforms.vocabulary import Constant, F, FunctionPass, Graph, Parameter, Value, is_static, ops


class LowerBarriers(FunctionPass):
    """Barrier(x)  ->  the cheapest operations that give x and that the runtime does not see through

    Of two Barriers in a row one stays if it hides what the other one does. Let zero be a number that is known only at
    run time.

    - Bounds of numbers: ReduceSum along a dimension of 1. The inference of bounds stops there unless the numbers are
      constants: then the runtime computes it.
    - Sizes: Tile by ones like zero. A Reshape to its own sizes has no bounds either, but the runtime removes it. It
      does not know any size of the Tile: a Reshape sets those that are static and not hidden. A size of 0 stays 0 in a
      Tile: a tensor without elements is a Broadcast to sizes of which one is zero.
    - Symbols of sizes: Slice to its own length. A Slice of a bounded dimension would have the symbol of the whole, so
      this is a Tile. Several Barriers of one value are copies of each other: equal nodes would be merged, and have one
      symbol.
    - Numbers: x + zero, or x or zero > 0.
    - Memory of a Parameter: max(x, x), or LogicalOr(x, x) of booleans; they are neither removed nor computed in place.
    - Memory of another static shape: such a Tile, then Reshape to the shape, which is static again if the sizes of the
      inputs are.
    - Memory of an output of a Loop: Slice to its own length, or to 2^30 + zero if the loop may not run. Of an If: Slice
      to an end beyond the length that depends on the condition, because an end within bounds would give the slice the
      symbol of the whole.
    """

    bodies = "last"

    def __init__(self) -> None:
        super().__init__()
        self._numbers = RunTimeNumbers()

    def run(self, graph: Graph) -> bool:
        if graph.owner is None:
            self._numbers.clear()
        return super().run(graph)

    def run_on_graph(self, graph: Graph) -> bool:
        latest: dict[Value, Value] = {}  # a value -> the last copy of it, which has symbols of its own
        changed = self.rewrite_each(graph, ops.AtLeast, self._remove)
        for node in self.candidates(graph, ops.Barrier):
            x = node.operands[0]
            if not _is_needed(node):
                new = x
            elif node.hides == "bounds" and not node.axes:
                new = _summed(x)
            elif node.hides == "memory":
                new = _copied(x, self._numbers)
            elif node.hides == "symbols" and all(high(x.type.dims[axis]) is None for axis in node.axes):
                new = latest[x] = _cut(latest.get(x, x), node.axes)
            elif node.hides == "value":
                new = _plus(x, self._numbers.zero(graph))
            else:
                tiled = _repeated(latest.get(x, x), node.axes, self._numbers)
                new = latest[x] = _with_static_sizes(tiled, x.type.dims, node.axes)
            how = "as another Barrier does" if new is x else f"by {_hiding(new)}"
            changed = self.accept(node, f"hides {node.hides} {how}")
            move_readers(node.output, new, node.output.uses)
            graph.remove(node)
        return changed

    def _remove(self, node: ops.AtLeast) -> bool:
        move_readers(node.output, node.operands[0], node.output.uses)
        node.graph.remove(node)
        return self.accept(node)


def _hiding(new: Value) -> str:
    """The name of the operation that hides something; a Reshape after it sets the sizes that are known."""
    node = new.node
    return type(node.operands[0].node if isinstance(node, ops.Reshape) else node).__name__


def _is_needed(node: ops.Barrier) -> bool:
    """Whether no other Barrier hides the same: its input, or all its readers."""
    source = node.operands[0]
    if isinstance(source.node, ops.Barrier) and _covers(source.node, node):
        return False
    readers = [use.node for use in node.output.uses]
    return not readers or not all(isinstance(each, ops.Barrier) and _covers(each, node) for each in readers)


def _covers(one: ops.Barrier, other: ops.Barrier) -> bool:
    if "symbols" in (one.hides, other.hides) or one.axes != other.axes:
        return False
    return one.hides == other.hides or (one.hides, other.hides) == ("value", "bounds")


def _summed(numbers: Value) -> Value:
    return F.ReduceSum(numbers.reshape([1, *numbers.type.dims]), [0], keep_dims=False)


def _repeated(x: Value, axes: tuple[int, ...], numbers: RunTimeNumbers) -> Value:
    dims = x.type.dims
    if any(dims[axis] == 0 for axis in axes):
        zero = numbers.zero(x.graph)
        sizes = [zero if axis in axes and dim == 0 else size_of(x, axis) for axis, dim in enumerate(dims)]
        nothing = F.Constant(np.zeros((), x.dtype.numpy), graph=x.graph, dtype=x.dtype)
        return F.Broadcast(nothing, F.Concat(*sizes, axis=0))
    return F.Tile(x, numbers.repeats(x.graph, len(dims)))


def _with_static_sizes(tiled: Value, dims: Sequence[Dimension], hidden: tuple[int, ...]) -> Value:
    sizes = [dim if isinstance(dim, int) and axis not in hidden else 0 for axis, dim in enumerate(dims)]
    return F.Reshape(tiled, sizes, special_zero=True) if any(sizes) else tiled


def _cut(x: Value, axes: tuple[int, ...]) -> Value:
    ends = x.sizes if x.rank == 1 else F.Gather(x.sizes, list(axes), 0)
    return F.Slice(x, [0] * len(axes), ends, [1] * len(axes), list(axes))


def _plus(x: Value, zero: Value) -> Value:
    none = zero if x.rank == 1 else F.Reshape(zero, np.ones(x.type.rank, np.int64))
    if x.dtype is boolean:
        return x | F.Greater(none, 0)
    return none.astype(x.dtype) + x  # the Convert first: see ConvertFirst


def _may_not_run(x: Value) -> bool:
    """Whether it is a final value of a loop that may run zero times."""
    node = x.node
    return isinstance(node, ops.Loop) and isinstance(node.output_map[x.index], Final) and low(iterations(node)) < 1


def _copied(x: Value, numbers: RunTimeNumbers) -> Value:
    if isinstance(x.node, Parameter):
        cls = ops.LogicalOr if x.dtype is boolean else ops.Maximum
        return cls(x, x).output
    if is_static(x.shape):
        tiled = _repeated(x if x.rank else x.reshape([1]), (0,), numbers)
        return F.Reshape(tiled, np.array(x.type.dims, np.int64))
    axis = next(axis for axis, dim in enumerate(x.type.dims) if not isinstance(dim, int))
    if _may_not_run(x):
        # The size of this output may be another one then, and the runtime would take it for that of the initial value.
        end = numbers.zero(x.graph) + FAR
        return F.Slice(x, [0], end, [1], [axis])
    if not isinstance(x.node, ops.If):
        if None not in map(now, x.type.dims):  # the runtime removes a Slice of static shapes to its own length
            return F.Reshape(_repeated(x, (axis,), numbers), x.sizes)
        return _cut(x, (axis,))
    condition = x.node.operands[0]
    ends = [Constant(np.array([end]), graph=x.graph, dtype=i64) for end in (FAR, FAR - 1)]
    end = F.Select(condition, *ends)
    return F.Slice(x, [0], _summed(end if end.shape == (1,) else end.reshape([1])), [1], [axis])
