"""Loops that may run zero times."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.shape import high, is_static, low
from mo_loop.graph.types import i64
from mo_loop.ops.base import Constant, Parameter, Result
from mo_loop.ops.control import Branched, Concatenated, Final, Loop, Merged, Selected
from transforms.function_pass import FunctionPass
from transforms.port_maps import invariant_behind, keep_inputs
from transforms.replace import move_readers
from transforms.run_time_slices import TO_THE_END
from transforms.runtime.barriers import iterations


class GuardZeroTrips(FunctionPass):
    """Loop that may run zero times  ->  the same Loop, with outputs corrected for zero iterations

    After zero iterations the runtime returns old contents as concatenated outputs, and returns the initial value of a
    state only if the body reads the state. Let ran = (M != 0) and C. A concatenated output becomes Slice(output, 0,
    Select(ran, end, 0)), along every dimension of unknown size, as in ONNX Runtime; a Reshape gives the empty tensor
    the dimensions that the model declares, or that the runtime may not know. If the trip count had known bounds, the
    runtime would assume that the slice is as long as the whole (see RemoveSliceBounds), so its bounds are removed. The
    final value of a state that the body does not read is selected outside, and the state is no longer carried.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = graph.sweep() > 0  # readers without readers do not count
        for node in self.candidates(graph, Loop):
            changed = self._guard(node) or changed
        return changed

    def _guard(self, node: Loop) -> bool:
        if low(iterations(node)) > 0:
            return self.refuse(node, "it runs at least once")
        initial = {entry.result: (entry.parameter, value) for entry, value in node.fed if isinstance(entry, Merged)}
        ran: Value | None = None
        changed = False
        for entry, output in zip(node.output_map, node.outputs, strict=True):
            readers = output.uses
            if not readers or all(_is_cut(node) for node, _ in readers):
                continue
            if isinstance(entry, Concatenated):
                ran = ran or _ran(node)
                corrected = _cut(output, entry, ran)
                _remove_trip_count_bounds(node)
            elif isinstance(entry, Final) and entry.result in initial:
                parameter, value = initial[entry.result]
                if parameter.output.is_used:
                    continue
                corrected = invariant_behind(node, entry) or output
                if _are_equal(corrected, value):
                    corrected = value
                else:
                    ran = ran or _ran(node)
                    corrected = _chosen(corrected, value, ran)
            else:
                continue
            move_readers(output, corrected, readers)
            changed = True
        # States that are selected outside need no input, and the runtime fails on unread Parameters.
        keep = [
            number
            for number, entry in enumerate(node.input_map)
            if not isinstance(entry, Merged) or entry.parameter.output.is_used
        ]
        if len(keep) < len(node.input_map):
            keep_inputs(node, keep)
        return self.accept(node) if changed else self.refuse(node, "its outputs are right after zero iterations")


def _ran(node: Loop) -> Value:
    """Whether the loop runs at all: a scalar boolean."""
    trip, go = node.inputs[0], node.inputs[1]
    assert trip is not None and go is not None
    known = trip.type.integers
    if known is not None and known[0] != 0:
        return go
    positive = ops.NotEqual(trip, 0).output
    return positive if go.type.integers == (1,) else ops.LogicalAnd(positive, go).output


def _remove_trip_count_bounds(node: Loop) -> None:
    trip = node.inputs[0]
    assert trip is not None
    if not isinstance(trip.node, Constant | ops.Barrier) and high(iterations(node)) is not None:
        node.graph.set_input(node, 0, ops.Barrier(trip, hides="bounds").output)


def _is_cut(node: Node) -> bool:
    """Whether `node` is the first Slice that this pass put behind a concatenated output, or all its readers are."""
    if isinstance(node, ops.Barrier):
        return all(_is_cut(use.node) for use in node.output.uses)
    end = node.inputs[2] if isinstance(node, ops.Slice) else None
    return end is not None and isinstance(end.node, ops.Barrier)


def _cut(output: Value, entry: Concatenated, ran: Value) -> Value:
    large, none = (ops.Constant(n, graph=output.graph, dtype=i64) for n in (TO_THE_END, 0))
    end = ops.Select(ran, large, none).output
    end = ops.Barrier(ops.Reshape(end, [1]), hides="bounds").output
    dims = output.shape or ()
    unknown = [i for i, dim in enumerate(dims) if not isinstance(dim, int) and i != entry.axis]
    declared = {i: entry.declared[i] for i in unknown if entry.declared and entry.declared[i] >= 0}
    for axis in sorted([entry.axis, *(i for i in unknown if i not in declared)]):
        output = ops.Slice(output, [0], end, [1], [axis]).output
    # The runtime may know fewer dimensions: outputs of an inner If or Scan are often dynamic to it.
    static = {i: dim for i, dim in enumerate(dims) if isinstance(dim, int) and i != entry.axis}
    return _sized(output, static, declared, ran) if declared or static else output


def _sized(output: Value, static: dict[int, int], declared: dict[int, int], ran: Value) -> Value:
    """`output` with its known sizes, by axis; the `declared` ones only after zero iterations, when it is empty."""
    rank = output.type.rank
    known = [static.get(axis, 0) for axis in range(rank)]  # Reshape copies a dimension where the pattern is 0
    if not declared:
        return ops.Reshape(output, known, special_zero=True).output
    empty = [declared.get(axis, size) for axis, size in enumerate(known)]
    sizes = [Constant(each, graph=output.graph, dtype=i64) for each in (known, empty)]
    return ops.Reshape(output, ops.Select(ran, *sizes), special_zero=True).output


def _are_equal(last: Value, initial: Value) -> bool:
    """Whether both are one tensor, or have no elements."""
    return last is initial or (last.shape == initial.shape and is_static(last.shape) and 0 in last.type.dims)


def _chosen(last: Value, initial: Value, ran: Value) -> Value:
    """`last` if the loop ran, else `initial`: by Select for equal shapes, by If for different ones."""
    # The runtime does not compile a Select whose condition is also one of its values.
    if ran is last:
        return ops.LogicalOr(ran, initial).output
    if ran is initial:
        return ops.LogicalAnd(ran, last).output
    if is_static(last.shape) and last.shape == initial.shape:
        return ops.Select(ran, last, initial).output
    bodies = [Graph("ran"), Graph("not_run")]
    inner = [_in_body(value, body) for value, body in zip((last, initial), bodies, strict=True)]
    inputs = [value for value, each in zip((last, initial), inner, strict=True) if isinstance(each, Parameter)]
    then, otherwise = ((each if isinstance(each, Parameter) else None) for each in inner)
    entries = (Branched(then, None), Branched(None, otherwise))
    return ops.If(
        ran, *inputs, then_body=bodies[0], else_body=bodies[1],
        input_map=tuple(each for each in entries if each.then or each.else_),
        output_map=(Selected(*(Result(each.output) for each in inner)),),
    ).output  # fmt: skip


def _in_body(value: Value, body: Graph) -> Parameter | Constant:
    """A Parameter for an outer value; a constant is copied (see PushConstantToSubgraph)."""
    if isinstance(value.node, Constant):
        return Constant(value.node.tensor, graph=body)
    return Parameter(graph=body, type=value.type.without_known())
