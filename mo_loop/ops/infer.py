"""Inference rules that several families share, and the types that cover two others.

>>> from mo_loop.ops.infer import join_types
>>> from mo_loop.graph.types import SequenceType, TensorType, f32
>>> join_types(SequenceType(TensorType(f32, None), 0), SequenceType(TensorType(f32, (2, 3)), 1))
seq(f32[2,3], 0..1)

An empty sequence has no element type; joined with another sequence it gets the element type of that one.
"""

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import numpy as np

from mo_loop.errors import TypeError_
from mo_loop.graph.dimension import Dim, Dimension, Symbol, fresh, high, low
from mo_loop.graph.shape import (
    MOST_DIMENSIONS,
    Shape,
    assume_equal,
    broadcast,
    covers,
    join,
    join_shapes,
    normalise_axis,
    symbols_of,
    widen,
)
from mo_loop.graph.types import UNKNOWN, ElementType, OptionalType, SequenceType, TensorType
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


def join_types(a, b):
    """The type of a value that has one type or the other.

    Raises:
        TypeError_: no value is of both kinds, or element types differ.
    """
    if a is UNKNOWN or b is UNKNOWN:
        return b if a is UNKNOWN else a
    _require_alike(a, b)
    if isinstance(a, SequenceType):
        length = None if a.length is None or b.length is None else join(a.length, b.length)
        return SequenceType(join_elements(a, b), length)
    if isinstance(a, OptionalType):
        return OptionalType(_joined_optional(a, b), a.present if a.present is b.present else None)
    return TensorType(a.dtype, join_shapes(a.shape, b.shape))


def join_elements(a: SequenceType, b: SequenceType) -> TensorType:
    """The element type of a sequence with the elements of two others."""
    if a.is_empty or b.is_empty:
        return b.element if a.is_empty else a.element
    assume_equal(a.element.shape, b.element.shape)
    return TensorType(a.element.dtype, join_shapes(a.element.shape, b.element.shape))


def widen_types(old, new, outer: Collection[Symbol]):
    """`old` if it covers `new`, else a type that covers both. Sizes that change become unbounded at once, so that the
    fixpoint ends.

    `outer` are the symbols of the graph around the loop; a size that changes cannot be one of them.

    Raises:
        TypeError_: no value is of both kinds, or element types differ.
    """
    if new is UNKNOWN or old == new:
        return old
    _require_alike(old, new)
    if isinstance(old, SequenceType):
        element = _widened_element(old, new, outer)
        length = _widened_length(old.length, new.length, outer)
        same = element == old.element and length == old.length
        return old if same else SequenceType(element, length)
    if isinstance(old, OptionalType):
        present = old.present if old.present is new.present else None
        if isinstance(old.element, TensorType) and old.element.dtype is None:
            return OptionalType(new.element, present)
        if isinstance(new.element, TensorType) and new.element.dtype is None:
            return OptionalType(old.element, present)
        return OptionalType(widen_types(old.element, new.element, outer), present)
    shape = widen(old.shape, new.shape, outer)
    return old if shape == old.shape and old.known is None else TensorType(old.dtype, shape)


def covers_type(wide, narrow, outer: Collection[Symbol]) -> bool:
    """Whether a value of type `narrow` is also one of type `wide`."""
    try:
        return bool(wide.known is None and widen_types(wide, narrow, outer) == wide)
    except TypeError_:
        return False


def symbols_in(type_) -> Iterator[Symbol]:
    """All symbols in a type."""
    if isinstance(type_, SequenceType):
        yield from symbols_in(type_.element)
        yield from symbols_of(() if type_.length is None else (type_.length,))
    elif isinstance(type_, OptionalType):
        yield from symbols_in(type_.element)
    else:
        yield from symbols_of(type_.shape or ())
        yield from symbols_of(() if type_.known is None else type_.known.flat)


def exported(type_, visible: set[Symbol]):
    """A type of the body as a type outside. A symbol of the body can differ in each iteration: it is replaced."""
    if isinstance(type_, SequenceType):
        length = None if type_.length is None else _exported_dim(type_.length, visible)
        return SequenceType(exported(type_.element, visible), length)
    if isinstance(type_, OptionalType):
        return OptionalType(exported(type_.element, visible), type_.present)
    if type_.shape is None:
        return type_.without_known()
    return TensorType(type_.dtype, tuple(_exported_dim(dim, visible) for dim in type_.shape))


def of_one_element(type_: SequenceType) -> TensorType:
    """The type of one element. Sizes that can differ between elements get new symbols."""
    shape = type_.element.shape
    if shape is None:
        return TensorType(type_.element.dtype, None)
    return TensorType(type_.element.dtype, tuple(fresh(low(d), high(d)) if is_some_size(d) else d for d in shape))


def is_some_size(dim: Dimension) -> bool:
    """Whether a dimension can differ between two elements."""
    return isinstance(dim, Dim) and dim.has_fresh()


def _exported_dim(dim: Dimension, visible: set[Symbol]) -> Dimension:
    return dim if isinstance(dim, int) or visible.issuperset(dim.symbols()) else fresh(low(dim), high(dim))


def _require_alike(a, b) -> None:
    if type(a) is not type(b):
        raise TypeError_(f"{a} and {b} cannot be the same value", code="ML239")
    if isinstance(a, SequenceType):
        _require_alike(a.element, b.element)
    elif isinstance(a, TensorType) and a.dtype is not b.dtype:
        raise TypeError_(f"elements of type {a.dtype} and {b.dtype} cannot be the same value", code="ML239")


def _joined_optional(a: OptionalType, b: OptionalType):
    for one, other in ((a, b), (b, a)):
        if isinstance(one.element, TensorType) and one.element.dtype is None:
            return other.element
    if a.present is False or b.present is False:
        return b.element if a.present is False else a.element
    return join_types(a.element, b.element)


def _widened_element(old: SequenceType, new: SequenceType, outer: Collection[Symbol]) -> TensorType:
    if new.is_empty:
        return old.element
    if old.is_empty:
        return TensorType(new.element.dtype, _loosened(new.element.shape))
    assume_equal(old.element.shape, new.element.shape)
    shape: Shape = widen(old.element.shape, new.element.shape, outer)
    return old.element if shape == old.element.shape else TensorType(old.element.dtype, shape)


def _loosened(shape: Shape) -> Shape:
    """A shape in which fresh symbols are replaced by new ones."""
    return None if shape is None else tuple(fresh(low(dim), high(dim)) if is_some_size(dim) else dim for dim in shape)


def _widened_length(old: Dimension | None, new: Dimension | None, outer: Collection[Symbol]) -> Dimension | None:
    if old is None or old == new:
        return old
    if new is None:
        return None
    if not covers(old, new):
        return None
    return old if not any(symbol in outer for symbol in symbols_of((old,))) else None
