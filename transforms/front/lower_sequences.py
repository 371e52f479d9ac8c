"""Optionals and sequences become tensors: those whose elements are known one by one, and those of one rank."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mo_loop.graph.types import OptionalType, SequenceType, TensorType
from mo_loop.ops.port_map import Final, Merged
from mo_loop.ops.sequences import Optional, OptionalGetElement, OptionalHasElement
from mo_loop.target import ERROR
from mo_loop.transforms.front.sequence_lowering.layouts import ElementKind, Packed
from mo_loop.transforms.front.sequence_lowering.shapes import Listed, ListKind, joined, known, numbers, sequence_of
from mo_loop.transforms.front.sequence_lowering.walk import Rule, SequencePass, same
from mo_loop.transforms.replace import replace_node
from mo_loop.transforms.vocabulary import F, FunctionPass, Gap, Graph, Identity, Node, Parameter, Result, Value, ops


class LowerOptionals(FunctionPass):
    """Optional(x)  ->  [x]     Optional()  ->  []     has(o)  ->  len(o) > 0     get(o)  ->  o[0]

    Only optionals of tensors. An optional sequence stays, and the last check refuses it.
    """

    bodies = "never"

    def run_on_graph(self, graph: Graph) -> bool:
        scopes = list(graph.scopes())
        if not any(scope.of(kind) for scope in scopes for kind in (Optional, OptionalHasElement, OptionalGetElement)):
            return False
        changed = False
        for scope in scopes:
            for parameter in scope.parameters:
                _retype(parameter)
            for node in self.candidates(scope, Optional):
                changed = self._make(node) or changed
            for holder in scope.of(ops.Control):
                scope.touch(holder)
        graph.validate()
        for scope in scopes:
            for reader in [*scope.of(OptionalHasElement), *scope.of(OptionalGetElement)]:
                changed = (not self.leaves(reader) and self._read(reader)) or changed
        self.at = None
        return changed

    def _make(self, node: Optional) -> bool:
        type_ = node.output.type.element
        if isinstance(type_, SequenceType):
            return self.refuse(node, "it is an optional sequence")
        value = node.inputs[0] if node.inputs else None
        if value is None:
            replace_node(node, ops.SequenceEmpty(graph=node.graph, dtype=type_.dtype))
        else:
            replace_node(node, ops.SequenceConstruct(value))
        return self.accept(node)

    def _read(self, node) -> bool:
        value = node.inputs[0]
        if not isinstance(value.type, SequenceType):
            return self.refuse(node, "it is an optional sequence")
        if isinstance(node, OptionalGetElement):
            replace_node(node, ops.SequenceAt(value, np.array(0)))
        else:
            replace_node(node, ops.Greater(F.SequenceLength(value), 0))
        return self.accept(node)


def _retype(parameter: Parameter) -> None:
    type_ = parameter.output.type
    if isinstance(type_, OptionalType) and isinstance(type_.element, TensorType):
        parameter.retype(SequenceType(type_.element, {True: 1, False: 0, None: None}[type_.present]))
        parameter.graph.validate_node(parameter)


class PackSequences(SequencePass):
    """[x, y, z]  ->  D = Concat(flat(x), flat(y), flat(z)), T = their shapes, one row each

    The general case: any length, elements of different shapes, positions that are known only at run time. If the
    elements are concatenated along an axis other than the first, the result is exact for up to 2^24 numbers in all
    elements together.
    """

    instead = "the pattern after `ReduceSum`"
    avoids = (Gap(
        "computed-zero-of-reshape", "a 0 in a computed pattern of `Reshape` is taken for \"copy the dimension\"",
        severity=ERROR, since="2025.4.1",
    ),)

    def kind(self, type_: SequenceType):
        return ElementKind.of(type_, always_packed=True)


class StackSequences(SequencePass):
    """[x, y, z]  ->  Stack(x, y, z) if all elements have one shape, else Concat(x, y, z) and their sizes

    A sequence to which a loop only appends becomes a tensor that grows. A sequence that a loop only reads becomes
    Gathers and Slices of one tensor.
    """

    def kind(self, type_: SequenceType):
        kind = ElementKind.of(type_)
        return None if kind is None or kind.way is Packed else kind


MOST = 64
"""Longer sequences do not become as many ports or tensors."""


class ReplaceSequencesByElements(SequencePass):
    """[a, b, c][1]  ->  b

    A sequence is followed through insertions and erasures at known positions, into bodies that read it at known
    positions, out of the branches of an If, and through loops that do not change its length. Each element becomes a
    port of its own.
    """

    def rule(self, node: Node) -> Rule | None:
        return LIST_RULES.get(type(node))

    def held(self, sequence: Value, kind=None) -> Listed | None:
        items = items_of(sequence)
        length = sequence.type.length
        if items is None and kind is not None and isinstance(length, int):
            items = [F.SequenceAt(sequence, numbers(sequence.graph, i)) for i in range(length)]
        return None if items is None else Listed(tuple(items))

    def captured(self, value: Value, parameters: Sequence[Parameter]):
        if value.type.is_empty:
            return Listed()
        if not all(is_read_at_known_positions(each.output) for each in parameters):
            return None
        listed = self.held(value)
        return listed if listed is None or len(listed.tensors) <= MOST else None

    def state_kind(self, entry: Merged, initial: Value):
        parameter = entry.parameter.output
        if items_of(initial) is None or not is_read_at_known_positions(parameter):
            return None
        return kind_of(parameter.type)

    def branch_kind(self, node: ops.Control, number: int):
        entry = node.output_map[number]
        if all(items_of(each.value) is None for each in (entry.then, entry.else_)):
            return None
        return kind_of(node.outputs[number].type) if is_read_at_known_positions(node.outputs[number]) else None


def kind_of(type_: SequenceType) -> ListKind | None:
    """The kind of sequences of a length that is known, and not too long."""
    length = type_.length
    return ListKind(type_, length) if isinstance(length, int) and 0 < length <= MOST else None


def items_of(sequence: Value) -> list[Value] | None:
    """The elements if they are known one by one, else None."""
    if sequence.type.is_empty:
        return []
    return list(sequence.node.operands) if isinstance(sequence.node, ops.SequenceConstruct) else None


def is_read_at_known_positions(sequence: Value, seen: set[Value] | None = None) -> bool:
    """Whether every use of a sequence, in bodies too, reads or changes it at a position known at conversion."""
    seen = set() if seen is None else seen
    if sequence in seen:
        return True
    seen.add(sequence)
    return all(_is_known_position(use.node, use.port, seen) for use in sequence.uses)


def _is_known_position(node, port: int, seen: set[Value]) -> bool:
    if isinstance(node, Result | ops.SequenceLength | ops.ConcatFromSequence | ops.PackSequence):
        return True
    if isinstance(node, ops.SequenceAt):
        return known(node.inputs[1]) is not None
    if isinstance(node, ops.SequenceInsert | ops.SequenceErase):
        place = node.inputs[len(node.inputs) - 1]
        has_place = len(node.inputs) == (3 if isinstance(node, ops.SequenceInsert) else 2)
        return (not has_place or known(place) is not None) and is_read_at_known_positions(node.output, seen)
    if isinstance(node, ops.SequenceExtend | Identity):
        return is_read_at_known_positions(node.output, seen)
    if not isinstance(node, ops.Control):
        return False
    entry = node.input_map[port - node.first_data_port]
    inner = [each.output for each in vars(entry).values() if isinstance(each, Parameter)]
    if isinstance(entry, Merged):
        inner += [output for each, output in node.returned if isinstance(each, Final) and each.result is entry.result]
    return all(is_read_at_known_positions(each, seen) for each in inner)


# -- rules


def _at(walk: SequencePass, node: ops.SequenceAt) -> Value | None:
    items, place = items_of(node.inputs[0]), known(node.inputs[1])
    return None if not items or place is None or not -len(items) <= place < len(items) else items[place]


def _length(walk: SequencePass, node: ops.SequenceLength) -> Value | None:
    length = node.inputs[0].type.length
    return numbers(node.graph, length) if isinstance(length, int) else None


def _changed(walk: SequencePass, node) -> Value | None:
    """SequenceInsert and SequenceErase."""
    inserts = isinstance(node, ops.SequenceInsert)
    items = items_of(node.inputs[0])
    places = node.inputs[1 + inserts :]
    place = known(places[0]) if places else None
    if items is None or (places and place is None):
        return None
    last = len(items) + inserts
    if not -len(items) <= (place or 0) < last:
        return None  # inference refuses it if the node can be executed
    if inserts:
        items.insert(len(items) if place is None else place, node.inputs[1])
    else:
        del items[-1 if place is None else place]
    return _listed(items, node)


def _concat(walk: SequencePass, node: ops.ConcatFromSequence) -> Value | None:
    items = items_of(node.inputs[0])
    if not items or any(each.rank is None for each in items):
        return None
    axis = node.axis % (items[0].type.rank + node.new_axis)
    return joined([F.Unsqueeze(each, [axis]) for each in items] if node.new_axis else items, axis)


def _extend(walk: SequencePass, node: ops.SequenceExtend) -> Value | None:
    first, second = (items_of(each) for each in node.inputs)
    return None if first is None or second is None else _listed([*first, *second], node)


def _listed(items: Sequence[Value], node) -> Value:
    return sequence_of(Listed(tuple(items)), node.graph, node.output.type)


def _split(walk: SequencePass, node: ops.SplitToSequence) -> Value | None:
    x, *split = node.inputs
    count, dim = node.output.type.length, x.shape[node.axis % x.rank] if x.rank else None
    if not isinstance(count, int) or not 0 < count <= MOST or not is_read_at_known_positions(node.output):
        return None
    sizes = split[0].type.integers if split else (1,) * count
    if split and split[0].rank == 1 and sizes is None:
        lengths: Any = split[0]
    elif isinstance(dim, int) and sizes is not None:
        if split and split[0].rank == 0:
            sizes = (*sizes * (count - 1), dim - sizes[0] * (count - 1))
        lengths = list(sizes)
    else:
        return None
    axis = node.axis % x.rank
    pieces = [x] if count == 1 else list(ops.VariadicSplit(x, axis, lengths).outputs)
    if not node.keepdims:
        pieces = [F.Squeeze(each, [axis]) for each in pieces]
    return F.SequenceConstruct(*pieces)


LIST_RULES: dict[type[Node], Any] = {
    ops.SequenceAt: _at,
    ops.SequenceLength: _length,
    ops.SequenceInsert: _changed,
    ops.SequenceErase: _changed,
    ops.ConcatFromSequence: _concat,
    ops.SequenceExtend: _extend,
    ops.SplitToSequence: _split,
    Identity: same,
}
