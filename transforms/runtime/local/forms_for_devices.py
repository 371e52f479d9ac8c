"""Forms for one device, most of which cost other devices time."""

from collections.abc import Collection

import numpy as np

from mo_loop.graph.dimension import Dimension, low
from mo_loop.graph.shape import assume_fixed, element_count, of_declared_sizes
from mo_loop.graph.types import i64
from mo_loop.ops.control import Control
from mo_loop.ops.convolution import Filtered
from mo_loop.ops.recurrent import Recurrent, Sequence
from mo_loop.target import ARM, ERROR, GPU
from mo_loop.transforms.low_precision.weights import KEEPING_8_BITS, LEVELS
from mo_loop.transforms.pattern import wrap_type
from mo_loop.transforms.replace import move_readers
from mo_loop.transforms.runtime.inference import is_inferred
from mo_loop.transforms.runtime.local.rule import both_orders, is_declared, is_weights, maximum_rule, rule
from mo_loop.transforms.vocabulary import Constant, F, Gap, Node, Parameter, Use, Value, is_static, ops, source_of


@rule(wrap_type((ops.Add, ops.Subtract, Recurrent)), "the row, computed at run time", Gap(
    "product-plus-row",
    "a `MatMul` whose second operand is not constant, plus a constant row, does not compile in f16 (\"could not create "
    "a primitive descriptor\")", severity=ERROR, device=ARM, alone=True,
))
def ComputeRowAtRunTime(node: ops.Binary | Recurrent) -> Node | None:
    """MatMul(a, b) + c  ->  MatMul(a, b) + Barrier(c, value), where c is a constant row and b is not constant

    The runtime makes c the bias of the product, also after constant factors, and has no such product of f16 on ARM. It
    makes such products of recurrent operations whose weights are not constant.
    """
    port = port_of_bias(node)
    if port is None:
        return None
    node.graph.set_input(node, port, F.Barrier(node.operands[port], hides="value"))
    return node


def port_of_bias(node: ops.Binary | Recurrent) -> int | None:
    """The port with the constant bias of a product whose second operand is not constant."""
    if not isinstance(node, ops.Binary):
        *_, weights, recurrent, bias = node.operands
        is_biased = bias.rank != recurrent.rank and is_weights(bias)
        return len(node.inputs) - 1 if is_biased and not (is_weights(weights) and is_weights(recurrent)) else None
    for port, (row, other) in enumerate(both_orders(node)):
        product = source_of(other, ops.Multiply).node
        is_dynamic = isinstance(product, ops.MatMul) and not is_weights(product.operands[1])
        if is_dynamic and is_weights(row) and other.rank and _is_row(row, other.type.dims[-1]):
            return port
    return None


def _is_row(row: Value, columns: Dimension) -> bool:
    """Whether a tensor has one row of so many elements; a scalar is a row of one element."""
    *others, length = row.type.dims or [1]
    return length == columns and all(each == 1 for each in others)


@rule(wrap_type(ops.SoftPlus), "`max(x, 0) - log(sigmoid(|x|))`", Gap(
    "soft-plus", "`SoftPlus` is off by up to 0.0005", device=ARM, alone=True,
))
def SoftPlusToLog(node: ops.SoftPlus) -> Node:
    """SoftPlus(x)  ->  max(x, 0) - log(sigmoid(|x|))

    The runtime makes a SoftPlus of log(1 + exp(x)).
    """
    (x,) = node.operands
    return ops.Subtract(F.Maximum(x, 0.0), F.Log(F.Sigmoid(F.Abs(x))))


@maximum_rule(wrap_type(ops.AvgPool), "`max(x, x)` of the average", Gap(
    "quantised-average", "`AvgPool` between two `FakeQuantize` is rounded to the steps of the first", device=ARM,
    alone=True,
))
def ReadAverageTwice(node: ops.AvgPool) -> Value | None:
    """FakeQuantize(AvgPool(x))  ->  FakeQuantize(max(AvgPool(x), AvgPool(x)))

    The runtime makes both operations one, with inputs and results of 8 bits, which rounds before it scales.
    """
    return node.output if is_quantised_average(node) else None


def is_quantised_average(node: ops.AvgPool) -> bool:
    """Whether a FakeQuantize reads the average."""
    return any(isinstance(use.node, ops.FakeQuantize) for use in node.output.uses)


@maximum_rule(wrap_type(ops.MatMul), "`max(x, x)` of the activations: the product is one of f32", Gap(
    "scales-of-columns",
    "a `MatMul` of quantised activations and weights with a scale for each column is wrong, if the number of rows is "
    "not known", device=ARM, alone=True,
))
def ReadQuantisedRowsTwice(node: ops.MatMul) -> Use | None:
    """MatMul(x, w * s)  ->  MatMul(max(x, x), w * s), where x comes from a FakeQuantize, and s has several elements

    The runtime multiplies the columns of the product of integers by s, and reads other numbers in place of s.
    """
    return Use(node, 0) if has_scales_of_columns(node) else None


def has_scales_of_columns(node: ops.MatMul) -> bool:
    """Whether it is such a product of an unknown number of rows."""
    x, weights = node.operands
    source = source_of(x, (*KEEPING_8_BITS, ops.Convert)).node
    is_quantised = isinstance(source, ops.FakeQuantize) and source.levels <= LEVELS
    return is_quantised and not is_static(x.shape) and _has_scales(weights)


def _has_scales(value: Value) -> bool:
    """Whether a value is a quantised constant with several scales."""
    value = source_of(value, (ops.Reshape, ops.Transpose, ops.Convert))
    if not isinstance(value.node, ops.Multiply | ops.Dequantize | ops.FakeQuantize) or not is_weights(value):
        return False
    return element_count(value.node.operands[1].shape) != 1


@rule(wrap_type(Sequence), "`Pad` before it, `Slice` after it", Gap(
    "gpu-sequence-without-steps", "a sequence without a step is an error after an inference with steps",
    severity=ERROR, device=GPU, alone=True,
))
def AddStepToEmptySequence(node: Sequence) -> Node | None:
    """RNNSequence(x : [N,T,C], h, lengths)  ->  Slice(RNNSequence(Pad(x, max(1 - T, 0) steps), h, lengths), T steps)

    The lengths stay, so that the added step computes nothing.
    """
    x = node.operands[0]
    if x.shape is None or low(x.shape[1]) > 0:
        return None
    steps = F.Gather(x.sizes, [1], 0)
    zeros = F.Constant(np.zeros(1), graph=node.graph, dtype=i64)
    ends = F.Concat(zeros, F.Maximum(1 - steps, [0]), zeros, axis=0)
    padded = F.Pad(x, [0, 0, 0], ends, 0.0)
    node.graph.set_input(node, 0, F.AtLeast(padded, sizes=(0, 1, 0)))
    readers = node.outputs[0].uses
    move_readers(node.outputs[0], F.Slice(node.outputs[0], [0], steps, [1], [2]), readers)
    return node


@rule(wrap_type(ops.Multiply, when=lambda y: y.dtype.is_float), "the scale multiplied first", Gap(
    "gpu-scales-of-groups", "a scale of RMS normalisation with more numbers than the last axis is read for the first "
    "group alone", device=GPU,
))
def ScaleGroupsFirst(node: ops.Multiply) -> Node | None:
    """x * (1 / Sqrt(Mean(x^2) + e)) * s  ->  x * s * (1 / Sqrt(Mean(x^2) + e)), where s is [3,2] for x : [N,3,2]

    The plugin makes one operation of the first form, which has a scale for each element of the last axis.
    """
    for normalised, scale in both_orders(node):
        if not isinstance(normalised.node, ops.Multiply) or not scale.rank or not is_weights(scale):
            continue
        for x, inverse in both_orders(normalised.node):
            by_root = isinstance(inverse.node, ops.Power) or (
                isinstance(inverse.node, ops.Divide) and isinstance(inverse.node.operands[1].node, ops.Sqrt)
            )
            if by_root and inverse.rank and inverse.type.dims[-1] == 1 != element_count(scale.type.dims[:-1]):
                return ops.Multiply(x * scale, inverse)
    return None


def _is_one_matrix(value: Value) -> bool:
    """Whether it is a matrix of declared sizes that is not constant, also with leading dimensions of 1."""
    return (value.rank or 0) >= 2 and is_declared(value) and set(value.type.dims[:-2]) <= {1} and not is_weights(value)


@rule(wrap_type(ops.MatMul, when=lambda y: (y.rank or 0) >= 4), "a `Reshape` that hides the number of rows", Gap(
    "gpu-matrix-of-first-inference", "a product of a tensor of four or more dimensions and unknown sizes with a matrix "
    "of known sizes that is not constant takes the matrix of the first inference", device=GPU,
))
def HideRowsOfMatrix(node: ops.MatMul) -> Node | None:
    """MatMul(x : [?,?,?,7], w : [7,3])  ->  MatMul(x, Reshape(w, [zero, 0]))

    The plugin makes a layer with weights of it, rearranges them once, and keeps the result.
    """
    x, matrix = node.operands
    if is_declared(x) or not _is_one_matrix(matrix) or _is_hidden(matrix):
        return None
    node.graph.set_input(node, 1, _hidden(matrix, [matrix.type.rank - (1 if node.transpose_b else 2)]))
    return node


def _hidden(value: Value, axes: Collection[int]) -> Value:
    """A view of a value whose sizes along these axes the runtime does not know."""
    zeros = F.Constant(np.zeros(1), graph=value.graph, dtype=i64)
    hidden = F.Barrier(zeros, hides="value")
    sizes = [hidden if axis in axes else zeros for axis in range(value.type.rank)]
    return F.Reshape(value, F.Concat(*sizes, axis=0) if len(sizes) > 1 else hidden, special_zero=True)


def _is_hidden(value: Value) -> bool:
    """Whether it is such a view."""
    sizes = value.node.operands[1] if isinstance(value.node, ops.Reshape) else value
    parts = sizes.node.operands if isinstance(sizes.node, ops.Concat) else (sizes,)
    return any(isinstance(each.node, ops.Barrier) for each in parts)


def _ends_at_run_time(value: Value) -> bool:
    """Whether bounds of the Slice are not constant."""
    _, starts, ends, *_ = value.node.operands
    return not isinstance(starts.node, Constant) or not isinstance(ends.node, Constant)


@rule(wrap_type(ops.Slice, when=_ends_at_run_time), "a `Reshape` that hides the sizes before it", Gap(
    "gpu-bounded-slice", "after a `Slice` of an input of known size with computed bounds, a product with constant "
    "weights, times a vector, has as many rows as the whole; other operations end the process", device=GPU, alone=True,
))
def HideSlicedSizes(node: ops.Slice) -> Node | None:
    """Slice(x : [3,?], 0, e)  ->  Slice(Reshape(x, [zero, 0]), 0, e), where e is computed

    The plugin takes the known size, which is the most that the slice may have, for its size.
    """
    x, dims = node.operands[0], of_declared_sizes(node.operands[0].shape) or ()
    given = node.operands[4].type.integers if len(node.operands) > 4 else range(len(dims))
    if len(dims) < 2 or given is None or node.graph.owner is not None or _is_hidden(x) or is_inferred(node.output):
        return None
    if not isinstance(source_of(x, ops.View).node, Parameter):  # elsewhere the zero would cost small models 10%
        return None
    if any(isinstance(use.node, Control) for use in node.output.uses):  # what a loop slices has no such reader
        return None
    known = [axis % len(dims) for axis in given if isinstance(dims[axis], int)]
    if not known:
        return None
    node.graph.set_input(node, 0, _hidden(x, known))
    return node


def _is_of_concat(value: Value) -> bool:
    return isinstance(value.node.operands[0].node, ops.Concat)


@rule(wrap_type(ops.Slice, when=_is_of_concat), "an end above 0", Gap(
    "gpu-negative-end-of-concat",
    "a `Slice` of a `Concat` with an end below 0 is empty, if another one is an operand of the Concat", device=GPU,
))
def CountEndFromStart(node: ops.Slice) -> Node | None:
    """Slice(Concat(x, y) : [4,3], 0, -1)  ->  Slice(Concat(x, y), 0, 3)

    The plugin replaces the Concat and its slices by others, and takes the length of an operand away from the end.
    """
    x, _, ends, *_ = node.operands
    axes = node.operands[4].type.integers if len(node.operands) > 4 else range(x.type.rank)
    if ends.type.integers is None or axes is None or not isinstance(ends.node, Constant):
        return None
    sizes = [x.type.dims[axis] for axis in axes]
    counted = [
        end + size if isinstance(size, int) and -size <= end < 0 else end
        for end, size in zip(ends.type.integers, sizes, strict=True)
    ]
    if counted == [*ends.type.integers] or any(step != 1 for step in node.operands[3].type.integers or (0,)):
        return None
    node.graph.set_input(node, 2, F.Constant(counted, graph=node.graph, dtype=ends.dtype))
    return node


@maximum_rule(wrap_type(ops.MatMul, attributes={"transpose_b": True}), "`max(x, x)`", Gap(
    "gpu-sliced-matrix",
    "a product with a transposed matrix that is a `Slice` of a computed tensor of known sizes with leading dimensions "
    "of 1 does not compile", severity=ERROR, device=GPU,
))
def CopySlicedMatrix(node: ops.MatMul) -> Use | None:
    """MatMul(x, s, transpose_b)  ->  MatMul(x, max(s, s), transpose_b), where s is Slice(y : [1,1,5,8])

    The plugin rearranges the matrix as weights, with the bytes after it.
    """
    _, matrix = node.operands
    return Use(node, 1) if isinstance(matrix.node, ops.Slice) and _is_one_matrix(matrix) else None


@rule(wrap_type(ops.GroupConvolutionBackpropData), "the operation with two dimensions", Gap(
    "gpu-transposed-groups", "`GroupConvolutionBackpropData` with one dimension does not compile, or is wrong if sizes "
    "are unknown", device=GPU,
))
def AddDimensionToTransposedGroups(node: ops.GroupConvolutionBackpropData) -> Node | None:
    """GroupConvolutionBackpropData(x : [N,C,W], w : [G,C/G,O/G,K])  ->  Squeeze(... (Unsqueeze(x, 2), Unsqueeze(w, 3)))

    The plugin has dimensions of groups for filters of at least five dimensions alone.
    """
    x, filters, *sizes = node.operands
    if filters.rank != 4:
        return None
    more = {
        name: (neutral, *getattr(node, name))
        for name, neutral in {"strides": 1, "dilations": 1, "pads_begin": 0, "pads_end": 0, "output_padding": 0}.items()
    }
    wide = F.GroupConvolutionBackpropData(
        F.Unsqueeze(x, [2]), F.Unsqueeze(filters, [3]), *(F.Concat([1], each, axis=0) for each in sizes),
        **node.attribute_values() | more,
    )
    return ops.Squeeze(wide, [2])


@rule(wrap_type((ops.Convolution, ops.GroupConvolution)), "the operation on a row", Gap(
    "gpu-column", "a convolution of a column of known height and of an unknown batch takes wrong numbers, or ends the "
    "process", device=GPU,
))
def ConvolveRow(node: Filtered) -> Node | None:
    """Convolution(x : [N,8,9,1], w : [O,8,3,1])  ->  the same of [N,8,1,9] and [O,8,1,3], moved back

    The plugin swaps the height and the width for a faster kernel (`can_swap_xy`), but not in the sizes that the kernel
    gets in each inference. With one dimension, and some activations after it, a convolution does not compile.
    """
    x, filters = node.operands
    batch, *_, height, width = of_declared_sizes(x.shape) or (None, None, None)
    *groups, rows, columns = filters.type.dims
    is_column = x.rank == 4 and width == columns == 1 and rows != 1 and node.pads_begin[1] == node.pads_end[1] == 0
    is_each_alone = isinstance(node, ops.GroupConvolution) and groups[1:] == [1, 1]
    if not is_column or is_each_alone or isinstance(batch, int) or not isinstance(height, int):
        return None
    if not isinstance(filters.node, Constant):  # the runtime finds quantised filters before a convolution alone
        return None
    assume_fixed(x.type.dims[3:])
    swapped = {name: getattr(node, name)[::-1] for name in ("strides", "dilations", "pads_begin", "pads_end")}
    convolve = F.GroupConvolution if isinstance(node, ops.GroupConvolution) else F.Convolution
    row, kernel = F.Unsqueeze(F.Squeeze(x, [3]), [2]), F.Constant(filters.node.array.swapaxes(-1, -2), graph=node.graph)
    return ops.Unsqueeze(F.Squeeze(convolve(row, kernel, **node.attribute_values() | swapped), [2]), [3])
