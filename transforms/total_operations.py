"""Operations that cannot fail on any data, bodies that the runtime can execute where the model does not, and
operations without elements: which the runtime computes, and which sizes of inputs may not become 0.

    sizes = needed(graph)       # those of ids for Gather(table, ids), of x for Flatten(x), not those for Add(x, 1)
    list(computed(graph, sizes))  # [(ids[8:], 0)] for Gather(table, ids[8:])

The runtime computes most operations of tensors without elements correctly, or refuses them; for others it ends the
process, or is wrong. The pass WriteSizes adds checks for these.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence, Set
from itertools import zip_longest
from typing import Any

import numpy as np

from mo_loop.graph import Shape, normalise_axis, string
from mo_loop.graph.dimension import Dim, Dimension, Symbol, low, now, open_symbols, symbols_of
from mo_loop.transforms.vocabulary import Constant, Graph, Node, Result, Value, is_static, ops, order_of, source_of

DIVISIONS = (ops.Divide, ops.FloorMod, ops.Mod, ops.Power)

ELEMENTWISE = (ops.Unary, ops.Binary, ops.Select, ops.Classification, ops.Identity, ops.Convert)
"""Operations of elements whose shapes have only to fit; a number for each channel has other conditions."""

FOR_ALL_NUMBERS = (ops.Parameter, Result, Constant, ops.Reduction, ops.ShapeOf, ops.View)
"""Operations that read the numbers of their first input alone, if the other ones are constants."""


CHECKED = (ops.Broadcast, ops.Convolution, ops.GroupConvolution, ops.CumSum, ops.TopK, ops.MaxPool, ops.AvgPool)
"""Operations that fail only where sizes do not fit, which inference has checked if all of them are known."""


def is_harmless(body: Graph) -> bool:
    """Whether the runtime executes `body` without an error, and to an end, for any numbers."""
    return all(cannot_fail(node) for node in body.ordered())


def is_safe(node: Node) -> bool:
    """Whether a step that does not run in the model may execute `node`, whatever the numbers are."""
    if isinstance(node, ops.If):
        return all(is_safe(each) for body in node.bodies for each in body.ordered())
    are_known = all(each.type.integers is not None for each in node.operands[1:])
    if isinstance(node, ops.Barrier):
        return True
    if isinstance(node, ops.Split | ops.VariadicSplit):
        data, axis = node.operands[:2]
        return are_known and isinstance(data.type.dims[axis.type.integers[0]], int)
    if isinstance(node, CHECKED):
        is_product = isinstance(node, ops.Convolution | ops.GroupConvolution)
        return all(is_static(each.shape) for each in node.operands) and (is_product or are_known)
    return cannot_fail(node) or is_total(node)


def cannot_fail(node: Node) -> bool:
    """Whether the runtime executes `node` without an error, and to an end, for any numbers."""
    values = list(node.operands)
    if any(each.dtype is string or each.shape is None for each in (*values, *node.outputs)):
        return False
    if isinstance(node, ops.If):
        return all(map(is_harmless, node.bodies))
    if isinstance(node, ops.Divide | ops.Mod | ops.FloorMod):
        return _has_divisor(node) and _fit(values)
    if isinstance(node, ELEMENTWISE):
        return _fit(values)
    if isinstance(node, ops.Concat):
        return fit_beside([each.shape for each in values], node.axis)
    if isinstance(node, ops.Gather):  # an index outside gives zeros, or arbitrary numbers
        return node.batch_dims == 0 and isinstance(values[2].node, Constant)
    if isinstance(node, ops.Slice):
        return all(isinstance(each.node, Constant) for each in values[3:])
    if isinstance(node, ops.Squeeze | ops.Reshape) and not is_static(values[0].shape):
        return False
    return isinstance(node, FOR_ALL_NUMBERS) and all(isinstance(each.node, Constant) for each in values[1:])


def _has_divisor(node: ops.Binary) -> bool:
    """Whether no division by 0 can end the process."""
    divisor = node.operands[1]
    known = divisor.type.integers if divisor.constant is None else divisor.constant
    return node.output.dtype.is_float or (known is not None and bool(np.all(known)))


def _fit(values: list[Value]) -> bool:
    return all(is_static(each.shape) for each in values) or fit(each.shape for each in values)


def fit(shapes: Iterable[Shape]) -> bool:
    """Whether all shapes can surely be broadcast: inference assumes it where a size is unknown."""
    counted_from_end = zip_longest(*(reversed(shape or ()) for shape in shapes), fillvalue=1)
    return all(len(set(dims) - {1}) <= 1 for dims in counted_from_end)


def fit_beside(shapes: Sequence[Shape], axis: int) -> bool:
    """Whether all sizes but those along an axis are surely equal."""
    known = [shape for shape in shapes if shape is not None]
    if len(known) != len(shapes):
        return False
    at = normalise_axis(axis, len(known[0]))
    return all(place == at or len(set(dims)) == 1 for place, dims in enumerate(zip(*known, strict=True)))


def is_total(node: Node) -> bool:
    """Whether `node` cannot fail on any data: its shapes are proven to fit, and it neither divides nor indexes."""
    if any(value.shape is None for value in node.operands):
        return False
    shapes = [None if value is None else value.shape for value in node.inputs]
    if isinstance(node, DIVISIONS) and not node.inputs[0].dtype.is_float:
        return False
    if isinstance(node, ops.Binary | ops.Select):
        return fit(shapes)
    if isinstance(node, ops.MatMul):
        return _is_total_product(node, shapes)
    if isinstance(node, ops.Reshape):
        return is_static(shapes[0]) and _has_known_parameters(node)
    if isinstance(node, ops.Squeeze):
        if len(node.operands) == 1:
            return is_static(shapes[0])
        axes = node.operands[1].type.integers
        return axes is not None and all((shapes[0] or ())[axis] == 1 for axis in axes)
    if isinstance(node, ops.Concat):
        return fit_beside(shapes, node.axis)
    if isinstance(node, ops.Slice):
        return all(each.type.integers is not None for each in node.operands[3:]) and all(map(is_static, shapes[1:]))
    if isinstance(node, ops.Split | ops.VariadicSplit):
        axes = node.operands[1].type.integers
        return _has_known_parameters(node) and isinstance((shapes[0] or ())[(axes or (0,))[0]], int)
    checked = (ops.Reduction, ops.Unsqueeze, ops.Transpose, ops.CumSum, ops.MVN, ops.NormalizeL2, ops.Tile)
    if isinstance(node, checked):
        return _has_known_parameters(node)
    return isinstance(node, ops.Unary | ops.AlongAxis | ops.Convert | ops.Identity | ops.ShapeOf)


def _has_known_parameters(node: Node) -> bool:
    """Whether pattern, axes or order are known at conversion, so that inference has checked them."""
    return all(value is None or value.type.integers is not None for value in node.inputs[1:])


def _is_total_product(node: ops.MatMul, shapes: list[Shape]) -> bool:
    a, b = shapes
    if not a or not b or len(a) < 2 or len(b) < 2:
        return is_static(a) and is_static(b)
    inner = (a[-2 if node.transpose_a else -1], b[-1 if node.transpose_b else -2])
    return inner[0] == inner[1] and fit([a[:-2], b[:-2]])


_FAMILIES = "base arithmetic activation movement filling reduction views"

_ALSO = (
    "If FakeQuantize GatherElements ScatterUpdate ScatterElementsUpdate ScatterElementsUpdate12 ScatterNDUpdate "
    "ScatterNDUpdate15 OneHot TopK TopK11 Loop TensorIterator MatMul Einsum Inverse Resizing Interpolate Interpolate11 "
    "Pooling MaxPool MaxPool8 MaxPool14 AvgPool AvgPool14 ReadValue Assign"
)

RIGHT = frozenset({name for family in _FAMILIES.split() for name in ops.FAMILIES[family].split()} | {*_ALSO.split()})
"""The operations without elements that the runtime computes correctly, or refuses; `_dims` has the exceptions."""

_WRONG_OF_CONSTANTS = (ops.Binary, ops.Select, ops.PReLU, ops.Tile, ops.CumSum, ops.MVN, ops.NormalizeL2,
                       ops.BatchNormInference, ops.GroupNormalization)


_MAKING_CONSTANTS = (ops.Concat, ops.ShapeOf)


def needed(graph: Graph) -> set[Symbol | Value]:
    """The sizes that may not become 0: declared sizes of inputs, those of slices, and those of whole Concats."""
    kept = (ops.Gather, ops.ReduceMean, ops.ReduceMax, ops.ReduceMin)
    found = {
        symbol for scope in graph.scopes() for cls in scope.classes if _may_be_wrong(cls)
        for node in scope.of(cls) for symbol in _emptying(_dims(node))
        if not symbol.is_fresh or isinstance(node, kept)
    }
    return found.union(*(sizes for scope in graph.scopes() for sizes in _folded_wrongly(scope)))


def computed(graph: Graph, sizes: Collection[Symbol | Value]) -> Iterator[tuple[Value, int]]:
    """The results and their axes whose sizes are some of these, and may be 0 although no declared size is."""
    known: set[Symbol] = set()
    for node in (node for scope in graph.scopes() if scope.has(ops.Concat, ops.Slice) for node in scope):
        if isinstance(node, ops.Concat) and node.output in sizes:
            axis = normalise_axis(node.axis, len(node.output.type.dims))
            if _follows(node.output.type.dims[axis : axis + 1], known):
                yield node.output, axis
        elif isinstance(node, ops.Slice) and all(each.type.known is not None for each in node.operands[1:]):
            x, *bounds = (each.type for each in node.operands)
            for axis, (old, new) in enumerate(zip(_shape(x), _shape(node.output), strict=False)):
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


def _folded_wrongly(scope: Graph) -> Iterator[Set[Symbol | Value]]:
    """The runtime makes a constant of a Concat of tensors without elements, and of what follows from constants. It
    computes some operations of constants without elements wrongly, and ends the process."""
    none = frozenset[Symbol | Value]()
    # The sizes that make a value a constant; None if it always is. Those of most values are none, and not kept.
    constant: dict[Value, frozenset[Symbol | Value] | None] = {}
    for node in scope:
        if isinstance(node, Constant):
            continue
        operands = node.operands
        values = [each for each in operands if not isinstance(each.node, Constant)]
        if values and not isinstance(node, _MAKING_CONSTANTS) and constant.keys().isdisjoint(values):
            continue
        found = [constant.get(each, none) for each in values]
        if isinstance(node, _WRONG_OF_CONSTANTS):
            for value, each in zip(values, found, strict=True):
                yield _emptying(_shape(value)) if each is None else each
        some = [each for each in found if each is not None]
        sizes = some[0].intersection(*some[1:]) if len(some) > 1 else some[0] if some else None  # no copy of one
        if isinstance(node, ops.Concat) and sizes is not None:
            sizes |= _emptied(node)
        elif isinstance(node, ops.Filtered) or not operands or node.bodies:
            sizes = none
        if isinstance(node, ops.ShapeOf):
            sizes = None
        if sizes is None or sizes:
            constant.update(dict.fromkeys(node.outputs, sizes))


def _emptied(node: ops.Concat) -> set[Symbol | Value]:
    """The sizes that leave no input of a Concat an element; the Concat itself if it takes several."""
    shape = _shape(node.output)
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
        x, sizes = _shape(node.operands[0]), _shape(node.output)
        return all(isinstance(dim, int) or dim in x for dim in sizes)
    return isinstance(node, ops.Movement | ops.Broadcast) and all(dim != 0 for dim in _dims(node))


def _may_be_wrong(cls: type[Node]) -> bool:
    """Whether `_dims` of a node of this class may have a size: of most nodes it has none."""
    return issubclass(cls, tuple(_WRONG)) or cls.__name__ not in RIGHT


def _dims(node: Node) -> Iterable[Dimension]:
    """The sizes of which none may be 0."""
    rule = next((rule for cls, rule in _WRONG.items() if isinstance(node, cls)), None)
    if rule is not None:
        return rule(node)
    return () if type(node).__name__ in RIGHT else _shapes(node.operands)


def _shapes(values: Iterable[Value]) -> Iterator[Dimension]:
    return (dim for each in values for dim in _shape(each))


def _shape(value: Value) -> tuple[Dimension, ...]:
    return value.shape or ()


def _copied_wrongly(node: ops.Reshape) -> Iterator[Dimension]:
    """A computed size of 0 copies the size at its place of the input."""
    x, pattern = node.operands
    if not isinstance(pattern.node, Constant):
        before = _shape(x)
        yield from (dim for at, dim in enumerate(_shape(node.output)) if before[at : at + 1] != (dim,))


def _moved_past_ones(node: ops.Transpose) -> Iterator[Dimension]:
    """The runtime makes a Reshape of a Transpose that moves dimensions past those of 1 alone."""
    dims, order = _shape(node.operands[0]), order_of(node) or ()
    for place, axis in enumerate(order if dims else ()):
        passed = [other for at, other in enumerate(order) if (at < place) != (other < axis) and other != axis]
        if passed and all(now(dims[other]) == 1 for other in passed):
            yield dims[axis]


def _reduced(node: Node) -> Iterator[Dimension]:
    """The mean of nothing is 0 or large, and the extremes are finite."""
    x, axes = node.operands
    dims = _shape(x)
    places = range(len(dims)) if axes.type.integers is None else axes.type.integers
    yield from (dims[normalise_axis(axis, len(dims))] for axis in places if dims)


def _convolved(node: ops.Convolution) -> Iterator[Dimension]:
    """The runtime refuses filters that reach beyond the padding, unless a stride is larger than this."""
    x, filters = node.operands
    kernel = _shape(filters)[2 - len(_shape(x)) :]
    yield from _shape(filters)
    yield from _shape(x)[1:2] if any(not isinstance(dim, int) for dim in _shape(filters)) else ()
    sides = zip(node.strides, node.pads_begin, node.pads_end, node.dilations, strict=True)
    for dim, length, (stride, begin, end, dilation) in zip(_shape(x)[2:], kernel, sides, strict=False):
        if begin + end + stride > (low(length) - 1) * dilation + 1:
            yield dim


_WRONG: dict[type[Node], Callable[[Any], Iterable[Dimension]]] = {
    ops.Reshape: _copied_wrongly,
    ops.Transpose: _moved_past_ones,
    ops.ReduceMean: _reduced, ops.ReduceMax: _reduced, ops.ReduceMin: _reduced,
    ops.Convolution: _convolved,
    ops.Broadcast: lambda node: _shapes([node.operands[0], *(node.outputs if node.mode == "bidirectional" else ())]),
    # Its result is read by a Gather; a Slice hides the size.
    ops.NonZero: lambda node: _shapes([source_of(node.operands[0], (ops.Slice, ops.Reshape))]),
    ops.Gather: lambda node: _shapes((*node.operands, *node.outputs)),
}
"""The operations with a case of their own in `_dims`."""
