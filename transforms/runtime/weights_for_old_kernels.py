"""Compressed weights that the matrix products of older releases read wrongly."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from mo_loop import ops
from mo_loop.graph import Use, Value
from mo_loop.graph.tensor import ArrayTensor, DeferredTensor, Tensor
from mo_loop.graph.types import ElementType, i4, u4, u8
from mo_loop.ops.base import Constant
from mo_loop.target import CRASH, NEVER, Gap, Processor
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.low_precision.weights import is_weights
from mo_loop.transforms.replace import drop_dead, move_readers

WHOLE = 16
"""Columns that the kernels of older releases compute at once."""


class SpreadScales(FunctionPass):
    """MatMul(x, Dequantize(w, one scale))  ->  MatMul(x, Dequantize(w, the same scale for each column))
       MatMul(x, Dequantize(w, scales, one zero point))  ->  the same zero point for each scale
    """

    instead = "the same scale for each column"
    avoids = (
        Gap(
            "row-times-weights-of-one-scale", "`MatMul` of a single row with 4- or 8-bit weights of one scale is wrong",
            until="2024.6.0", on={Processor.SSE41: NEVER},
        ),
        Gap(
            "columns-of-one-zero-point",
            "`MatMul` of few rows with 4- or 8-bit weights of one zero point has wrong last columns if their number "
            "is not a multiple of 16", "the same zero point for each column", until="2025.0.0",
            on={Processor.SSE41: NEVER},
        ),
    )  # fmt: skip

    kinds = (ops.Dequantize,)

    def rewrite(self, node: ops.Dequantize) -> bool:
        sizes = [each.node.tensor.size for each in node.inputs[1:] if each and isinstance(each.node, Constant)]
        if not is_weights(node.output) or 1 not in sizes:
            return self.refuse(node, "it is not of weights with one scale or zero point")
        shape = node.inputs[0].type.shape
        by_axis: dict[int, list[Use]] = {}
        for use in node.output.uses:
            axis = _columns(use, len(shape))
            if axis is not None and shape[axis] > 1 and (sizes[0] == 1 or shape[axis] % WHOLE):
                by_axis.setdefault(axis, []).append(use)
        if not by_axis:
            return self.refuse(node, "no matrix product has its numbers as second input")
        for axis, readers in by_axis.items():
            made = _with_many(node, axis, shape[axis])
            move_readers(node.output, made.output, readers)
        drop_dead([node])
        return self.accept(node)


def _with_many(node: ops.Dequantize, axis: int, columns: int) -> ops.Dequantize:
    """The same numbers, with a scale for each column, and with a zero point for each scale if that is needed."""
    x, scale, zero = (*node.inputs, None)[:3]
    attributes = node.attribute_values()
    if scale.node.tensor.size == 1:
        scale = _repeated(scale, (columns,))
        attributes |= {"axis": axis, "block_size": 0}
    if zero is not None and columns % WHOLE:
        zero = _repeated(zero, scale.node.tensor.shape, {u4: u8}.get(zero.dtype, zero.dtype))
    return ops.Dequantize(x, scale, zero, **attributes)


def _columns(use: Use, rank: int) -> int | None:
    """The axis of weights along which a matrix product does not sum; None for other readers, and for several.

    A product of quantised activations is computed with integers, which is right.
    """
    node, port = use
    if isinstance(node, ops.MatMul) and port == 1 and rank > 1:
        if isinstance(node.operands[0].node, ops.FakeQuantize):
            return None
        return rank - 2 if node.transpose_b else rank - 1
    if not isinstance(node, ops.Transpose | ops.Convert) or port:
        return None
    found = {_columns(each, rank) for each in node.output.uses}
    axis = found.pop() if len(found) == 1 else None
    return None if axis is None else node.axis_map(0)[axis]


def _repeated(parameter: Value, shape: Sequence[int], dtype: ElementType | None = None) -> Value:
    assert isinstance(parameter.node, Constant)
    if parameter.node.tensor.size != 1:
        return parameter
    to = dtype or parameter.dtype
    array = np.full(shape, parameter.node.array.reshape(())).astype(to.numpy)
    return Constant(ArrayTensor(array, to), graph=parameter.graph).output


class UnsignedWeights(FunctionPass):
    """Dequantize(w, scale, zero point) of i4  ->  Dequantize(w + 8, scale, zero point + 8) of u4"""

    instead = "the numbers and the zero points are larger by 8, in u4"
    avoids = (Gap(
        "zero-points-of-i4", "`MatMul` with weights of i4 that have zero points is wrong", until="2025.3.0",
        on={Processor.SSE41: NEVER},
    ),)  # fmt: skip

    kinds = (ops.Dequantize,)

    def rewrite(self, node: ops.Dequantize) -> bool:
        x, scale, zero = (*node.inputs, None)[:3]
        if not is_weights(node.output) or zero is None or {x.dtype, zero.dtype} != {i4}:
            return self.refuse(node, "it is not of weights of i4 with zero points of i4")
        moved = [Constant(_shifted(each.node.tensor), graph=node.graph, name=each.node.name) for each in (x, zero)]
        for new, old in zip(moved, (x, zero), strict=True):
            new.origins = old.node.origins
        attributes = node.attribute_values()
        made = ops.Dequantize(moved[0].output, scale, moved[1].output, **attributes)
        move_readers(node.output, made.output, node.output.uses)
        drop_dead([node])
        return self.accept(node)


class DivideStackedWeights(FunctionPass):
    """MatMul(x, Dequantize(w : [B, K, N]))  ->  MatMul(x, Dequantize(w) {divided: true}), a Reshape of [B, 1, K, N]

    Weights of 4 bits are expanded, also those in blocks: in this form they are wrong with a factor after the product.
    Weights of several blocks of 8 bits are reshaped in any case.
    """

    instead = "8-bit weights of [B, 1, K, N], and a `Reshape` to [B, K, N]; 4-bit weights in f32"
    avoids = (Gap(
        "stacked-weights",
        "`MatMul` with several matrices of 4- or 8-bit weights is wrong, does not run, or ends the process",
        severity=CRASH, since="2025.4.1", until="2025.4.1", on={Processor.SSE41: NEVER},
    ),)  # fmt: skip

    kinds = (ops.Dequantize,)

    def rewrite(self, node: ops.Dequantize) -> bool:
        if not is_weights(node.output) or node.divided or node.expanded:
            return self.refuse(node, "it is not of weights, or has their last form")
        shape = node.inputs[0].type.shape
        if len(shape) != 3 or shape[0] == 1 or all(_columns(use, 3) is None for use in node.output.uses):
            return self.refuse(node, "it is not of several matrices that a product of numbers reads")
        is_narrow = node.inputs[0].type.dtype.bits < 8
        node.divided, node.expanded = not is_narrow, is_narrow
        return self.accept(node)


def _shifted(tensor: Tensor) -> Tensor:
    """The numbers plus 8 in u4: the highest bit of each is inverted."""

    def blocks() -> Iterator[bytes | memoryview]:
        for block in tensor.blocks():
            yield (np.frombuffer(block, np.uint8) ^ 0x88).tobytes()

    return DeferredTensor(u4, tensor.shape, blocks, tensor.files)
