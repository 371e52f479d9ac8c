"""BitCast: reads the same bits as another type. The IR has no such operation; between integers, arithmetic does it."""

import numpy as np

from mo_loop.frontend.ops.elementwise.arithmetic import number
from mo_loop.frontend.vocabulary import ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import ElementType, boolean, from_onnx, i32


@translates("BitCast", since=26)
def bit_cast(input, *, to: int):
    """To a type of the same width."""
    target = from_onnx(to)
    if target is input.dtype:
        return input
    if target.bits != input.dtype.bits or not target.bits:
        raise ModelError(f"a BitCast from {input.dtype} to {target}, which has another width", code="ML227")
    constant = _of_constant(input, target)
    if constant is not None:
        return constant
    if input.dtype is boolean and target.is_integer:
        return ops.Convert(input, destination_type=target)
    if target is boolean and input.dtype.is_integer:
        return ops.NotEqual(input, 0)
    if not input.dtype.is_integer or not target.is_integer or target.bits < 8:
        raise UnsupportedError(
            f"a BitCast from {input.dtype} to {target}: no operation of the IR reads the bits of one as the other, and "
            "arithmetic loses those of NaN", code="ML316",
        )  # fmt: skip
    return _wrapped(input, target)


def _of_constant(x: Value, target: ElementType) -> Value | None:
    if target.bits < 8 or x.dtype is boolean or target is boolean:
        return None
    array = x.constant
    if array is None:
        return None
    return ops.Constant(np.ascontiguousarray(array).view(target.numpy), graph=x.graph, dtype=target)


def _wrapped(x: Value, target: ElementType):
    """Integers outside the range change by 2^bits. The runtime stores 32-bit and 64-bit integers in 32 bits, so those
    do not change."""
    if target.bits > 16:
        return ops.Convert(x, destination_type=target)
    wide = ops.Convert(x, destination_type=i32)
    span = 1 << target.bits
    if target.kind == "uint":
        moved = ops.Select(wide < 0, wide + span, wide)
    else:
        moved = ops.Select(wide < number(wide, span // 2), wide, wide - span)
    return ops.Convert(moved, destination_type=target)
