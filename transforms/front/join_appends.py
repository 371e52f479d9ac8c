"""Sequences to which a loop appends elements that are concatenated after it."""

from __future__ import annotations

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.dimension import fresh
from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.types import SequenceType, TensorType, string
from mo_loop.ops.base import Parameter, Result
from mo_loop.ops.control import Loop
from mo_loop.ops.lengths import Length, dimension, joined
from mo_loop.ops.port_map import Final, Merged
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.replace import drop_dead, replace_output


class JoinAppends(FunctionPass):
    """for i: s.append(f(i)); Concat(s, axis 1)  ->  for i: t = Concat(t, f(i), axis 1), where f(i) : [B, ?, 64]

    B is a size of an outer tensor. As a sequence its elements would differ in two dimensions, and be packed.
    """

    bodies = "first"

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for loop in self.candidates(graph, Loop):
            for entry, first in loop.fed:
                axis = _axis(loop, entry, first)
                nothing = None if axis is None else _nothing(loop, entry, axis)
                if axis is not None and nothing is not None:
                    _rebuild(loop, entry, axis, nothing)
                    changed = self.accept(loop)
                    break
                self.refuse(loop, "no sequence is only appended to, and concatenated along one axis")
        return changed


def _axis(loop: Loop, entry: object, first: Value) -> int | None:
    """The axis along which all readers of an empty sequence, to which a step appends one tensor, concatenate it."""
    if not isinstance(entry, Merged) or not isinstance(first.type, SequenceType) or not first.type.is_empty:
        return None
    made = entry.result.value.node
    if not isinstance(made, ops.SequenceInsert) or made.inputs[0] is not entry.parameter.output or len(made.inputs) > 2:
        return None
    piece = made.operands[1].type
    if entry.parameter.output.only_use is None or made.output.only_use is None or piece.shape is None:
        return None
    places = [place for place, each in enumerate(loop.output_map) if each.result is entry.result]
    axes: set[int] = set()
    for reader in [use.node for place in places for use in loop.outputs[place].uses]:
        if not isinstance(reader, ops.ConcatFromSequence) or reader.new_axis:
            return None
        axes.add(normalise_axis(reader.axis, len(piece.shape)))
    return axes.pop() if len(axes) == 1 and piece.dtype is not string else None


def _nothing(loop: Loop, entry: Merged, axis: int) -> Value | None:
    """A tensor of length 0 with the other sizes of a piece; None if they are known, or no outer tensor has them."""
    piece = entry.result.value.node.operands[1].type
    others = [dim for place, dim in enumerate(piece.dims) if place != axis]
    if all(isinstance(dim, int) for dim in others):
        return None
    tensors = [value for value in loop.operands if isinstance(value.type, TensorType)]
    for value in loop.operands:
        if isinstance(value.type, SequenceType):
            tensors += [each for each in value.node.operands if isinstance(each.type, TensorType)]
    sizes: list[Length] = []
    for place, dim in enumerate(piece.dims):
        found = 0 if place == axis else dim if isinstance(dim, int) else _size(tensors, dim)
        if found is None:
            return None
        sizes.append(found)
    return ops.Broadcast(np.zeros((), piece.dtype.numpy), joined(sizes, loop.outputs[0])).output


def _size(tensors: list[Value], dim: object) -> Length | None:
    """A dimension of the tensors, at run time."""
    for value in tensors:
        if value.type.shape is not None and dim in value.type.dims:
            return dimension(value, value.type.dims.index(dim))
    return None


def _rebuild(loop: Loop, entry: Merged, axis: int, nothing: Value) -> None:
    made = entry.result.value.node
    piece = made.operands[1]
    dims = [fresh() if place == axis else dim for place, dim in enumerate(piece.type.dims)]
    parameter = Parameter(graph=loop.body, type=TensorType(piece.dtype, tuple(dims)))
    state = Merged(parameter, Result(ops.Concat(parameter.output, piece, axis=axis).output))
    pairs = [(state, nothing) if each is entry else (each, value) for each, value in loop.fed]
    outputs = [Final(state.result) if each.result is entry.result else each for each in loop.output_map]
    entry.result.graph.remove(entry.result)
    drop_dead([made])
    entry.parameter.graph.remove(entry.parameter)
    attributes = {key: getattr(loop, key) for key in loop.attributes}
    attributes |= {"input_map": tuple(each for each, _ in pairs), "output_map": tuple(outputs)}
    new = Loop(*loop.inputs[:2], *(value for _, value in pairs), graph=loop.graph, name=loop.name, **attributes)
    new.rt_info.update(loop.rt_info)
    dead: list[Node] = []
    for each, old, output in zip(loop.output_map, loop.outputs, new.outputs, strict=True):
        if each.result is not entry.result:
            replace_output(old, output)
            continue
        for reader in [use.node for use in old.uses]:
            replace_output(reader.outputs[0], output)
            dead.append(reader)
    drop_dead(dead)
    if loop in loop.graph:
        loop.graph.remove(loop)
