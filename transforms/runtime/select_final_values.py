"""Final values of loops that did not run."""

from __future__ import annotations

from dataclasses import dataclass

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.graph.dimension import least, low
from mo_loop.graph.shape import is_static
from mo_loop.graph.types import boolean
from mo_loop.ops.base import Constant
from mo_loop.ops.control import Loop
from mo_loop.ops.port_map import Final, Merged, Sliced
from mo_loop.target import Gap
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.operands import behind
from mo_loop.transforms.replace import move_readers
from mo_loop.transforms.runtime.appended_states import begins_with, growing_axis
from mo_loop.transforms.runtime.barriers import iterations
from mo_loop.transforms.runtime.zero_trips import Ran, are_equal, chosen, final_value, is_selection, prefix
from mo_loop.transforms.total_operations import is_harmless


@dataclass(frozen=True)
class FinalValue:
    """A final value that is wrong after zero iterations."""

    last: Value
    initial: Value
    keeps_shape: bool
    axis: int | None
    """The axis along which the body only appends to the state."""


class SelectFinalValues(FunctionPass):
    """last = Loop(M, C, initial)  ->  M != 0 and C ? last : initial

    For equal static shapes a Select gives the initial value. For other shapes a slice of the final and one of the
    initial value are joined; one of them is empty.

    The loop runs once instead of not at all where the body can do no harm, if that makes all values available: a Select
    chooses between equal dynamic shapes, and the initial value of a state that the body only appends to is the
    beginning of the final one.
    """

    instead = "`Select`, a slice of the final value, or both joined, one of them cut to length 0"
    avoids = (Gap(
        "zero-trips-read-state",
        "after zero iterations the final value of any state is that of an earlier inference", until="2026.3.1",
    ),)  # fmt: skip

    kinds = (Loop,)

    def rewrite(self, node: Loop) -> bool:
        if low(iterations(node)) > 0:
            return self.refuse(node, "it runs at least once")
        found = _found(node)
        if not found:
            return self.refuse(node, "no final value of a state is read")
        ran = Ran(node)
        runs_once = _may_run_once(node, found)
        if runs_once:
            _run_once(node, ran.condition)
        for each in found:
            readers = each.last.uses
            move_readers(each.last, _selected(each, ran, runs_once), readers)
        return self.accept(node)


def _found(node: Loop) -> list[FinalValue]:
    # GuardZeroTrips handles the states that the body does not read.
    states = {
        entry.result: (entry, value)
        for entry, value in node.fed
        if isinstance(entry, Merged) and entry.parameter.output.is_used
    }
    finals = [
        (output, *states[entry.result])
        for entry, output in zip(node.output_map, node.outputs, strict=True)
        if isinstance(entry, Final) and entry.result in states
    ]
    return [
        FinalValue(last, initial, _is_same_shape(last, initial), _appended_axis(last, initial, entry))
        for last, entry, initial in finals
        if not are_equal(last, initial) and not all(is_selection(use.node, node) for use in last.uses)
    ]


def _is_same_shape(last: Value, initial: Value) -> bool:
    return last.shape is not None and last.shape == initial.shape


def _appended_axis(last: Value, initial: Value, entry: Merged) -> int | None:
    axis = growing_axis(last, initial)
    appends = axis is not None and begins_with(entry.result.value, entry.parameter.output, axis)
    return axis if appends else None


def _may_run_once(node: Loop, found: list[FinalValue]) -> bool:
    """Whether one more iteration is harmless, gives all outputs that are read, and saves something."""
    if any(isinstance(entry, Sliced) for entry in node.input_map):  # there may be no slice to read
        return False
    if {output for output in node.outputs if output.is_used} != {each.last for each in found}:
        return False
    if all(each.keeps_shape and is_static(each.last.shape) for each in found):
        return False
    return all(each.keeps_shape or each.axis is not None for each in found) and is_harmless(node.body)


def _selected(each: FinalValue, ran: Ran, runs_once: bool) -> Value:
    if not runs_once:
        return final_value(each.last, each.initial, ran)
    if each.axis is None:
        return chosen(each.last, each.initial, ran)
    return prefix(each.last, each.initial, each.axis, ran)


def _run_once(node: Loop, ran: Value) -> None:
    """The loop runs once where it would not run."""
    trip, go = node.operands[:2]
    trip = behind(trip, ops.Barrier)
    known = trip.type.known
    if go.type.integers == (1,) and known is not None and least(known.reshape(-1)[0]) >= 0:
        once = ops.Maximum(trip, 1).output
    else:
        once = ops.Select(ran, trip, Constant(1, graph=node.graph, dtype=trip.dtype)).output
    node.starts = True
    node.graph.set_input(node, 0, once)
    if go.type.integers != (1,):
        node.graph.set_input(node, 1, Constant(True, graph=node.graph, dtype=boolean).output)
