"""The arithmetic of partly known values: an item is an int, or a Dim with known bounds at least.

    [2, N] + [1, ?]    ->  [3, ?]         an unknown item affects only the item at its position
    max(?, 1)          ->  1..
    ?  mod 4           ->  0..3
    N >= 0             ->  1              comparisons give 1, 0 or 0..1

Rules map single items to single items; `each` applies one to object arrays with broadcasting. Bounds are those of
integers without a width: `fitting` removes items that may not fit the element type.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mo_loop.graph.dimension import LEAST, Dimension, join_values, least, most, now, unknown
from mo_loop.graph.types import KNOWN_LIMIT, ElementType, TensorType, boolean

Rule = Callable[..., Dimension]
Known = np.ndarray[Any, Any] | None


def values_of(type_: TensorType) -> Known:
    """The known values; without any, an unknown one for each element of a small integer tensor."""
    if type_.known is not None:
        return type_.known
    if type_.dtype is None or not (type_.dtype.is_integer or type_.dtype is boolean) or type_.shape is None:
        return None
    size = 1
    for dim in type_.shape:
        if not isinstance(dim, int):
            return None
        size *= dim
    if size > KNOWN_LIMIT:
        return None
    found = np.empty(size, object)
    found[:] = [unknown(*range_of(type_.dtype)) for _ in range(size)]
    return found.reshape(type_.shape)


def range_of(dtype: ElementType) -> tuple[int, int | None]:
    """The bounds of the values of an element type; types of 32 bits and more have no upper one."""
    if dtype is boolean:
        return 0, 1
    top = None if dtype.bits >= 32 else 2 ** (dtype.bits - (dtype.kind == "int")) - 1
    if dtype.kind == "uint":
        return 0, top
    return LEAST if dtype.bits >= 32 else -(2 ** (dtype.bits - 1)), top


def fitting(known: Known, dtype: ElementType) -> Known:
    """`known` as values of an element type: items that may not fit become unknown. None if nothing is known then."""
    if known is None or known.size > KNOWN_LIMIT:
        return None
    lo, hi = range_of(dtype)
    if dtype.is_integer and dtype.bits >= 32:
        # For symbols only the sign is checked: sizes near the limits of 32 bits do not occur. Numbers are exact.
        lo, top = (0 if dtype.kind == "uint" else -(2 ** (dtype.bits - 1))), 2 ** (dtype.bits - (dtype.kind == "int"))
        items = [
            item
            if (lo <= item < top if isinstance(item, int) else dtype.kind == "int" or item.lo >= 0)
            else unknown(*range_of(dtype))
            for item in known.flat
        ]
    else:
        items = [item if lo <= least(item) and _at_most(item, hi) else unknown(lo, hi) for item in known.flat]
    if known.size and not any(_says_more(item, dtype) for item in items):
        return None
    result = np.empty(len(items), object)
    result[:] = items
    return result.reshape(known.shape)


def _at_most(item: Dimension, hi: int | None) -> bool:
    top = most(item)
    return hi is None or (top is not None and top <= hi)


def _says_more(item: Dimension, dtype: ElementType) -> bool:
    """Whether an item is a number, an expression of symbols, or narrower than its type."""
    if isinstance(item, int) or not item.has_fresh():
        return True
    lo, hi = range_of(dtype)
    return item.lo > lo or (item.hi is not None and item.hi != hi)


def each(rule: Rule) -> Callable[..., Known]:
    """A rule for items, applied to object arrays with broadcasting."""

    def apply(*arrays) -> Known:
        if sum(array.size for array in arrays) > 4 * KNOWN_LIMIT:
            return None
        spread = np.broadcast_arrays(*arrays)
        if spread[0].size > KNOWN_LIMIT:
            return None
        result = np.empty(spread[0].size, object)
        result[:] = [_with_now(rule, items) for items in zip(*(array.flat for array in spread), strict=True)]
        return result.reshape(spread[0].shape)

    return apply


def _with_now(rule: Rule, items: Sequence[Dimension]) -> Dimension:
    """The result of a rule; one that only has bounds gets the value that it has for the declared sizes of inputs."""
    result = rule(*items)
    if isinstance(result, int) or result.now is not None or not result.is_fresh:
        return result
    numbers = [now(item) for item in items]
    value = None if None in numbers else rule(*numbers)
    if not isinstance(value, int):
        return result
    sources = tuple(symbol for item in items if not isinstance(item, int) for symbol in item.symbols())
    return unknown(result.lo, result.hi, value, sources)


# -- rules for items


def multiply(a: Dimension, b: Dimension) -> Dimension:
    """a * b; for two symbols only the bounds are known, unless both are at least 0."""
    if isinstance(a, int) or isinstance(b, int) or (a.lo >= 0 and b.lo >= 0):
        return a * b
    if a.lo <= LEAST or b.lo <= LEAST or a.hi is None or b.hi is None:
        return unknown()
    corners = [x * y for x in (a.lo, a.hi) for y in (b.lo, b.hi)]
    return unknown(min(corners), max(corners))


def divide_down(a: Dimension, b: Dimension) -> Dimension:
    """a / b rounded down."""
    if not isinstance(b, int) or b <= 0:
        return a // b if isinstance(a, int) and isinstance(b, int) and b else unknown()
    if isinstance(a, int) or a.lo >= 0:
        return a // b
    top = most(a)
    return unknown(a.lo // b if a.lo > LEAST else LEAST, None if top is None else top // b)


def divide(a: Dimension, b: Dimension) -> Dimension:
    """a / b rounded towards 0."""
    if isinstance(a, int) and isinstance(b, int) and b:
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if least(a) >= 0:
        return divide_down(a, b)
    down = divide_down(a, b)
    top = most(down)
    return unknown(least(down), None if top is None else top + 1)


def remainder_down(a: Dimension, b: Dimension) -> Dimension:
    """a - b * (a / b rounded down): it has the sign of b."""
    if not isinstance(b, int) or not b:
        return unknown()
    if isinstance(a, int):
        return a % b
    top = most(a)
    if b > 0 and a.lo >= 0 and top is not None and top < b:
        return a
    return unknown(0, b - 1) if b > 0 else unknown(b + 1, 0)


def remainder(a: Dimension, b: Dimension) -> Dimension:
    """a - b * (a / b rounded towards 0): it has the sign of a."""
    if not isinstance(b, int) or not b:
        return unknown()
    if isinstance(a, int):
        return a - b * divide(a, b)
    return remainder_down(a, abs(b)) if a.lo >= 0 else unknown(1 - abs(b), abs(b) - 1)


def power(a: Dimension, b: Dimension) -> Dimension:
    """a to the power b."""
    if isinstance(a, int) and isinstance(b, int) and 0 <= b < 64:
        return a**b
    return a if b == 1 else unknown()


def maximum(a: Dimension, b: Dimension) -> Dimension:
    """The larger of both."""
    difference = a - b
    if least(difference) >= 0:
        return a
    top = most(difference)
    if top is not None and top <= 0:
        return b
    hi_a, hi_b = most(a), most(b)
    return unknown(max(least(a), least(b)), None if hi_a is None or hi_b is None else max(hi_a, hi_b))


def minimum(a: Dimension, b: Dimension) -> Dimension:
    """The smaller of both."""
    difference = a - b
    if least(difference) >= 0:
        return b
    top = most(difference)
    if top is not None and top <= 0:
        return a
    tops = [bound for bound in (most(a), most(b)) if bound is not None]
    return unknown(min(least(a), least(b)), min(tops, default=None))


def same(a: Dimension) -> Dimension:
    """a: rounding does not change integers."""
    return a


def absolute(a: Dimension) -> Dimension:
    """|a|."""
    return maximum(a, -a)


def sign(a: Dimension) -> Dimension:
    """-1, 0 or 1."""
    top = most(a)
    if isinstance(a, int) or least(a) > 0 or (top is not None and top < 0):
        return (least(a) > 0) - (least(a) < 0)
    return unknown(-1 if least(a) < 0 else 0, 0 if top == 0 else 1)


# -- truth: 1, 0, or 0..1


def less(a: Dimension, b: Dimension) -> Dimension:
    """a < b."""
    difference = a - b
    top = most(difference)
    if top is not None and top < 0:
        return 1
    return 0 if least(difference) >= 0 else unknown(0, 1)


def greater(a: Dimension, b: Dimension) -> Dimension:
    """a > b."""
    return less(b, a)


def less_equal(a: Dimension, b: Dimension) -> Dimension:
    """a <= b."""
    return invert(less(b, a))


def greater_equal(a: Dimension, b: Dimension) -> Dimension:
    """a >= b."""
    return invert(less(a, b))


def equal(a: Dimension, b: Dimension) -> Dimension:
    """a = b."""
    difference = a - b
    if difference == 0:
        return 1
    top = most(difference)
    return 0 if least(difference) > 0 or (top is not None and top < 0) else unknown(0, 1)


def invert(a: Dimension) -> Dimension:
    """Not a."""
    return 1 - a


def differ(a: Dimension, b: Dimension) -> Dimension:
    """One of a and b, not both."""
    return invert(equal(a, b))


def truth(a: Dimension) -> Dimension:
    """Whether a is not 0."""
    return invert(equal(a, 0))


def choose(condition: Dimension, then: Dimension, otherwise: Dimension) -> Dimension:
    """`then` if the condition is 1, `otherwise` if it is 0."""
    if isinstance(condition, int):
        return then if condition else otherwise
    return join_values(then, otherwise)
