"""Dimensions that may be 0: loops and element-wise operations in which the runtime divides by them or loses them."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from mo_loop.graph.dimension import Dimension, high, low, now
from mo_loop.graph.shape import Shape, assume_fixed, is_static, of_declared_sizes
from mo_loop.graph.types import TensorType, bf16, boolean, f16, f32, f64, i8, i64, u8
from mo_loop.ops.control import Iteration, Loop, TensorIterator
from mo_loop.ops.port_map import Concatenated, Final, Merged, Sliced
from mo_loop.ops.reduction import Reduction
from mo_loop.target import CRASH, GPU, Gap
from mo_loop.transforms.port_maps import set_output
from mo_loop.transforms.predicates import consumed_only_by
from mo_loop.transforms.replace import drop_dead, insert_after, move_readers, supersede
from mo_loop.transforms.runtime.barriers import size_of
from mo_loop.transforms.runtime.inference import may_be_empty, may_be_empty_as_declared
from mo_loop.transforms.total_operations import ELEMENTWISE
from mo_loop.transforms.vocabulary import (
    F,
    FunctionPass,
    Graph,
    Node,
    Result,
    Value,
    integers,
    node_pass,
    ops,
    source_of,
)


@node_pass((Loop, TensorIterator), "axis 0, then `Transpose`", Gap(
    "concatenated-behind-zero", "concatenation along an axis after a dimension of 0 crashes the process",
    severity=CRASH,
))
def ConcatenateAlongFirstAxis(node: Iteration) -> str:
    """concatenated along axis k, where a dimension before k may be 0  ->  concatenated along axis 0, then Transpose

    The runtime divides the size of its buffer by the product of the dimensions before the axis.
    """
    changed = False
    for number, (entry, output) in enumerate(node.returned):
        if not isinstance(entry, Concatenated) or not any(low(d) < 1 for d in (output.shape or ())[: entry.axis]):
            continue
        axis, rank = entry.axis, output.type.rank
        result = ops.Result(_with_axis_first(entry.result.value, axis))
        dims = entry.declared
        declared = (dims[axis], *dims[:axis], *dims[axis + 1 :]) if dims else ()
        set_output(node, number, replace(entry, result=result, axis=0, declared=declared))
        node.graph.validate_node(node)
        if output.is_used:
            back, readers = [*range(1, axis + 1), 0, *range(axis + 1, rank)], output.uses
            move_readers(output, F.Transpose(output, back), readers)
        changed = True
    return "" if changed else "no output is concatenated along an axis that follows a dimension of 0"


def _with_axis_first(piece: Value, axis: int) -> Value:
    """`piece` with its axis in front. If an Unsqueeze has made the axis, an Unsqueeze makes it in front instead."""
    node = piece.node
    if isinstance(node, ops.Unsqueeze) and integers(node, 1) == (axis,):
        return F.Unsqueeze(node.operands[0], 0)
    rank = piece.type.rank
    return F.Transpose(piece, [axis, *(each for each in range(rank) if each != axis)])


class PreserveEmptyBroadcasts(FunctionPass):
    """Broadcast(x : [N], [2,1]) both ways  ->  Broadcast(x, [2,n])     min(c, Broadcast(x))  ->  Broadcast(min(c, x))

    A bidirectional Broadcast gets its exact target, where n is the size of x. A target that is known only at run time
    is exact if all dimensions of x are 1 and the target has at least as many dimensions. A Broadcast to a shape that is
    known only at run time is moved past the operation here, with its own target; then the runtime leaves it there.
    """

    instead = "moved after the operation before, to the exact sizes"
    avoids = (
        Gap(
            "moved-broadcast",
            "a `Broadcast` to sizes known only at run time is moved after an elementwise operation with a tensor of "
            "size 1, to the larger of the sizes: a size of 0 becomes 1",
        ),
        Gap(
            "bidirectional-broadcast",
            "a bidirectional `Broadcast` is moved after its elementwise reader, with the larger of the sizes as its "
            "target: 0 and 1 become 1", "the exact target, if it is known",
        ),
    )

    def run_on_graph(self, graph: Graph) -> bool:
        changed = self.rewrite_each(graph, ops.Broadcast, self._set_target)
        if changed:
            graph.validate()
        while self._move_each(graph):  # a moved Broadcast may meet the next operation
            graph.validate()
            changed = True
        return changed

    # -- bidirectional Broadcasts

    def _set_target(self, node: ops.Broadcast) -> bool:
        data, pattern = node.operands[:2]
        if node.mode != "bidirectional" or data.shape is None:
            return self.refuse(node, "it is not bidirectional, or the rank of its input is unknown")
        if _only_repeats_heads(node):
            return self.refuse(node, "only attention reads it: the runtime computes this form as one operation")
        target = _run_time_target(data, pattern) if pattern.type.integers is None else _exact_target(data, pattern)
        if target is None:
            return self.refuse(node, "no dimension of 0 can meet one of 1, or the target is known only at run time")
        supersede(node, F.Broadcast(data, target))
        return self.accept(node)

    # -- Broadcasts to shapes known only at run time

    def _move_each(self, graph: Graph) -> bool:
        changed = False
        for node in list(graph.ordered()) if graph.of(ops.Broadcast) else ():
            if isinstance(node, ops.Binary) and not self.leaves(node):
                changed = self._move(node) or changed
        self.at = None
        return changed

    def _move(self, node: ops.Binary) -> bool:
        for port, value in enumerate(node.inputs):
            other = node.inputs[1 - port]
            if value is None or other is None or not _has_run_time_target(value):
                continue
            old = value.node
            data, sizes = old.inputs[:2]
            if data is None or not _meets_one(value.shape, data.shape, other.shape):
                continue
            node.graph.set_input(node, port, data)
            readers = node.output.uses
            move_readers(node.output, F.Broadcast(node.output, sizes), readers)
            drop_dead([old])
            return self.accept(node)
        return self.refuse(node, "it reads no Broadcast to a shape known only at run time in which a 0 can meet a 1")


def _only_repeats_heads(node: ops.Broadcast) -> bool:
    """Whether attention alone reads it, through a Reshape: it repeats heads of keys or values.

    The CPU plugin and openvino_genai look for a bidirectional Broadcast there.
    """
    if not consumed_only_by(ops.Reshape)(node.output):
        return False
    is_for_attention = consumed_only_by(ops.ScaledDotProductAttention)
    return all(is_for_attention(use.node.outputs[0]) for use in node.output.uses)


def _run_time_target(data: Value, pattern: Value) -> Value | None:
    """The pattern itself if all dimensions of `data` are 1 and the pattern has at least as many."""
    length = pattern.shape[0] if pattern.shape else None
    dims = data.shape or ()
    if not isinstance(length, int) or length < len(dims) or any(now(dim) != 1 for dim in dims):
        return None
    known = pattern.type.known
    if any(dim != 1 for dim in dims):
        if known is not None and None not in map(now, known.flat):
            return None
        assume_fixed(dims)
    return pattern


def _exact_target(data: Value, pattern: Value) -> Value | None:
    """The shape of the result; None if no dimension of `data` that may be 0 meets a 1 of the pattern."""
    wanted = pattern.type.integers or ()
    rank = max(len(data.type.dims), len(wanted))
    gap = rank - len(data.type.dims)
    dims: list[Dimension] = [*[1] * gap, *data.type.dims]
    wanted = (*[1] * (rank - len(wanted)), *wanted)
    if not any(may_be_empty(dim) and size == 1 for dim, size in zip(dims, wanted, strict=True)):
        return None
    sizes = [
        size_of(data, axis - gap) if size == 1 and axis >= gap
        else F.Constant([size], graph=data.graph, dtype=i64) for axis, size in enumerate(wanted)
    ]
    return F.Concat(*sizes, axis=0)


def _has_run_time_target(value: Value) -> bool:
    node = value.node
    if not isinstance(node, ops.Broadcast) or node.mode != "numpy" or len(node.inputs) > 2:
        return False
    return not isinstance(node.operands[1].node, ops.Constant)


def _meets_one(target: Shape, data: Shape, other: Shape) -> bool:
    """Whether a size that may be 0 meets 1 in both operands, and no dimension of `other` enlarges the result."""
    if target is None or data is None or other is None or max(len(data), len(other)) > len(target):
        return False
    if _meets(target, data, other):
        return True
    shapes = [of_declared_sizes(shape) or () for shape in (target, data, other)]
    if not _meets(*shapes):
        return False
    assume_fixed((*data, *other))
    return True


def _meets(target: Sequence[Dimension], data: Sequence[Dimension], other: Sequence[Dimension]) -> bool:
    wide: list[list[Dimension]] = [[*[1] * (len(target) - len(shape)), *shape] for shape in (data, other)]
    alike = all(b in (1, a) for a, b in zip(*wide, strict=True))
    return alike and any(may_be_empty(dim) and a == b == 1 for dim, a, b in zip(target, *wide, strict=True))


CONCERNED = (f32, f16, bf16, f64, boolean, u8)
"""Element types whose tensors the runtime copies by that division; integers of other types are copied otherwise."""


@node_pass((Iteration,), "`Unsqueeze` outside and `Squeeze` in the body", Gap(
    "copied-zero-by-ones",
    "a tensor of floats or booleans that a loop copies into its body, or out of it, crashes the process if its first "
    "dimension is 0 and all others are 1", severity=CRASH, until="2025.2.0",
))
def AddLeadingDimension(node: Iteration) -> str:
    """x : [N]  ->  Unsqueeze(x, 0) outside, Squeeze in the body; the same for states and final values

    The runtime divides by the first dimension of a tensor that it copies. A slice has another first dimension if it is
    cut along the first axis, and concatenated outputs are not copied in this way.
    """
    inputs = [number for number, entry in enumerate(node.input_map) if _is_concerned(_inner(entry))]
    states = {entry.result for entry in node.back_edges if _is_concerned(entry.parameter.output)}
    fed_back = {entry.result for entry in node.back_edges}
    results = states | {
        entry.result for entry in node.output_map
        if isinstance(entry, Final) and entry.result not in fed_back and _is_concerned(entry.result.value)
    }
    if not inputs and not results:
        return "its ports have other shapes or element types"
    for number in inputs:
        _add_outside(node, number)
        _remove_inside(node.input_map[number].parameter)
    readers = {
        output: output.uses for entry, output in node.returned
        if isinstance(entry, Final) and entry.result in results
    }
    _add_inside(node, results)
    node.graph.validate_node(node)
    for output, uses in readers.items():
        if uses:
            move_readers(output, F.Squeeze(output, [0]), uses)
    return ""


def _is_concerned(value: Value | None) -> bool:
    """Whether the first dimension may be 0 while all others are 1."""
    if value is None or value.dtype not in CONCERNED or not value.shape:
        return False
    first, *others = value.shape
    if low(first) > 0:
        return False
    return all(low(dim) <= 1 and high(dim) != 0 for dim in others)


def _inner(entry: Any) -> Value | None:
    """The tensor that is copied into the body; None for slices along the first axis."""
    return None if isinstance(entry, Sliced) and entry.axis == 0 else entry.parameter.output


def _raised(value: Value) -> Value:
    """The value with a first dimension of 1."""
    source = value.node.inputs[0] if isinstance(value.node, ops.Squeeze) else None
    if source is not None and source.shape == (1, *value.type.dims):
        return source
    if value.type.dims[0] == 0 and not is_static(value.shape):  # Unsqueeze would make all unknown sizes 0
        value = F.Barrier(value, hides="bounds", axes=(0,))
    return F.Unsqueeze(value, 0)


def _add_outside(node: Iteration, number: int) -> None:
    entry, port = node.input_map[number], number + node.first_data_port
    value = node.operands[port]
    if isinstance(entry, Sliced):
        maps = list(node.input_map)
        maps[number] = replace(entry, axis=entry.axis + 1)
        node.input_map = tuple(maps)
    node.graph.set_input(node, port, _raised(value))


def _remove_inside(parameter: ops.Parameter) -> None:
    type_: TensorType = parameter.output.type
    readers = parameter.output.uses
    parameter.retype(TensorType(type_.dtype, (1, *type_.dims)))
    parameter.graph.validate_node(parameter)
    others = [(reader, port) for reader, port in readers if not _adds_first(reader)]
    for reader, _ in readers:
        if _adds_first(reader):  # for an inner loop
            reader.outputs[0].replace_with(parameter.output)
            parameter.graph.remove(reader)
    if others:
        squeezed = F.Squeeze(parameter.output, [0])
        for reader, port in others:
            parameter.graph.set_input(reader, port, squeezed)


def _adds_first(node: Node) -> bool:
    return isinstance(node, ops.Unsqueeze) and integers(node, 1) == (0,)


def _add_inside(node: Iteration, results: Collection[Result]) -> None:
    """States and final values get the dimension. A Result with another role keeps it, and they get new ones."""
    others = {entry.result for entry in node.output_map if isinstance(entry, Concatenated)}
    if isinstance(node, Loop):
        others.add(node.condition)
    new = {}
    for result in [each for each in node.body.results if each in results]:  # sets of nodes have no stable order
        value = _raised(result.value)
        if result in others:
            new[result] = Result(value)
        else:
            node.body.set_input(result, 0, value)
    node.input_map = tuple(
        replace(entry, result=new[entry.result]) if isinstance(entry, Merged) and entry.result in new else entry
        for entry in node.input_map
    )
    node.output_map = tuple(
        replace(entry, result=new[entry.result]) if isinstance(entry, Final) and entry.result in new else entry
        for entry in node.output_map
    )


# -- reductions of no elements


@node_pass((Reduction,), "`Select` by the number of elements", Gap(
    "reduction-of-nothing", "a reduction of no elements returns the memory of an earlier inference", device=GPU,
))
def SelectReductionOfNothing(node: Reduction) -> str:
    """ReduceSum(x : [?,?], 0)  ->  Select(size of x along 0 == 0, 0, ReduceSum(x, 0)), and other reductions

    A kernel of which an input has no elements is not run. Integers of 8 bits are selected as f32: the plugin gives them
    to the Select in this type, and has no kernel for both.
    """
    x, axes = node.operands[0], node.along
    open_axes = [axis for axis in axes or () if may_be_empty_as_declared(x.type.dims[axis])]
    if not open_axes or _is_selected(node):
        return "it has elements, or is selected already"
    is_empty = F.Equal(reduce(mul, (_input_of_size(x, axis).size(axis) for axis in open_axes)), 0)
    if isinstance(node, ops.ReduceLogicalAnd):
        insert_after(node.output, lambda r: F.LogicalOr(is_empty, r))
    elif isinstance(node, ops.ReduceLogicalOr):
        insert_after(node.output, lambda r: F.LogicalAnd(F.LogicalNot(is_empty), r))
    elif x.dtype in (i8, u8):
        nothing = _neutral(node).astype(f32)
        insert_after(node.output, lambda r: F.Select(is_empty, nothing, r.astype(f32)).astype(r.dtype))
    else:
        insert_after(node.output, lambda r: F.Select(is_empty, _neutral(node), r))
    return ""


def _neutral(node: Reduction) -> Value:
    """The result of the reduction of no elements."""
    x = node.operands[0]
    number = int(isinstance(node, ops.ReduceProd))
    if isinstance(node, ops.ReduceMax | ops.ReduceMin):
        kind = np.int32 if x.dtype.is_integer and x.dtype.bits > 32 else x.dtype.numpy
        limits = np.finfo(kind) if x.dtype.is_float else np.iinfo(kind)
        number = limits.min if isinstance(node, ops.ReduceMax) else limits.max
    return F.Constant(np.array(number), graph=node.graph, dtype=x.dtype)


def _input_of_size(x: Value, axis: int) -> Value:
    """The input of the graph, or a view of it, that `x` is computed from element by element, if it has the same size
    along an axis, else `x`: several reductions share the size, and the runtime fuses what one node alone reads."""
    size, before = x.type.dims[axis], x
    found: Value | None = x
    while found is not None:
        before, operands = found, found.node.operands if isinstance(found.node, ELEMENTWISE) else ()
        found = next((each for each in operands if each.rank == x.rank and each.type.dims[axis] == size), None)
    return before if isinstance(source_of(before, ops.View).node, ops.Parameter) else x


def _is_selected(node: Reduction) -> bool:
    """Whether the result is already read only where there are elements."""
    use = node.output.only_use
    if use is not None and isinstance(use.node, ops.Convert):
        use = use.node.output.only_use
    if use is None:
        return False
    condition = use.node.operands[0].node
    if isinstance(condition, ops.LogicalNot):
        condition = condition.operands[0].node
    return isinstance(condition, ops.Equal) and use.port > 0 and condition.operands[1].type.integers == (0,)
