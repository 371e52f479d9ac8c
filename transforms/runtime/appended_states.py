"""States that loops only append to."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Node, Value
from mo_loop.graph.shape import normalise_axis
from mo_loop.ops.base import Parameter
from mo_loop.ops.control import If, Loop
from mo_loop.ops.port_map import Final, Merged


def growing_axis(last: Value, initial: Value) -> int | None:
    """The only axis along which a final value and an initial one may differ in size."""
    if last.shape is None or initial.shape is None or last.rank != initial.rank:
        return None
    pairs = zip(last.shape, initial.shape, strict=True)
    axes = [axis for axis, (a, b) in enumerate(pairs) if a != b]
    return axes[0] if len(axes) == 1 else None


def begins_with(value: Value, start: Value, axis: int) -> bool:
    """Whether `value` is `start`, or `start` and more along an axis. Both are of one graph."""
    node = value.node
    if value is start:
        return True
    if isinstance(node, ops.Concat):
        return normalise_axis(node.axis, value.type.rank) == axis and _first_begins_with(node, start, axis)
    if isinstance(node, ops.Barrier | ops.AtLeast):
        return _first_begins_with(node, start, axis)
    if isinstance(node, If):
        entry = node.output_map[value.index]
        given = zip(node.input_map, node.inputs[1:], strict=True)
        fed = [each for each, source in given if source is not None and begins_with(source, start, axis)]
        return _one_begins_with(entry.then.value, [each.then for each in fed], axis) and _one_begins_with(
            entry.else_.value, [each.else_ for each in fed], axis
        )
    if isinstance(node, Loop):
        entry = node.output_map[value.index]
        merged = [
            (each.parameter, source) for each, source in node.fed
            if isinstance(each, Merged) and each.result is entry.result
        ]  # fmt: skip
        return isinstance(entry, Final) and any(
            begins_with(source, start, axis) and begins_with(entry.result.value, parameter.output, axis)
            for parameter, source in merged
        )
    return False


def _first_begins_with(node: Node, start: Value, axis: int) -> bool:
    return begins_with(node.operands[0], start, axis)


def _one_begins_with(value: Value, starts: list[Parameter | None], axis: int) -> bool:
    return any(start is not None and begins_with(value, start.output, axis) for start in starts)
