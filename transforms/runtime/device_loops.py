"""Loops of which the GPU device keeps old states, or an old number of iterations.

Its loop has three ways to give a state to the next iteration: a swap of two buffers, one buffer for both, and a copy.
Only the copy is right in every case. It is chosen where a type of an input or an output of the loop is dynamic and the
body has two readers of the state.
"""

from dataclasses import replace

import numpy as np

from mo_loop.graph.dimension import low
from mo_loop.graph.shape import of_declared_sizes
from mo_loop.graph.types import i64, string
from mo_loop.ops.control import Iteration, Loop, TensorIterator
from mo_loop.ops.movement import END
from mo_loop.ops.port_map import Concatenated, Final, Merged, Sliced
from mo_loop.target import CRASH, ERROR, GPU
from mo_loop.transforms import port_maps
from mo_loop.transforms.function_pass import node_pass
from mo_loop.transforms.replace import move_readers
from mo_loop.transforms.runtime.barriers import HiddenPort, barrier_rule, iterations, size_of
from mo_loop.transforms.runtime.zero_trips import RunGuard, is_selection, run_once
from mo_loop.transforms.slice_reads import ends_by_trip_count
from mo_loop.transforms.total_operations import is_safe
from mo_loop.transforms.vocabulary import F, Gap, Parameter, Result, Value, is_static, ops, source_of

UNROLLED = 16
"""The device unrolls loops with a known number of iterations below this."""


@node_pass((Iteration,), "a trip count of unknown dimension", Gap(
    "gpu-static-loop",
    "a loop of static shapes swaps the buffers of a state with two readers: after an even number of iterations the "
    "final value is that of the iteration before",
    device=GPU, alone=True,
))
def MakeLoopsDynamic(node: Iteration) -> str:
    """Loop(n) of static shapes with a state  ->  Loop(Barrier([n], bounds)), the sizes of concatenated outputs restored

    The body keeps its static shapes. A loop without states computes each iteration from its inputs.
    """
    values = [value for _, value in node.fed]
    if not node.back_edges:
        return "it has no state"
    joins = any(isinstance(entry, Concatenated) for entry in node.output_map)
    shapes = (each.shape for each in (*values, *node.outputs))
    if not all(is_static(shape if joins else of_declared_sizes(shape)) for shape in shapes):
        return "an input or an output is dynamic already"
    count = node.count
    ends = not isinstance(node, Loop) or node.continues_always
    if ends and isinstance(count, int) and count < UNROLLED:
        return "the device unrolls it"
    if isinstance(node, Loop) and node.operands[0].rank is not None and not is_static(node.operands[0].shape):
        return "its trip count is dynamic already"
    loop = port_maps.replace_by_loop(node) if isinstance(node, TensorIterator) else node
    assert isinstance(loop, Loop)
    trip = loop.operands[0]
    loop.graph.set_input(loop, 0, F.Barrier(trip.reshape([1]), hides="bounds", axes=(0,)))
    for entry, output in zip(loop.output_map, loop.outputs, strict=True):
        if isinstance(entry, Concatenated) and output.is_used:
            readers = output.uses
            move_readers(output, F.Reshape(output, list(output.type.dims)), readers)
    return ""


@barrier_rule((Iteration,), "memory", "`max(s, s)` in the body", Gap(
    "gpu-state-of-one-reader",
    "a state of dynamic shape that one operation of the body reads keeps the memory and the shape that it has in the "
    "second iteration",
    device=GPU, alone=True,
))
def ReadStatesTwice(node: Iteration) -> list[HiddenPort] | str:
    """state of dynamic shape with one reader  ->  reader of Barrier(state, memory), which reads it twice"""
    states = [entry.parameter.output for entry in node.back_edges]
    found: list[HiddenPort] = [
        (each.uses[0], ()) for each in states
        if len(each.uses) == 1 and not is_static(each.shape) and each.dtype is not string
        and not isinstance(each.uses[0].node, ops.Barrier | ops.Result)
    ]
    return found or "no state of dynamic shape has one reader"


@node_pass((Loop,), "at least one iteration; the outputs are cut after it", Gap(
    "gpu-no-iteration",
    "a loop without an iteration leaves unknown sizes of its concatenated outputs unknown, and a reader fails; so does "
    "a state that had another size before",
    severity=ERROR, device=GPU, alone=True,
))
def RunOnce(node: Loop) -> str:
    """Loop(M, C) that may run zero times  ->  Loop(ran ? M : 1, true), if the body can do no harm

    SelectFinalValues and GuardZeroTrips have corrected its outputs.
    """
    if low(iterations(node)) > 0:
        return "it runs at least once"
    pieces = [entry.result.value for entry in node.output_map if isinstance(entry, Concatenated)]
    becomes_states = pieces and not (ends_by_trip_count(node) and all(is_static(each.shape) for each in pieces))
    if not becomes_states and all(each.parameter.output.shape == each.result.value.shape for each in node.back_edges):
        return "its pieces have known sizes, and its states keep theirs"
    if any(isinstance(entry, Sliced) for entry in node.input_map):
        return "there may be no slice to read"
    finals = [output for entry, output in zip(node.output_map, node.outputs, strict=True) if isinstance(entry, Final)]
    if not all(is_selection(use.node, node) for output in finals for use in output.uses):
        return "a final value is read without a selection, as for releases that need none"
    if not all(map(is_safe, node.body.ordered())):
        return "an iteration may fail"
    run_once(node, RunGuard(node).condition)
    return ""


@node_pass((Loop,), "a slice of the iteration numbers as an input, or a state that grows", Gap(
    "gpu-more-iterations",
    "a concatenated output keeps the memory of the first inference if no shape of an input changes: more iterations "
    "write beyond it",
    severity=CRASH, device=GPU, alone=True,
))
def FollowIterations(node: Loop) -> str:
    """Loop(n), Y = pieces  ->  Loop(n, k in Range(0, n)), Y = Gather(pieces, min(k, 0))
    while c: Y = pieces  ->  while c: s = Concat(s, piece); Y = s

    The range has another length where n is another number. Pieces of unknown sizes cannot begin a state.
    """
    if isinstance(node.count, int) or any(isinstance(entry, Sliced) for entry in node.input_map):
        return "its number of iterations is known, or has another length of a slice with it"
    joined = [
        (place, entry) for place, entry in enumerate(node.output_map)
        if isinstance(entry, Concatenated) and node.outputs[place].is_used
    ]
    if not joined:
        return "it has no concatenated output"
    if ends_by_trip_count(node):
        entry = joined[0][1]
        number = Parameter(graph=node.body, dtype=i64, shape=(1,))
        piece = F.Gather(entry.result.value, F.Minimum(number, 0), entry.axis)
        node.body.set_input(entry.result, 0, piece)
        port_maps.add_input(node, Sliced(number, 0), F.Range(0, node.operands[0].reshape([]), 1, output_type=i64))
        return ""
    entries, changed = list(node.output_map), False
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
        changed = True
    return "" if changed else "the sizes of its pieces are unknown"


@node_pass((Iteration,), "a state with one more slice in front, which is cut off in the body and after the loop", Gap(
    "gpu-empty-state",
    "a state that starts without elements has no memory, and one that loses its last element keeps its memory: the "
    "process ends, or the inference fails",
    severity=CRASH, device=GPU, alone=True,
))
def WidenEmptyStates(node: Iteration) -> str:
    """state [0..] that grows or shrinks  ->  state [1..] = Concat(0, state); the body reads state[1:]"""
    changed = False
    for port, (entry, value) in enumerate(node.fed, node.first_data_port):
        axis = _empty_axis(entry, value) if isinstance(entry, Merged) else None
        if axis is None:
            continue
        state = entry.parameter.output
        readers = state.uses
        move_readers(state, _cut(state, axis), readers)
        result = Result(_widened(entry.result.value, axis))
        node.input_map = tuple(
            replace(each, result=result) if each is entry else each for each in node.input_map
        )
        outputs = list(node.output_map)
        node.graph.set_input(node, port, _widened(value, axis))
        for place, each in enumerate(outputs):
            if isinstance(each, Final) and each.result is entry.result:
                outputs[place] = replace(each, result=result)
                readers = node.outputs[place].uses
                move_readers(node.outputs[place], _cut(node.outputs[place], axis), readers)
        node.output_map = tuple(outputs)
        changed = True
    return "" if changed else "no state that grows or shrinks may have no elements"


def _empty_axis(entry: Merged, value: Value) -> int | None:
    """The only axis along which a state grows from a size that may be 0, or shrinks to one."""
    first = source_of(value, (ops.Barrier, ops.AtLeast)).shape  # what hides sizes makes no state empty
    shapes = (first, entry.parameter.output.shape, entry.result.value.shape)
    if None in shapes or len({len(each or ()) for each in shapes}) > 1 or value.dtype is string:
        return None
    sizes = enumerate(zip(*(each or () for each in shapes), strict=True))
    axes = [
        axis for axis, (size, now, last) in sizes
        if size == 0 or (low(size) == 0 and low(last) > 0) or (low(last) == 0 and now != last)
    ]
    return axes[0] if len(axes) == 1 else None


def _widened(value: Value, axis: int) -> Value:
    one = F.Constant([1], graph=value.graph, dtype=i64)
    sizes = [one if at == axis else size_of(value, at) for at in range(value.type.rank)]
    zero = F.Constant(np.zeros((), value.dtype.numpy), graph=value.graph, dtype=value.dtype)
    return F.Concat(F.Broadcast(zero, F.Concat(*sizes, axis=0)), value, axis=axis)


def _cut(value: Value, axis: int) -> Value:
    return F.Slice(value, [1], [END], [1], [axis])
