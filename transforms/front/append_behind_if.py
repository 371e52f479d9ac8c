"""Branches that append to the same tensor, or return it."""

from __future__ import annotations

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.shape import is_static, normalise_axis
from mo_loop.graph.types import string
from mo_loop.ops.base import Constant, Parameter, Result
from mo_loop.ops.control import If
from mo_loop.ops.port_map import Selected
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.replace import replace_output


class AppendBehindIf(FunctionPass):
    """y = If(c, then: Concat(x, a), else: x)  ->  Concat(x, If(c, then: a, else: nothing))

    Both sides copy x once, but the If then returns small tensors, of static shapes in most cases, and needs no x.
    """

    kinds = (If,)

    def rewrite(self, node: If) -> bool:
        changed = False
        for number, entry in enumerate(node.output_map):
            axis = _axis(entry)
            start = None if axis is None else _common_start(node, entry)
            if axis is None or start is None:
                continue
            pieces = [_piece(each.value, axis) for each in (entry.then, entry.else_)]
            kind = next(piece for piece in pieces if piece is not None)
            if not _is_known_beside(kind, axis):
                continue
            results = [
                Result(_nothing(kind, axis, old.graph) if piece is None else piece)
                for piece, old in zip(pieces, (entry.then, entry.else_), strict=True)
            ]
            maps = list(node.output_map)
            maps[number] = Selected(*results)
            node.output_map = tuple(maps)
            node.graph.validate_node(node)
            output = node.outputs[number]
            replace_output(output, ops.Concat(start, output, axis=axis).output)
            _remove_unused(node, entry)
            changed = True
        return self.accept(node) if changed else self.refuse(node, "no output is an input that a branch appends to")


def _axis(entry: Selected) -> int | None:
    """The axis along which the branches append, if both that do so use the same."""
    appended = [each.value.node for each in (entry.then, entry.else_) if _appends(each.value)]
    concats = [each for each in appended if isinstance(each, ops.Concat)]
    axes = {normalise_axis(each.axis, each.output.type.rank) for each in concats}
    return axes.pop() if len(axes) == 1 else None


def _common_start(node: If, entry: Selected) -> Value | None:
    """The outer value that both branches return, or append to."""
    starts = [_outer(node, _start(each.value)) for each in (entry.then, entry.else_)]
    first = starts[0]
    return first if first is not None and starts[1] is first and first.dtype is not string else None


def _start(value: Value) -> Value | None:
    return value.node.inputs[0] if _appends(value) else value


def _appends(value: Value) -> bool:
    return isinstance(value.node, ops.Concat) and len(value.node.inputs) > 1 and value.rank is not None


def _outer(node: If, value: Value | None) -> Value | None:
    for entry, source in zip(node.input_map, node.inputs[1:], strict=True):
        parameters = [each.output for each in (entry.then, entry.else_) if isinstance(each, Parameter)]
        if value in parameters:
            return source
    return None


def _piece(value: Value, axis: int) -> Value | None:
    """The value that a branch appends; None if it appends nothing."""
    if not _appends(value):
        return None
    _, *rest = value.node.inputs
    pieces = [each for each in rest if each is not None]
    return pieces[0] if len(pieces) == 1 else ops.Concat(*pieces, axis=axis).output


def _is_known_beside(piece: Value, axis: int) -> bool:
    return piece.shape is not None and is_static((*piece.shape[:axis], *piece.shape[axis + 1 :]))


def _nothing(piece: Value, axis: int, graph: Graph) -> Value:
    sizes = [0 if at == axis else dim for at, dim in enumerate(piece.type.dims)]
    return Constant(np.zeros(sizes, piece.dtype.numpy), graph=graph, dtype=piece.dtype).output


def _remove_unused(node: If, old: Selected) -> None:
    kept = {result for entry in node.output_map for result in (entry.then, entry.else_)}
    for result in (old.then, old.else_):
        if result not in kept and result in result.graph:
            result.graph.remove(result)
    for body in node.bodies:
        body.sweep()
