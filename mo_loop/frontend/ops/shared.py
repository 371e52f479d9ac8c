"""Helpers for translators of several families: values as Python numbers if they are known, otherwise as nodes.

Arrays whose size comes from the model: their bytes are counted before they are made.

    zeros((rows, columns), x.dtype.numpy)        # TypeError_ above 2^26 elements, LimitError above a limit of bytes

A node of a hundred bytes can require an array of any size. `tests/unit/frontend/test_arrays.py` finds translators that
give such a number to numpy itself.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from mo_loop.conversion_limits import budget
from mo_loop.errors import ModelError, TypeError_, UnsupportedError
from mo_loop.frontend.vocabulary import Value, ops
from mo_loop.graph import i64, require_computable
from mo_loop.ops.lengths import FAR, Length, as_value, joined

Array = np.ndarray[Any, Any]


def require_choice(name: str, value: Any, choices: Iterable[Any]) -> None:
    """ModelError unless the value of an attribute is one of those that its operator defines."""
    known = list(choices)
    if value not in known:
        text = f"the attribute {name!r} is {value!r}, and must be one of {', '.join(map(str, known))}"
        raise ModelError(text, code="ML227")


def ranked(x: Value, what: str = "the input") -> int:
    """The rank of `x`; UnsupportedError, which names it `what`, if the rank is not known before the model runs."""
    if x.rank is None:
        why = "the operations in the IR depend on the number of dimensions"
        raise UnsupportedError(f"the rank of {what} is unknown", code="ML314", why=why)
    return x.rank


def known_size(size: Any, what: str, hint: str = "") -> int:
    """A size or a number; UnsupportedError, which names it `what`, if it is not known before the model runs."""
    if not isinstance(size, int):
        raise UnsupportedError(f"{what} is known only at run time", code="ML314", hint=hint)
    return size


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


MOST_COUNTED = 2**20
"""The largest number of indices that become a constant."""


def integers(value: Value | None) -> tuple[int, ...] | None:
    """All values of a small integer tensor if they are known, else None."""
    return None if value is None else value.type.integers


def one_integer(value: Value | None) -> int | None:
    """The number of an integer tensor of one element if it is known, else None.

    Raises:
        TypeError_: the tensor has none, or several.
    """
    known = integers(value)
    if value is not None and known is not None and len(known) != 1:
        raise TypeError_(f"an input is {value.type}, and must be one number", code="ML235")
    return None if known is None else known[0]


def near(numbers: Sequence[int], far: int = FAR) -> list[int]:
    """Indices in 32 bits: in models, INT64_MAX means "to the end" and INT64_MIN "to the beginning", as all do from
    `far` on."""
    return [number if abs(number) < far else FAR if number > 0 else -FAR for number in numbers]


def counted(count: Length, like: Value) -> Value:
    """0, 1, ... below `count`, in i64."""
    if isinstance(count, int) and count <= MOST_COUNTED:
        return ops.Constant(first_numbers(count), graph=like.graph)
    zero, end, one = (as_value(each, like.graph) for each in (0, count, 1))
    return ops.Range(zero, end, one, output_type=i64)


def divided(x: Value, count: Any, size: Any) -> Value:
    """The last dimension as `count` rows of `size` elements. (A size of -1 does not exist in an empty tensor.)"""
    return ops.Reshape(x, ops.Concat(x.sizes[:-1], joined([count, size], x), axis=0))


def number(like: Value, value: float):
    """A scalar of the element type of `like`."""
    return np.asarray(value).astype(like.dtype.numpy)


def constant_like(like: Value, number: float) -> Value:
    """A scalar of the element type of `like`, as a value in its graph."""
    return ops.Constant(np.array(number, like.dtype.numpy), graph=like.graph, dtype=like.dtype)


def sizes_around(x: Value, axis: Value) -> tuple[Value, Value, Value]:
    """The sizes before an axis of x that is known only at run time, its size, and those after it: i64 [?], [1], [?]."""
    rank, sizes = ranked(x), x.sizes
    place = (axis.astype(i64).reshape([1]) + rank) % rank
    before, after = ops.Slice(sizes, [0], place, [1], [0]), ops.Slice(sizes, place + 1, [FAR], [1], [0])
    return before, ops.Gather(sizes, place, 0), after


def along_second(x: Value, axis: Value) -> Value:
    """x with three axes, whose second one is an axis that is known only at run time."""
    before, size, after = sizes_around(x, axis)
    products = [ops.ReduceProd(each, [0], keep_dims=True) for each in (before, after)]
    return ops.Reshape(x, ops.Concat(products[0], size, products[1], axis=0))
