"""Numbers for tests: ties at one half, negatives, zeros of both signs, infinities, extremes of integers.

==========  ==========================================================
any         all finite numbers of ordinary size
special     the same, sometimes with an infinity or NaN
nonzero     none between -1/4 and 1/4 (integers: no 0)
positive    from 1/4 on (integers: from 1)
unit        between -0.95 and 0.95 (integers: -1, 0, 1)
small       between -2 and 2
above one   from 1.05 on
masked      as `any`, sometimes with minus infinity, as in masks
extreme     integers: smallest and largest among them
==========  ==========================================================
"""

from collections.abc import Callable
from typing import Any

import numpy as np

TELLING = (0.0, -0.0, 0.5, -0.5, 1.0, -1.0, 1.5, 2.5, -2.5, 3.0)
SPECIAL = (np.nan, np.inf, -np.inf)
WORDS = ("a", "b", "cd", "", "Ef", "ü")


def numbers(source: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, kind: str = "any") -> Any:
    """An array of the given shape and element type."""
    if dtype.kind in "OSU":
        return np.array([WORDS[i] for i in source.integers(0, len(WORDS), int(np.prod(shape)))], object).reshape(shape)
    if dtype.kind == "b":
        return source.random(shape) < 0.5
    if dtype.kind in "iu":
        return _integers(source, shape, dtype, kind)
    if dtype.name in ("int4", "int2"):
        return source.integers(-2, 2, shape).astype(dtype)
    if dtype.name in ("uint4", "uint2"):
        return source.integers(0, 4, shape).astype(dtype)
    return _FLOATS[kind](source, shape).astype(dtype)


def _any(source: np.random.Generator, shape: tuple[int, ...]) -> Any:
    plain = source.standard_normal(shape) * 2
    telling = source.choice(TELLING, shape)
    return np.where(source.random(shape) < 0.25, telling, np.round(plain * 256) / 256)


def _special(source: np.random.Generator, shape: tuple[int, ...]) -> Any:
    share = source.choice((0.0, 0.0, 0.1, 0.3))
    return np.where(source.random(shape) < share, source.choice(SPECIAL, shape), _any(source, shape))


def _masked(source: np.random.Generator, shape: tuple[int, ...]) -> Any:
    share = source.choice((0.0, 0.0, 0.2, 0.5))
    return np.where(source.random(shape) < share, -np.inf, _any(source, shape))


def _nonzero(source: np.random.Generator, shape: tuple[int, ...]) -> Any:
    found = _any(source, shape)
    return np.where(np.abs(found) < 0.25, np.where(source.random(shape) < 0.5, -0.75, 1.25), found)


_FLOATS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Any]] = {
    "any": _any, "special": _special, "masked": _masked, "nonzero": _nonzero, "extreme": _any,
    "positive": lambda source, shape: np.abs(_nonzero(source, shape)),
    "unit": lambda source, shape: source.uniform(-0.95, 0.95, shape),
    "small": lambda source, shape: source.uniform(-2, 2, shape),
    "above one": lambda source, shape: np.abs(_any(source, shape)) + 1.05,
}


def _integers(source: np.random.Generator, shape: tuple[int, ...], dtype: np.dtype, kind: str) -> Any:
    info, bound = np.iinfo(dtype), {"unit": 1, "small": 2}.get(kind, 12)
    lowest = max(1 if kind in ("positive", "above one") else -bound, info.min)
    found = source.integers(lowest, bound + 1, shape)
    if kind == "nonzero":
        found = np.where(found == 0, 1, found)
    if kind in ("extreme", "special", "masked") and source.random() < 0.3:
        # The runtime stores all integers in 32 bits.
        ends = (max(info.min, -(2**31)), min(info.max, 2**31 - 1))
        found = np.where(source.random(shape) < 0.3, source.choice(ends, shape), found)
    return found.astype(dtype)
