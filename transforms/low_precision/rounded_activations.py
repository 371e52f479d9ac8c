"""Matrix products whose activations the runtime rounds to 8 bits in a run without options.

    len(rounded_products(graph))

On a processor with VNNI the runtime (DYNAMIC_QUANTIZATION_GROUP_SIZE, 32 by default) quantises the f32 activations of a
product with compressed weights in groups of 32 along the summed axis. It does so for weights of u8 and u4, and of i8
and i4 without zero points, with scales for each row or for blocks of at least 4 elements that fit the groups.
"""

from __future__ import annotations

import math

from mo_loop import ops
from mo_loop.errors import ConversionWarning
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.types import i4, i8, u4, u8
from mo_loop.ops.base import Constant
from mo_loop.transforms.low_precision.saturation import has_quantised_activations
from mo_loop.transforms.operands import behind

GROUP = 32
LEAST_BLOCK = 4
"""The runtime expands weights of smaller blocks when it compiles the model."""
PROPERTY = "DYNAMIC_QUANTIZATION_GROUP_SIZE"

_UNSIGNED, _SIGNED = (u8, u4), (i8, i4)


def rounded_products(graph: Graph) -> list[Node]:
    """The products in all scopes, unless the model switches the rounding off."""
    options = graph.rt_info.get("runtime_options", {})
    if str(options.get(PROPERTY, GROUP)) == "0" or options.get("EXECUTION_MODE_HINT") == "ACCURACY":
        return []
    return [node for scope in graph.scopes() for node in scope.of(ops.MatMul) if _is_rounded(node)]


def rounding_text(count: int) -> str:
    """The sentence of the warning and of the diagnostic."""
    products = "matrix product has" if count == 1 else "matrix products have"
    return (
        f"{count} {products} compressed weights: on processors with VNNI the runtime rounds the activations to 8 bits "
        f"in groups of {GROUP}, unless {PROPERTY} is 0"
    )


def rounding_warning(graph: Graph) -> ConversionWarning | None:
    """One warning for all such products; None if there is none."""
    found = rounded_products(graph)
    return ConversionWarning(rounding_text(len(found)), where=found[0].origin, code="ML500") if found else None


def _is_rounded(product: ops.MatMul) -> bool:
    activations, weights = product.operands
    shape = weights.shape
    if activations.dtype.bits != 32 or shape is None or len(shape) < 2 or not all(isinstance(d, int) for d in shape):
        return False
    if any(size != 1 for size in shape[:-2]) or has_quantised_activations(product):
        return False  # several matrices, or a product of integers
    columns, summed = shape[-2:] if product.transpose_b else shape[:-3:-1]
    scaled = behind(weights, (ops.Transpose, ops.Convert)).node
    if isinstance(scaled, ops.Reshape) and scaled.output.only_use and scaled.operands[0].rank == len(shape) + 1:
        scaled = scaled.operands[0].node  # blocks are a dimension of their own
    if columns in (0, 1) or not isinstance(scaled, ops.Multiply):
        return False
    integers, zero = _decompressed(scaled.operands[0])
    if integers is None or not (integers.dtype in _UNSIGNED or (integers.dtype in _SIGNED and zero is None)):
        return False
    if zero is not None and zero.dtype not in _UNSIGNED:
        return False
    parameters = (scaled.operands[1], zero)
    return all(_fits(each, int(str(columns)), int(str(summed))) for each in parameters if each is not None)


def _decompressed(x: Value) -> tuple[Value | None, Value | None]:
    """The constant integers of (Convert(integers) - Convert(zero)), and the zero point."""
    zero = None
    if isinstance(x.node, ops.Subtract):
        x, second = x.node.operands
        zero = second.node.operands[0] if isinstance(second.node, ops.Convert) else second
    if not isinstance(x.node, ops.Convert) or x.only_use is None:  # the runtime expands what others read, too
        return None, None
    source = x.node.operands[0]
    return (source, zero) if isinstance(source.node, Constant) else (None, None)


def _fits(parameter: Value, columns: int, summed: int) -> bool:
    """Whether there is one scale or zero point for each column, or for each block that fits the groups."""
    count = math.prod(dim if isinstance(dim, int) else 0 for dim in parameter.shape or ())
    groups = max(1, count // columns if count % columns == 0 else count)
    size, rest = divmod(summed, groups)
    return rest == 0 and size >= LEAST_BLOCK and (groups == 1 or size % min(GROUP, size) == 0)
