"""Loops that may run zero times, and trip counts that mean something else in Loop-5 than in ONNX."""

from dataclasses import dataclass

import numpy as np

from mo_loop.graph.dimension import high, low
from mo_loop.graph.shape import is_static, normalise_axis
from mo_loop.graph.types import i64, string
from mo_loop.ops.control import If, Iteration, Loop
from mo_loop.ops.port_map import Branched, Concatenated, Final, Invariant, Merged, Selected, Sliced
from mo_loop.ops.recurrent import Recurrent
from mo_loop.target import ERROR, GPU
from mo_loop.transforms.function_pass import node_pass
from mo_loop.transforms.port_maps import add_input, invariant_source, iteration_number, keep_inputs
from mo_loop.transforms.replace import move_readers, replace_node, supersede
from mo_loop.transforms.runtime import zero_trips
from mo_loop.transforms.runtime.barriers import iterations
from mo_loop.transforms.slice_reads import ends_by_trip_count
from mo_loop.transforms.total_operations import is_harmless, is_safe
from mo_loop.transforms.vocabulary import Constant, F, FunctionPass, Gap, Graph, Parameter, Result, Value, ops


def growing_axis(last: Value, initial: Value) -> int | None:
    """The only axis along which a final value and an initial one may differ in size."""
    if last.shape is None or initial.shape is None or last.rank != initial.rank:
        return None
    axes = [axis for axis, (a, b) in enumerate(zip(last.shape, initial.shape, strict=True)) if a != b]
    return axes[0] if len(axes) == 1 else None


def begins_with(value: Value, start: Value, axis: int) -> bool:
    """Whether `value` is `start`, or `start` and more along an axis. Both are of one graph."""
    node = value.node
    if value is start:
        return True
    if isinstance(node, ops.Concat):
        return normalise_axis(node.axis, value.type.rank) == axis and begins_with(node.operands[0], start, axis)
    if isinstance(node, ops.Barrier | ops.AtLeast):
        return begins_with(node.operands[0], start, axis)
    if isinstance(node, If):
        entry = node.output_map[value.index]
        given = zip(node.input_map, node.inputs[1:], strict=True)
        fed = [each for each, source in given if source is not None and begins_with(source, start, axis)]
        return _one_begins_with(entry.then.value, [each.then for each in fed], axis) and _one_begins_with(
            entry.else_.value, [each.else_ for each in fed], axis
        )
    if isinstance(node, Loop):
        entry = node.output_map[value.index]
        return isinstance(entry, Final) and any(
            begins_with(source, start, axis) and begins_with(entry.result.value, each.parameter.output, axis)
            for each, source in node.fed if isinstance(each, Merged) and each.result is entry.result
        )
    return False


def _one_begins_with(value: Value, starts: list[Parameter | None], axis: int) -> bool:
    return any(start is not None and begins_with(value, start.output, axis) for start in starts)


I32_MAX = 2**31 - 1
PREALLOCATED = 1 << 16
"""Iterations for which the runtime may reserve the buffer of a concatenated output at once."""


@node_pass(
    (Loop,), "`max(M, 0)`",
    Gap("negative-trip-count", "a trip count below 0 means an endless loop"),
    Gap(
        "huge-trip-count",
        "the buffer of a concatenated output is allocated for all of the trip count, although the body may stop "
        "before; if this number of bytes does not fit into 64 bits, the output is lost and memory is corrupted",
        "trip count -1 and `i + 1 < M` in the condition",
    ),
)
def GuardTripCounts(node: Loop) -> str:
    """Loop(M, none_below_zero)  ->  Loop(max(M, 0)): a negative M means 0 iterations in ONNX, and no limit in Loop-5

    A trip count of 2^31 - 1 or more becomes -1 (no limit) if the condition can end the loop, because the runtime counts
    in i32. The runtime reserves the buffer of a concatenated output for M iterations. A loop that may end early and
    whose M may be large therefore counts in its condition: trip count -1, condition' = condition and i + 1 < M. A loop
    without the attribute none_below_zero has the meaning of Loop-5 already: its trip count was omitted, or it was read
    from IR.
    """
    if not node.none_below_zero:
        return "its trip count has the meaning of Loop-5 already"
    trip = _given(node)
    node.none_below_zero = False
    if trip is not None:
        node.graph.set_input(node, 0, trip)
    return ""


def _given(node: Loop) -> Value | None:
    """The trip count for Loop-5; None if the present one has the same meaning."""
    trip = node.operands[0]
    known = trip.type.integers
    stops = not node.continues_always
    if known is not None:
        if known[0] < 0:
            return _constant(node, 0)
        if known[0] >= I32_MAX:
            return _constant(node, -1 if stops else I32_MAX)
        if known[0] <= PREALLOCATED or not (stops and _concatenates(node)):
            return None
    elif trip.type.known is not None and trip.type.known.reshape(-1)[0].lo >= 0:
        return None  # a dimension is never negative, and the data has this length
    if stops and _concatenates(node):
        _count_in_condition(node, trip)
        return _constant(node, -1)
    return F.Maximum(trip, 0)


def _concatenates(node: Loop) -> bool:
    return any(isinstance(entry, Concatenated) for entry in node.output_map)


def _constant(node: Loop, count: int) -> Value:
    return F.Constant(count, graph=node.graph, dtype=i64)


def _count_in_condition(node: Loop, trip: Value) -> None:
    """The trip count becomes an invariant input, and the condition compares the iteration number with it."""
    body, go = node.body, node.operands[1]
    node.graph.set_input(node, 1, go & F.Greater(trip, 0))
    number, limit = iteration_number(node), Parameter(graph=body, type=trip.type)
    body.set_input(node.condition, 0, node.condition.value & ((number + 1) < limit))
    add_input(node, Invariant(limit), trip)


@dataclass(frozen=True)
class FinalValue:
    """A final value that is wrong after zero iterations."""

    last: Value
    initial: Value
    axis: int | None
    """The axis along which the body only appends to the state."""

    @property
    def keeps_shape(self) -> bool:
        return self.last.shape is not None and self.last.shape == self.initial.shape


@node_pass((Loop,), "`Select`, a slice of the final value, or both joined, one of them cut to length 0", Gap(
    "zero-trips-read-state", "after zero iterations the final value of any state is that of an earlier inference",
    until="2026.3.1",
))
def SelectFinalValues(node: Loop) -> str:
    """last = Loop(M, C, initial)  ->  M != 0 and C ? last : initial

    For equal static shapes a Select gives the initial value. For other shapes a slice of the final and one of the
    initial value are joined; one of them is empty.

    The loop runs once instead of not at all where the body can do no harm, if that makes all values available: a Select
    chooses between equal dynamic shapes, and the initial value of a state that the body only appends to is the
    beginning of the final one.
    """
    if low(iterations(node)) > 0:
        return "it runs at least once"
    found = _found(node)
    if not found:
        return "no final value of a state is read"
    ran = zero_trips.RunGuard(node)
    runs_once = _may_run_once(node, found)
    if runs_once:
        zero_trips.run_once(node, ran.condition)
    for each in found:
        readers = each.last.uses
        move_readers(each.last, _selected(each, ran, runs_once), readers)
    return ""


def _found(node: Loop) -> list[FinalValue]:
    # GuardZeroTrips handles the states that the body does not read.
    states = {
        entry.result: (entry, value) for entry, value in node.fed
        if isinstance(entry, Merged) and entry.parameter.output.is_used
    }
    finals = [
        (output, *states[entry.result])
        for entry, output in node.returned
        if isinstance(entry, Final) and entry.result in states
    ]
    return [
        FinalValue(last, initial, _appended_axis(last, initial, entry))
        for last, entry, initial in finals
        if not zero_trips.are_equal(last, initial)
        and not all(zero_trips.is_selection(use.node, node) for use in last.uses)
    ]


def _appended_axis(last: Value, initial: Value, entry: Merged) -> int | None:
    axis = growing_axis(last, initial)
    return axis if axis is not None and begins_with(entry.result.value, entry.parameter.output, axis) else None


def _may_run_once(node: Loop, found: list[FinalValue]) -> bool:
    """Whether one more iteration is harmless, gives all outputs that are read, and saves something."""
    if any(isinstance(entry, Sliced) for entry in node.input_map):  # there may be no slice to read
        return False
    if {output for output in node.outputs if output.is_used} != {each.last for each in found}:
        return False
    if all(each.keeps_shape and is_static(each.last.shape) for each in found):
        return False
    return all(each.keeps_shape or each.axis is not None for each in found) and is_harmless(node.body)


def _selected(each: FinalValue, ran: zero_trips.RunGuard, runs_once: bool) -> Value:
    if not runs_once:
        return zero_trips.final_value(each.last, each.initial, ran)
    if each.axis is None:
        return zero_trips.chosen(each.last, each.initial, ran)
    return zero_trips.prefix(each.last, each.initial, each.axis, ran)


class GuardZeroTrips(FunctionPass):
    """Loop that may run zero times  ->  the same Loop, with outputs corrected for zero iterations

    Let ran = (M != 0) and C. A concatenated output becomes Slice(output, 0, Select(ran, end, 0)), along every dimension
    of unknown size, as in ONNX Runtime; a Reshape gives the empty tensor the dimensions that the model declares, or
    that the runtime may not know. If the trip count had known bounds, the runtime would assume that the slice is as
    long as the whole (see RemoveSliceBounds), so its bounds are removed. The final value of a state that the body does
    not read is selected outside, and the state is no longer carried.
    """

    instead = "`Slice` to length 0"
    avoids = (
        Gap(
            "zero-trips-concatenated", "after zero iterations a concatenated output has values of an earlier inference",
        ),
        Gap(
            "zero-trips-unread-state",
            "after zero iterations the final value of a state that the body does not read is not the initial one",
            "`Select` or `If` outside",
        ),
        Gap(
            "zero-trips-bounded-count",
            "after zero iterations of a loop whose trip count has bounds, a `Slice` to length 0 is taken for the whole",
            "ends and trip counts after `ReduceSum`, where the inference of bounds stops",
        ),
        Gap(
            "gpu-pieces-of-nothing",
            "a concatenated output keeps the sizes of an earlier inference, if a state has no elements",
            "`Slice` to the size of the first value", device=GPU,
        ),
    )

    kinds = (Loop,)

    def run_on_graph(self, graph: Graph) -> bool:
        is_swept = graph.sweep() > 0  # readers without readers do not count
        return super().run_on_graph(graph) or is_swept

    def rewrite(self, node: Loop) -> bool:
        if low(iterations(node)) > 0:
            return self.refuse(node, "it runs at least once")
        initial = {entry.result: (entry.parameter, value) for entry, value in node.fed if isinstance(entry, Merged)}
        ran: zero_trips.RunGuard | None = None
        known, changed = zero_trips.sizes_of_states(node), False
        for entry, output in node.returned:
            readers = output.uses
            if not readers or all(zero_trips.is_selection(reader, node) for reader, _ in readers):
                continue
            if isinstance(entry, Concatenated):
                ran = ran or zero_trips.RunGuard(node)
                corrected = zero_trips.cut(output, entry, ran, output.shape or (), known)
                trip = node.operands[0]
                if not isinstance(trip.node, Constant | ops.Barrier) and high(iterations(node)) is not None:
                    node.graph.set_input(node, 0, F.Barrier(trip, hides="bounds"))
            elif isinstance(entry, Final) and entry.result in initial:
                parameter, value = initial[entry.result]
                if parameter.output.is_used:
                    continue
                corrected = invariant_source(node, entry) or output
                if zero_trips.are_equal(corrected, value):
                    corrected = value
                else:
                    ran = ran or zero_trips.RunGuard(node)
                    corrected = zero_trips.final_value(corrected, value, ran)
            else:
                continue
            move_readers(output, corrected, readers)
            changed = True
        # States that are selected outside need no input, and the runtime fails on unread Parameters.
        keep = [
            number for number, entry in enumerate(node.input_map)
            if not isinstance(entry, Merged) or entry.parameter.output.is_used
        ]
        if len(keep) < len(node.input_map):
            keep_inputs(node, keep)
        return self.accept(node) if changed else self.refuse(node, "its outputs are right after zero iterations")


# -- loops that may run zero times on a GPU

COSTLY = (Iteration, Recurrent, ops.MatMul, ops.Convolution, ops.GroupConvolution)
"""Operations that make an iteration more expensive than what it saves."""

RUNS = "runs"
"""The name of the branch of a loop that runs."""


@node_pass((Loop,), "at least one iteration; the outputs are cut after it", Gap(
    "gpu-no-iteration",
    "a loop without an iteration leaves unknown sizes of its outputs unknown, and a reader fails",
    severity=ERROR, device=GPU,
))
def RunOnce(node: Loop) -> str:
    """Loop(M, C) that may run zero times  ->  Loop(ran ? M : 1, true), if the body can do no harm and costs little

    SelectFinalValues and GuardZeroTrips have corrected its outputs.
    """
    is_costly = any(scope.of(kind) for scope in node.body.scopes() for kind in COSTLY)
    reason = "an iteration is expensive" if is_costly else _needless(node)
    if reason:
        return reason
    if any(isinstance(entry, Sliced) for entry in node.input_map):
        return "there may be no slice to read"
    finals = [output for entry, output in node.returned if isinstance(entry, Final)]
    if not all(zero_trips.is_selected(each, node) for each in finals):
        return "a final value is read without a selection, as for releases that need none"
    if not all(map(is_safe, node.body.ordered())):
        return "an iteration may fail"
    zero_trips.run_once(node, zero_trips.RunGuard(node).condition)
    return ""


@node_pass(
    (Loop,), "`If` with the loop",
    Gap(
        "gpu-no-expensive-iteration",
        "a loop without an iteration, whose iterations would be expensive, leaves unknown sizes of its outputs unknown",
        severity=ERROR, device=GPU,
    ),
    Gap(
        "gpu-no-iteration-that-may-fail",
        "a loop without an iteration, whose iterations may fail, leaves unknown sizes of its outputs unknown",
        severity=ERROR, device=GPU,
    ),
)
def BranchUnlessRun(node: Loop) -> str:
    """y = Loop(M, C, s) that may run zero times  ->  If(ran, Loop(M, C, s), s), where RunOnce has left it

    Its other outputs have sizes of 0 in the second branch.
    """
    reason = "its branch has it alone" if node.graph.name == RUNS else _needless(node)
    if reason:
        return reason
    if any(each.shape is None or each.dtype is string for each in node.outputs):
        return "an output has an unknown rank, or is a string"
    ran = zero_trips.RunGuard(node).condition
    initial = {entry.result: value for entry, value in node.fed if isinstance(entry, Merged)}
    kept = [initial.get(entry.result) if isinstance(entry, Final) else None for entry in node.output_map]
    # What selects the initial value gets it from the branch; a GPU would read the output of the other branch there.
    selected = [zero_trips.selections(each, state, node) for state, each in zip(kept, node.outputs, strict=True)]
    runs, other = Graph(RUNS), Graph("does_not_run")
    there = {value: zero_trips.in_body(value, runs) for value in dict.fromkeys(node.operands)}
    beside = {value: zero_trips.in_body(value, other) for value in dict.fromkeys(kept) if value is not None}
    inner = {value: each.output for value, each in there.items()}
    runs.adopt(node.graph, {node}, inner)
    results = []
    for state, output in zip(kept, node.outputs, strict=True):
        zeros = np.zeros([dim if isinstance(dim, int) else 0 for dim in output.type.dims])
        instead = Constant(zeros, graph=other, dtype=output.dtype) if state is None else beside[state]
        results.append(Selected(Result(inner[output]), Result(instead.output)))
    fed = {
        value: Branched(*(each if isinstance(each, Parameter) else None for each in (made, beside.get(value))))
        for value, made in there.items() if isinstance(made, Parameter)
    }
    chosen = ops.If(
        ran, *fed, graph=node.graph, then_body=runs, else_body=other, name=node.name, input_map=tuple(fed.values()),
        output_map=tuple(results),
    )
    replace_node(node, chosen)
    for output, selects in zip(chosen.outputs, selected, strict=True):
        for each in selects:
            supersede(each, output)
    return ""


def _needless(node: Loop) -> str:
    """Why it needs no iteration for known sizes of its outputs, or empty."""
    if low(iterations(node)) > 0:
        return "it runs at least once"
    pieces = [entry.result.value for entry in node.output_map if isinstance(entry, Concatenated)]
    are_known = ends_by_trip_count(node) and all(is_static(each.shape) for each in pieces)
    if (not pieces or are_known) and all(is_static(each.result.value.shape) for each in node.back_edges):
        return "the sizes of its pieces and states are known"
    return ""
