"""The operations on sequences that tensors hold, one rule each. SequencePass looks them up in RULES.

    rule = RULES[ops.SequenceAt]
    rule(walk, node)                  # the value that replaces the output; None if the sequence has no layout

A rule gets the layout of a sequence from the pass, and the layout (layouts.py) makes the nodes.
"""

from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np

from mo_loop.graph.types import SequenceType
from mo_loop.transforms.front.sequence_lowering.layouts import ElementKind, Joined, Stacked
from mo_loop.transforms.front.sequence_lowering.shapes import Nothing, known, moved, numbers, sequence_of, size
from mo_loop.transforms.vocabulary import F, Identity, Node, Value, ops


class Walk(Protocol):
    """The methods of the pass that a rule calls (SequencePass in walk.py)."""

    def kind(self, type_: SequenceType) -> Any:
        """The kind of the sequences of a type; None if the pass leaves them unchanged."""

    def held(self, sequence: Value, kind: Any = None) -> Any:
        """The layout of a sequence, as the given kind or as it is; None if it has none."""


Rule: TypeAlias = Callable[[Walk, Any], Value | Sequence[Value] | None]
"""(pass, node) -> the replacement of the outputs of the node; None if the pass cannot replace them."""


def _at(walk: Walk, node: ops.SequenceAt) -> Value | None:
    layout = walk.held(node.inputs[0])
    return None if layout is None else layout.at(node.inputs[1])


def _length(walk: Walk, node: ops.SequenceLength) -> Value | None:
    sequence: Any = node.inputs[0]
    if isinstance(sequence.type.length, int):
        return numbers(node.graph, sequence.type.length)
    layout = walk.held(sequence)
    return None if layout is None else layout.length()


def _concat(walk: Walk, node: ops.ConcatFromSequence) -> Value | None:
    sequence: Any = node.inputs[0]
    layout = walk.held(sequence)
    if layout is None:
        return None
    rank = len(sequence.type.element.dims) + node.new_axis
    return layout.concatenated(node.axis % rank, node.new_axis)


def _insert(walk: Walk, node: ops.SequenceInsert) -> Value | None:
    sequence, item, *place = node.inputs
    kind = walk.kind(node.output.type)
    layout = None if kind is None else walk.held(sequence, kind)
    if layout is None:
        return None
    new = kind.of_items([item])
    if not place:
        return layout.extended(new).sequence() if not sequence.type.is_empty else new.sequence()
    if known(place[0]) == 0:
        return new.extended(layout).sequence()
    return layout.inserted(new, place[0]).sequence()


def _erase(walk: Walk, node: ops.SequenceErase) -> Value | None:
    sequence, *place = node.inputs
    if node.output.type.is_empty:
        return sequence_of(Nothing(), node.graph, node.output.type)
    kind = walk.kind(node.output.type)
    layout = None if kind is None else walk.held(sequence, kind)
    return None if layout is None else layout.erased(place[0] if place else None).sequence()


def _extend(walk: Walk, node: ops.SequenceExtend) -> Value | None:
    first, second = node.inputs
    for one, other in ((first, second), (second, first)):
        if one.type.is_empty:
            return other
    kind = walk.kind(node.output.type)
    layouts: list[Any] = [None] if kind is None else [walk.held(first, kind), walk.held(second, kind)]
    return None if None in layouts else layouts[0].extended(layouts[1]).sequence()


def _split(walk: Walk, node: ops.SplitToSequence) -> Value | None:
    x, *split = node.inputs
    if x.rank is None:
        return None
    axis = node.axis % x.rank
    if not split:
        front = moved(x, axis, 0)
        return Stacked(front if not node.keepdims else F.Unsqueeze(front, [axis + 1])).sequence()
    sizes = split[0]
    if sizes.rank == 0:
        sizes = _chunk_sizes(size(x, axis), sizes)
    return Joined(x, sizes, axis).sequence()


def _chunk_sizes(total: Value, each: Value) -> Value:
    """Sizes of parts that are equal except for the last, smaller one: min(each, total - each*i)."""
    enough = total + (each - np.int64(1))
    count = F.Divide(enough - (enough % each), each)
    scalar = F.Reshape(count, np.zeros(0, np.int64))
    return F.Minimum(total - F.Range(np.int64(0), scalar, np.int64(1), output_type=each.dtype) * each, each)


def _pack(walk: Walk, node: ops.PackSequence) -> Sequence[Value] | None:
    sequence: Any = node.inputs[0]
    kind = ElementKind.of(sequence.type, always_packed=True)
    layout = None if kind is None else walk.held(sequence, kind)
    return None if layout is None else layout.tensors


def same(walk: Walk, node: Node) -> Value | None:
    """The rule of a node that returns its input."""
    return node.inputs[0]


RULES: dict[type[Node], Rule] = {
    ops.SequenceAt: _at,
    ops.SequenceLength: _length,
    ops.ConcatFromSequence: _concat,
    ops.SequenceInsert: _insert,
    ops.SequenceErase: _erase,
    ops.SequenceExtend: _extend,
    ops.SplitToSequence: _split,
    ops.PackSequence: _pack,
    Identity: same,
}
"""Operation -> the function that makes its outputs. The nodes in `GIVEN` (walk.py) need no rule."""
