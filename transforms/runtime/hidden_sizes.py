"""Sizes, bounds and numbers of steps of which the runtime infers or keeps a wrong value: they are hidden from it."""

from mo_loop.graph.dimension import Dim, Symbol, high, low, now
from mo_loop.graph.shape import Shape
from mo_loop.graph.types import string
from mo_loop.ops.control import Iteration, Loop
from mo_loop.ops.infer import symbols_in
from mo_loop.ops.port_map import Concatenated, Final, Merged
from mo_loop.target import ERROR, GPU, Gap
from mo_loop.transforms.runtime import inference
from mo_loop.transforms.runtime.barriers import HiddenPort, barrier_rule, iterations
from mo_loop.transforms.vocabulary import Constant, F, FunctionPass, Graph, Node, Result, Use, Value, is_static, ops


@barrier_rule(
    (Loop,), "symbols", "`Slice` of the initial value to its own length, which has no symbol",
    Gap(
        "state-symbols",
        "a state that grows has the symbols of its initial value in the body: the size of a captured tensor of the "
        "same initial size is taken from the state",
    ),
    Gap(
        "state-symbols-of-two-states",
        "two states with the same initial value have the same symbols: the size of one is taken from the other",
    ),
)
def BreakStateSymbols(node: Loop) -> list[HiddenPort] | str:
    """state of initial shape [N] that grows  ->  initial value Barrier(first, symbols)

    The runtime identifies sizes by symbols, and in the body a state has the symbols of its initial value.
    """
    found = [
        (Use(node, port), axes) for port, (entry, value) in enumerate(node.fed, node.first_data_port)
        if isinstance(entry, Merged) and (axes := _changing_symbols(entry, value, node.inputs.count(value)))
    ]
    return found or "no state changes a size that it shares with another tensor"


def _changing_symbols(entry: Merged, first: Value, ports: int) -> tuple[int, ...]:
    """The axes along which a state changes its size, if the initial value shares that size with other tensors.

    `ports` is the number of ports of the loop that the initial value feeds.
    """
    shapes = (entry.parameter.output.shape, first.shape)
    if None in shapes or first.dtype is string or (ports == 1 and isinstance(first.node, ops.Barrier)):
        return ()
    pairs = zip(shapes[0] or (), shapes[1] or (), strict=True)
    return tuple(axis for axis, (state, size) in enumerate(pairs) if not isinstance(size, int) and state != size)


@barrier_rule((Loop,), "value", "trip count plus `min(i, 0)` of the outer loop", Gap(
    "inner-trip-count",
    "an inner loop keeps the trip count that was inferred from the first shape of an outer state, and the length of "
    "its concatenated outputs",
))
def MakeTripCountsDynamic(node: Loop) -> list[HiddenPort] | str:
    """Loop(len(s)) with a concatenated output, in a loop that makes s grow  ->  Loop(Barrier(len(s), value))

    The runtime infers the types of an outer body under the initial shapes of the states, and again under wider ones.
    """
    trip = node.operands[0]
    if node.graph.owner is None:
        return "it is not in a body"
    if isinstance(trip.node, Constant) or trip.type.integers is not None:
        return "its trip count is a constant"
    if not any(isinstance(entry, Concatenated) for entry in node.output_map):
        return "it has no concatenated output"
    if isinstance(trip.node, ops.Barrier) and trip.node.hides == "value":
        return "its trip count is dynamic already"
    return [(Use(node, 0), ())]


@barrier_rule((Loop,), "value", "an execution condition that is computed", Gap(
    "gpu-copied-condition",
    "a loop inside one of at most 15 iterations, which is in a body itself, does not compile: the copies of its "
    "execution condition become one constant (\"does not have primitive map\")", severity=ERROR, device=GPU,
))
def ComputeCopiedConditions(node: Loop) -> list[HiddenPort] | str:
    """In a body, for i in range(3): Loop(n, true)  ->  for i in range(3): Loop(n, Barrier(true, value))

    The plugin merges the copies of a constant in the main graph itself.
    """
    outer = node.graph.owner
    if not isinstance(outer, Iteration) or outer.graph.owner is None or now(outer.count) not in inference.UNROLLED:
        return "no loop of few iterations, which is in a body, has it in its body"
    return [(Use(node, 1), ())] if isinstance(node.operands[1].node, Constant) else "its condition is computed"


@barrier_rule((ops.Assign,), "bounds", "`Tile` of the value by a number known only at run time", Gap(
    "static-value-of-dynamic-variable", "a tensor of static shape is not copied into a variable of dynamic shape",
    severity=ERROR,
))
def MakeAssignedShapesDynamic(node: ops.Assign) -> list[HiddenPort] | str:
    """Assign(x), where a size of the variable is dynamic and that of x is known  ->  Assign(Barrier(x, bounds))"""
    (value,) = node.operands
    if value.shape is None:
        return "the rank of its value is not known"
    sizes = enumerate(zip(value.shape, node.variable_shape, strict=True))
    axes = tuple(axis for axis, (dim, stored) in sizes if now(dim) is not None and not isinstance(stored, int))
    return [(Use(node, 0), axes)] if axes else "each size that is known is known of the variable as well"


def _changing_states(node: Iteration, *, is_read: bool) -> list[HiddenPort]:
    """The initial values of states that change their shape and whose final value is read, or of the others."""
    read = {entry.result for entry, output in node.returned if isinstance(entry, Final) and output.is_used}
    return [
        (Use(node, port), axes) for port, (entry, value) in enumerate(node.fed, node.first_data_port)
        if isinstance(entry, Merged) and (entry.result in read) == is_read and value.dtype is not string
        and (axes := _changing_axes(value, entry))
    ]


def _changing_axes(initial: Value, entry: Merged) -> tuple[int, ...]:
    """The axes along which a state changes its size, and for which the runtime knows a size or bounds."""
    shape, state = initial.shape, entry.parameter.output.shape
    if shape is None or state is None:
        return ()
    pairs = enumerate(zip(shape, state, strict=True))
    return tuple(axis for axis, (a, b) in pairs if a != b and inference.is_bounded(a))


TILE = "`Tile` of the initial value by a number known only at run time"


@barrier_rule((Iteration,), "bounds", TILE, Gap(
    "unread-final-shape", "a state that changes its shape keeps its first shape if its final value is unused",
))
def MakeStateShapesDynamic(node: Iteration) -> list[HiddenPort] | str:
    """initial value  ->  Barrier(initial value, bounds of its sizes)

    The runtime infers only from the outputs of a loop that a state changes its shape. Otherwise the loop ends without a
    message when the next value does not fit. The dimensions of the initial value that change become dynamic.
    """
    found = _changing_states(node, is_read=False)
    return found or "each state that changes its shape is read outside, or is dynamic already"


@barrier_rule((Iteration,), "bounds", TILE, Gap(
    "state-of-static-initial-shape",
    "a state whose next value has no known bounds keeps its first shape, and the memory for it, also if its final "
    "value is read: values are lost, old ones, or the inference fails", until="2026.2.1",
))
def MakeFinalShapesDynamic(node: Iteration) -> list[HiddenPort] | str:
    """initial value  ->  Barrier(initial value, bounds of its sizes)

    The runtime does not infer from the final value that a state changes its shape if the Result of the body has no
    bounds, or bounds that include the initial size.
    """
    found = _changing_states(node, is_read=True)
    return found or "no state that changes its shape is read outside, or it is dynamic already"


WRONG_BELOW_0 = (ops.Mod, ops.Abs, ops.Power, ops.ReduceProd)
"""Operations whose extremes lie at the ends of an interval, unless it contains negative numbers."""

KINDS = (ops.FloorMod, *WRONG_BELOW_0)


class RemoveArithmeticBounds(FunctionPass):
    """FloorMod(n, 4), where n is a dimension of 4..8  ->  FloorMod(Barrier(n, bounds), 4)

    The runtime infers bounds of values that are computed from dimensions: wrong ones for FloorMod, and for Mod, Abs,
    Power and ReduceProd if an operand may be negative.
    """

    instead = "`ReduceSum` before it, where the inference of bounds stops"
    avoids = (
        Gap(
            "remainder-of-size",
            "the bounds of `FloorMod` are computed only at the ends of the interval: a size of 4..8 modulo 4 becomes "
            "the constant 0",
        ),
        Gap(
            "negative-bounds",
            "the bounds of `Mod`, `Abs`, `Power` and `ReduceProd` of numbers that may be below 0 are computed only "
            "at the ends of the interval",
        ),
    )

    def run_on_graph(self, graph: Graph) -> bool:
        if not any(graph.of(kind) for kind in KINDS):
            return False
        changed = False
        bounded: dict[Value, bool] = {}  # values with bounds -> whether they may be negative
        for node in list(graph.ordered()):
            if isinstance(node, KINDS) and not self.leaves(node):
                changed = self._remove_bounds(node, bounded) or changed
            if inference.has_bounds(node, bounded):
                made = (each for each in node.outputs if is_static(each.shape) and not inference.is_known(each))
                bounded.update(dict.fromkeys(made, inference.may_be_negative(node, bounded)))
        self.at = None
        return changed

    def _remove_bounds(self, node: Node, bounded: dict[Value, bool]) -> bool:
        if not inference.has_bounds(node, bounded):
            return self.refuse(node, "the runtime infers no bounds for its inputs")
        if isinstance(node, WRONG_BELOW_0) and not inference.may_be_negative(node, bounded):
            return self.refuse(node, "its inputs are not negative")
        port = next(port for port, value in enumerate(node.inputs) if value in bounded)
        node.graph.set_input(node, port, F.Barrier(node.operands[port], hides="bounds"))
        return self.accept(node)


class RemoveSliceBounds(FunctionPass):
    """x : [0..9], x[:k]  ->  Barrier(x, bounds of its sizes)[:k]

    The runtime infers the bounds 0 and M for a Slice of a dimension of at most M if the end is known only at run time,
    and takes two sizes with the same bounds for one size.
    """

    instead = "`Tile` by a number known only at run time before it"
    avoids = (Gap(
        "slice-symbols",
        "a Slice with ends known only at run time of a dimension 0..M has the symbol of the whole dimension: the "
        "size of one is taken from the other",
    ),)

    def run_on_graph(self, graph: Graph) -> bool:
        unbounded: dict[tuple[Value, tuple[int, ...]], Value] = {}
        for node in self.candidates(graph, ops.Slice):
            data = node.inputs[0]
            axes = _axes(node)
            if data is None or data.dtype is string or not axes:
                self.refuse(node, "its ends are constants, or its dimensions are static or without bounds")
                continue
            if (data, axes) not in unbounded:
                unbounded[data, axes] = F.Barrier(data, hides="bounds", axes=axes)
            graph.set_input(node, 0, unbounded[data, axes])
            self.accept(node)
        return bool(unbounded)


def _axes(node: ops.Slice) -> tuple[int, ...]:
    """The axes of bounded size that are sliced with an end known only at run time."""
    data, start, stop, _, *rest = node.inputs
    if (
        data is None
        or data.shape is None
        or all(end is None or isinstance(end.node, Constant) for end in (start, stop))
    ):
        return ()
    axes = rest[0].type.integers if rest and rest[0] is not None else tuple(range(len(data.shape)))
    if axes is None:
        return ()
    dims = {axis % len(data.shape): data.shape[axis] for axis in axes}
    return tuple(axis for axis, dim in dims.items() if not isinstance(dim, int) and high(dim) is not None)


@barrier_rule(
    (Loop,), "bounds", "`Tile` by a number known only at run time",
    Gap(
        "zero-trips-result-bounds",
        "after zero iterations the final value keeps the bounds of the size of the body's result",
    ),
    Gap(
        "zero-trips-concatenated-bounds",
        "a concatenated output whose bounds exclude a size of 0 stops the inference or the process, or keeps its size, "
        "after zero iterations",
    ),
    Gap(
        "zero-trips-size-of-capture",
        "the body returns a tensor as long as an outer one: after zero iterations the size of the outer tensor is "
        "taken from the output of the loop",
    ),
)
def RemoveResultBounds(node: Loop) -> list[HiddenPort] | str:
    """state' : [2..] from [1], zero iterations possible  ->  Barrier(state', bounds of its sizes) : [?]

    The runtime gives the final value the bounds of the body's Result. A concatenated output without iterations has
    dimensions of 0 where they are not static. A size that comes from an outer tensor has the symbol of that tensor.
    """
    if low(iterations(node)) > 0:
        return "it runs at least once"
    found: dict[Result, list[int]] = {}
    outer = {symbol for value in node.operands for symbol in symbols_in(value.type)}
    returned = {entry.result for entry, output in node.returned if output.is_used}
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
    if inference.has_hidden_sizes(result):
        return []
    if inference.is_bound_tighter(result):
        return [axis for axis, dim in enumerate(result.shape) if not isinstance(dim, int)]
    pairs = enumerate(zip(result.shape, initial.shape, strict=True))
    return [axis for axis, (a, b) in pairs if not inference.covers(a, b)]


def _grown(entry: Merged, initial: Value) -> list[int]:
    """The axes along which a state grows from an initial size that the runtime knows to be above 0.

    The runtime adds the increment of one iteration to these bounds; inference here has given up the bounds of the
    state.
    """
    shapes = [each.shape for each in (initial, entry.parameter.output, entry.result.value)]
    ranks = {len(shape or ()) for shape in shapes}
    if None in shapes or len(ranks) > 1 or inference.has_hidden_sizes(entry.result.value):
        return []
    tight = inference.is_bound_tighter(initial)
    sizes = zip(*(shape or () for shape in shapes), strict=True)
    return [
        axis for axis, (first, state, last) in enumerate(sizes)
        if not isinstance(first, int) and first != state and not isinstance(last, int)
        and low(last) > 0 and (tight or low(first) > 0)
    ]


def _borrowed(result: Value, initial: Shape, outer: set[Symbol]) -> list[int]:
    """The axes along which an output has the size of an outer tensor, and the initial value, if any, another size."""
    dims = result.shape or ()
    others = initial if initial is not None and len(initial) == len(dims) else (None,) * len(dims)
    return [
        axis for axis, (dim, other) in enumerate(zip(dims, others, strict=True))
        if isinstance(dim, Dim) and dim != other and outer.issuperset(dim.symbols())
    ]


def _bounded(value: Value) -> list[int]:
    """The axes of unknown size that is known not to be 0, or to have an upper bound."""
    dims = enumerate(() if inference.has_hidden_sizes(value) else value.shape or ())
    return [axis for axis, dim in dims if not isinstance(dim, int) and (low(dim) > 0 or high(dim) is not None)]
