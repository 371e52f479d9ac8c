"""Loops that did not run: how the graph detects it, and the replacement of their outputs."""

from collections.abc import Mapping, Sequence
from functools import cached_property

import numpy as np

from mo_loop.graph.dimension import Dimension, fresh, least, low
from mo_loop.graph.tensor import same_bytes
from mo_loop.graph.types import boolean, i64, string
from mo_loop.ops.control import Iteration
from mo_loop.ops.movement import FAR
from mo_loop.ops.port_map import Branched, Concatenated, Merged, Selected
from mo_loop.transforms.runtime.barriers import at_least, reshaped, size_of
from mo_loop.transforms.runtime.inference import may_be_empty_as_declared
from mo_loop.transforms.vocabulary import Constant, F, Graph, Node, Parameter, Result, Value, is_static, ops, source_of


class RunGuard:
    """Whether a loop runs at all, and the ends of slices that depend on it."""

    def __init__(self, node: ops.Loop) -> None:
        self.condition = _has_run(node)

    @cached_property
    def end(self) -> Value:
        """The end [1] of a Slice: of everything if the loop ran, else of nothing."""
        return self.end_unless_run(F.Constant([0], graph=self.condition.graph, dtype=i64))

    def end_unless_run(self, length: Value) -> Value:
        """The end [1] of a Slice: of everything if the loop ran, else after `length`.

        If the end had bounds, the runtime would assume that the slice is as long as the whole (see RemoveSliceBounds).
        """
        return self._end(F.Constant([FAR], graph=self.condition.graph, dtype=i64), length)

    def end_if_run(self, length: Value) -> Value:
        """The end [1] of a Slice: after `length` if the loop ran, else of nothing."""
        return self._end(length, F.Constant([0], graph=self.condition.graph, dtype=i64))

    def _end(self, run: Value, other: Value) -> Value:
        return F.Barrier(F.Select(self.condition, run, other), hides="bounds")


def _has_run(node: ops.Loop) -> Value:
    """A scalar boolean."""
    trip, go = _conditions(node)
    known = trip.type.integers
    if known is not None and known[0] != 0:
        return go
    positive = (ops.Greater if node.none_below_zero else ops.NotEqual)(trip, 0).output
    return positive if go.type.integers == (1,) else positive & go


def run_once(node: ops.Loop, ran: Value) -> None:
    """The loop runs once where it would not run."""
    trip, go = node.operands[:2]
    trip = source_of(trip, ops.Barrier)
    known = trip.type.known
    if go.type.integers == (1,) and known is not None and least(known.reshape(-1)[0]) >= 0:
        once = F.Maximum(trip, 1)
    else:
        once = F.Select(ran, trip, Constant(1, graph=node.graph, dtype=trip.dtype))
    node.starts = True
    node.graph.set_input(node, 0, once)
    if go.type.integers != (1,):
        node.graph.set_input(node, 1, F.Constant(True, graph=node.graph, dtype=boolean))


def is_has_run(value: Value | None, node: ops.Loop) -> bool:
    """Whether `value` is the condition of a loop's `RunGuard`."""
    trip, go = _conditions(node)
    if value is None or source_of(value, ops.Barrier) is go:
        return value is not None and trip.type.integers is not None
    made = value.node
    if isinstance(made, ops.LogicalAnd) and _reads(made, 1, go):
        made = made.inputs[0].node if made.inputs[0] is not None else made
    return isinstance(made, ops.NotEqual) and _reads(made, 0, trip)


def _reads(node: Node, port: int, value: Value) -> bool:
    source = node.inputs[port]
    return source is not None and source_of(source, ops.Barrier) is value


def _conditions(node: ops.Loop) -> tuple[Value, Value]:
    """The trip count and the execution condition, without Barriers."""
    trip, go = node.operands[:2]
    return source_of(trip, ops.Barrier), source_of(go, ops.Barrier)


def cut(
    output: Value, entry: Concatenated, ran: RunGuard, dims: Sequence[Dimension],
    known: Mapping[Dimension, tuple[Value, int]] | None = None,
) -> Value:
    """An output with sizes of 0 if the loop did not run, as in ONNX Runtime; `dims` are those of the loop's output.

    `known` are the sizes that it has if it ran (see `sizes_of_states`): a GPU gives pieces without elements old ones.
    """
    unknown = [i for i, dim in enumerate(dims) if not isinstance(dim, int) and i != entry.axis]
    declared = {i: entry.declared[i] for i in unknown if entry.declared and entry.declared[i] >= 0}
    for axis in sorted([entry.axis, *(i for i in unknown if i not in declared)]):
        place = (known or {}).get(dims[axis]) if axis != entry.axis else None
        end = ran.end if place is None else ran.end_if_run(size_of(*place))
        output = F.Slice(output, [0], end, [1], [axis])
    # The runtime may know fewer dimensions: outputs of an inner If or Scan are often dynamic to it.
    static = {i: dim for i, dim in enumerate(dims) if isinstance(dim, int) and i != entry.axis}
    return _sized(output, entry.axis, static, declared, ran.condition) if declared or static else output


def sizes_of_states(node: Iteration) -> dict[Dimension, tuple[Value, int]]:
    """The sizes of states that keep their shape and may have no elements, and the first value and axis of each."""
    kept = [value for each, value in node.fed if isinstance(each, Merged) and value.dtype is not string and (
        value.shape == each.parameter.output.shape == each.result.value.shape
    )]
    pairs = ((dim, (value, axis)) for value in kept for axis, dim in enumerate(value.shape or ()))
    return {dim: place for dim, place in pairs if may_be_empty_as_declared(dim)}


def _sized(output: Value, axis: int, static: dict[int, int], declared: dict[int, int], ran: Value) -> Value:
    """`output` with its known sizes, by axis; the `declared` ones only after zero iterations, when it is empty.

    Then the size along `axis` remains: to OpenVINO 2024.6, a 0 that is copied is not a size of 0.
    """
    rank = output.type.rank
    copied = [static.get(at, 0) for at in range(rank)]  # Reshape copies a dimension where the pattern is 0
    empty = [declared.get(at, size) for at, size in enumerate(copied)]
    empty[axis] = -1
    if len(static) == rank - 1 and 0 not in empty:
        return F.Reshape(output, empty)
    sizes = [Constant(each, graph=output.graph, dtype=i64) for each in (copied, empty)]
    made = F.Reshape(output, F.Select(ran, *sizes), special_zero=True)
    # The runtime infers no size from a choice: outputs of later loops would have sizes of 0 in place of these.
    return F.Reshape(made, copied, special_zero=True) if static else made


def is_cut(node: Node) -> bool:
    """Whether `node` is a Slice to the end of a `RunGuard`, or a Barrier before such Slices."""
    if isinstance(node, ops.Barrier):
        return all(is_cut(use.node) for use in node.output.uses)
    return any(isinstance(end.node, ops.Barrier) for end in _ends(node)[:1])


def is_cut_to_size(node: Node) -> bool:
    """Whether `node` is a Slice whose ends are computed, and not all or nothing as that of a RunGuard."""
    made = [source_of(end, ops.Barrier).node for end in _ends(node)]
    selected = (each.operands[1].type.integers == (FAR,) for each in made if isinstance(each, ops.Select))
    return bool(made) and not any(isinstance(each, Constant) for each in made) and not any(selected)


def _ends(node: Node) -> tuple[Value, ...]:
    """The ends of a Slice along its axes; none for another node."""
    end = node.operands[2] if isinstance(node, ops.Slice) else None
    return () if end is None else end.node.operands if isinstance(end.node, ops.Concat) else (end,)


def is_selection(reader: Node, node: ops.Loop) -> bool:
    """Whether `final_value` has put `reader` after a final value."""
    if isinstance(reader, ops.Select | ops.LogicalAnd | ops.If):
        return is_has_run(reader.inputs[0], node)
    return is_cut(reader)


def selections(output: Value, state: Value | None, node: ops.Loop) -> list[Node]:
    """The Selects between an output and the initial value of its state, or zeros if it has none."""
    found = [use.node for use in output.uses if isinstance(use.node, ops.Select) and is_selection(use.node, node)]
    return [each for each in found if each.operands[1] is output and _is_initial(each.operands[2], state)]


def _is_initial(value: Value, state: Value | None) -> bool:
    if not isinstance(value.node, Constant):
        return value is state
    if state is None:
        return not value.node.tensor.array().any()
    return isinstance(state.node, Constant) and same_bytes(value.node.tensor, state.node.tensor)


def is_selected(output: Value, node: Node) -> bool:
    """Whether each reader of a final value, of a view or a piece of it selects the initial value after no iteration."""
    return isinstance(node, ops.Loop) and all(
        is_selection(use.node, node)
        or (isinstance(use.node, ops.Slice | ops.View) and is_selected(use.node.output, node))
        for use in output.uses
    )


def are_equal(last: Value, initial: Value) -> bool:
    """Whether both are one tensor, or have no elements."""
    return last is initial or (last.shape == initial.shape and _is_empty(last))


def final_value(last: Value, initial: Value, ran: RunGuard) -> Value:
    """`last` if the loop ran, else `initial`.

    For equal static shapes this is a Select. Else one of them is cut to length 0, and they are joined. An If would copy
    its inputs and its outputs.
    """
    if is_static(last.shape) and last.shape == initial.shape:
        return chosen(last, initial, ran)
    if last.dtype is string or last.rank is None or last.rank != initial.rank:
        return _by_branches(last, initial, ran.condition)
    pairs = list(zip(last.type.dims, initial.type.dims, strict=True))
    dims = [a if a == b else fresh(min(low(a), low(b))) for a, b in pairs]
    axis = next(axis for axis, dim in enumerate(dims) if not isinstance(dim, int))
    keeps_shape = last.shape == initial.shape
    empty = [at for at, dim in enumerate(dims) if keeps_shape and may_be_empty_as_declared(dim)]
    axes = empty or [axis]
    ends = [ran.end_if_run(size_of(initial, at)) for at in empty] or [ran.end]  # a GPU gives what is empty old sizes
    parts = {}
    if not _is_empty(last):
        if not keeps_shape:
            # Its sizes are read: without iterations it has others, which the runtime would take for those it shares.
            axes = [place for place, (a, b) in enumerate(pairs) if place == axis or (a == b and not isinstance(a, int))]
            ends = [ran.end] * len(axes)
        end = F.Concat(*ends, axis=0) if len(ends) > 1 else ends[0]
        parts[last] = F.Slice(last, [0] * len(axes), end, [1] * len(axes), axes)
    if not _is_empty(initial):
        parts[initial] = F.Slice(initial, ends[0], [FAR], [1], axes[:1])

    def shape() -> Value:
        if keeps_shape:
            return _shape_of(initial)
        return F.Select(ran.condition, *(_shape_of(parts.get(each, each)) for each in (last, initial)))

    # As vectors: after zero iterations the runtime sets dimensions to 0 that it does not know.
    filled = [part for each, part in parts.items() if 0 not in each.type.dims] or [parts.get(last, initial)]
    vectors = [each if each.rank == 1 else each.reshape([-1]) for each in filled]
    vector = F.Concat(*vectors, axis=0) if len(vectors) > 1 else vectors[0]
    return reshaped(vector, dims, shape)


def chosen(last: Value, initial: Value, ran: RunGuard) -> Value:
    """`last` if the loop ran, else `initial`; both have the same shape."""
    # The runtime does not compile a Select whose condition is also one of its values.
    if ran.condition is last:
        return last | initial
    if ran.condition is initial:
        return initial & last
    return F.Select(ran.condition, last, initial)


def prefix(last: Value, initial: Value, axis: int, ran: RunGuard) -> Value:
    """`last` if the loop ran, else as much of it along `axis` as `initial` has."""
    least = [min(low(a), low(b)) for a, b in zip(last.type.dims, initial.type.dims, strict=True)]
    return at_least(F.Slice(last, [0], ran.end_unless_run(size_of(initial, axis)), [1], [axis]), least)


def _is_empty(value: Value) -> bool:
    return is_static(value.shape) and 0 in value.type.dims


def _shape_of(value: Value) -> Value:
    if is_static(value.shape):
        return F.Constant(np.array(value.type.dims), graph=value.graph, dtype=i64)
    return value.sizes


def _by_branches(last: Value, initial: Value, ran: Value) -> Value:
    bodies = [Graph("ran"), Graph("not_run")]
    inner = [in_body(value, body) for value, body in zip((last, initial), bodies, strict=True)]
    inputs = [value for value, each in zip((last, initial), inner, strict=True) if isinstance(each, Parameter)]
    then, otherwise = ((each if isinstance(each, Parameter) else None) for each in inner)
    entries = (Branched(then, None), Branched(None, otherwise))
    return ops.If(
        ran, *inputs, then_body=bodies[0], else_body=bodies[1],
        input_map=tuple(each for each in entries if each.then or each.else_),
        output_map=(Selected(*(Result(each.output) for each in inner)),),
    ).output


def in_body(value: Value, body: Graph) -> Parameter | Constant:
    """A Parameter for an outer value; a constant is copied (see PushConstantToSubgraph)."""
    if isinstance(value.node, Constant):
        return Constant(value.node.tensor, graph=body)
    return Parameter(graph=body, type=value.type.without_known())
