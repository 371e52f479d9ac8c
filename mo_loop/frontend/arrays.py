"""Arrays whose size comes from the model: their bytes are counted before they are made.

    zeros((rows, columns), x.dtype.numpy)        # TypeError_ above 2^26 elements, LimitError above a limit of bytes

A node of a hundred bytes can require an array of any size. `tests/unit/frontend/test_arrays.py` finds translators that
give such a number to numpy itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from mo_loop.conversion_limits import budget
from mo_loop.graph.shape import require_computable

Array = np.ndarray[Any, Any]


def require_room(sizes: Sequence[int], kind: Any = np.int64) -> None:
    """Count an array of these sizes and this type in the budget of the conversion, before it is made.

    Raises:
        TypeError_: it has more elements than a translator may compute.
        LimitError: it, or all that was computed, has more bytes than the limits allow.
    """
    require_computable(*sizes)
    budget().fold(math.prod(max(size, 0) for size in sizes) * np.dtype(kind).itemsize)


def zeros(shape: Sequence[int], kind: Any) -> Array:
    """As numpy.zeros. Errors as of `require_room`."""
    require_room(shape, kind)
    return np.zeros(shape, kind)


def full(shape: Sequence[int], number: Any, kind: Any) -> Array:
    """As numpy.full. Errors as of `require_room`."""
    require_room(shape, kind)
    return np.full(shape, number, kind)


def ones(shape: Sequence[int], kind: Any) -> Array:
    """As numpy.ones. Errors as of `require_room`."""
    return full(shape, 1, kind)


def counted_up(first: int, end: int, step: int = 1, kind: Any = np.int64) -> Array:
    """As numpy.arange: `first`, `first` + `step`, ... below `end`. Errors as of `require_room`."""
    require_room([len(range(first, end, step))], kind)
    return np.arange(first, end, step, dtype=kind)


def first_numbers(count: int, kind: Any = np.int64) -> Array:
    """0, 1, ... below `count`. Errors as of `require_room`."""
    return counted_up(0, count, 1, kind)


def unit_matrix(size: int, kind: Any) -> Array:
    """As numpy.eye. Errors as of `require_room`."""
    require_room((size, size), kind)
    return np.eye(size, dtype=kind)


def repeated_numbers(count: int, times: int | Sequence[int]) -> Array:
    """0, 1, ... below `count`, each repeated `times`, or by a number of its own. Errors as of `require_room`."""
    require_room([count])
    require_room([count * times if isinstance(times, int) else sum(times)])
    return np.repeat(np.arange(count), times)
