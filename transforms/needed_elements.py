"""Operations without elements: which the runtime computes, and which sizes of inputs may not become 0.

    needed(graph)       # the sizes of ids for Gather(table, ids), of x for Flatten(x), not those for Add(x, 1)

The runtime computes most operations of tensors without elements correctly, or refuses them; for others it ends the
process, or is wrong. The pass WriteSizes adds checks for these.
"""

from __future__ import annotations

from collections.abc import Iterator

from mo_loop import ops
from mo_loop.graph import Graph, Node
from mo_loop.graph.dimension import Dimension, Symbol, low, now, open_symbols
from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.types import TensorType
from mo_loop.ops.base import Constant
from mo_loop.transforms.operands import behind, order_of

_FAMILIES = (
    "base arithmetic comparison casting activation linear normalisation movement filling random resize pooling "
    "reduction variables"
)

_ALSO = (
    "If FakeQuantize GatherElements ScatterUpdate ScatterElementsUpdate ScatterElementsUpdate12 ScatterNDUpdate "
    "ScatterNDUpdate15 OneHot TopK TopK11 Loop TensorIterator"
)

RIGHT = frozenset({name for family in _FAMILIES.split() for name in ops.FAMILIES[family].split()} | {*_ALSO.split()})
"""The operations without elements that the runtime computes correctly, or refuses; `_dims` has the exceptions."""


def needed(graph: Graph) -> set[Symbol]:
    """The declared sizes of inputs that may not become 0."""
    return {
        symbol for scope in graph.scopes() for node in scope
        for symbol in open_symbols(dim for dim in _dims(node) if not isinstance(dim, int) and low(dim) == 0)
    }  # fmt: skip


def is_right_without_elements(node: Node) -> bool:
    """Whether the runtime computes the operation correctly, or refuses it, where a size is 0."""
    return all(dim != 0 for dim in _dims(node))


def _dims(node: Node) -> Iterator[Dimension]:
    """The sizes of which none may be 0."""
    if isinstance(node, ops.Reshape):
        yield from _copied_wrongly(node)
    elif isinstance(node, ops.Transpose):
        yield from _moved_past_ones(node)
    elif isinstance(node, ops.ReduceMean | ops.ReduceMax | ops.ReduceMin):
        yield from _reduced(node)
    elif isinstance(node, ops.Convolution):
        yield from _convolved(node)
    elif isinstance(node, ops.Broadcast):
        yield from _shape(node.operands[0].type)
        yield from _shape(node.output.type) if node.mode == "bidirectional" else ()
    elif isinstance(node, ops.NonZero):  # its result is read by a Gather; a Slice hides the size
        yield from _shape(behind(node.operands[0], (ops.Slice, ops.Reshape)).type)
    elif isinstance(node, ops.Gather):
        yield from (dim for each in (*node.operands, *node.outputs) for dim in _shape(each.type))
    elif type(node).__name__ not in RIGHT:
        yield from (dim for each in node.operands for dim in _shape(each.type))


def _shape(type_: object) -> tuple[Dimension, ...]:
    return (type_.shape or ()) if isinstance(type_, TensorType) else ()


def _copied_wrongly(node: ops.Reshape) -> Iterator[Dimension]:
    """A computed size of 0 copies the size at its place of the input."""
    x, pattern = node.operands
    if not isinstance(pattern.node, Constant):
        before = _shape(x.type)
        yield from (dim for at, dim in enumerate(_shape(node.output.type)) if before[at : at + 1] != (dim,))


def _moved_past_ones(node: ops.Transpose) -> Iterator[Dimension]:
    """The runtime makes a Reshape of a Transpose that moves dimensions past those of 1 alone."""
    dims, order = _shape(node.operands[0].type), order_of(node) or ()
    for place, axis in enumerate(order if dims else ()):
        passed = [other for at, other in enumerate(order) if (at < place) != (other < axis) and other != axis]
        if passed and all(now(dims[other]) == 1 for other in passed):
            yield dims[axis]


def _reduced(node: Node) -> Iterator[Dimension]:
    """The mean of nothing is 0 or large, and the extremes are finite."""
    x, axes = node.operands
    dims = _shape(x.type)
    places = range(len(dims)) if axes.type.integers is None else axes.type.integers
    yield from (dims[normalise_axis(axis, len(dims))] for axis in places if dims)


def _convolved(node: ops.Convolution) -> Iterator[Dimension]:
    """The runtime refuses filters that reach beyond the padding, unless a stride is larger than this."""
    x, filters = node.operands
    kernel = _shape(filters.type)[2 - len(_shape(x.type)) :]
    yield from _shape(filters.type)
    yield from _shape(x.type)[1:2] if any(not isinstance(dim, int) for dim in _shape(filters.type)) else ()
    sides = zip(node.strides, node.pads_begin, node.pads_end, node.dilations, strict=True)
    for dim, length, (stride, begin, end, dilation) in zip(_shape(x.type)[2:], kernel, sides, strict=False):
        if begin + end + stride > (low(length) - 1) * dilation + 1:
            yield dim
