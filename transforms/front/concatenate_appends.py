"""Sequences to which a loop appends once per iteration."""

from __future__ import annotations

from typing import NamedTuple

from mo_loop import ops
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.dimension import Dim
from mo_loop.graph.types import SequenceType
from mo_loop.ops.base import Parameter, Result
from mo_loop.ops.control import Loop
from mo_loop.ops.infer import symbols_in
from mo_loop.ops.port_map import Concatenated, Final, Merged
from mo_loop.transforms.front.sequence_lowering.shapes import joined, merged
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.replace import drop_dead, replace_output


class ConcatenateAppends(FunctionPass):
    """for i: s.append(f(i))  ->  a concatenated output of the loop

    Only if nothing in the body reads the sequence and all appended elements have one shape. An inner loop that has such
    an output appends its whole output at once. Inner loops come first.
    """

    bodies = "first"

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for loop in self.candidates(graph, Loop):
            states = [entry for entry in loop.back_edges if isinstance(entry.parameter.output.type, SequenceType)]
            found = {entry: pieces for entry in states if (pieces := self._appended(loop, entry))}
            if found:
                _rebuild(loop, found)
                changed = self.accept(loop)
        return changed

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
            first = value.node.operands[0]
            value = first
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


class _Piece(NamedTuple):
    """One element, or a block [k, ...] of k elements."""

    value: Value
    is_block: bool


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
        rows = [piece.value if piece.is_block else ops.Unsqueeze(piece.value, [0]).output for piece in pieces]
        if len(pieces) == 1 and not pieces[0].is_block:
            items.add(entry.result)
            blocks[entry.result] = Result(rows[0])
        else:
            blocks[entry.result] = Result(ops.Unsqueeze(joined(rows, 0), [0]).output)
    initial = {entry.result: value for entry, value in loop.fed if entry in found}
    kept = [(entry, value) for entry, value in loop.fed if entry not in found]
    output_map = [
        Concatenated(blocks[entry.result], 0) if isinstance(entry, Final) and entry.result in blocks else entry
        for entry in loop.output_map
    ]
    for entry in found:
        _remove_state(entry)
    attributes = {key: getattr(loop, key) for key in loop.attributes}
    attributes |= {"input_map": tuple(entry for entry, _ in kept), "output_map": tuple(output_map)}
    new = Loop(*loop.inputs[:2], *(value for _, value in kept), graph=loop.graph, name=loop.name, **attributes)
    new.rt_info.update(loop.rt_info)
    for entry, old, made in zip(loop.output_map, loop.outputs, new.outputs, strict=True):
        if entry.result in blocks:
            many = made if entry.result in items else merged(made, 0)
            whole = ops.StackedSequence(many, dtype=many.dtype).output
            first = initial[entry.result]
            made = whole if first.type.is_empty else ops.SequenceExtend(first, whole).output
        replace_output(old, made)
    loop.graph.remove(loop)


def _remove_state(entry: Merged) -> None:
    parameter: Parameter = entry.parameter
    result: Result = entry.result
    last = result.value.node
    result.graph.remove(result)
    drop_dead([last])
    parameter.graph.remove(parameter)
