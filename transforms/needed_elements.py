"""Operations without elements: which the runtime computes, and which sizes of inputs may not become 0.

    sizes = needed(graph)       # those of ids for Gather(table, ids), of x for Flatten(x), not those for Add(x, 1)
    list(computed(graph, sizes))  # [(ids[8:], 0)] for Gather(table, ids[8:])

The runtime computes most operations of tensors without elements correctly, or refuses them; for others it ends the
process, or is wrong. The pass WriteSizes adds checks for these.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from mo_loop.graph.dimension import Dim, Dimension, Symbol, low, now, open_symbols, symbols_of
from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.types import TensorType
from mo_loop.transforms.vocabulary import Constant, Graph, Node, Value, behind, is_static, ops, order_of

_FAMILIES = "base arithmetic activation movement filling reduction views"

_ALSO = (
    "If FakeQuantize GatherElements ScatterUpdate ScatterElementsUpdate ScatterElementsUpdate12 ScatterNDUpdate "
    "ScatterNDUpdate15 OneHot TopK TopK11 Loop TensorIterator MatMul Einsum Inverse Resizing Interpolate Interpolate11 "
    "Pooling MaxPool MaxPool8 MaxPool14 AvgPool AvgPool14 ReadValue Assign"
)

RIGHT = frozenset({name for family in _FAMILIES.split() for name in ops.FAMILIES[family].split()} | {*_ALSO.split()})
"""The operations without elements that the runtime computes correctly, or refuses; `_dims` has the exceptions."""

_WRONG_OF_CONSTANTS = (ops.Binary, ops.Select, ops.PReLU, ops.Tile, ops.CumSum, ops.MVN, ops.NormalizeL2,
                       ops.BatchNormInference, ops.GroupNormalization)  # fmt: skip


def needed(graph: Graph) -> set[Symbol | Value]:
    """The sizes that may not become 0: declared sizes of inputs, those of slices, and those of whole Concats."""
    kept = (ops.Gather, ops.ReduceMean, ops.ReduceMax, ops.ReduceMin)
    found = {
        symbol for scope in graph.scopes() for node in scope for symbol in _emptying(_dims(node))
        if not symbol.is_fresh or isinstance(node, kept)
    }  # fmt: skip
    return found.union(*(_folded_wrongly(scope) for scope in graph.scopes()))


def computed(graph: Graph, sizes: Collection[Symbol | Value]) -> Iterator[tuple[Value, int]]:
    """The results and their axes whose sizes are some of these, and may be 0 although no declared size is."""
    known: set[Symbol] = set()
    for node in (node for scope in graph.scopes() for node in scope):
        if isinstance(node, ops.Concat) and node.output in sizes:
            axis = normalise_axis(node.axis, len(node.output.type.dims))
            if _follows(node.output.type.dims[axis : axis + 1], known):
                yield node.output, axis
        elif isinstance(node, ops.Slice) and all(each.type.known is not None for each in node.operands[1:]):
            x, *bounds = (each.type for each in node.operands)
            for axis, (old, new) in enumerate(zip(_shape(x), _shape(node.output.type), strict=False)):
                made, read = _fresh(new), [old, *(item for each in bounds for item in each.known.flat)]
                if made and old != new and _follows(read, known):
                    known |= made
                    if made <= {*sizes} and low(new) == 0:
                        yield node.output, axis


def _follows(dims: Collection[Dimension], known: Collection[Symbol]) -> bool:
    """Whether dimensions follow from declared sizes, and from sizes that do."""
    return symbols_of(dims) <= open_symbols(dims).union(known)


def _emptying(dims: Iterable[Dimension]) -> set[Symbol]:
    """The sizes that may make one of the dimensions 0."""
    found = [dim for dim in dims if not isinstance(dim, int) and low(dim) == 0]
    return open_symbols(found).union(*(_fresh(dim) for dim in found))


def _fresh(dim: Dimension) -> set[Symbol]:
    """The symbol of a size that is just one without a name."""
    return {dim.symbol} if isinstance(dim, Dim) and dim.symbol and dim.is_fresh else set()


def _folded_wrongly(scope: Graph) -> Iterator[Symbol | Value]:
    """The runtime makes a constant of a Concat of tensors without elements, and of what follows from constants. It
    computes some operations of constants without elements wrongly, and ends the process."""
    constant: dict[Value, set[Symbol | Value] | None] = {}  # the sizes that make it one; None if it always is
    for node in scope:
        found = [constant.get(each, set()) for each in node.operands]
        if isinstance(node, _WRONG_OF_CONSTANTS):
            for value, each in zip(node.operands, found, strict=True):
                yield from _emptying(_shape(value.type)) if each is None else each
        some = [each for each in found if each is not None]
        sizes = None if not some else set.intersection(*some)
        if isinstance(node, ops.Concat) and sizes is not None:
            sizes |= _emptied(node)
        elif isinstance(node, ops.Filtered) or not (node.operands or isinstance(node, Constant)) or node.bodies:
            sizes = set()
        for output in node.outputs:
            constant[output] = None if isinstance(node, ops.ShapeOf) else sizes


def _emptied(node: ops.Concat) -> set[Symbol | Value]:
    """The sizes that leave no input of a Concat an element; the Concat itself if it takes several."""
    shape = _shape(node.output.type)
    axis = normalise_axis(node.axis, len(shape)) if shape else 0
    found: set[Symbol | Value] = {*_emptying(shape[:axis] + shape[axis + 1 :])}
    (length,) = shape[axis : axis + 1] or (1,)
    if isinstance(length, Dim) and low(length) == 0:
        found |= _emptying([length]) if len(length.terms) == 1 else {node.output}
    return found


def is_right_without_elements(node: Node) -> bool:
    """Whether the node only moves elements, or fills a tensor, and the runtime does it correctly where a size is 0.

    EmptySqueezeToBroadcast replaces a Gather whose sizes are known, or sizes of its input.
    """
    if isinstance(node, ops.Gather) and not is_static(node.output.shape):
        x, sizes = _shape(node.operands[0].type), _shape(node.output.type)
        return all(isinstance(dim, int) or dim in x for dim in sizes)
    return isinstance(node, ops.Movement | ops.Broadcast) and all(dim != 0 for dim in _dims(node))


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
