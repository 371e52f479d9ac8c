"""Steps of a loop apart from it: their number, inputs and outputs, the replacement of the loop, and its unrolling:
`unrolled` copies the body of a loop into the graph around it, once for each iteration.

    for i in range(2): s = f(s, X[i], i)        ->  f(f(s, X[0], 0), X[1], 1)

The iteration number becomes a constant, a slice a Slice (of a Scan a Gather, because the axis disappears; the whole
tensor if it is one slice), and a concatenated output one Concat. The passes UnrollLoops and LowLatency2 decide whether
a loop is unrolled.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mo_loop.graph.dimension import least, low
from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.types import i64
from mo_loop.ops.control import Control, Iteration, Loop, TensorIterator
from mo_loop.ops.lengths import Length, joined
from mo_loop.ops.movement import FAR
from mo_loop.ops.port_map import Concatenated, Final, Invariant, Merged, Sliced
from mo_loop.origin import made_for
from mo_loop.transforms.loops.lifted import with_inputs
from mo_loop.transforms.port_maps import is_one_after_another
from mo_loop.transforms.replace import move_readers, replace_output
from mo_loop.transforms.slice_reads import ends_by_trip_count
from mo_loop.transforms.vocabulary import F, Graph, Node, Op, Result, Value, is_static, ops

SIZES = "the runtime may find that it does not need an input, and refuses several slices in an iteration then"
"""Why a loop that `reads_only_sizes` keeps one step in an iteration."""

FEW = "few_steps"
"""The name of a branch for a loop that has few steps."""

ANY_SIZES = "any_sizes"
"""The name of a branch for other sizes than the declared ones."""


def loops_in(body: Graph) -> list[Iteration]:
    """The loops of a body and of the bodies in it."""
    return [each for scope in body.scopes() for each in scope.nodes_with_bodies() if isinstance(each, Iteration)]


def number_of_steps(node: Iteration) -> Value:
    """The number of steps, a scalar that is not below 0."""
    if isinstance(node, TensorIterator):
        entry, value = next((entry, value) for entry, value in node.fed if isinstance(entry, Sliced))
        return F.Gather(value.sizes, entry.axis, 0)
    trip = node.operands[0].astype(i64)
    trip = trip.reshape([]) if trip.shape != () else trip
    known = trip.type.known
    return trip if known is not None and least(known.reshape(-1)[0]) >= 0 else F.Maximum(trip, 0)


def put_in_place(node: Iteration, loop: Control, values: Sequence[Value]) -> None:
    """Readers of the outputs of `node` read `values`."""
    loop.rt_info.update(node.rt_info)
    for output, value in zip(node.outputs, values, strict=True):
        if value.node is loop:
            replace_output(output, value)  # a layer of several outputs keeps its name
        elif output.is_used:
            move_readers(output, value, output.uses)
    node.graph.remove(node)


def in_order(pieces: Sequence[Value], entry: Sliced | Concatenated) -> list[Value]:
    """Pieces along the axis in the order of the steps, and pieces of the steps in the order along the axis."""
    return list(pieces) if entry.stride > 0 else list(reversed(pieces))


def part_of(value: Value, entry: Sliced, start: Length, stop: Length, count: Length) -> Value:
    """The slices of the steps from `start` to `stop` of `count`."""
    if isinstance(stop, int) and (start, stop) == (0, count):
        return value
    first, end = (start, stop) if entry.stride > 0 else (count - stop, count - start)
    return F.Slice(value, joined([first], value), joined([end], value), [1], [entry.axis])


def is_widened(entry: Concatenated) -> bool:
    """Whether the pieces of steps are concatenated along the axis after that of the loop, which moves no element."""
    return isinstance((*entry.result.value.type.dims[entry.axis + 1 :], None)[0], int)


def one_piece(steps: Value, entry: Concatenated) -> Concatenated:
    """The k pieces of an iteration as one, because the runtime concatenates no others on GPUs: [.., 1, k, d, ..]."""
    declared = (*entry.declared[: entry.axis + 1], -1, *entry.declared[entry.axis + 1 :]) if entry.declared else ()
    return replace(entry, result=Result(F.Unsqueeze(steps, [entry.axis])), declared=declared)


def as_steps(y: Value, entry: Concatenated, count: int, *, moved: bool = True) -> Value:
    """The steps of all iterations, of `count` in each: [.., n, k, d, ..]  ->  [.., n k, d, ..]

    If the axes after it have not `moved`, y is [.., n, k d, ..].
    """
    dims, axis, after = y.type.dims, entry.axis, entry.result.value.type.dims[entry.axis + 1 :]
    shape: list[Any] = [*dims[:axis], dims[axis] * count, *after]
    unknown = [at for at, size in enumerate(shape) if not isinstance(size, int)]
    if len(unknown) == 1 and 0 not in shape:
        shape[unknown[0]] = -1
    else:
        for at in unknown:
            size = y.size(at + 1 if moved and at > axis else at)
            shape[at] = size * count if at == axis else size
    return y.reshape(shape)


def as_number(number: Value, iteration: Value) -> Value:
    """A number with the type and the shape of an iteration number."""
    number = number.astype(iteration.dtype)
    dims = list(iteration.type.dims) if is_static(iteration.shape) else []
    return number if list(number.type.dims) == dims else F.Reshape(number, dims)


def ends_always(node: Iteration) -> bool:
    """Whether only the trip count or the number of slices ends the loop."""
    return not isinstance(node, Loop) or ends_by_trip_count(node)


def may_run_once(node: Iteration) -> bool:
    """Whether the loop may compute an iteration where it has no step, so that the outputs of no steps need no
    correction."""
    pieces = [entry.result.value for entry in node.output_map if isinstance(entry, Concatenated)]
    return ends_always(node) and all(is_static(each.shape) for each in pieces)


def last_pieces(node: Iteration) -> dict[int, int]:
    """Final values that are the last piece of another output: their numbers, and those of the others. Then no step has
    to keep them. The loop has a piece in any case, and only the number of steps ends it."""
    if not ends_always(node) or not (low(node.count) > 0 or may_run_once(node)):
        return {}
    pieces: dict[Value, int] = {}
    for place, entry in enumerate(node.output_map):
        if isinstance(entry, Concatenated) and node.outputs[place].is_used:
            made = entry.result.value.node
            pieces[entry.result.value] = place
            if isinstance(made, ops.Unsqueeze) and made.operands[1].type.integers == (entry.axis,):
                pieces[made.operands[0]] = place
    return {
        place: pieces[entry.result.value] for place, entry in enumerate(node.output_map)
        if isinstance(entry, Final) and node.outputs[place].is_used and entry.result.value in pieces
    }


def last_piece(
    node: Iteration, place: int, other: int, whole: Value, count: Value | None, *, may_not_start: bool
) -> Value:
    """A final value: the piece of step `count` of an output, or the initial value."""
    final, entry = node.output_map[place], node.output_map[other]
    assert isinstance(entry, Concatenated) and count is not None
    steps = F.Maximum(count, 1)
    at = steps - 1 if entry.stride > 0 else whole.size(entry.axis) - steps
    rank = entry.result.value.type.rank
    value = F.Gather(whole, at if final.result.value.rank < rank else F.Unsqueeze(at, [0]), entry.axis)
    first = next((first for each, first in node.fed if isinstance(each, Merged) and each.result is final.result), None)
    return value if first is None or not may_not_start else F.Select(F.Greater(count, 0), value, first)


def is_cut_evenly(entry: Sliced, value: Value) -> bool:
    """Whether the slices are one after another, of an axis of known length."""
    if not is_one_after_another(entry) or value.shape is None:
        return False
    return isinstance(value.shape[normalise_axis(entry.axis, len(value.shape))], int)


def unrolled(
    node: Iteration, count: int, initial: Mapping[Merged, Value] | None = None, number: Value | None = None
) -> dict[Merged, Value]:
    """Replace a loop by `count` copies of its body; returns the value of each state after the last one.

    Args:
        node: a loop that runs `count` times, whose slices are cut evenly.
        initial: values with which states start, instead of those that the loop has.
        number: the iteration number of the first copy, instead of 0; for one copy only.
    """
    graph, body = node.graph, node.body
    before = set(graph.ordered())
    fed = dict(node.fed)
    states = {entry: value for entry, value in node.fed if isinstance(entry, Merged)} | dict(initial or {})
    rounds: list[dict[Node, Value]] = []
    for place in range(count):
        bindings: dict[Node, Value] = {
            entry.parameter: value for entry, value in fed.items() if isinstance(entry, Invariant)
        }
        bindings |= {entry.parameter: value for entry, value in states.items()}
        for entry, value in fed.items():
            if isinstance(entry, Sliced):
                bindings[entry.parameter] = _piece(node, entry, value, place)
        if isinstance(node, Loop) and node.iteration is not None:
            bindings[node.iteration] = _number(node, place) if number is None else number
        made = graph.inline(body, [bindings[parameter] for parameter in body.parameters])
        results: dict[Node, Value] = dict(zip(body.results, made, strict=True))
        rounds.append(results)
        states = {entry: results[entry.result] for entry in states}
    for each in graph.ordered():  # a name means one tensor
        for output in each.outputs if each not in before else ():
            output.names = output.origins = ()
    for entry, output in node.returned:
        if not output.is_used:
            continue
        value = rounds[-1][entry.result]
        if isinstance(entry, Concatenated):
            value = _joined(node, entry, [results[entry.result] for results in rounds])
        replace_output(output, value)
    graph.remove(node)
    return states


def _number(loop: Loop, number: int) -> Value:
    assert loop.iteration is not None
    type_ = loop.iteration.output.type
    shape = type_.dims if is_static(type_.shape) else ()
    return F.Constant(np.full(shape, number), graph=loop.graph, dtype=type_.dtype)


def _piece(node: Iteration, entry: Sliced, value: Value, number: int) -> Value:
    """Slice `number` of a tensor; without the axis for a Scan."""
    axis = normalise_axis(entry.axis, len(value.type.dims))
    length = value.type.dims[axis]
    place = number if entry.stride > 0 else -1 - number
    if place < 0 and isinstance(length, int):
        place += length
    if isinstance(node, ops.Scan):
        return F.Gather(value, place, axis)
    if length == entry.part_size:
        return value
    return F.Slice(value, [place], [FAR if place == -1 else place + 1], [1], [axis])


def _joined(node: Iteration, entry: Concatenated, values: Sequence[Value]) -> Value:
    """The pieces in order along an axis, which a Scan's do not have yet."""
    values = in_order(values, entry)
    if isinstance(node, ops.Scan):
        values = [F.Unsqueeze(value, [entry.axis]) for value in values]
    return values[0] if len(values) == 1 else F.Concat(*values, axis=entry.axis)


# -- steps on their slices as they are, without removing and adding the axis of the slices in each of them


def keep_slice_axes(graph: Graph, nodes: Iterable[Node]) -> None:
    """Give the results of `nodes`, in their order, the axis of the slices that they read, if that needs fewer nodes.

        s1 = f(s, Squeeze(x[0], 0)), y[0] = Unsqueeze(s1, 0), s2 = f(s1, Squeeze(x[1], 0)), ...
    ->  s1 = y[0] = f(s, x[0]), s2 = y[1] = f(s1, x[1]), ...

    The operations of f work element by element, so that values without the axis are broadcast. Steps of a block that
    read the slices of one tensor alone keep them: the runtime would take up to 1.2 times as long for `s / 2 + x[t]`.
    """
    wide: dict[Value, None] = {}
    reading: set[Node] = set()
    for each in nodes:
        if isinstance(each, ops.View) and _is_wider(each.operands[0], each.outputs[0]):
            wide[each.outputs[0]] = None
        elif any(_is_along(value, each) and value in wide for value in each.operands):
            wide[each.outputs[0]] = None
            reading.add(each)
    others = {
        value: [use for use in value.uses if use.node not in reading or not _is_along(value, use.node)]
        for value in wide
    }
    views = (use.node for uses in others.values() for use in uses if isinstance(use.node, ops.View))
    adding = {each for each in views if _is_wider(each.outputs[0], each.operands[0])}
    narrow = [value for value, uses in others.items() if not {use.node for use in uses} <= adding]
    made = [value for value in narrow if value.node in reading]
    removing = [value.node for value in wide if value.node not in reading]
    if len(adding) + len(removing) <= len(narrow) or len({each.operands[0].node for each in removing}) < 2:
        return
    values: dict[Value, Value] = {}
    for value in wide:
        node = value.node
        if node not in reading:
            values[value] = node.operands[0]
            continue
        assert isinstance(node, Op)
        with made_for(node.origins):
            values[value] = with_inputs(
                node, *(values[x] if x in values and _is_along(x, node) else x for x in node.operands)
            )
        values[value].node.name = node.name
    for value, uses in others.items():
        squeezed = F.Squeeze(values[value], [0]) if value in made else value
        for reader, port in uses:
            if reader in adding:
                reader.outputs[0].replace_with(values[value])
            else:
                graph.set_input(reader, port, squeezed)
    graph.sweep()


def _is_along(value: Value, node: Node) -> bool:
    """Whether the axes of a value are those of the result of a node that works element by element."""
    is_elementwise = isinstance(node, ops.Elementwise) and not isinstance(node, ops.PReLU)
    return is_elementwise and value.rank == node.outputs[0].rank


def _is_wider(value: Value, other: Value) -> bool:
    """Whether a value has one dimension more, a first one of 1."""
    return value.shape is not None and other.shape is not None and value.type.dims == (1, *other.type.dims)
