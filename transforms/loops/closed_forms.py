"""States whose values in all steps are known without the steps one after another.

    s' = s + x[t]                          the sums s, s + x[0], s + x[0] + x[1], ...
    s' = max(s, x[t])                      running maxima; also min, and, or
    s' = x[t]                              s, x[0], x[1], ...: the step before
    s' = s + c, integers                   s + c * t

Each form gives the values s[0], s[1], ..., s[T]: step t reads s[t] and makes s[t + 1]; the last is the final one.

Delay lines, such as the buffers of a causal convolution, hold values of the last steps:

    s' = concat(s[p:], x[t])       s[t] = V[t p : t p + K], with V = concat(s[0], x[0], x[1], ...) and s of size K
    s' = concat(x[t], s[:-1])      s[t] = V[T - t : T - t + K], with V = concat(.., x[1], x[0], s[0])
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.types import f16, f32, f64, i32, i64
from mo_loop.ops.lengths import as_value, joined
from mo_loop.ops.movement import FAR
from mo_loop.ops.port_map import Final, Merged
from mo_loop.transforms.loops.lifted import Lifted, Steps, moved, unsqueezed
from mo_loop.transforms.loops.lifting import Lifting
from mo_loop.transforms.port_maps import reversed_along
from mo_loop.transforms.total_operations import fit_beside
from mo_loop.transforms.vocabulary import F, Node, Value, ops

FLOATS = (f16, f32, f64)
COUNTED = (i32, i64)


@dataclass(frozen=True)
class Solved:
    """The values of a state: those that the steps read and make [T, ...] (None if nothing needs them), and the last.

    `read` has values of the body that read the state, in all steps.
    """

    before: Value | None
    after: Value | None
    last: Value
    read: Mapping[Value, Value] = field(default_factory=dict)


def is_read_only_after(node: ops.Iteration, entry: Merged, *readers: Node) -> bool:
    """Whether only the final value of a state is read after the loop, and only `readers` read it in the body."""
    made = entry.result.value
    results = {each.result for each in node.output_map if isinstance(each, Final)} | {entry.result}
    others = {each.result for each in (*node.output_map, *node.back_edges) if each is not entry} - results
    inside = all(use.node in results for use in made.uses) and not any(each.value is made for each in others)
    uses = entry.parameter.output.uses
    return inside and len(uses) == len(readers) and {use.node for use in uses} == set(readers)


@dataclass(frozen=True)
class State:
    """A state whose next value is not yet known, with its initial value in the draft."""

    node: ops.Iteration
    entry: Merged
    initial: Value
    lifting: Lifting
    exact_order: bool

    @property
    def next(self) -> Value:
        return self.entry.result.value

    @property
    def steps(self) -> Steps:
        return self.lifting.steps

    def solved(self) -> Solved | None:
        """The values in all steps, if there is a form for them."""
        if not self.initial.shape == self.entry.parameter.output.shape == self.next.shape or self.initial.rank is None:
            return None
        found = self.lifting[self.next]
        if found is not None:
            return self.all_of(self._joined(found))
        made = self.next.node
        form = FORMS.get(type(made))
        if form is None or self.entry.parameter.output not in made.operands:
            return None
        return form(self, made)

    def operand(self, made: Node) -> Lifted | None:
        """The other operand of the operation on the state, in all steps."""
        state = self.entry.parameter.output
        others = [value for value in made.operands if value is not state]
        return self.lifting[others[0]] if len(others) == 1 else None

    def reads_only_last(self, reader: Node) -> bool:
        """Whether nothing but the final value is read, and `reader` alone reads the state."""
        return is_read_only_after(self.node, self.entry, reader)

    def _joined(self, x: Lifted) -> Value:
        """[s0, x[0], x[1], ...]"""
        every = self.steps.each(x)
        if x.dims != self.initial.shape:
            every = self.steps.wide(x, self.initial.type.rank)
            sizes = [self.initial.size(axis) for axis in range(self.initial.type.rank)]
            every = F.Broadcast(every, joined([self.steps.count, *sizes], every))
        return F.Concat(unsqueezed(self.initial, [0]), every, axis=0)

    def all_of(self, values: Value) -> Solved:
        """The closed form of the values s[0], s[1], ..., s[T]."""
        return Solved(values[:-1], values[1:FAR], F.Gather(values, -1, 0))


def sums(state: State, made: Any) -> Solved | None:
    """s + x[0] + x[1] + ..., also of -x"""
    x = state.operand(made)
    dtype = state.initial.dtype
    if x is None or dtype not in (*FLOATS, *COUNTED):
        return None
    if isinstance(made, ops.Subtract):
        if made.operands[0] is not state.entry.parameter.output:
            return None
        x = Lifted(-x.value, x.varies)
    if dtype in COUNTED and not x.varies and x.rank <= state.initial.type.rank:
        return state.all_of(_counted(state, x))
    values = state._joined(x)
    if state.reads_only_last(made) and dtype in FLOATS and not state.exact_order:
        return Solved(None, None, F.ReduceSum(values, [0]))
    return state.all_of(F.CumSum(values, 0))


def _counted(state: State, x: Lifted) -> Value:
    """s + x * t, for t from 0 to T"""
    dtype, graph, rank = state.initial.dtype, state.initial.graph, state.initial.type.rank
    end = as_value(state.steps.count + 1, graph)
    numbers = F.Range(as_value(0, graph), end, as_value(1, graph), output_type=dtype)
    if rank:
        numbers = unsqueezed(numbers, range(1, 1 + rank))
    return state.initial + x.value * numbers


def extremes(state: State, made: Any) -> Solved | None:
    """max(s, x[0], x[1], ...), or min"""
    x = state.operand(made)
    if x is None or state.initial.dtype not in (*FLOATS, *COUNTED):
        return None
    if state.reads_only_last(made) and state.initial.dtype in FLOATS:  # of integers it is not exact
        reduction = F.ReduceMax if isinstance(made, ops.Maximum) else F.ReduceMin
        return Solved(None, None, reduction(state._joined(x), [0]))
    return _doubled(state, type(made), x)


def _doubled(state: State, combine: Any, x: Lifted) -> Solved | None:
    """[a, b, c, d]  ->  [a, ab, bc, cd]  ->  [a, ab, abc, abcd]: log2(T) operations, of a known number of steps"""
    if not isinstance(state.steps.count, int):
        return None
    values, reach = state._joined(x), 1
    while reach < state.steps.count + 1:
        values = F.Concat(values[:reach], combine(values[:-reach], values[reach:FAR]), axis=0)
        reach *= 2
    return state.all_of(values)


def decisions(state: State, made: Any) -> Solved | None:
    """s and x[0] and x[1] and ..., or the same with or: the number of those that decide it is 0, or is not"""
    x = state.operand(made)
    if x is None:
        return None
    values = state._joined(x)
    is_and = isinstance(made, ops.LogicalAnd)
    if state.reads_only_last(made):
        return Solved(None, None, (F.ReduceLogicalAnd if is_and else F.ReduceLogicalOr)(values, [0]))
    count = F.CumSum((~values if is_and else values).astype(i32), 0)
    return state.all_of((F.Equal if is_and else F.Greater)(count, 0))


FORMS: dict[type, Callable[[State, Any], Solved | None]] = {
    ops.Add: sums,
    ops.Subtract: sums,
    ops.Maximum: extremes,
    ops.Minimum: extremes,
    ops.LogicalAnd: decisions,
    ops.LogicalOr: decisions,
}
"""The operation that makes the next value of a state from the state and a value that does not depend on it -> form."""


def solved_as_window(state: State) -> Solved | None:
    """The values of a state in all steps, if it is of this kind."""
    made, shape = state.next.node, state.initial.shape
    if not isinstance(made, ops.Concat) or len(made.operands) != 2 or not shape:
        return None
    if not shape == state.entry.parameter.output.shape == state.next.shape:
        return None
    axis = normalise_axis(made.axis, len(shape))
    appends = state.lifting[made.operands[1]] is not None
    kept, new = made.operands if appends else made.operands[::-1]
    x, size = state.lifting[new], shape[axis]
    if x is None or x.rank != len(shape) or not isinstance(size, int) or not fit_beside([shape, x.dims], axis):
        return None
    part = x.dims[axis]
    if not isinstance(part, int) or not 0 < part < size or (part > 1 and not appends):
        return None
    if _part(kept, state.entry.parameter.output, axis, size) != ((part, size) if appends else (0, size - part)):
        return None
    pieces = state.steps.along(x, axis)
    pair = (state.initial, pieces) if appends else (reversed_along(pieces, axis), state.initial)
    every = F.Concat(*pair, axis=axis)
    if state.reads_only_last(kept.node):
        ends = ([-size], [FAR]) if appends else ([0], [size])
        return Solved(None, None, F.Slice(every, *ends, [1], [axis]))
    count, graph = state.steps.count, state.initial.graph
    numbers = F.Range(*(as_value(each, graph) for each in (0, count + 1, 1)), output_type=i64)
    firsts = numbers * part if appends else as_value(count, graph) - numbers
    return state.all_of(moved(F.Gather(every, unsqueezed(firsts, [1]) + np.arange(size), axis), axis, 0))


def _part(value: Value, state: Value, axis: int, size: int) -> tuple[int, int] | None:
    """The start and the end along an axis of the part of the state that a value is."""
    node = value.node
    if not node.inputs or node.operands[0] is not state:
        return None
    known = [each.type.integers for each in node.operands[1:]]
    if isinstance(node, ops.Slice) and len(known) == 4:
        bounds = [each[0] for each in known if each is not None and len(each) == 1]
        if len(bounds) < 4 or normalise_axis(bounds[3], state.type.rank) != axis or bounds[2] != 1:
            return None
        start, stop, _ = slice(*bounds[:2]).indices(size)
        return start, stop
    if isinstance(node, ops.Gather) and known[0] and known[1] and not node.batch_dims:
        places = [each % size for each in known[0]]
        is_range = places == list(range(places[0], places[0] + len(places)))
        is_along = normalise_axis(known[1][0], state.type.rank) == axis and node.operands[1].rank == 1
        return (places[0], places[-1] + 1) if is_range and is_along else None
    if isinstance(node, ops.Split | ops.VariadicSplit) and known[0]:
        if normalise_axis(known[0][0], state.type.rank) != axis:
            return None
        sizes = [each.type.dims[axis] for each in node.outputs]
        if all(isinstance(each, int) for each in sizes):
            first = sum(each for each in sizes[: value.index] if isinstance(each, int))
            return first, first + int(sizes[value.index])
    return None
