"""Values that the GPU device reads in its host code, and its own count of iterations."""

import math

import numpy as np

from mo_loop.graph.shape import assume_fixed, of_declared_sizes
from mo_loop.ops.control import Control, Loop, TensorIterator
from mo_loop.ops.convolution import Filtered
from mo_loop.ops.port_map import Sliced
from mo_loop.target import ERROR, GPU
from mo_loop.transforms.pattern import wrap_type
from mo_loop.transforms.runtime.inference import VIEWS, is_inferred
from mo_loop.transforms.runtime.local.rule import is_declared, is_static_model, is_weights, maximum_rule, rule
from mo_loop.transforms.vocabulary import Constant, F, Gap, Node, Op, Parameter, Use, Value, integers, ops, source_of


def _reads_iteration(value: Value) -> bool:
    """Whether the first input is the iteration number."""
    owner = value.graph.owner
    return isinstance(owner, Loop) and value.node.operands[0].node is owner.iteration


@rule(wrap_type((ops.Add, ops.Subtract), when=_reads_iteration), "`1 + i`", Gap(
    "gpu-iteration-plus-one",
    "`i + 1` or `i - -1` of the iteration number in a `Loop` with a concatenated output does not compile: the device "
    "adds the same node to the body, and one of them is removed",
    severity=ERROR, device=GPU,
))
def AddIterationToOne(node: ops.Add | ops.Subtract) -> Node | None:
    """i + 1  ->  1 + i, and i - (-1) likewise, where i is the iteration number"""
    step = 1 if isinstance(node, ops.Add) else -1
    if integers(node, 1) != (step,):
        return None
    return ops.Add(Constant(abs(node.operands[1].node.array), graph=node.graph), node.operands[0])


@rule(
    wrap_type((ops.BitwiseAnd, ops.BitwiseOr, ops.BitwiseXor, ops.SquaredDifference)),
    "a number plus a zero that cannot be folded",
    Gap(
        "gpu-bits-of-sizes",
        "`BitwiseAnd`, `BitwiseOr`, `BitwiseXor` and `SquaredDifference` of numbers that are computed from sizes, such "
        "as a `Range`, do not run: the host code has no such operation",
        severity=ERROR, device=GPU,
    ),
)
def ReadSizesAtRunTime(node: ops.Binary) -> Node | None:
    """BitwiseAnd(Range(0, n), c)  ->  BitwiseAnd(Range(0, Barrier(n, value)), c), where n is computed from sizes"""
    port = next((port for port, each in enumerate(node.operands) if not isinstance(each.node, Constant)), None)
    if port is None or not all(map(is_inferred, node.operands)):
        return None
    reader: Node = node
    if isinstance(node.operands[port].node, ops.Range):
        reader, port = node.operands[port].node, 1
    reader.graph.set_input(reader, port, F.Barrier(reader.operands[port], hides="value"))
    return node


@rule(wrap_type(ops.Multiply, when=lambda y: (y.rank or 0) >= 5), "`Unsqueeze` of the factor", Gap(
    "gpu-factor-of-sizes",
    "a tensor of 5 or more dimensions and unknown sizes, times a number computed from sizes, is 0 or wrong if a "
    "`Convert` to integers follows", device=GPU,
))
def RaiseRankOfSizes(node: ops.Multiply) -> Node | None:
    """x : [?,?,?,?,?] * n : [1]  ->  x * Unsqueeze(n, [0, 1, 2, 3]), where n is computed from sizes

    The plugin makes the factor one of integers, too.
    """
    x, factor = node.operands
    if factor.rank is None or factor.rank >= (x.rank or 0) or isinstance(factor.node, Constant) or is_declared(x):
        return None
    if not x.dtype.is_float or not is_inferred(factor):
        return None
    node.graph.set_input(node, 1, F.Unsqueeze(factor, list(range(x.type.rank - factor.rank))))
    return node


@maximum_rule(
    wrap_type(
        (ops.MatMul, ops.Select, ops.Broadcast, ops.Split, ops.VariadicSplit, Control),
        when=lambda y: y.graph.has(ops.Split, ops.VariadicSplit),
    ),
    "`max(p, p)`",
    Gap(
        "gpu-weights-from-piece",
        "a product with a transposed matrix that is not constant, and a piece of a `Split`, does not compile",
        severity=ERROR, device=GPU,
    ),
    Gap(
        "gpu-elements-of-whole",
        "a product, `Select`, `Broadcast`, `If` or loop that reads a piece of a `Split` of unknown size, or a view of "
        "one, reads the elements of the whole; `Select` a piece of known size too, in a model of unknown sizes, where "
        "an `If` does not take it (\"Unexpected layout of input memory\"); so does a `Split` or `VariadicSplit` along "
        "axis 1 of a piece of a `Split` along axis 1, or of a view of one along any axis",
        device=GPU,
    ),
)
def CopyPieces(node: Node) -> Use | None:
    """MatMul(x, Split(w, 0)[1], transpose_b)  ->  MatMul(x, max(p, p), transpose_b) with p = Split(w, 0)[1]
    Select(c, Split(x : [?,4], 1)[0], 0)  ->  Select(c, max(p, p), 0) with p = Split(x, 1)[0]
    Split(Split(x : [?,4], 1)[1], 1)  ->  Split(max(p, p), 1) with p = Split(x, 1)[1]

    A piece has the memory of the whole. The plugin rearranges a matrix of weights, with the bytes around it; kernels
    for unknown sizes get no strides, and a piece along axis 1 that is made in place counts from the whole.
    """
    for port, value in enumerate(node.operands):
        source = source_of(value, VIEWS)
        if not isinstance(source.node, ops.Split | ops.VariadicSplit):
            continue
        if isinstance(node, ops.Split | ops.VariadicSplit) and not _is_made_in_place(node, source):
            continue
        is_matrix = isinstance(node, ops.MatMul) and port == 1 and node.transpose_b and value.rank == 2
        of_any_size = isinstance(node, ops.Select | ops.If) and not is_static_model(node.graph)
        if is_matrix or of_any_size or not is_declared(source):
            return Use(node, port)
    return None


def _is_made_in_place(node: ops.Split | ops.VariadicSplit, source: Value) -> bool:
    """Whether the plugin makes both these pieces and `source`, which they are pieces of, without a copy."""
    of_view = node.operands[0] is not source
    return isinstance(source.node, ops.Split) and _is_along_1(node) and (of_view or _is_along_1(source.node))


def _is_along_1(node: ops.Split | ops.VariadicSplit) -> bool:
    whole, axis = node.operands[:2]
    return bool({1, 1 - (whole.rank or 0)} & set(axis.type.integers or ()))


@maximum_rule(
    wrap_type((ops.Split, ops.VariadicSplit, ops.Slice)), "`max(p, p)`",
    Gap(
        "gpu-rows",
        "elementwise operations with several inputs, `Tile`, `Broadcast`, `NonZero` and `FakeQuantize` read the first "
        "row for a piece of a vector or matrix of known sizes along its first axis", device=GPU,
    ),
    Gap(
        "gpu-repeated-piece",
        "an elementwise operation whose result has more dimensions reads the first piece of a matrix of known sizes "
        "for another one", device=GPU,
    ),
    Gap(
        "gpu-known-pieces", "an elementwise operation with several inputs reads other elements for a piece of known "
        "sizes of a tensor of unknown ones", device=GPU,
    ),
)
def CopyRows(node: Op) -> Value | None:
    """x + Split(y : [3,2], 0)[1]  ->  x + max(p, p) with p = Split(y, 0)[1]

    A piece has the memory of the whole. Kernels that broadcast, and operations that are fused, do not know where it
    begins; a matrix product rearranges its second operand (CopyPieces).
    """
    whole, *others = node.operands
    is_slice = isinstance(node, ops.Slice)
    axes = (0,) if is_slice and len(others) < 4 else others[3 if is_slice else 0].type.integers or ()
    if is_declared(whole):
        if whole.rank not in (1, 2) or (is_slice and set(others[0].type.integers or (1,)) == {0}):
            return None
        are_rows = bool({0, -whole.rank} & set(axes))
        pieces = node.outputs[0 if is_slice else 1 :]  # the first one begins where the whole does
    else:
        are_rows, pieces = True, () if is_slice else node.outputs[1 if axes == (0,) else 0 :]
    found = (each for each in pieces if is_declared(each) and not is_inferred(each))  # the host computes sizes
    return next((each for each in found if _is_read_from_start(each, are_rows)), None)


_FROM_START = (ops.Tile, ops.Broadcast, ops.NonZero, ops.FakeQuantize, ops.Select, ops.MatMul, ops.Abs)


def _is_read_from_start(value: Value, is_row: bool) -> bool:
    return any(  # AbsToMaximum makes max(-x, x) of an Abs
        (is_row and isinstance(node, _FROM_START))
        or (isinstance(node, ops.Binary) and node.operands[0] is not node.operands[1] and (
            is_row or node.output.rank != value.rank
        ))
        or (isinstance(node, ops.View) and _is_read_from_start(node.output, is_row))
        for node, _ in value.uses
    )


@rule(wrap_type((ops.Convolution, ops.ConvolutionBackpropData)), "a convolution with constant filters, `MatMul`", Gap(
    "gpu-computed-filters", "a convolution of unknown sizes takes computed filters of the first inference", device=GPU,
    alone=True,
))
def MultiplyByComputedFilters(node: Filtered) -> Node | None:
    """Convolution(x, w : [O, C, K...])  ->  [O, C * K] x GroupConvolution(x, e)
    ConvolutionBackpropData(x, w : [C, O, K...])  ->  GroupConvolutionBackpropData([O * K, C] x x, e)

    Each of the K filters of e takes one element of a window, or puts it there. The plugin rearranges filters once, and
    keeps the result.
    """
    x, filters, *others = node.operands
    dims = [dim for dim in of_declared_sizes(filters.shape) or () if isinstance(dim, int)]
    if not dims or len(dims) < filters.type.rank or is_declared(x) or is_weights(filters):
        return None
    assume_fixed(filters.type.dims)
    groups, first, channels, *kernel = dims if len(dims) > x.type.rank else (1, *dims)
    count, window = groups * channels, math.prod(kernel)
    ones = np.broadcast_to(np.eye(window), (count, window, window)).reshape(count, window, 1, *kernel)
    places = F.Constant(ones, graph=node.graph, dtype=x.dtype)
    matrix = F.Reshape(filters, [1, groups, first, channels * window])
    if isinstance(node, ops.ConvolutionBackpropData):
        product = F.MatMul(matrix, _columns(x, groups, first), transpose_a=True)
        product = _with_channels(product, count * window, x)
        return ops.GroupConvolutionBackpropData(product, places, *others, **node.attribute_values())
    pieces = F.GroupConvolution(x, places, **node.attribute_values())
    return _with_channels(F.MatMul(matrix, _columns(pieces, groups, channels * window)), groups * first, pieces).node


def _columns(value: Value, groups: int, rows: int) -> Value:
    """[N, groups * rows, D...] as [N, groups, rows, product of D]."""
    return F.Reshape(value, [0, groups, rows, -1], special_zero=True)


def _with_channels(value: Value, count: int, like: Value) -> Value:
    """The elements as [N, count, D...], where `like` is [N, C, D...]."""
    rest = F.Slice(like.sizes, [2], [like.type.rank], [1], [0])
    return F.Reshape(value, F.Concat(F.Gather(like.sizes, [0], 0), [count], rest, axis=0))


SIZES: dict[type[Node], tuple[int, ...]] = {
    ops.Slice: (1, 2, 3), ops.Tile: (1,), ops.Broadcast: (1,), ops.Pad: (1, 2), ops.Reshape: (1,), ops.If: (0,),
    Loop: (0, 1),
}
"""Operations with inputs that the host code reads, and the ports of these inputs."""


def _computes_sizes(value: Value) -> bool:
    """Whether one of these inputs is not a constant."""
    node = value.node
    ports = next(ports for kind, ports in SIZES.items() if isinstance(node, kind))
    given = (node.inputs[port] for port in ports if port < len(node.inputs))
    return any(each is not None and not isinstance(each.node, Constant) for each in given)


@maximum_rule(
    wrap_type(tuple(SIZES), when=_computes_sizes), "`max(p, p)`",
    Gap(
        "gpu-size-from-piece",
        "a bound of `Slice`, a size of `Tile` or `Broadcast`, an amount of `Pad`, or a condition, which is a piece of "
        "a `Split`, a constant `Slice`, or a slice of an unrolled loop, has the number of the first piece",
        device=GPU,
    ),
    Gap(
        "numbers-of-split",
        "sizes, bounds, widths or repeats that are parts of a `Split` of computed numbers, or of two `Slice`, are read "
        "from the first part", device=GPU,
    ),
    Gap(
        "view-as-pattern", "the pattern of a `Reshape` that is a view of a computed matrix has the rank of the matrix",
        severity=ERROR, device=GPU,
    ),
)
def CopyPiecesOfSizes(node: Node) -> Use | None:
    """Slice(x, 0, Split(ends)[1])  ->  Slice(x, 0, max(p, p)) with p = Split(ends)[1]
    Reshape(x, Squeeze(n, 0))  ->  Reshape(x, max(Squeeze(n, 0), Squeeze(n, 0)))

    Pieces and views are the memory of another tensor, which the host code reads from its start, in the shape of that
    tensor. Two Slice become a VariadicSplit. Numbers that are computed from sizes have memory of their own.
    """
    for port in next(ports for kind, ports in SIZES.items() if isinstance(node, kind)):
        value = node.inputs[port] if port < len(node.inputs) else None
        source = None if value is None else source_of(value, VIEWS)
        if value is None or source is None or isinstance(source.node, Constant) or is_inferred(value):
            continue
        if _is_piece(source):
            reader = node
            while value is not source:  # a view of a piece has other elements in a kernel, too
                reader, port, value = value.node, 0, value.node.operands[0]
            return Use(reader, port)
        if isinstance(node, ops.Reshape) and _is_view_of_matrix(value):
            return Use(node, port)
    return None


def _is_view_of_matrix(value: Value) -> bool:
    """Whether it is a view of a tensor of more dimensions; the runtime joins elements of one vector to this vector."""
    parts = value.node.operands if isinstance(value.node, ops.Concat) else []
    if parts and all(isinstance(each.node, ops.Gather) for each in parts):
        wholes = {each.node.operands[0] for each in parts}
        value = wholes.pop() if len(wholes) == 1 else value
    source = source_of(value, VIEWS)
    return source is not value and source.rank not in (0, 1)


def _is_piece(value: Value) -> bool:
    """Whether the memory of `value` is a part of that of another tensor."""
    made, owner = value.node, value.graph.owner
    if isinstance(made, ops.Slice):
        is_one_of_several = sum(isinstance(use.node, ops.Slice) for use in made.operands[0].uses) > 1
        return is_one_of_several or any(integers(made, 1) or ())
    if isinstance(made, ops.Split | ops.VariadicSplit):
        return True
    return isinstance(made, Parameter) and isinstance(owner, TensorIterator) and any(
        isinstance(each, Sliced) and each.parameter is made for each in owner.input_map
    )
