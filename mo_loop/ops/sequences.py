"""Sequences and optionals: the operations of ONNX, and sequences made of tensors.

Passes replace all of them by tensors (transforms/front/sequence_lowering); none reaches the IR. A sequence is made of
its elements (`SequenceConstruct`), or of tensors in one of three forms:

    StackedSequence(S)        element i is S[i]; all have one shape
    JoinedSequence(J, L)      the elements concatenated along an axis, and their sizes along this axis
    PackedSequence(D, T)      the elements flattened and concatenated, and a table of their shapes, one row each
"""

from typing import Any

from mo_loop.graph.dimension import Dimension, fresh
from mo_loop.graph.shape import Shape, element_count, join, normalise_axis
from mo_loop.graph.types import (
    UNKNOWN,
    ElementType,
    OptionalType,
    SequenceType,
    TensorType,
    boolean,
    f32,
    i32,
    i64,
    tensor_of_known,
)
from mo_loop.ops.base import Op
from mo_loop.ops.infer import is_some_size, join_elements, of_one_element


class OnSequences(Op, abstract=True):
    """Base of the operations in this module."""

    def require_sequence(self, type_) -> None:
        self.require(isinstance(type_, SequenceType), f"{type_} is not a sequence")

    def require_tensor(self, type_) -> None:
        self.require(isinstance(type_, TensorType), f"{type_} is not a tensor")

    def require_optional(self, type_) -> None:
        """An optional, or the sequence of at most one element that replaces it (LowerOptionals)."""
        self.require(isinstance(type_, OptionalType | SequenceType), f"{type_} is not an optional")

    def require_position(self, type_) -> int | None:
        """The position, None if it is not known."""
        self.require(type_.dtype in (i32, i64), f"the position is {type_.dtype or type_}, not i32 or i64")
        count = element_count(type_.shape)
        self.require(not isinstance(count, int) or count == 1, f"the position has {count} elements, not one")
        values = type_.integers
        return None if values is None else values[0]

    def require_within(self, position: int | None, length: Dimension | None, last: int = 0) -> None:
        """A known position is inside a sequence of `length` elements, or up to `last` positions after its end."""
        if position is None or not isinstance(length, int):
            return
        plural = "" if length == 1 else "s"
        self.require(
            -length <= position < length + last,
            f"position {position} is outside a sequence of {length} element{plural}",
        )


def joined_elements(op: OnSequences, first: SequenceType, second: SequenceType) -> TensorType:
    """The element type of a sequence with the elements of two others; TypeError_ if they do not fit together."""
    a, b = first.element, second.element
    op.require(a.dtype is b.dtype, f"one sequence has elements of type {a.dtype} and {b.dtype}")
    if not first.is_empty and not second.is_empty:
        ranks = (a.rank, b.rank)
        op.require(None in ranks or ranks[0] == ranks[1], f"one sequence has elements of rank {a.rank} and {b.rank}")
    return join_elements(first, second)


def _plus(a: Dimension | None, b: Dimension | None) -> Dimension | None:
    return None if a is None or b is None else a + b


class SequenceEmpty(OnSequences):
    """A sequence without elements. Spec: ONNX SequenceEmpty-11."""

    dtype: ElementType = f32

    def infer(self):
        return SequenceType(TensorType(self.dtype, None), 0)


class SequenceConstruct(OnSequences):
    """The inputs in order as a sequence. Spec: ONNX SequenceConstruct-11."""

    def infer(self, first, *rest):
        for type_ in (first, *rest):
            self.require_tensor(type_)
        made = SequenceType(TensorType(first.dtype, first.shape), 1)
        for type_ in rest:
            made = SequenceType(joined_elements(self, made, SequenceType(type_.without_known(), 1)), 1)
        return SequenceType(made.element, 1 + len(rest))


class SequenceInsert(OnSequences):
    """The sequence with a tensor inserted before a position, by default at the end. Spec: SequenceInsert-11."""

    def infer(self, sequence, tensor, position=None):
        self.require_sequence(sequence)
        self.require_tensor(tensor)
        if position is not None:
            self.require_within(self.require_position(position), sequence.length, last=1)
        element = joined_elements(self, sequence, SequenceType(tensor.without_known(), 1))
        return SequenceType(element, _plus(sequence.length, 1))


class SequenceErase(OnSequences):
    """The sequence without one element, by default the last. Spec: ONNX SequenceErase-11."""

    def infer(self, sequence, position=None):
        self.require_sequence(sequence)
        if sequence.is_empty:  # the translator refuses it; a branch that never runs may still contain one
            return sequence
        if position is not None:
            self.require_within(self.require_position(position), sequence.length)
        length = sequence.length
        if length is None:
            return SequenceType(sequence.element)
        rest = length - 1
        return SequenceType(sequence.element, rest if isinstance(rest, int) or rest.lo >= 0 else fresh(0, rest.hi))


class SequenceAt(OnSequences):
    """One element. Spec: ONNX SequenceAt-11.

    For an empty sequence its type is unknown: a loop can start with an empty sequence and read it after it has grown.
    """

    def infer(self, sequence, position):
        self.require_sequence(sequence)
        known = self.require_position(position)
        if sequence.is_empty:
            return UNKNOWN
        self.require_within(known, sequence.length)
        return of_one_element(sequence)


class SequenceLength(OnSequences):
    """The number of elements, an i64 scalar. Spec: ONNX SequenceLength-11."""

    def infer(self, sequence):
        self.require_sequence(sequence)
        return TensorType(i64, ()) if sequence.length is None else tensor_of_known(i64, sequence.length)


class SplitToSequence(OnSequences):
    """A tensor in pieces along an axis. Spec: ONNX SplitToSequence-24.

    `split` is the size of each piece but the last (a scalar) or the sizes of all (a list); without it pieces are of
    size 1, and without `keepdims` they do not have the axis.
    """

    axis: int = 0
    keepdims: bool = True

    def infer(self, tensor, split=None):
        self.require_tensor(tensor)
        if tensor.shape is None:
            return SequenceType(TensorType(tensor.dtype, None))
        axis = normalise_axis(self.axis, len(tensor.shape))
        before, dim, after = tensor.shape[:axis], tensor.shape[axis], tensor.shape[axis + 1 :]
        if split is None:
            middle: tuple[Dimension, ...] = (1,) if self.keepdims else ()
            return SequenceType(TensorType(tensor.dtype, (*before, *middle, *after)), dim)
        self.require(split.dtype in (i32, i64), f"the split is {split.dtype or split}, not i32 or i64")
        self.require(split.rank in (0, 1), f"the split has the shape {split.shape}, and must be a scalar or a vector")
        size, count = self._chunks(dim, split) if split.rank == 0 else self._listed(dim, split)
        return SequenceType(TensorType(tensor.dtype, (*before, size, *after)), count)

    def _chunks(self, dim: Dimension, split) -> tuple[Dimension, Dimension | None]:
        if split.integers is None:
            return fresh(), None
        size = split.integers[0]
        self.require(size > 0, f"the size of a piece is {size}")
        count = (dim + (size - 1)) // size
        return (size if isinstance(dim, int) and dim % size == 0 else fresh(0, size)), count

    def _listed(self, dim: Dimension, split) -> tuple[Dimension, Dimension]:
        sizes = split.integers
        if sizes is None:
            return fresh(), split.shape[0]
        total = sum(sizes)
        self.require(all(each >= 0 for each in sizes), f"the sizes of the pieces are {list(sizes)}")
        self.require(not isinstance(dim, int) or dim == total, f"pieces of {total} elements do not fit {dim}")
        joined: Dimension = sizes[0] if sizes else 0
        for each in sizes[1:]:
            joined = join(joined, each)
        return joined, len(sizes)


class ConcatFromSequence(OnSequences):
    """All elements concatenated along an axis, a new one with `new_axis`. Spec: ONNX ConcatFromSequence-11."""

    axis: int
    new_axis: bool = False

    def infer(self, sequence):
        self.require_sequence(sequence)
        if sequence.is_empty:
            return UNKNOWN
        element, length = sequence.element, sequence.length
        if element.shape is None:
            return TensorType(element.dtype, None)
        rank = len(element.shape)
        axis = normalise_axis(self.axis, rank + self.new_axis)
        shape = of_one_element(sequence).dims
        if self.new_axis:
            return TensorType(element.dtype, (*shape[:axis], fresh() if length is None else length, *shape[axis:]))
        dim = element.shape[axis]
        total = fresh() if length is None or is_some_size(dim) else dim * length
        return TensorType(element.dtype, (*shape[:axis], total, *shape[axis + 1 :]))


class SequenceExtend(OnSequences):
    """The elements of one sequence and then those of another."""

    def infer(self, first, second):
        self.require_sequence(first)
        self.require_sequence(second)
        return SequenceType(joined_elements(self, first, second), _plus(first.length, second.length))


class StackedSequence(OnSequences):
    """S[N, ...]: element i is S[i]. `dtype` is that of the elements, kept for a loop that collects no element."""

    dtype: Any = None

    def infer(self, stack):
        self.require_tensor(stack)
        if stack.shape is None:
            return SequenceType(TensorType(stack.dtype, None))
        return SequenceType(TensorType(stack.dtype, stack.shape[1:]), stack.shape[0])


class JoinedSequence(OnSequences):
    """The elements concatenated along `axis`, and their sizes along it, i64[N]."""

    axis: int

    def infer(self, joined, sizes):
        self.require_tensor(joined)
        self.require(sizes.rank == 1, f"the sizes have the shape {sizes.shape}, and must be a vector")
        shape: Shape = joined.shape
        if shape is not None:
            shape = (*shape[: self.axis], fresh(), *shape[self.axis + 1 :])
        return SequenceType(TensorType(joined.dtype, shape), sizes.shape[0])


class PackedSequence(OnSequences):
    """The elements flattened and concatenated, D[?], and a table of their shapes, T[N,R] (i64). Elements of rank 0 are
    stored as rank 1. `dims` has the sizes that are the same for all elements, -1 for others."""

    dims: tuple[int, ...]

    def infer(self, data, table):
        self.require_tensor(data)
        self.require(table.rank == 2, f"the table has the shape {table.shape}, and must be a matrix")
        shape = tuple(fresh() if dim < 0 else dim for dim in self.dims)
        return SequenceType(TensorType(data.dtype, shape), table.shape[0])


class PackSequence(OnSequences):
    """The parts of a `PackedSequence`: data D[?] and the table of shapes T[N,R]."""

    def infer(self, sequence):
        self.require_sequence(sequence)
        element, length = sequence.element, sequence.length
        columns = fresh() if element.rank is None else max(element.rank, 1)
        rows = fresh() if length is None else length
        return TensorType(element.dtype, (fresh(),)), TensorType(i64, (rows, columns))


class Optional(OnSequences):
    """An optional with the input as its element, empty without an input. Spec: ONNX Optional-15."""

    dtype: Any = None

    def infer(self, element=None):
        if element is None:
            return OptionalType(TensorType(self.dtype, None), False)
        self.require(not isinstance(element, OptionalType), "an optional cannot be in an optional")
        return OptionalType(element.without_known(), True)


class OptionalHasElement(OnSequences):
    """Whether the optional has an element. Spec: ONNX OptionalHasElement-18."""

    def infer(self, optional):
        self.require_optional(optional)
        return TensorType(boolean, ())


class OptionalGetElement(OnSequences):
    """The element of the optional. Spec: ONNX OptionalGetElement-18."""

    def infer(self, optional):
        self.require_optional(optional)
        if isinstance(optional, SequenceType):
            return UNKNOWN if optional.is_empty else of_one_element(optional)
        if optional.present is False:
            return UNKNOWN
        element = optional.element
        return of_one_element(SequenceType(element)) if isinstance(element, TensorType) else element
