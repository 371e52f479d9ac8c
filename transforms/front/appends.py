"""Branches and loops that append: to a tensor, or to a sequence that is only appended to."""

from typing import NamedTuple

import numpy as np

from mo_loop.graph import Dim, SequenceType, TensorType, fresh, normalise_axis, string
from mo_loop.ops.control import If, Loop
from mo_loop.ops.infer import symbols_in
from mo_loop.ops.lengths import Length, joined
from mo_loop.ops.port_map import Concatenated, Final, Merged, Selected
from mo_loop.transforms.front.sequence_lowering.shapes import joined as concatenated
from mo_loop.transforms.front.sequence_lowering.shapes import merged
from mo_loop.transforms.function_pass import node_pass
from mo_loop.transforms.port_maps import rebuilt, set_output
from mo_loop.transforms.replace import drop_dead, replace_output
from mo_loop.transforms.vocabulary import F, FunctionPass, Graph, Node, Parameter, Result, Value, is_static, ops


@node_pass((If,))
def AppendBehindIf(node: If) -> str:
    """y = If(c, then: Concat(x, a), else: x)  ->  Concat(x, If(c, then: a, else: nothing))

    Both sides copy x once, but the If then returns small tensors, of static shapes in most cases, and needs no x.
    """
    changed = False
    for number, entry in enumerate(node.output_map):
        axis = _branch_axis(entry)
        start = None if axis is None else _common_start(node, entry)
        if axis is None or start is None:
            continue
        pieces = [_branch_piece(each.value, axis) for each in (entry.then, entry.else_)]
        kind = next(piece for piece in pieces if piece is not None)
        if kind.shape is None or not is_static((*kind.shape[:axis], *kind.shape[axis + 1 :])):
            continue
        results = [
            Result(_empty_piece(kind, axis, old.graph) if piece is None else piece)
            for piece, old in zip(pieces, (entry.then, entry.else_), strict=True)
        ]
        set_output(node, number, Selected(*results))
        node.graph.validate_node(node)
        output = node.outputs[number]
        replace_output(output, F.Concat(start, output, axis=axis))
        changed = True
    return "" if changed else "no output is an input that a branch appends to"


def _branch_axis(entry: Selected) -> int | None:
    """The axis along which the branches append, if both that do so use the same."""
    appended = [each.value.node for each in (entry.then, entry.else_) if _appends(each.value)]
    concats = [each for each in appended if isinstance(each, ops.Concat)]
    axes = {normalise_axis(each.axis, each.output.type.rank) for each in concats}
    return axes.pop() if len(axes) == 1 else None


def _common_start(node: If, entry: Selected) -> Value | None:
    """The outer value that both branches return, or append to."""
    made = (entry.then.value, entry.else_.value)
    starts = [_outer(node, each.node.inputs[0] if _appends(each) else each) for each in made]
    first = starts[0]
    return first if first is not None and starts[1] is first and first.dtype is not string else None


def _appends(value: Value) -> bool:
    return isinstance(value.node, ops.Concat) and len(value.node.inputs) > 1 and value.rank is not None


def _outer(node: If, value: Value | None) -> Value | None:
    for entry, source in zip(node.input_map, node.inputs[1:], strict=True):
        if value in [each.output for each in (entry.then, entry.else_) if isinstance(each, Parameter)]:
            return source
    return None


def _branch_piece(value: Value, axis: int) -> Value | None:
    """The value that a branch appends; None if it appends nothing."""
    if not _appends(value):
        return None
    _, *rest = value.node.inputs
    pieces = [each for each in rest if each is not None]
    return pieces[0] if len(pieces) == 1 else F.Concat(*pieces, axis=axis)


def _empty_piece(piece: Value, axis: int, graph: Graph) -> Value:
    sizes = [0 if at == axis else dim for at, dim in enumerate(piece.type.dims)]
    return F.Constant(np.zeros(sizes, piece.dtype.numpy), graph=graph, dtype=piece.dtype)


class _Piece(NamedTuple):
    """One element, or a block [k, ...] of k elements."""

    value: Value
    is_block: bool


class ConcatenateAppends(FunctionPass):
    """for i: s.append(f(i))  ->  a concatenated output of the loop

    Only if nothing in the body reads the sequence and all appended elements have one shape. An inner loop that has such
    an output appends its whole output at once. Inner loops come first.
    """

    kinds = (Loop,)

    def rewrite(self, loop: Loop) -> bool:
        states = [entry for entry in loop.back_edges if isinstance(entry.parameter.output.type, SequenceType)]
        found = {entry: pieces for entry in states if (pieces := self._appended(loop, entry))}
        if not found:
            return False
        _rebuild(loop, found)
        return self.accept(loop)

    def _appended(self, loop: Loop, entry: Merged) -> list[_Piece] | None:
        """The values that one iteration appends; None if the body does anything else with the sequence."""
        pieces: list[_Piece] = []
        value = entry.result.value
        while value is not entry.parameter.output:
            piece = _piece(value.node, loop) if value.only_use is not None else None
            if piece is None:
                self.refuse(loop, "the body uses the sequence in another way, or appends elements of changing shape")
                return None
            pieces.insert(0, piece)
            value = value.node.operands[0]
        if value.only_use is None or not pieces:
            self.refuse(loop, "the body reads the sequence")
            return None
        if len(pieces) > 1 and any(piece.is_block for piece in pieces):
            self.refuse(loop, "whole sequences and other elements are appended: the length would not be known")
            return None
        if any(piece.value.type.dims != pieces[0].value.type.dims for piece in pieces):
            self.refuse(loop, "one iteration appends elements of several shapes")
            return None
        return pieces


def _piece(node: Node, loop: Loop) -> _Piece | None:
    """The value that an insertion at the end appends; None if its shape is not uniform, and for other nodes."""
    if not isinstance(node, ops.SequenceInsert | ops.SequenceExtend) or len(node.inputs) > 2:
        return None
    value = node.inputs[1]
    is_block = isinstance(node, ops.SequenceExtend)
    if is_block and value is not None:
        value = value.node.inputs[0] if isinstance(value.node, ops.StackedSequence) else None
    return _Piece(value, is_block) if value is not None and _is_uniform(value, loop) else None


def _is_uniform(piece: Value, loop: Loop) -> bool:
    """Whether a tensor of the body has the same shape in all iterations."""
    if piece.type.shape is None:
        return False
    visible = {symbol for value in loop.operands for symbol in symbols_in(value.type)}
    return all(not isinstance(dim, Dim) or visible.issuperset(dim.symbols()) for dim in piece.type.dims)


def _rebuild(loop: Loop, found: dict[Merged, list[_Piece]]) -> None:
    blocks: dict[Result, Result] = {}
    items: set[Result] = set()
    for entry, pieces in found.items():
        rows = [piece.value if piece.is_block else F.Unsqueeze(piece.value, [0]) for piece in pieces]
        if len(pieces) == 1 and not pieces[0].is_block:
            items.add(entry.result)
            blocks[entry.result] = Result(rows[0])
        else:
            blocks[entry.result] = Result(F.Unsqueeze(concatenated(rows, 0), [0]))
    initial = {entry.result: value for entry, value in loop.fed if entry in found}
    kept = [(entry, value) for entry, value in loop.fed if entry not in found]
    output_map = [
        Concatenated(blocks[entry.result], 0) if isinstance(entry, Final) and entry.result in blocks else entry
        for entry in loop.output_map
    ]
    for entry in found:
        _remove_state(entry)
    new = rebuilt(loop, kept, output_map)
    for entry, old, made in zip(loop.output_map, loop.outputs, new.outputs, strict=True):
        if entry.result in blocks:
            many = made if entry.result in items else merged(made, 0)
            whole = F.StackedSequence(many, dtype=many.dtype)
            first = initial[entry.result]
            made = whole if first.type.is_empty else F.SequenceExtend(first, whole)
        replace_output(old, made)
    loop.graph.remove(loop)


def _remove_state(entry: Merged) -> None:
    parameter: Parameter = entry.parameter
    result: Result = entry.result
    last = result.value.node
    result.graph.remove(result)
    drop_dead([last])
    parameter.graph.remove(parameter)


@node_pass((Loop,))
def JoinAppends(loop: Loop) -> str:
    """for i: s.append(f(i)); Concat(s, axis 1)  ->  for i: t = Concat(t, f(i), axis 1), where f(i) : [B, ?, 64]

    B is a size of an outer tensor. As a sequence its elements would differ in two dimensions, and be packed.
    """
    for entry, first in loop.fed:
        axis = _joined_axis(loop, entry, first)
        nothing = None if axis is None else _empty_start(loop, entry, axis)
        if axis is not None and nothing is not None:
            _rebuild_joined(loop, entry, axis, nothing)
            return ""
    return "no sequence is only appended to, and concatenated along one axis"


def _joined_axis(loop: Loop, entry: object, first: Value) -> int | None:
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


def _empty_start(loop: Loop, entry: Merged, axis: int) -> Value | None:
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
    return F.Broadcast(np.zeros((), piece.dtype.numpy), joined(sizes, loop.outputs[0]))


def _size(tensors: list[Value], dim: object) -> Length | None:
    """A dimension of the tensors, at run time."""
    for value in tensors:
        if value.type.shape is not None and dim in value.type.dims:
            return value.size(value.type.dims.index(dim))
    return None


def _rebuild_joined(loop: Loop, entry: Merged, axis: int, nothing: Value) -> None:
    made = entry.result.value.node
    piece = made.operands[1]
    dims = [fresh() if place == axis else dim for place, dim in enumerate(piece.type.dims)]
    parameter = Parameter(graph=loop.body, type=TensorType(piece.dtype, tuple(dims)))
    state = Merged(parameter, Result(F.Concat(parameter.output, piece, axis=axis)))
    pairs = [(state, nothing) if each is entry else (each, value) for each, value in loop.fed]
    outputs = [Final(state.result) if each.result is entry.result else each for each in loop.output_map]
    entry.result.graph.remove(entry.result)
    drop_dead([made])
    entry.parameter.graph.remove(entry.parameter)
    new = rebuilt(loop, pairs, outputs)
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
