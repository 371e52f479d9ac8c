"""Operators of comparison, logic, bits and selection.

BitCast reads the same bits as another type. The IR has no such operation; between integers, arithmetic does it.
"""

import numpy as np

from mo_loop.frontend.ops.elementwise.arithmetic import legacy_binary, number
from mo_loop.frontend.vocabulary import ModelError, UnsupportedError, Value, one_to_one, ops, translates
from mo_loop.graph.types import ElementType, boolean, from_onnx, i32, u16
from mo_loop.target import NEVER, Gap, Processor

AVOIDS = {
    "Greater": (
        Gap(
            "greater-of-nan", "`Greater` and `GreaterEqual` are true for NaN",
            "`Less` and `LessEqual` with swapped inputs", on={Processor.AVX2: NEVER},
        ),
    ),
    "BitwiseNot": (
        Gap("not-of-16-bits", "`BitwiseNot` of u16 is 0", "`65535 - x`", until="2025.3.0"),
    ),
}  # fmt: skip
"""Operator -> the errors of the runtime that its translator avoids."""


def greater(a: Value, b: Value):
    """a > b. The runtime computes Greater as the opposite of LessEqual, so that it holds for NaN; Less does not."""
    return b < a if a.dtype.is_float else a > b


def greater_or_equal(a: Value, b: Value):
    """a >= b, which does not hold for NaN either."""
    return b <= a if a.dtype.is_float else a >= b


for _op, _make in {
    "Equal": ops.Equal, "Greater": greater, "Less": ops.Less, "And": ops.LogicalAnd, "Or": ops.LogicalOr,
    "Xor": ops.LogicalXor,
}.items():  # fmt: skip
    legacy_binary(_op, _make)

one_to_one({"Not": ops.LogicalNot})
translates("GreaterOrEqual", since=12, elementwise=True)(lambda a, b: greater_or_equal(a, b))
one_to_one({"LessOrEqual": ops.LessEqual}, inputs=2, since=12)
translates("Where", since=9, elementwise=True)(lambda condition, x, y: ops.Select(condition, x, y))

one_to_one({"IsNaN": ops.IsNaN}, since=9)
one_to_one({"BitwiseAnd": ops.BitwiseAnd, "BitwiseOr": ops.BitwiseOr, "BitwiseXor": ops.BitwiseXor}, inputs=2, since=18)


@translates("BitwiseNot", since=18, elementwise=True)
def bitwise_not(x):
    """For unsigned 16 bits, the difference from the largest number: the runtime computes the opposite in 32 bits, and
    converts a number below 0 to 0 before 2025.4."""
    return number(x, 2**16 - 1) - x if x.dtype is u16 else ops.BitwiseNot(x)


@translates("IsInf", since=10, elementwise=True)
def is_inf(x, *, detect_negative: int = 1, detect_positive: int = 1):
    """Whether an element is an infinity of one of the selected signs."""
    return ops.IsInf(x, detect_negative=bool(detect_negative), detect_positive=bool(detect_positive))


@translates("BitShift", since=11, elementwise=True)
def bit_shift(x, y, *, direction: str):
    """Shifts by more bits than the type has give 0, or -1 for a negative number shifted right."""
    if direction not in ("LEFT", "RIGHT"):
        raise ModelError(f"BitShift in direction {direction!r}", code="ML227")
    shift = ops.BitwiseLeftShift if direction == "LEFT" else ops.BitwiseRightShift
    bits, distance = x.dtype.bits, y.constant
    if distance is not None and np.all((distance >= 0) & (distance < bits)):
        return shift(x, y)
    # The runtime takes the distance modulo the number of bits.
    outside = y >= bits
    if y.dtype.kind == "int":
        outside = outside | (y < 0)
    if x.dtype.kind == "int" and direction == "RIGHT":
        return shift(x, ops.Select(outside, number(y, bits - 1), y))
    return ops.Select(outside, number(x, 0), shift(x, y))


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
