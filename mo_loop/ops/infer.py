"""Inference rules that several families share."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mo_loop.errors import TypeError_
from mo_loop.shape import Dimension, Shape, broadcast, normalise_axis
from mo_loop.types import KNOWN_LIMIT, ElementType, TensorType


def same_dtype(*types: TensorType) -> ElementType:
    """The element type that all share; TypeError_ when they differ."""
    first = types[0].dtype
    for each in types[1:]:
        if each.dtype is not first:
            raise TypeError_(f"element types {', '.join(str(t.dtype) for t in types)} differ", code="ML240")
    assert first is not None
    return first


def elementwise(
    types: Sequence[TensorType], dtype: ElementType | None = None, on_known: Callable[..., Any] | None = None
) -> TensorType:
    """A numpy-broadcast operation on tensors of one type. `on_known` computes values from object arrays."""
    result = dtype or same_dtype(*types)
    shape = broadcast(*(each.shape for each in types))
    if on_known is not None and all(each.known is not None for each in types):
        known = on_known(*(each.known for each in types))
        if known is not None:
            known = np.asarray(known, object)
            if known.size <= KNOWN_LIMIT:
                return TensorType(result, shape, known)
    return TensorType(result, shape)


def reduced(shape: Shape, axes: Sequence[int] | None, keep_dims: bool) -> Shape:
    """The shape after a reduction; `axes` None means that they are known only at run time."""
    if shape is None:
        return None
    if axes is None:
        from mo_loop.shape import fresh

        return tuple(fresh() for _ in shape) if keep_dims else None
    gone = {normalise_axis(axis, len(shape)) for axis in axes}
    if keep_dims:
        return tuple(1 if i in gone else dim for i, dim in enumerate(shape))
    return tuple(dim for i, dim in enumerate(shape) if i not in gone)


def dims_of(known: Any) -> tuple[Dimension, ...]:
    """The flat values of a `known` array as dimensions."""
    return tuple(known.reshape(-1))


def wide(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Floats of 16 bits and fewer as f32, in which the runtime computes too: sums would lose digits and overflow."""
    is_small = array.dtype.kind in "fV" and array.dtype.itemsize < 4
    return array.astype(np.float32) if is_small else array
