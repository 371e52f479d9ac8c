"""Results of a body whose bounds exclude the value that the loop returns after zero iterations."""

from __future__ import annotations

from mo_loop.graph import Use, Value
from mo_loop.graph.dimension import Dim, Symbol, high, low
from mo_loop.graph.shape import Shape
from mo_loop.ops.base import Result
from mo_loop.ops.control import Loop
from mo_loop.ops.infer import symbols_in
from mo_loop.ops.port_map import Concatenated, Merged
from mo_loop.target import Gap
from mo_loop.transforms.runtime.barriers import BarrierPass, HiddenPort, iterations
from mo_loop.transforms.runtime.inference import covers, has_hidden_sizes, is_bound_tighter


class RemoveResultBounds(BarrierPass):
    """state' : [2..] from [1], zero iterations possible  ->  Barrier(state', bounds of its sizes) : [?]

    The runtime gives the final value the bounds of the body's Result. A concatenated output without iterations has
    dimensions of 0 where they are not static. A size that comes from an outer tensor has the symbol of that tensor.
    """

    instead = "`Tile` by a number known only at run time"
    avoids = (
        Gap(
            "zero-trips-result-bounds",
            "after zero iterations the final value keeps the bounds of the size of the body's result",
        ),
        Gap(
            "zero-trips-concatenated-bounds",
            "a concatenated output whose bounds exclude a size of 0 stops the inference or the process, or keeps its "
            "size, after zero iterations",
        ),
        Gap(
            "zero-trips-size-of-capture",
            "the body returns a tensor as long as an outer one: after zero iterations the size of the outer tensor is "
            "taken from the output of the loop",
        ),
    )  # fmt: skip

    kinds, hides = (Loop,), "bounds"

    def places(self, node: Loop) -> list[HiddenPort] | str:
        if low(iterations(node)) > 0:
            return "it runs at least once"
        found: dict[Result, list[int]] = {}
        outer = {symbol for value in node.operands for symbol in symbols_in(value.type)}
        returned = {entry.result for entry, output in zip(node.output_map, node.outputs, strict=True) if output.is_used}
        for entry, initial in node.fed:
            if isinstance(entry, Merged) and entry.result in returned:
                last = entry.result.value
                borrowed = _borrowed(last, initial.shape, outer)
                found[entry.result] = sorted({*_excluding(last, initial), *_grown(entry, initial), *borrowed})
        for entry in node.output_map:
            last = entry.result.value
            if isinstance(entry, Concatenated):
                borrowed = _borrowed(last, None, outer)
                found[entry.result] = sorted({*found.get(entry.result, ()), *_bounded(last), *borrowed})
            elif entry.result not in found:  # not carried: the value after zero iterations is selected outside
                found[entry.result] = _borrowed(last, None, outer)
        places = [(Use(result, 0), tuple(axes)) for result, axes in found.items() if axes]
        return places or "its Results allow what zero iterations return"


def _excluding(result: Value, initial: Value) -> list[int]:
    """The axes along which the bounds of `result` exclude a size that `initial` may have."""
    if result.shape is None or initial.shape is None or len(result.shape) != len(initial.shape):
        return []
    if has_hidden_sizes(result):
        return []
    if is_bound_tighter(result):
        return [axis for axis, dim in enumerate(result.shape) if not isinstance(dim, int)]
    return [axis for axis, (a, b) in enumerate(zip(result.shape, initial.shape, strict=True)) if not covers(a, b)]


def _grown(entry: Merged, initial: Value) -> list[int]:
    """The axes along which a state grows from an initial size that the runtime knows to be above 0.

    The runtime adds the increment of one iteration to these bounds; inference here has given up the bounds of the
    state.
    """
    shapes = [each.shape for each in (initial, entry.parameter.output, entry.result.value)]
    if None in shapes or len({len(shape or ()) for shape in shapes}) > 1 or has_hidden_sizes(entry.result.value):
        return []
    tight = is_bound_tighter(initial)
    sizes = zip(*(shape or () for shape in shapes), strict=True)
    return [
        axis for axis, (first, state, last) in enumerate(sizes)
        if not isinstance(first, int) and first != state and not isinstance(last, int)
        and low(last) > 0 and (tight or low(first) > 0)
    ]  # fmt: skip


def _borrowed(result: Value, initial: Shape, outer: set[Symbol]) -> list[int]:
    """The axes along which an output has the size of an outer tensor, and the initial value, if any, another size."""
    dims = result.shape or ()
    others = initial if initial is not None and len(initial) == len(dims) else (None,) * len(dims)
    return [
        axis for axis, (dim, other) in enumerate(zip(dims, others, strict=True))
        if isinstance(dim, Dim) and dim != other and outer.issuperset(dim.symbols())
    ]  # fmt: skip


def _bounded(value: Value) -> list[int]:
    """The axes of unknown size that is known not to be 0, or to have an upper bound."""
    dims = enumerate(() if has_hidden_sizes(value) else value.shape or ())
    return [axis for axis, dim in dims if not isinstance(dim, int) and (low(dim) > 0 or high(dim) is not None)]
