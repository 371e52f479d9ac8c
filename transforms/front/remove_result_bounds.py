"""Results of a body whose bounds exclude what the loop returns when it does not run."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.shape import Dim, Dimension, Shape, Symbol, high, is_static, low
from mo_loop.graph.types import i64
from mo_loop.ops.base import Parameter, Result
from mo_loop.ops.control import Concatenated, Final, If, Loop, Merged
from mo_loop.ops.joining import symbols_in
from transforms.function_pass import FunctionPass
from transforms.unfoldable import repeated_once


class RemoveResultBounds(FunctionPass):
    """state' : [2..] from [1], zero iterations possible  ->  Tile(state', 1 + min(i, 0)) : [?]

    The runtime gives the final value the bounds of the body's Result, and fails or keeps old values where a loop that
    did not run hands on an initial value outside of them. A concatenated output without iterations has dimensions of 0
    where they are not static: if its bounds exclude that, the inference ends there without a word, or the process does;
    if they are those of another tensor, its size is read off the one or the other.
    A size that comes from a captured tensor bears its symbol, and without iterations the captured one is read off the
    final value.
    Repeating once, a number known only at run time, leaves the value as it is and has no bounds; a Reshape would have
    none either, but the runtime removes it.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, Loop, self._loosen)

    def _loosen(self, node: Loop) -> bool:
        if low(node.count) > 0:
            return self.refuse(node, "it runs at least once")
        found: dict[Result, list[int]] = {}
        outer = {symbol for value in node.inputs if value is not None for symbol in symbols_in(value.type)}
        for entry, initial in node.fed:
            if isinstance(entry, Merged):
                last = entry.result.value
                borrowed = _borrowed(last, initial.shape, outer)
                found[entry.result] = sorted({*_excluding(last, initial), *_grown(entry, initial), *borrowed})
        for entry in node.output_map:
            if isinstance(entry, Concatenated):
                found[entry.result] = sorted({*found.get(entry.result, ()), *_bounded(entry.result.value)})
            elif entry.result not in found:  # its state is not carried, and chosen outside where nothing ran
                found[entry.result] = _borrowed(entry.result.value, None, outer)
        loosened = {result: axes for result, axes in found.items() if axes}
        for result, axes in loosened.items():
            node.body.set_input(result, 0, _loosened(node, result.value, axes))
        return self.accept(node) if loosened else self.refuse(node, "its Results allow all shapes without iterations")


def _excluding(result: Value, initial: Value) -> list[int]:
    """The axes along which the bounds of `result` leave out a size that `initial` may have."""
    if result.shape is None or initial.shape is None or len(result.shape) != len(initial.shape):
        return []
    if _is_loose(result):
        return []
    if _is_bound_tighter(result):
        return [axis for axis, dim in enumerate(result.shape) if not isinstance(dim, int)]
    return [axis for axis, (a, b) in enumerate(zip(result.shape, initial.shape, strict=True)) if not _covers(a, b)]


def _grown(entry: Merged, initial: Value) -> list[int]:
    """The axes along which a state grows from a first size of which the runtime knows that it is above 0.

    It adds what an iteration adds to those bounds, where inference here has given up the bounds of the state.
    """
    shapes = [each.shape for each in (initial, entry.parameter.output, entry.result.value)]
    if None in shapes or len({len(shape or ()) for shape in shapes}) > 1 or _is_loose(entry.result.value):
        return []
    tight = _is_bound_tighter(initial)
    sizes = zip(*(shape or () for shape in shapes), strict=True)
    return [
        axis for axis, (first, state, last) in enumerate(sizes)
        if not isinstance(first, int) and first != state and not isinstance(last, int)
        and low(last) > 0 and (tight or low(first) > 0)
    ]  # fmt: skip


def _borrowed(result: Value, initial: Shape, outer: set[Symbol]) -> list[int]:
    """The axes along which a final value has a size of what is around the loop, and the initial value another one."""
    dims = result.shape or ()
    others = initial if initial is not None and len(initial) == len(dims) else (None,) * len(dims)
    return [
        axis for axis, (dim, other) in enumerate(zip(dims, others, strict=True))
        if isinstance(dim, Dim) and dim != other and outer.issuperset(dim.symbols())
    ]  # fmt: skip


def _is_bound_tighter(value: Value) -> bool:
    """Whether the runtime may know bounds of `value` that inference here does not: those of an inner loop's Result.

    A state that grows has no bounds here, but the runtime takes those that its Result has by itself.
    """
    pending, seen = [value], set()
    while pending:
        each = pending.pop()
        if each in seen:
            continue
        seen.add(each)
        node = each.node
        if _is_loose(each):
            continue
        if isinstance(node, Loop):
            if isinstance(node.output_map[each.index], Final) and not is_static(each.shape):
                return True
        elif isinstance(node, If):
            entry = node.output_map[each.index]
            pending += [entry.then.value, entry.else_.value]
        else:
            pending += [source for source in node.inputs if source is not None]
    return False


def _is_loose(value: Value) -> bool:
    """Whether the runtime knows no bounds: it is repeated a number of times that only the run tells."""
    repeats = value.node.inputs[1] if isinstance(value.node, ops.Tile) else None
    return repeats is not None and repeats.type.integers is None


def _bounded(value: Value) -> list[int]:
    """The axes along which the size is unknown, but known not to be 0, or to have an upper bound."""
    dims = enumerate(() if _is_loose(value) else value.shape or ())
    return [axis for axis, dim in dims if not isinstance(dim, int) and (low(dim) > 0 or high(dim) is not None)]


def _covers(wide: Dimension, narrow: Dimension) -> bool:
    if wide == narrow:
        return True
    hi_wide, hi_narrow = high(wide), high(narrow)
    return low(wide) <= low(narrow) and (hi_wide is None or (hi_narrow is not None and hi_narrow <= hi_wide))


def _loosened(node: Loop, value: Value, axes: list[int]) -> Value:
    if node.iteration is None:
        node.iteration = Parameter(graph=node.body, dtype=i64, shape=())
    return repeated_once(value, axes, ops.Reshape(ops.Minimum(node.iteration, 0), [1]).output)
