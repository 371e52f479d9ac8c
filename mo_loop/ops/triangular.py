"""Triangular matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from mo_loop.graph import Value


def inverse_of_lower(square: Value, size: int, constant: Callable[[np.ndarray[Any, Any]], Value]) -> Value:
    """The inverse of I + L, where L is the part of `square` [.., N, N] below the diagonal and N is at most `size`.

    Blocks [[A, 0], [M, B]] have the inverse [[A', 0], [-B' M A', B']]; each step doubles their size. `constant` makes a
    tensor of the type and size of `square` of an array [size, size].
    """
    inverse, width = constant(np.eye(size)), 1
    while width < size:
        block = np.arange(size) // width
        below = (block[:, None] % 2 == 1) & (block[None] == block[:, None] - 1)
        part = square * constant(below)
        inverse = inverse - (part if width == 1 else inverse @ part @ inverse)
        width *= 2
    return inverse
