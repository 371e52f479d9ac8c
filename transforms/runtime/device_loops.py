"""Loops of which the GPU device keeps old states, or an old number of iterations.

Its loop has three ways to give a state to the next iteration: a swap of two buffers, one buffer for both, and a copy.
Only the copy is right in every case. It is chosen where a type of an input or an output of the loop is dynamic and the
body has two readers of the state.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mo_loop.graph.dimension import Dimension, low, now
from mo_loop.graph.shape import Shape, of_declared_sizes
from mo_loop.graph.types import i64, string
from mo_loop.ops.control import Iteration, Loop, TensorIterator
from mo_loop.ops.movement import END
from mo_loop.ops.port_map import Concatenated, Final, Merged, Sliced
from mo_loop.support.traversal import reached
from mo_loop.target import CRASH, ERROR, GPU
from mo_loop.transforms import port_maps
from mo_loop.transforms.function_pass import node_pass
from mo_loop.transforms.replace import move_readers
from mo_loop.transforms.runtime import zero_trips
from mo_loop.transforms.runtime.barriers import HiddenPort, barrier_rule, iterations, size_of
from mo_loop.transforms.runtime.inference import UNROLLED, may_be_empty_as_declared
from mo_loop.transforms.slice_reads import ends_by_trip_count
from mo_loop.transforms.total_operations import ELEMENTWISE
from mo_loop.transforms.vocabulary import F, Gap, Parameter, Result, Use, Value, is_static, ops, source_of


@barrier_rule((Iteration,), "memory", "`max(s, s)` in the body", Gap(
    "gpu-state-of-one-reader",
    "a state whose size changes, and that one operation of the body reads, keeps the memory and the shape that it has "
    "in the second iteration; one that a single operation computes from itself is read and written in one place",
    device=GPU,
))
def ReadStatesTwice(node: Iteration) -> list[HiddenPort] | str:
    """state of dynamic shape with one reader  ->  reader of Barrier(state, memory), which reads it twice"""
    states = [each.parameter.output for each in node.back_edges if _may_be_lost(each)]
    found: list[HiddenPort] = [
        (each.uses[0], ()) for each in states
        if len(each.uses) == 1 and each.dtype is not string
        and not isinstance(each.uses[0].node, ops.Barrier | ops.Result)
    ]
    return found or "no state with one reader changes its size, or is computed from itself in one place"


def _may_be_lost(entry: Merged) -> bool:
    """Whether a state of dynamic shape may get another one, or one operation other than elementwise computes it."""
    state, new = entry.parameter.output, entry.result.value
    if is_static(state.shape):
        return False
    made = source_of(new, ops.View).node
    reads = any(source_of(each, ops.View) is state for each in made.operands)
    return state.shape != new.shape or (reads and not isinstance(made, ELEMENTWISE))


OWN_RESULT = "another Result of the value"

@node_pass((Iteration,), OWN_RESULT, Gap(
    "gpu-static-loop",
    "a loop of static shapes swaps the buffers of a state with two readers: after an even number of iterations the "
    "final value is that of the iteration before",
    device=GPU,
))
def SeparateFinalValues(node: Iteration) -> str:
    """Loop with one Result for a state of static shape and its final value  ->  two Results of the same value

    The final value then keeps the memory of the last iteration.
    """
    return _separate(node, _is_static_now)


@node_pass((Iteration,), OWN_RESULT, Gap(
    "gpu-final-of-no-iteration",
    "a final value of dynamic shape has the memory of the initial value after no iteration; the next inference fails "
    "if the last iteration had another shape",
    severity=ERROR, device=GPU, alone=True,
))
def SeparateDynamicValues(node: Iteration) -> str:
    """As SeparateFinalValues, for states of dynamic shape in loops that may run zero times.

    The CPU gives such a final value an old shape.
    """
    if _surely_runs(node):
        return "it runs at least once"
    return _separate(node, lambda shape: not _is_static_now(shape))


def _is_static_now(shape: Shape) -> bool:
    """Whether the runtime knows all sizes while the inputs have their declared ones."""
    return is_static(of_declared_sizes(shape))


def _surely_runs(node: Iteration) -> bool:
    return isinstance(node.count, int) or (isinstance(node, Loop) and low(iterations(node)) > 0)


def _separate(node: Iteration, when: Callable[[Shape], bool]) -> str:
    states = {each.result for each in node.back_edges}
    entries, runs = list(node.output_map), _surely_runs(node)
    for place, (entry, output) in enumerate(node.returned):
        if not isinstance(entry, Final) or entry.result not in states or not when(entry.result.value.shape):
            continue
        # A result of its own has no initial value.
        if runs or zero_trips.is_selected(output, node):
            entries[place] = replace(entry, result=Result(entry.result.value))
    if entries == list(node.output_map):
        return "it has no such final value of a state"
    node.output_map = tuple(entries)
    return ""


@node_pass((Loop,), "a slice of the iteration numbers as an input", Gap(
    "gpu-more-iterations",
    "a concatenated output keeps the memory of the first inference if no shape of an input changes: more iterations "
    "write beyond it",
    severity=CRASH, device=GPU,
))
def FollowIterations(node: Loop) -> str:
    """Loop(n), Y = pieces  ->  Loop(n, k in Range(0, n)), Y = Gather(pieces, min(k, 0))

    The range has another length where n is another number. The runtime may remove the input where the piece has one
    element, and then refuses an output in reverse order (see ReverseBehindLoops).
    """
    if not ends_by_trip_count(node):
        return "its condition may end it"
    joined = _joined(node)
    if isinstance(joined, str):
        return joined
    port_maps.order_forwards(node)
    entry = joined[0][1]
    number = Parameter(graph=node.body, dtype=i64, shape=(1,))
    piece = F.Gather(entry.result.value, F.Minimum(number, 0), entry.axis)
    node.body.set_input(entry.result, 0, piece)
    port_maps.add_input(node, Sliced(number, 0), F.Range(0, node.operands[0].reshape([]), 1, output_type=i64))
    return ""


@node_pass((TensorIterator,), "`Reshape` to the size of another input", Gap(
    "gpu-slices-of-unknown-number",
    "a loop of at most 15 iterations that also reads slices of a tensor of unknown size along the axis does not run "
    "(\"bad_function_call\"), or reads other elements", severity=ERROR, device=GPU,
))
def SizeSlicedInputs(node: TensorIterator) -> str:
    """TensorIterator(x : [2,3], y : [?])  ->  TensorIterator(x, Reshape(y, [2])), where both are cut along axis 0

    The plugin writes the loop out, with a Split of y.
    """
    fed = enumerate(node.fed, node.first_data_port)
    cut = [(port, each, value) for port, (each, value) in fed if isinstance(each, Sliced) and value.rank]
    given = next(((value, each.axis) for _, each, value in cut if isinstance(_size(each, value), int)), None)
    is_written_out = now(node.count) in range(1, UNROLLED.stop) and all(
        port_maps.is_one_after_another(each) for _, each, _ in cut
    )
    if given is None or not is_written_out:
        return "the plugin does not write it out, or knows no size"
    changed = False
    for port, entry, value in cut:
        if isinstance(_size(entry, value), int) or value.dtype is string:
            continue
        size = size_of(*given)
        sizes = [size if axis == entry.axis else [0] for axis in range(value.type.rank)]
        pattern = F.Concat(*sizes, axis=0) if len(sizes) > 1 else size
        node.graph.set_input(node, port, F.Reshape(value, pattern, special_zero=True))
        changed = True
    return "" if changed else "the sizes of all slices are known"


def _size(entry: Sliced, value: Value) -> Dimension:
    """The declared size of an input along the axis of its slices."""
    return (of_declared_sizes(value.shape) or ())[entry.axis]


@node_pass((Loop,), "a state that grows", Gap(
    "gpu-more-iterations-of-while",
    "a concatenated output of a loop that its condition ends keeps the memory of the first inference if no shape of an "
    "input changes: more iterations write beyond it",
    severity=CRASH, device=GPU, alone=True,
))
def AppendPieces(node: Loop) -> str:
    """while c: Y = pieces  ->  while c: s = Concat(s, piece); Y = s

    Pieces of unknown sizes cannot begin a state.
    """
    joined = _joined(node)
    if isinstance(joined, str):
        return joined
    entries = list(node.output_map)
    for place, entry in joined:
        piece = entry.result.value
        if not is_static(piece.shape) or piece.dtype is string:
            continue
        dims = [0 if axis == entry.axis % len(piece.type.dims) else dim for axis, dim in enumerate(piece.type.dims)]
        start = F.Constant(np.zeros(dims, piece.dtype.numpy), graph=node.graph, dtype=piece.dtype)
        state = Parameter(graph=node.body, type=start.type)
        result = Result(F.Concat(*([state, piece] if entry.stride > 0 else [piece, state]), axis=entry.axis))
        entries[place] = Final(result)
        node.output_map = tuple(entries)
        port_maps.add_input(node, Merged(state, result), start)
    return "" if any(entries[place] is not entry for place, entry in joined) else "the sizes of its pieces are unknown"


def _joined(node: Loop) -> list[tuple[int, Concatenated]] | str:
    """The concatenated outputs of a loop whose number of iterations no input shows, and their places."""
    if isinstance(node.count, int) or any(isinstance(entry, Sliced) for entry in node.input_map):
        return "its number of iterations is known, or has another length of a slice with it"
    joined = [
        (place, entry) for place, entry in enumerate(node.output_map)
        if isinstance(entry, Concatenated) and node.outputs[place].is_used
    ]
    return joined or "it has no concatenated output"


@node_pass(
    (Iteration,), "a state with one more slice in front, which is cut off in the body and after the loop",
    Gap(
        "gpu-empty-state",
        "a state that starts without elements and grows has no memory: the process ends, or the inference fails",
        severity=CRASH, device=GPU,
    ),
    Gap(
        "gpu-emptied-state",
        "a state without elements that the body does not only append to has no memory, and one that loses its last "
        "element keeps its memory",
        severity=CRASH, device=GPU,
    ),
)
def WidenEmptyStates(node: Iteration) -> str:
    """state [0..] that grows or shrinks  ->  state [1..] = Concat(0, state) before the loop; the body reads state[1:]

    A body that only appends to the state stays as it is.
    """
    changed = False
    for port, (entry, value) in enumerate(node.fed, node.first_data_port):
        axis = _empty_axis(entry, value) if isinstance(entry, Merged) else None
        if axis is None:
            continue
        state, new = entry.parameter.output, entry.result.value
        readers, made = state.uses, new.node
        grows = isinstance(made, ops.Concat) and made.axis == axis and made.operands[0] is state
        wide = F.Concat(state, *made.operands[1:], axis=axis) if grows else None
        move_readers(state, _cut(state, axis), readers)
        result = Result(_widened(new, axis) if wide is None else wide)
        node.input_map = tuple(replace(each, result=result) if each is entry else each for each in node.input_map)
        outputs = list(node.output_map)
        node.graph.set_input(node, port, _widened(value, axis))
        for place, each in enumerate(outputs):
            if isinstance(each, Final) and each.result is entry.result:
                outputs[place] = replace(each, result=result)
                readers = node.outputs[place].uses
                move_readers(node.outputs[place], _cut(node.outputs[place], axis), readers)
        node.output_map = tuple(outputs)
        node.body.remove(entry.result)
        node.body.sweep()
        changed = True
    return "" if changed else "no state that grows or shrinks may have no elements"


@node_pass((Iteration,), "`Slice` to the size of the first value", Gap(
    "gpu-final-of-nothing",
    "a final value or a concatenated output without elements has the shape and the numbers of an earlier inference, "
    "because no kernel runs", device=GPU, alone=True,
))
def CutFinalValues(node: Iteration) -> str:
    """last = Loop(x : [?,2]) of the same shape  ->  Slice(last, 0, size of x)
    last = Loop(x : [?,2]) that is computed element by element  ->  Slice(last, 0, size of x == 0 ? 0 : all)

    Concatenated outputs likewise. What GuardZeroTrips and SelectFinalValues have cut or selected needs no other Slice.
    """
    first = {entry.result: (entry.parameter.output, value) for entry, value in node.fed if isinstance(entry, Merged)}
    known, changed = zero_trips.sizes_of_states(node), False
    for entry, output in node.returned:
        state, value = first.get(entry.result, (None, None)) if isinstance(entry, Final) else (None, None)
        if output.dtype is string or _is_cut_all(output, node):
            continue
        ends = dict[int, Value | None]()
        if isinstance(entry, Concatenated):
            places = ((axis, known.get(dim)) for axis, dim in enumerate(output.shape or ()) if axis != entry.axis)
            ends = {axis: size_of(*place) for axis, place in places if place is not None}
        elif state is not None and value is not None and value.rank == output.rank:
            ends = {axis: _end(value, output, axis, entry.result.value, state) for axis in range(value.rank or 0)}
        found = {axis: end for axis, end in ends.items() if end is not None}
        if found:
            readers, count = output.uses, len(found)
            end = F.Concat(*found.values(), axis=0)
            move_readers(output, F.Slice(output, [0] * count, end, [1] * count, [*found]), readers)
            changed = True
    return "" if changed else "no state that keeps its shape may have no elements"


@node_pass((Iteration,), "the size of the first value, as an input", Gap(
    "gpu-size-of-state",
    "the size of a state without elements, which keeps its size, is that of an earlier inference in the body, if a "
    "number or a choice depends on it",
    device=GPU,
))
def ReadSizesOutside(node: Iteration) -> str:
    """Gather(ShapeOf(s), k) in the body == 0, where s : [N,2] is the state x in the first iteration  ->  n == 0, where
    n is Gather(ShapeOf(x), k), an input

    Sizes that shapes in the body follow from stay: the runtime would infer less.
    """
    known = zero_trips.sizes_of_states(node)
    made = dict[tuple[Dimension, int | None], Value]()
    for each in [use.node for sizes in node.body.of(ops.ShapeOf) for use in sizes.output.uses] if known else ():
        place = each.operands[1].type.integers if isinstance(each, ops.Gather) else None
        size = each.operands[0].node.operands[0].type.dims[place[0]] if place is not None and len(place) == 1 else None
        if size not in known or not all(map(_is_compared, each.output.uses)):
            continue
        key = size, each.output.rank
        if key not in made:
            first = size_of(*known[size])
            made[key] = port_maps.captured(node.body, first if key[1] else first.reshape([]))
        each.output.replace_with(made[key])
    node.body.sweep()
    return "" if made else "no size in its body is that of a state which may have no elements"


def _is_compared(use: Use) -> bool:
    """Whether a size, or a product with it, is only compared, or converted to another type."""
    if isinstance(use.node, ops.Multiply | ops.View):
        return all(map(_is_compared, use.node.output.uses))
    return isinstance(use.node, ops.Binary | ops.Convert) and not use.node.outputs[0].dtype.is_integer


def _end(first: Value, last: Value, axis: int, new: Value, state: Value) -> Value | None:
    """The size of a final value along an axis, or more; None if it follows from no size of the first value."""
    if not may_be_empty_as_declared(first.type.dims[axis]):
        return None
    if first.type.dims[axis] == last.type.dims[axis]:
        return size_of(first, axis)
    if not _has_all(new, state, axis, False):
        return None
    none, every = (F.Constant([end], graph=first.graph, dtype=i64) for end in (0, END))
    return F.Select(F.Equal(size_of(first, axis), 0), none, every)


def _is_cut_all(value: Value, node: Iteration) -> bool:
    """Whether only Slices with computed ends, and choices of the initial value, read `value`."""
    return all(
        zero_trips.is_cut_to_size(each)
        or (isinstance(each, ops.Select) and isinstance(node, Loop) and zero_trips.is_selection(each, node))
        for each in (use.node for use in value.uses)
    )


def _empty_axis(entry: Merged, value: Value) -> int | None:
    """The only axis along which a state grows from a size that may be 0, or shrinks to one."""
    first = of_declared_sizes(source_of(value, (ops.Barrier, ops.AtLeast)).shape)  # what hides sizes empties no state
    state, new = entry.parameter.output, entry.result.value
    shapes = (first, state.shape, new.shape)
    if None in shapes or len({len(each or ()) for each in shapes}) > 1 or value.dtype is string:
        return None
    sizes = enumerate(zip(*(each or () for each in shapes), strict=True))
    axes = [
        axis for axis, (size, now, last) in sizes
        if size == 0 or (low(size) == 0 and low(last) > 0)
        or (low(last) == 0 and now != last and not _has_all(new, state, axis, low(size) > 0))
    ]
    return axes[0] if len(axes) == 1 else None


def _has_all(new: Value, state: Value, axis: int, is_appended: bool) -> bool:
    """Whether the next value of a state has as many elements along an axis or, with `is_appended`, more.

    What is computed element by element has as many, or more where a size of 1 is repeated. That it has none because
    another operand has none occurs in no model that is known, and LowLatency2 of the runtime relies on the sizes.
    """

    def before(value: Value) -> list[Value]:
        node = value.node
        is_joined = isinstance(node, ops.Concat) and (is_appended or node.axis != axis)
        has_all = is_joined or isinstance(node, ELEMENTWISE)
        return [each for each in node.operands if has_all and each.rank == value.rank]

    return state in reached([new], before)


def _widened(value: Value, axis: int) -> Value:
    one = F.Constant([1], graph=value.graph, dtype=i64)
    sizes = [one if at == axis else size_of(value, at) for at in range(value.type.rank)]
    zero = F.Constant(np.zeros((), value.dtype.numpy), graph=value.graph, dtype=value.dtype)
    return F.Concat(F.Broadcast(zero, F.Concat(*sizes, axis=0)), value, axis=axis)


def _cut(value: Value, axis: int) -> Value:
    return F.Slice(value, [1], [END], [1], [axis])
