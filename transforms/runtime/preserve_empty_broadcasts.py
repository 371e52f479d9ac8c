"""Broadcasts to shapes that may contain a 0, before element-wise operations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.dimension import Dimension, now
from mo_loop.graph.shape import Shape, assume_fixed, of_declared_sizes
from mo_loop.graph.types import i64
from mo_loop.ops.base import Constant
from mo_loop.target import Gap
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.predicates import consumed_only_by
from mo_loop.transforms.replace import drop_dead, insert_after, replace_output
from mo_loop.transforms.runtime.inference import may_be_empty
from mo_loop.transforms.runtime.reshaping import size_of


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
    )  # fmt: skip

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
        replace_output(node.output, ops.Broadcast(data, target).output)
        drop_dead([node])
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
            insert_after(node.output, partial(_broadcast, sizes))
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
        else Constant([size], graph=data.graph, dtype=i64).output for axis, size in enumerate(wanted)
    ]  # fmt: skip
    return ops.Concat(*sizes, axis=0).output


def _broadcast(sizes: Value | None, value: Value) -> ops.Broadcast:
    return ops.Broadcast(value, sizes)


def _has_run_time_target(value: Value) -> bool:
    node = value.node
    if not isinstance(node, ops.Broadcast) or node.mode != "numpy" or len(node.inputs) > 2:
        return False
    return not isinstance(node.operands[1].node, Constant)


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
