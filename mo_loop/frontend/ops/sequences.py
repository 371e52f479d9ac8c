"""Sequences and optionals as front operations; an optional known to have an element is replaced by the element."""

from typing import Any, TypeAlias

import numpy as np

from mo_loop import ops as operations
from mo_loop.frontend.ops.conditional import one_element
from mo_loop.frontend.scope import Scope
from mo_loop.frontend.vocabulary import Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.shape import assume_fixed, element_count, normalise_axis
from mo_loop.graph.types import OptionalType, SequenceType, TensorType, boolean, f32, from_onnx, i32, i64, string
from mo_loop.ops.base import Parameter

Type: TypeAlias = TensorType | SequenceType | OptionalType
"""The type that an attribute holds."""


@translates("SequenceEmpty", since=11)
def sequence_empty(*, dtype: int | None = None, node: Context):
    return ops.SequenceEmpty(graph=node.graph, dtype=f32 if dtype is None else from_onnx(dtype))


@translates("SequenceConstruct", since=11)
def sequence_construct(*inputs):
    _require_numbers(inputs[0].dtype)
    return ops.SequenceConstruct(*inputs)


@translates("SequenceInsert", since=11)
def sequence_insert(input_sequence, tensor, position=None):
    _require_numbers(tensor.dtype)
    return ops.SequenceInsert(input_sequence, tensor, _position(position))


@translates("SequenceAt", since=11)
def sequence_at(input_sequence, position):
    _require_elements(input_sequence, "an element is read from")
    return ops.SequenceAt(input_sequence, _position(position))


@translates("SequenceErase", since=11)
def sequence_erase(input_sequence, position=None):
    _require_elements(input_sequence, "an element is erased from")
    return ops.SequenceErase(input_sequence, _position(position))


@translates("SequenceLength", since=11)
def sequence_length(input_sequence):
    return ops.SequenceLength(input_sequence)


@translates("SplitToSequence", since=11)
def split_to_sequence(input, split=None, *, keepdims: int = 1, axis: int = 0, node: Context):
    """With a `split`, `keepdims` is ignored, except that ONNX Runtime removes the axis for a scalar 1 and keepdims 0.

    PyTorch exports `unbind` so. ONNX Runtime fails for any other scalar without `keepdims`. Pieces of size 1 are those
    without a `split`, also if it is a vector whose length is not known: then only all its elements are.
    """
    _require_numbers(input.dtype)
    if input.rank is None:
        raise UnsupportedError("the tensor that is split has an unknown rank", code="ML314")
    has_open_length = split is not None and (
        split.rank == 0 or (split.rank == 1 and not isinstance(split.type.dims[0], int))
    )
    if split is not None and not keepdims and split.rank != 1:
        split = None if _size_of_pieces(split, node.scope) == 1 else split
    elif has_open_length and _only_number(split, node.scope) == 1:
        split, keepdims = None, 1
    # Forms for a known number of elements are much smaller and faster.
    assume_fixed([input.type.dims[normalise_axis(axis, input.rank)]])
    if split is not None and split.dtype is not i64:
        split = split.astype(i64)
    return ops.SplitToSequence(input, split, axis=axis, keepdims=bool(keepdims) or split is not None)


def _only_number(value: Value, scope: Scope | None, depth: int = 8) -> Any:
    """The number that every element of a tensor of `scope` is, None if it is not known."""
    node: Any = value.node
    array = value.constant
    if array is not None:
        return array.flat[0] if array.size and (array == array.flat[0]).all() else None
    if not depth or scope is None:
        return None
    if isinstance(node, Parameter):
        captured = next((each.outer for each in scope.captures if each.parameter is node), None)
        return None if captured is None else _only_number(captured, scope.outer, depth)
    if not isinstance(node, operations.Elementwise | operations.Movement | operations.Concat):
        return None
    read: Any = node.inputs[:1] if isinstance(node, operations.Movement) else node.inputs
    numbers = [_only_number(each, scope, depth - 1) for each in read]
    if not isinstance(node, operations.Elementwise):
        return numbers[0] if all(each == numbers[0] for each in numbers) else None
    result = NotImplemented if None in numbers else node.evaluate(*map(np.asarray, numbers))
    return None if result is NotImplemented else result[()]


def _size_of_pieces(split: Value, scope: Scope) -> int:
    size = _only_number(split, scope)
    if size is None:
        raise UnsupportedError(
            "a split of a size known only at run time, without keepdims: for size 1 the axis is removed", code="ML316",
            hint="give split as a constant, or leave keepdims at 1",
        )
    return int(size)


@translates("ConcatFromSequence", since=11)
def concat_from_sequence(input_sequence, *, axis: int, new_axis: int = 0):
    _require_elements(input_sequence, "ConcatFromSequence of")
    return ops.ConcatFromSequence(input_sequence, axis=axis, new_axis=bool(new_axis))


@translates("Optional", since=15)
def optional(input=None, *, type: Type | None = None, node: Context):
    if input is not None:  # an optional sequence is the sequence; one that may be absent is refused
        return input if isinstance(input.type, SequenceType) else ops.Optional(input)
    if type is None:
        raise ModelError("an Optional without an input needs the attribute 'type'", code="ML227")
    dtype = type.element.dtype if isinstance(type, SequenceType) else type.dtype
    return ops.Optional(graph=node.graph, dtype=dtype)


@translates("OptionalHasElement", since=15)
def optional_has_element(input=None, *, node: Context):
    if input is None:
        return node.constant(False, boolean)
    if not isinstance(input.type, OptionalType):
        return node.constant(True, boolean)
    if input.type.present is not None:
        return node.constant(input.type.present, boolean)
    return ops.OptionalHasElement(input)


@translates("OptionalGetElement", since=15)
def optional_get_element(input):
    if not isinstance(input.type, OptionalType):
        return input
    if input.type.present is False:
        raise ModelError("OptionalGetElement of an optional that is always empty", code="ML241")
    held = input.node
    return held.inputs[0] if isinstance(held, operations.Optional) else ops.OptionalGetElement(input)


def _require_elements(sequence: Value, what: str) -> None:
    if isinstance(sequence.type, SequenceType) and sequence.type.is_empty:
        raise ModelError(f"{what} a sequence that is always empty", code="ML243")


def _require_numbers(dtype) -> None:
    if dtype is string:
        raise UnsupportedError(
            "a sequence of strings: the runtime does not support it", code="ML303",
            hint="cut the model after its text processing, so that its inputs are numbers",
        )


def _position(value: Value | None) -> Value | None:
    """A position as an i64 scalar. Other values stay unchanged, and type inference refuses them."""
    count = None if value is None else element_count(value.shape)
    if value is None or value.dtype not in (i32, i64) or (isinstance(count, int) and count != 1):
        return value
    if value.dtype is i32:
        value = value.astype(i64)
    return one_element(value)
