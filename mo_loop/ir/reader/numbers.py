"""Numbers in an IR file: decimal digits of 64 bits, and shapes of at most 64 dimensions.

Every number that the reader uses is parsed here. Python's `int` reads more: digits of other scripts, underscores, and
numbers of any length.
"""

from __future__ import annotations

import re

from mo_loop.graph.dimension import Dimension, fresh, named
from mo_loop.graph.shape import MOST_DIMENSIONS, Shape

LEAST, MOST = -(2**63), 2**63 - 1

_LONGEST = 40

_DIGITS = re.compile("-?[0-9]{1,19}")


def integer(text: str, least: int = LEAST, most: int = MOST) -> int:
    """The number in `text`. Raises ValueError unless it is an integer from `least` to `most`."""
    number = int(text) if _DIGITS.fullmatch(text.strip()) else None
    if number is None or not least <= number <= most:
        raise ValueError(f"{shown(text)} is not an integer {_range(least, most)}")
    return number


def _range(least: int, most: int) -> str:
    if (least, most) == (LEAST, MOST):
        return "of 64 bits"
    return f"from {least} to {'2^63 - 1' if most == MOST else most}"


def shown(text: str) -> str:
    """A value of the file in a message: quoted, and shortened."""
    return repr(text) if len(text) <= _LONGEST else f"{text[:_LONGEST]!r}... ({len(text)} characters)"


def parse_shape(text: str, symbol: str = "") -> Shape:
    """A shape such as `2,?,1..5`, None for `...`. Raises ValueError for other text.

    Unknown dimensions are fresh, or have the name `symbol` with their position appended.
    """
    text = text.strip().removeprefix("[").removesuffix("]")
    if text == "...":
        return None
    texts = text.split(",") if text else []
    require_dimensions(len(texts))
    dims: list[Dimension] = []
    for position, each in enumerate(texts):
        lo, hi = _bounds(each.strip())
        if lo == hi:
            dims.append(lo)
        else:
            dims.append(named(f"{symbol}{position}", lo, hi) if symbol else fresh(lo, hi))
    return tuple(dims)


def require_dimensions(count: int) -> None:
    """ValueError if a tensor has more dimensions than an array can have."""
    if count > MOST_DIMENSIONS:
        raise ValueError(f"{count} dimensions are more than {MOST_DIMENSIONS}")


def _bounds(text: str) -> tuple[int, int | None]:
    if text in ("?", "-1"):
        return 0, None
    first, dots, last = text.partition("..")
    lo = integer(first, 0) if first or not dots else 0
    hi = integer(last, 0) if last else None if dots else lo
    if hi is not None and hi < lo:
        raise ValueError(f"the dimension {text!r} ends before it begins")
    return lo, hi
