"""Loops of which the GPU device keeps old states, or an old number of iterations.

Its loop has three ways to give a state to the next iteration: a swap of two buffers, one buffer for both, and a copy.
Only the copy is right in every case. It is chosen where a type of an input or an output of the loop is dynamic and the
body has two readers of the state.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from mo_loop.graph.dimension import low
from mo_loop.graph.types import i64, string
from mo_loop.ops.control import Iteration, Loop
from mo_loop.ops.movement import END
from mo_loop.ops.port_map import Branched, Concatenated, Final, Merged, Selected, Sliced
from mo_loop.ops.recurrent import Recurrent
from mo_loop.target import CRASH, ERROR, GPU
from mo_loop.transforms import port_maps
from mo_loop.transforms.function_pass import node_pass
from mo_loop.transforms.replace import move_readers, replace_node
from mo_loop.transforms.runtime.barriers import HiddenPort, barrier_rule, iterations, size_of
from mo_loop.transforms.runtime.inference import may_be_empty
from mo_loop.transforms.runtime.zero_trips import RunGuard, in_body, is_cut, is_selection, run_once
from mo_loop.transforms.slice_reads import ends_by_trip_count
from mo_loop.transforms.total_operations import ELEMENTWISE, is_safe
from mo_loop.transforms.vocabulary import Constant, F, Gap, Graph, Parameter, Result, Value, is_static, ops, source_of


@barrier_rule((Iteration,), "memory", "`max(s, s)` in the body", Gap(
    "gpu-state-of-one-reader",
    "a state whose size changes, and that one operation of the body reads, keeps the memory and the shape that it has "
    "in the second iteration; one that a single operation computes from itself is read and written in one place",
    device=GPU, alone=True,
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
    reason = "an iteration is expensive" if _is_costly(node) else _needless(node)
    if reason:
        return reason
    if any(isinstance(entry, Sliced) for entry in node.input_map):
        return "there may be no slice to read"
    finals = [output for entry, output in zip(node.output_map, node.outputs, strict=True) if isinstance(entry, Final)]
    if not all(_is_selected(each, node) for each in finals):
        return "a final value is read without a selection, as for releases that need none"
    if not all(map(is_safe, node.body.ordered())):
        return "an iteration may fail"
    run_once(node, RunGuard(node).condition)
    return ""


def _is_costly(node: Loop) -> bool:
    return any(scope.of(kind) for scope in node.body.scopes() for kind in COSTLY)


@node_pass(
    (Loop,), "`If` with the loop",
    Gap(
        "gpu-no-expensive-iteration",
        "a loop without an iteration, whose iterations would be expensive, leaves unknown sizes of its outputs unknown",
        severity=ERROR, device=GPU, alone=True,
    ),
    Gap(
        "gpu-no-iteration-that-may-fail",
        "a loop without an iteration, whose iterations may fail, leaves unknown sizes of its outputs unknown",
        severity=ERROR, device=GPU, alone=True,
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
    ran = RunGuard(node).condition
    initial = {entry.result: value for entry, value in node.fed if isinstance(entry, Merged)}
    kept = [initial.get(entry.result) if isinstance(entry, Final) else None for entry in node.output_map]
    runs, other = Graph(RUNS), Graph("does_not_run")
    there = {value: in_body(value, runs) for value in dict.fromkeys(node.operands)}
    beside = {value: in_body(value, other) for value in dict.fromkeys(kept) if value is not None}
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


def _is_selected(output: Value, node: Iteration) -> bool:
    """Whether each reader of a final value, of a view or a piece of it selects the initial value after no iteration."""
    return isinstance(node, Loop) and all(
        is_selection(use.node, node)
        or (isinstance(use.node, ops.Slice | ops.View) and _is_selected(use.node.output, node))
        for use in output.uses
    )


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
    return _separate(node, is_static)


@node_pass((Iteration,), OWN_RESULT, Gap(
    "gpu-final-of-no-iteration",
    "a final value of dynamic shape has the memory of the initial value after no iteration; the next inference fails "
    "if the last iteration had another shape",
    severity=ERROR, device=GPU, alone=True,
))
def SeparateDynamicValues(node: Iteration) -> str:
    """As SeparateFinalValues, for states of dynamic shape: the CPU gives such a final value an old shape."""
    return _separate(node, lambda shape: not is_static(shape))


def _separate(node: Iteration, when: Callable[[Any], bool]) -> str:
    states = {each.result for each in node.back_edges}
    entries, runs = list(node.output_map), isinstance(node, Loop) and low(iterations(node)) > 0
    for place, (entry, output) in enumerate(zip(node.output_map, node.outputs, strict=True)):
        if not isinstance(entry, Final) or entry.result not in states or not when(entry.result.value.shape):
            continue
        # A result of its own has no initial value.
        if runs or isinstance(node.count, int) or _is_selected(output, node):
            entries[place] = replace(entry, result=Result(entry.result.value))
    if entries == list(node.output_map):
        return "it has no such final value of a state"
    node.output_map = tuple(entries)
    return ""


@node_pass((Loop,), "a `Select` by the iteration number", Gap(
    "gpu-state-of-constant",
    "a state that becomes a constant has the memory of the constant, into which the first value is written: the "
    "process ends",
    severity=CRASH, device=GPU,
))
def ComputeConstantStates(node: Loop) -> str:
    """state = c in each iteration  ->  state = Select(i >= 0, c, 0), where i is the number of the iteration"""
    results = [each.result for each in node.back_edges if isinstance(each.result.value.node, Constant)]
    if not results:
        return "no state becomes a constant"
    if node.iteration is None:
        node.iteration = Parameter(graph=node.body, dtype=i64, shape=())
    is_run = F.GreaterEqual(node.iteration, 0)
    for result in results:
        value = result.value
        zero = F.Constant(np.zeros((), value.dtype.numpy), graph=node.body, dtype=value.dtype)
        node.body.set_input(result, 0, F.Select(is_run, value, zero))
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


@node_pass(
    (Iteration,), "a state with one more slice in front, which is cut off in the body and after the loop",
    Gap(
        "gpu-empty-state",
        "a state that starts without elements and grows has no memory: the process ends, or the inference fails",
        severity=CRASH, device=GPU, alone=True,
    ),
    Gap(
        "gpu-emptied-state",
        "a state without elements that the body does not only append to has no memory, and one that loses its last "
        "element keeps its memory",
        severity=CRASH, device=GPU, alone=True,
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
    "a final value without elements has the shape and the numbers of an earlier inference, because no kernel runs",
    device=GPU, alone=True,
))
def CutFinalValues(node: Iteration) -> str:
    """last = Loop(x : [?,2]) of the same shape  ->  Slice(last, 0, size of x)"""
    first = {entry.result: value for entry, value in node.fed if isinstance(entry, Merged)}
    changed = False
    for entry, output in zip(node.output_map, node.outputs, strict=True):
        value = first.get(entry.result) if isinstance(entry, Final) else None
        if value is None or value.shape != output.shape or value.dtype is string or _is_cut_all(output):
            continue
        axes = [axis for axis, dim in enumerate(value.shape or ()) if may_be_empty(dim)]
        if axes:
            readers, count = output.uses, len(axes)
            end = F.Concat(*(size_of(value, axis) for axis in axes), axis=0)
            move_readers(output, F.Slice(output, [0] * count, end, [1] * count, axes), readers)
            changed = True
    return "" if changed else "no state that keeps its shape may have no elements"


def _is_cut_all(value: Value) -> bool:
    """Whether only Slices with computed ends, other than those of a RunGuard, read `value`."""
    readers = [use.node for use in value.uses]
    slices = [each for each in readers if isinstance(each, ops.Slice) and not is_cut(each)]
    return len(slices) == len(readers) and not any(isinstance(each.operands[2].node, Constant) for each in slices)


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
