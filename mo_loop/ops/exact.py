"""Exact arithmetic for operators whose rounding depends on the last bit of a number.

The runtime computes a / b as a * (1 / b), where the last bit differs for 4 of 10 quotients: 126.5 becomes 126.49999.
It also drops an Abs whose input is constant at compile time, for negative numbers too. `is_not_negative`
finds the integers that need none.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from mo_loop import ops as operations
from mo_loop.graph import Node, Value, broadcast, is_static, normalise_axis, require_computable
from mo_loop.graph.dimension import least
from mo_loop.graph.types import ElementType, bf16, boolean, f16, f32, i32, i64
from mo_loop.ops import functional as ops
from mo_loop.ops.base import Constant
from mo_loop.ops.quantization import LARGEST, limits, spread
from mo_loop.ops.ranges import WIDE_INTEGERS


def quotient(a, b, limit: float | None = None) -> Value:
    """a / b in f32, corrected by the remainder; it must be finite, or is limited to -limit .. limit."""
    first = a / b
    if _is_folded(a, b):
        return first
    if limit is not None:
        first = ops.Clamp(first, min=-limit, max=limit)
    missing = a - first * b
    return first + missing / b


def quotient_of_integer(a: Value, b: Value) -> Value:
    """a / b in f32, correctly rounded, for whole b below 2^12, whose products with parts of the quotient are exact."""
    first = a / b
    high, low = _parts(first, 2, 12)
    missing = a - high * b - low * b
    return first + missing / b


def _is_folded(*values) -> bool:
    return all(isinstance(each, Value) and isinstance(each.node, Constant) for each in values)


def steps(a: Value, b: Value, limit: int = 512) -> Value:
    """a / b in f32, correctly rounded near the halves between whole numbers below `limit`, where the next rounding
    decides; a limit beyond 512 is 2^17.

    Twice a quotient below 512 has few bits, and so has each part of b, so that their products are exact; a quotient
    beyond it needs shorter parts:

        k = round(2 a / b)        a / b = (k + (a + k * high + k * low) / (b / 2)) / 2        -b / 2 = high + low

    Each line of the sum is a chain of nodes with one consumer each, which the runtime joins.
    """
    if _is_folded(a, b):
        return a / b
    if (factor := _exact_reciprocal(b)) is not None:
        # The runtime would move a product before a Reshape that has no other reader, away from its chain.
        is_moved = isinstance(a.node, operations.Reshape) and np.all(np.abs(factor) >= 1)
        return (a + a if is_moved else a) * (factor / 2 if is_moved else factor)
    a, b = _of_common_size(a, b)
    half = b * 0.5
    # Clamp follows Round: the runtime would move the scale of a quantised input after a Clamp before it, and
    # that scale may be 0 after the division.
    twice = ops.Clamp(ops.Round(a / half), min=-2.0 * limit, max=2.0 * limit)
    rest: Any = a
    for part in _parts(b * -0.5, *((2, 12) if limit <= 512 else (4, 18))):
        rest = twice * part + rest
    return (rest / half + twice) * 0.5


def _exact_reciprocal(b: Value) -> Any:
    """1 / b of constant powers of 2, with which a product is exactly the quotient; else None."""
    array = _array(b)
    if array is None:
        return None
    digits, exponent = np.frexp(array.astype(np.float32))
    is_exact = np.all((np.abs(digits) == 0.5) & (np.abs(exponent) <= 126))
    return np.float32(1) / array.astype(np.float32) if is_exact else None


def _parts(x: Any, count: int, bits: int) -> Iterator[Any]:
    """Numbers whose sum is x: each but the last has `bits` digits less than f32."""
    for _ in range(count - 1):
        far = x * (2.0**bits + 1)
        part = far - (far - x)
        yield part
        x = x - part
    yield x


FACTORS_OF = 2.0**-60, 2.0**100
"""Constants outside of these are multiplied by a power of 2: their parts and products may not be normal numbers."""


def _of_common_size(a: Value, b: Value) -> tuple[Any, Any]:
    """a and b; or, if b is a constant of extreme numbers, both multiplied by the powers of 2 that make b about 1."""
    if not isinstance(b.node, Constant):
        return a, b
    array = b.node.array.astype(np.float32)
    size = np.abs(array)
    if not np.all(np.isfinite(array) & (array != 0)) or not np.any((size < FACTORS_OF[0]) | (size > FACTORS_OF[1])):
        return a, b
    factor = np.ldexp(np.float32(1), np.clip(-np.frexp(array)[1], -126, 126)).astype(np.float32)
    return a * factor, ops.Constant(array * factor, graph=a.graph)


def shortened(x: Value, precision: ElementType) -> Value:
    """A quotient of two numbers of a shorter type, rounded to the bits of this type; it is never halfway between two.

    Beyond 2^17 it is 2^17. A Convert to the type and back would do the same, but the runtime may drop it.
    """
    x = ops.Clamp(x, min=-float(1 << 17), max=float(1 << 17))
    far = x * SHORTENING[precision]
    return far - (far - x)


SHORTENING = {f16: 2.0**13 + 1, bf16: 2.0**16 + 1}
"""1 + 2 to the number of bits by which f32 has more digits."""


def magnitude(x) -> Value:
    """|x|"""
    return ops.Maximum(x, ops.Negative(x))


def extremes(x: Value) -> tuple[Value, Value]:
    """The least and the largest of all elements and 0."""
    axes: Any = list(range(x.rank)) if x.rank is not None else _every_axis(x)
    reduced = ops.ReduceMin(x, axes, keep_dims=False), ops.ReduceMax(x, axes, keep_dims=False)
    return ops.Minimum(reduced[0], 0), ops.Maximum(reduced[1], 0)


def _every_axis(x: Value) -> Value:
    zero, one = (ops.Constant(np.int64(each), graph=x.graph) for each in (0, 1))
    return ops.Range(zero, ops.Squeeze(x.sizes.sizes, [0]), one, output_type=i64)


def over_elements(x: Value, make: Callable[[Value], Value], *others: Value | None, axis: int = 0) -> Value:
    """make(x) of an elementwise function of x and `others`, which are one number, or vectors along `axis`, which
    counts from the start.

    If a size is unknown, x gets one dimension for all, or for those after the axis: the runtime starts its kernel
    once for each row then, and rows of 27 elements take four times as long as one row of all.
    """
    if x.rank is None or is_static(x.shape):
        return make(x)
    kept = 0
    if not all(each is None or each.rank == 0 or each.shape == (1,) for each in others):
        are_vectors = all(each is None or each.rank in (0, 1) for each in others)
        kept = axis + 1 if are_vectors else x.rank
    if x.rank - kept < 2:
        return make(x)
    return ops.Reshape(make(ops.Reshape(x, [0] * kept + [-1], special_zero=kept > 0)), x.sizes)


def as_float(x: Value) -> Value:
    """The value in f32."""
    return x.astype(f32)


def rounded_to(
    to: ElementType, divided: Value, zero: Value | None, *, saturate: bool = True, rounds_sum: bool = False
) -> Value:
    """clamp(round(divided) + zero point) in the type `to`, or with `rounds_sum` clamp(round(divided + zero point));
    floating-point types are not rounded to integers."""
    if rounds_sum and zero is not None:
        return rounded_to(to, divided + as_float(zero), None, saturate=saturate)
    y: Any = divided if to.is_float else ops.Round(divided)
    if zero is not None:
        y = y + as_float(zero)
    if to.is_integer:
        least, most = limits(to)
        y = ops.Clamp(y, min=float(least), max=float(most))
    elif saturate and to in LARGEST:
        y = beside_halves(ops.Clamp(y, min=-LARGEST[to], max=LARGEST[to]))
    return y.astype(to)


def beside_halves(x: Value) -> Value:
    """x rounded to 8 binary digits, and moved by 1/1024 of its size towards the exact x.

    The runtime rounds to f16 before it rounds to 8 bits. A number that is nearly halfway between two numbers of 4 or 3
    digits would become the number halfway.
    """
    far = x * (2.0**16 + 1)
    near = far - (far - x)
    side = ops.Sign(x - near)
    return near + side * magnitude(near) * 2.0**-10


def aligned(x: Value, scale: Value, axis: int, block_size: int = 0) -> Value:
    """A scale or zero point in a shape that broadcasts to x: one for all, one for each slice, or one for each block."""
    if scale.rank == 0 or (scale.shape == (1,) and x.rank != 0 and not block_size):
        return scale
    if x.rank == 0:
        return ops.Reshape(scale, np.array([], np.int64))
    at = normalise_axis(axis, x.type.rank)
    if not block_size:
        later = x.type.rank - 1 - at
        is_full = scale.rank == x.rank
        return scale if is_full or not later else ops.Reshape(scale, [-1] + [1] * later)
    size = x.type.dims[at]
    if isinstance(size, int):
        require_computable(size)
        blocks = ops.Constant(np.arange(size) // block_size, graph=x.graph)
    else:
        zero, one = (ops.Constant(np.int64(each), graph=x.graph) for each in (0, 1))
        numbers = ops.Range(zero, ops.Gather(x.sizes, at, 0), one, output_type=i64)
        blocks = numbers / block_size
    return ops.Gather(scale, blocks, at)


# -- sums of products of integers

SUM_LIMIT = 1 << 24
"""Integers up to this are exact in f32."""


def centred(x: Value, zero_point: Value | None, axis: int) -> Value:
    """x - zero point, in f32."""
    return as_float(x) if zero_point is None else as_float(x) - as_float(aligned(x, zero_point, axis))


def centred_weights(w: Value, zero_point: Value | None, axis: int) -> Value:
    """w - zero point, in f32; constants keep their 8 bits in the file."""
    parameters = w, zero_point
    if w.dtype.bits != 8 or not all(each is None or isinstance(each.node, Constant) for each in parameters):
        return centred(w, zero_point, axis)
    return ops.Dequantize(w, ops.Constant(np.float32(1), graph=w.graph), zero_point, axis=axis, expanded=True)


def largest_sum(weights: Value, zero_point: Value | None, axis: int, summed: Sequence[int]) -> int | None:
    """The largest sum of |w - zero point| over the axes `summed`, for weights of 8 bits; None if it is not known."""
    numbers, zero = (None if each is None else _array(each) for each in (weights, zero_point))
    if numbers is not None and (zero is not None or zero_point is None):
        centre = np.int64(0) if zero is None else spread(zero.astype(np.int64), axis, numbers.shape)
        broadcast(numbers.shape, np.shape(centre))  # TypeError_ unless they fit
        return int(np.abs(numbers.astype(np.int64) - centre).sum(tuple(summed)).max(initial=0))
    dims = [None] if weights.shape is None else [weights.shape[each] for each in summed]
    known = [each for each in dims if isinstance(each, int)]
    return 255 * math.prod(known) if len(known) == len(dims) else None


def _array(value: Value) -> np.ndarray[Any, Any] | None:
    return value.node.array if isinstance(value.node, Constant) else None


def integer_product(a: Value, b: Value, product: Callable[[Value, Value], Value], largest: int | None) -> Value:
    """A product of integers of 8 bits in i32; `largest`: see `largest_sum` for b.

    It is computed in f32, with a = 16 * high + low if the sums of the whole product may not be exact.
    """
    whole = product(a, b).astype(i32)
    if largest is not None and largest * 255 < SUM_LIMIT:
        return ops.RoundedOrExact(whole, whole)
    high = ops.Floor(a * (1 / 16))
    low = a - high * 16
    upper, lower = (product(each, b).astype(i32) for each in (high, low))
    return ops.RoundedOrExact(whole, upper * 16 + lower)


_MOST = 64
"""Values before the one in question that are looked at; if there are more, nothing is proven."""

_OF_FIRST = (
    operations.Movement, operations.Barrier, operations.CumSum, operations.Mod, operations.ReduceMax,
    operations.ReduceMin, operations.ReduceProd, operations.ReduceSum,
)
"""Operations whose results are not negative if the numbers of their first input are not."""

_OF_ALL = (operations.Add, operations.Concat, operations.Divide, operations.Minimum, operations.Multiply)
"""Operations whose results are not negative if no number of any input is."""


def is_not_negative(value: Value) -> bool:
    """Whether all elements of a tensor of integers are known to be at least 0, where nothing overflows."""
    seen: set[Value] = set()
    asked = [value]
    while asked:
        value = asked.pop()
        if value in seen or _is_from_zero(value):
            continue
        seen.add(value)
        needed = _needed(value)
        if not needed or len(seen) > _MOST:
            return False
        asked.extend(needed)
    return True


def _is_from_zero(value: Value) -> bool:
    """Whether the operation alone shows it, or the elements that inference knows."""
    node, known = value.node, value.type.known
    if known is not None:
        return all(least(each) >= 0 for each in known.flat)
    if isinstance(node, operations.Constant):
        return bool((node.array >= 0).all())
    if isinstance(node, operations.TopK):
        return value is node.outputs[1]
    if isinstance(node, operations.Convert):
        return node.operands[0].dtype is boolean
    return isinstance(node, operations.NonZero | operations.ShapeOf | operations.Abs) or _is_absolute(node)


def _is_absolute(node: Node) -> bool:
    """Whether it is max(-x, x), as a rule of the runtime writes |x|."""
    if not isinstance(node, operations.Maximum):
        return False
    first, second = node.operands
    return isinstance(first.node, operations.Negative) and first.node.operands[0] is second


def _dividend(node: Node) -> Value | None:
    """The dividend of a remainder, also of FloorMod as rules of the runtime write it."""
    if not isinstance(node, operations.Mod | operations.FloorMod):
        return None
    return node.operands[0].node.operands[0].node.operands[0] if _is_floored(node) else node.operands[0]


def _is_floored(node: Node) -> bool:
    """Whether it is Mod(Mod(a, b) + b, b), with the sign of b."""
    total = node.operands[0].node
    if not isinstance(node, operations.Mod) or not isinstance(total, operations.Add):
        return False
    first, second = total.operands
    divisors = [each.constant for each in (node.operands[1], second)]
    is_twice = isinstance(first.node, operations.Mod) and all(each is not None for each in divisors)
    return is_twice and np.array_equal(*divisors) and np.array_equal(first.node.operands[1].constant, divisors[0])


def _needed(value: Value) -> Sequence[Value]:
    """The values that must not be negative for this one to be at least 0; none if the operation does not show them."""
    node = value.node
    if isinstance(node, _OF_FIRST):
        return node.operands[:1]
    if isinstance(node, _OF_ALL):
        return node.operands
    if isinstance(node, operations.Subtract):
        first, rest = node.operands
        return node.operands[:1] if _dividend(rest.node) is first else ()
    if isinstance(node, operations.Mod):
        return [node.operands[1 if _is_floored(node) else 0]]
    if isinstance(node, operations.Maximum):
        return [each for each in node.operands if _is_from_zero(each)] or node.operands
    if isinstance(node, operations.Select | operations.FloorMod):
        return node.operands[1:]
    if isinstance(node, operations.Range):
        return node.operands[::2]
    if isinstance(node, operations.Convert) and node.operands[0].dtype in WIDE_INTEGERS.types >= {value.dtype}:
        return node.operands
    return ()
