"""Forms for one device, most of which cost other devices time."""

import numpy as np

from mo_loop.graph.dimension import Dimension, low
from mo_loop.graph.shape import element_count
from mo_loop.graph.types import i64
from mo_loop.ops.recurrent import Recurrent, Sequence
from mo_loop.target import ARM, ERROR, GPU
from mo_loop.transforms.low_precision.weights import KEEPING_8_BITS, LEVELS
from mo_loop.transforms.pattern import wrap_type
from mo_loop.transforms.replace import move_readers
from mo_loop.transforms.runtime.local.rule import both_orders, is_weights, maximum_rule, rule
from mo_loop.transforms.vocabulary import F, Gap, Node, Use, Value, is_static, ops, source_of


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
