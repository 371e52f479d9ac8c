"""Inference rules that several families share."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mo_loop.errors import TypeError_
from mo_loop.graph.dimension import Dim, Dimension, fresh, high, low
from mo_loop.graph.shape import MOST_DIMENSIONS, Shape, broadcast, join, normalise_axis
from mo_loop.graph.types import ElementType, TensorType
from mo_loop.ops import values


def same_dtype(*types: TensorType) -> ElementType:
    """The common element type. Raises TypeError_ if the element types differ, or if there are no inputs."""
    if not types:
        raise TypeError_("an operation of any number of inputs has none", code="ML234")
    first = types[0].dtype
    for each in types[1:]:
        if each.dtype is not first:
            raise TypeError_(f"element types {', '.join(str(t.dtype) for t in types)} differ", code="ML240")
    assert first is not None
    return first


def elementwise(
    types: Sequence[TensorType], dtype: ElementType | None = None, rule: Callable[..., Dimension] | None = None
) -> TensorType:
    """The type of a numpy-broadcast operation. `rule` computes one value (see values.py) from one of each input."""
    result = dtype or same_dtype(*types)
    shape = broadcast(*(each.shape for each in types))
    if rule is None or all(type_.known is None for type_ in types):
        return TensorType(result, shape)
    arrays = [values.values_of(type_) for type_ in types]
    if any(array is None for array in arrays):
        return TensorType(result, shape)
    return TensorType(result, shape, values.fitting(values.each(rule)(*arrays), result))


def vector_length(type_: TensorType, most: int = MOST_DIMENSIONS) -> int | None:
    """The static number of elements of a vector with one for each dimension, or for each piece; None if not known."""
    if type_.shape is None or len(type_.shape) != 1:
        return None
    length = type_.shape[0]
    if not isinstance(length, int):
        return None
    if length > most:
        raise TypeError_(f"{type_} has one number for each of more than {most} dimensions or pieces", code="ML242")
    return length


def reduced(shape: Shape, axes: Sequence[int] | None, keep_dims: bool) -> Shape:
    """The shape after a reduction; `axes` is None if they are known only at run time."""
    if shape is None:
        return None
    if axes is None:
        return tuple(join(dim, 1) for dim in shape) if keep_dims else None
    gone = {normalise_axis(axis, len(shape)) for axis in axes}
    if keep_dims:
        return tuple(1 if i in gone else dim for i, dim in enumerate(shape))
    return tuple(dim for i, dim in enumerate(shape) if i not in gone)


def capped(dim: Dimension, limit: Dimension) -> Dimension:
    """`dim`, which is at most `limit`. Only a fresh symbol is replaced by a narrower one: other ones have a name."""
    tops = [top for top in (high(dim), high(limit)) if top is not None]
    if not isinstance(dim, Dim) or not dim.is_fresh or high(dim) == min(tops, default=None):
        return dim
    return fresh(low(dim), min(tops))


def dims_of(known) -> tuple[Dimension, ...]:
    """The flat values of a `known` array as dimensions."""
    return tuple(known.reshape(-1))


def wide(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Floats of at most 16 bits as f32, as in the runtime: in their own type, sums lose digits and overflow."""
    is_small = array.dtype.kind in "fV" and array.dtype.itemsize < 4
    return array.astype(np.float32) if is_small else array
