"""Operators of arithmetic, comparison, logic, bits and selection. Until opset 6, the attributes `broadcast` and `axis`
control broadcasting.

BitCast reads the same bits as another type. The IR has no such operation; between integers, arithmetic does it.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from mo_loop import ops as operations
from mo_loop.frontend.ops.shared import along_second, number, one_integer, ranked, require_choice
from mo_loop.frontend.ops.texts.strings import equal_strings
from mo_loop.frontend.vocabulary import ModelError, UnsupportedError, Value, one_to_one, ops, translates
from mo_loop.graph import Graph, element_count, normalise_axis
from mo_loop.graph.types import TensorType, boolean, f32, from_onnx, i32, i64, string, u16
from mo_loop.ops.arithmetic import Binary, Unary
from mo_loop.ops.base import Parameter, Result
from mo_loop.ops.exact import is_not_negative
from mo_loop.ops.lengths import Length
from mo_loop.ops.port_map import Final, Merged, Sliced
from mo_loop.ops.reduction import Reduction
from mo_loop.target import ERROR, GPU, NEVER, Gap, Processor

AVOIDS = (
    Gap(
        "computed-axis", "`CumSum` along a computed axis does not compile", "along the second of three axes",
        severity=ERROR, rule="translator of CumSum", device=GPU,
    ),
    Gap(
        "integer-divide", "integer `Divide` after a reduction or `MatMul` rounds instead of truncating",
        "`(a - Mod(a, b)) / b`", rule="translator of Div",
    ),
    Gap(
        "divide-8-bits", "`Divide` of 8-bit integers rounds instead of truncating",
        "`(a - Mod(a, b)) / b`, through i32", rule="translator of Div",
    ),
    Gap(
        "saturating-8-bits", "8-bit `Add`, `Subtract` and `Multiply` saturate instead of wrapping around",
        "through i32", rule="translator of Add",
    ),
    Gap(
        "saturating-16-bits", "16-bit `Add`, `Subtract` and `Multiply` saturate instead of wrapping around",
        "through i32", until="2025.3.0", rule="translator of Add",
    ),
    Gap(
        "greater-of-nan", "`Greater` and `GreaterEqual` are true for NaN", "`Less` and `LessEqual` with swapped inputs",
        on={Processor.AVX2: NEVER}, rule="translator of Greater",
    ),
    Gap("not-of-16-bits", "`BitwiseNot` of u16 is 0", "`65535 - x`", until="2025.3.0", rule="translator of BitwiseNot"),
)
"""The errors of the runtime that these translators avoid."""


def aligned(a: Value, b: Value, axis: int | None) -> Value:
    """`b` with dimensions of 1 appended, so that its first one meets dimension `axis` of `a` (opsets before 7)."""
    if axis is None or a.rank is None or b.rank is None or b.rank == 0:
        return b
    missing = a.type.known_rank - b.type.known_rank - normalise_axis(axis, a.rank)
    return b if missing <= 0 else ops.Unsqueeze(b, list(range(b.rank, b.rank + missing)))


def legacy_binary(op: str, make: Callable[[Value, Value], Any]) -> None:
    """Register both forms of a binary operator: opset 1 with `axis` and `broadcast`, opset 7 with numpy's rules."""

    def before_7(a, b, *, axis: int | None = None, broadcast: int = 0):
        return make(a, aligned(a, b, axis if broadcast else None))

    translates(op, since=1, elementwise=True)(before_7)
    translates(op, since=7, elementwise=True)(lambda a, b: make(a, b))


def wrapping(cls) -> Callable[[Value, Value], Any]:
    """An operation whose 8-bit and 16-bit results wrap around, as in ONNX Runtime; in the runtime they saturate."""

    def make(a: Value, b: Value):
        if a.dtype.bits not in (8, 16) or not a.dtype.is_integer or b.dtype is not a.dtype:
            return cls(a, b)
        return cls(a.astype(i32), b.astype(i32)).astype(a.dtype)

    return make


def divided(a: Value, b: Value):
    """ONNX divides integers towards zero.

    The runtime does the same, except for 8 bits, on ARM, where it rounds down, and where it fuses the division into a
    preceding reduction or matrix product, after it moved it before operations that only move elements: there it rounds.
    The remainder is subtracted first, so that nothing is rounded."""
    if a.dtype.is_float:
        return a / b
    is_signed = a.dtype.numpy.kind != "u" and not (is_not_negative(a) and is_not_negative(b))
    if a.dtype.bits == 8 or is_signed or _may_be_merged(a):
        a = a - ops.Mod(a, b)
    return ops.Divide(a, b, m_pythondiv=False)


def _may_be_merged(value: Value) -> bool:
    """Whether `value` comes from a reduction or matrix product through elementwise operations and movements only."""
    seen: set[Any] = set()
    stack = [value.node]
    while stack and len(seen) < 64:
        node = stack.pop()
        if isinstance(node, _MERGING):
            return True
        if node not in seen and isinstance(node, _PASSED):
            stack.extend(each.node for each in node.inputs if each is not None)
        seen.add(node)
    return bool(stack)


_MERGING = (Reduction, operations.MatMul, operations.Einsum)
_PASSED = (
    Binary, Unary, operations.Select, operations.Convert, operations.Broadcast, operations.DepthToSpace,
    operations.Gather, operations.Reshape, operations.ReverseSequence, operations.SpaceToDepth, operations.Squeeze,
    operations.Transpose, operations.Unsqueeze,
)


def power(x: Value, exponent: Value):
    """The result has the type of the base; for integer bases the fraction is truncated."""
    times = _whole(x, exponent)
    # The runtime raises integers to powers in f32, which is exact to 2^24 only; products are exact.
    if x.dtype.is_integer and 1 <= times <= (31 if x.dtype.bits >= 32 else 0 if exponent.dtype.is_float else 4):
        return _product(x, times)
    if x.dtype.is_integer and exponent.dtype.is_float:
        return ops.Power(x.astype(f32), exponent.astype(f32)).astype(x.dtype)
    return ops.Power(x, exponent.astype(x.dtype))


def _whole(x: Value, exponent: Value) -> int:
    """The value of an exponent that is one constant whole number for all of `x`, else 0."""
    known = exponent.constant
    if known is None or known.size != 1 or x.rank is None or known.ndim > x.rank:
        return 0
    found = known.reshape(())[()]
    return int(found) if np.isfinite(found) and found == int(found) else 0


def _product(x: Value, times: int) -> Value:
    """`x` multiplied by itself: x^5 is x * (x^2)^2."""
    result = None
    while True:
        if times % 2:
            result = x if result is None else result * x
        times //= 2
        if not times:
            assert result is not None
            return result
        x = x * x


for _op, _make in {
    "Add": wrapping(ops.Add), "Sub": wrapping(ops.Subtract), "Mul": wrapping(ops.Multiply), "Div": divided,
    "Pow": power,
}.items():
    legacy_binary(_op, _make)


def through_32_bits(cls) -> Callable[[Value], Any]:
    """An operation that returns the smallest 8-bit or 16-bit integer unchanged; the runtime saturates it."""

    def make(x):
        return cls(x) if x.dtype.kind != "int" or x.dtype.bits > 16 else cls(x.astype(i32)).astype(x.dtype)

    return make


translates("Abs", since=1, elementwise=True)(through_32_bits(ops.Abs))
translates("Neg", since=1, elementwise=True)(through_32_bits(ops.Negative))
one_to_one({
    "Ceil": ops.Ceiling, "Floor": ops.Floor, "Sqrt": ops.Sqrt, "Exp": ops.Exp,
    "Log": ops.Log, "Tanh": ops.Tanh,
})
one_to_one({
    "Sin": ops.Sin, "Cos": ops.Cos, "Tan": ops.Tan, "Asin": ops.Asin, "Acos": ops.Acos, "Atan": ops.Atan,
}, since=7)
one_to_one({
    "Sinh": ops.Sinh, "Cosh": ops.Cosh, "Asinh": ops.Asinh, "Acosh": ops.Acosh, "Atanh": ops.Atanh,
    "Sign": ops.Sign, "Erf": ops.Erf,
}, since=9)
one_to_one({"Round": ops.Round}, since=11)
translates("Reciprocal", since=1, elementwise=True)(lambda x: 1 / x)


@translates("Mod", since=10, elementwise=True)
def mod(a, b, *, fmod: int = 0):
    """The sign of the dividend with `fmod`, else that of the divisor."""
    remainder = (ops.Mod if fmod else ops.FloorMod)(a, b)
    divisor = b.constant
    if not a.dtype.is_float or (divisor is not None and np.all(np.isfinite(divisor))):
        return remainder
    # The runtime computes a - floor(a / b) * b, which is NaN for an infinite b; no multiple of it fits into a finite a.
    whole = a if fmod else ops.Select(ops.Sign(a) * b < number(a, 0), b, a)
    return ops.Select(ops.IsInf(b) & ~ops.IsInf(a), whole, remainder)


@translates("Max", since=1, elementwise=True)
def maximum(first, *rest):
    """The elementwise maximum."""
    return reduce(_constant_first(ops.Maximum), rest, first)


@translates("Min", since=1, elementwise=True)
def minimum(first, *rest):
    """The elementwise minimum."""
    return reduce(_constant_first(ops.Minimum), rest, first)


def _constant_first(cls) -> Callable[[Value, Value], Value]:
    """Maximum and Minimum return the second input if one of both is NaN; constants, seldom NaN, come first."""
    return lambda a, b: cls(b, a) if isinstance(b.node, operations.Constant) else cls(a, b)


@translates("Sum", since=1, elementwise=True)
def total(first, *rest):
    """The elementwise sum."""
    return reduce(ops.Add, rest, first)


@translates("Mean", since=1, elementwise=True)
def mean(first, *rest):
    """The elementwise mean."""
    return total(first, *rest) / (len(rest) + 1) if rest else first


@translates("CumSum", since=11, one_rank="x")
def cumsum(x, axis, *, exclusive: int = 0, reverse: int = 0):
    """Cumulative sums."""
    if x.rank is not None and one_integer(axis) is None:
        sums = ops.CumSum(along_second(x, axis), np.array(1), exclusive=bool(exclusive), reverse=bool(reverse))
        return ops.Reshape(sums, x.sizes)
    if axis.rank != 0:
        axis = ops.Squeeze(axis, 0)
    return ops.CumSum(x, axis, exclusive=bool(exclusive), reverse=bool(reverse))


@translates("CumProd", since=26)
def cumprod(x, axis, *, exclusive: int = 0, reverse: int = 0):
    """Cumulative products; an axis known only at run time becomes the second of three."""
    ranked(x)
    if element_count(x.shape) == 0:  # Unsqueeze in the runtime loses the actual sizes
        return x
    if x.rank == 1:
        return _running_product(x, 0, exclusive, reverse)
    known = one_integer(axis)
    if known is not None:
        return _running_product(x, normalise_axis(known, x.rank), exclusive, reverse)
    return ops.Reshape(_running_product(along_second(x, axis), 1, exclusive, reverse), x.sizes)


def _running_product(x: Value, at: int, exclusive: int, reverse: int) -> Value:
    """y[i] is the product of x[j] over j <= i: the IR has no such operation.

    Steps of 1, 2, 4 ... double the number of factors, in a loop if the length is known only at run time."""
    y = _moved(x, at, 1, reverse) if exclusive else x
    length = x.size(at)
    if isinstance(length, int):
        for step in (2**i for i in range((length - 1).bit_length())):
            y = y * _moved(y, at, step, reverse)
        return y
    powers = ops.Constant(2 ** np.arange(31), graph=x.graph)
    count = ops.ReduceSum(ops.Less(powers, length).astype(i64), [0], keep_dims=True)
    body = Graph("double")
    held, power = Parameter(graph=body, type=y.type), Parameter(graph=body, type=TensorType(i64, ()))
    longer = Result(held.output * _moved(held.output, at, power.output, reverse))
    [doubled] = ops.Scan(
        y, powers[:count], graph=y.graph, body=body,
        input_map=(Merged(held, longer), Sliced(power, 0)), output_map=(Final(longer),),
    )
    return doubled


def _moved(x: Value, at: int, step: Length, back: int) -> Value:
    """`x` moved along an axis, with ones where nothing moves to."""
    here = np.eye(x.type.known_rank, dtype=np.int64)[at]
    padded = ops.Pad(x, *(0 * here, here * step) if back else (here * step, 0 * here), number(x, 1))
    return padded.cut(at, step) if back else padded.cut(at, 0, -step)


def greater(a: Value, b: Value):
    """a > b. The runtime computes Greater as the opposite of LessEqual, so that it holds for NaN; Less does not."""
    return b < a if a.dtype.is_float else a > b


def _equal(a: Value, b: Value):
    return equal_strings(a, b) if string in (a.dtype, b.dtype) else ops.Equal(a, b)


for _op, _make in {
    "Equal": _equal, "Greater": greater, "Less": ops.Less, "And": ops.LogicalAnd, "Or": ops.LogicalOr,
    "Xor": ops.LogicalXor,
}.items():
    legacy_binary(_op, _make)

one_to_one({"Not": ops.LogicalNot})
translates("GreaterOrEqual", since=12, elementwise=True)(lambda a, b: b <= a if a.dtype.is_float else a >= b)
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
    require_choice("direction", direction, ("LEFT", "RIGHT"))
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
    array = input.constant if target.bits >= 8 and boolean not in (input.dtype, target) else None
    if array is not None:
        return ops.Constant(np.ascontiguousarray(array).view(target.numpy), graph=input.graph, dtype=target)
    if input.dtype is boolean and target.is_integer:
        return input.astype(target)
    if target is boolean and input.dtype.is_integer:
        return ops.NotEqual(input, 0)
    if not input.dtype.is_integer or not target.is_integer or target.bits < 8:
        raise UnsupportedError(
            f"a BitCast from {input.dtype} to {target}: no operation of the IR reads the bits of one as the other, and "
            "arithmetic loses those of NaN", code="ML316",
        )
    # The runtime stores 32-bit and 64-bit integers in 32 bits, so those do not change.
    if target.bits > 16:
        return input.astype(target)
    wide = input.astype(i32)
    span = 1 << target.bits  # integers outside the range change by this number
    if target.kind == "uint":
        moved = ops.Select(wide < 0, wide + span, wide)
    else:
        moved = ops.Select(wide < number(wide, span // 2), wide, wide - span)
    return moved.astype(target)
