"""Strings as numbers, and numbers as strings, for the translators of operators on texts:

    texts = taken(x)                            # begins and ends, i32[N], and the bytes of all strings
    packed(texts.at(places), sizes)             # strings of these sizes
    numbers = encoded(x, [b"yes", b"no"], 2)    # 0, 1, or 2 for other strings, in the shape of x
    strings = labelled_by(numbers, labels)      # the label of each number

The runtime computes nothing with strings themselves: it gathers and selects their places. Two limits are met here:

- StringTensorPack takes places that do not descend, so others are first brought into order by `in_order`.
- StringTensorPack of no strings is an error, and StringTensorUnpack of none does not run: an empty string is added and
  removed, by a Pad where it is a tensor of strings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mo_loop.frontend.ops.shared import counted, ones, ranked, zeros
from mo_loop.frontend.vocabulary import UnsupportedError, Value, ops
from mo_loop.graph.types import i32, string
from mo_loop.ops.lengths import vector

Array = np.ndarray[Any, Any]

_EMPTY = np.array([b""], object)


class StringPlaces(NamedTuple):
    """N strings: the places of their first bytes and of the bytes after them, i32[N], and the bytes, u8[M]."""

    begins: Value
    ends: Value
    chars: Value

    def at(self, places: Value) -> StringPlaces:
        """The strings at some places, with the same bytes."""
        return StringPlaces(ops.Gather(self.begins, places, 0), ops.Gather(self.ends, places, 0), self.chars)

    def with_empty(self) -> StringPlaces:
        """These and an empty string at the end."""
        end = ops.ShapeOf(self.chars, output_type=i32)
        return StringPlaces(ops.Concat(self.begins, end, axis=0), ops.Concat(self.ends, end, axis=0), self.chars)

    def with_bytes(self) -> StringPlaces:
        """The same strings with bytes after them, so that there is one: operations of the library require that."""
        return self._replace(chars=ops.Concat(self.chars, np.zeros(1, np.uint8), axis=0))

    def replaced(self, pattern: str, new: str = "", every: bool = True) -> StringPlaces:
        """The strings, one after another, with the matches of an expression of PCRE2 replaced; none shares a byte."""
        given = (np.frombuffer(each.encode(), np.uint8) for each in (pattern, new))
        return StringPlaces(*ops.RegexNormalization(*self.with_bytes(), *given, global_replace=every))

    def broadcast(self, before: Value, sizes: Value) -> StringPlaces:
        """Strings of the sizes `before` broadcast to others; they share their bytes."""
        begins, ends = (vector(ops.Broadcast(ops.Reshape(each, before), sizes)) for each in (self.begins, self.ends))
        return StringPlaces(begins, ends, self.chars)


def taken(x: Value) -> StringPlaces:
    """The strings of a tensor of any rank, in row-major order. No two share a byte."""
    require_strings(x)
    known = constant_strings(x)
    if known:
        return StringPlaces(*(ops.Constant(each, graph=x.graph) for each in constant_texts(known)))
    row = vector(x)
    if all(isinstance(size, int) and size for size in x.type.dims):
        return StringPlaces(*ops.StringTensorUnpack(row))
    begins, ends, chars = ops.StringTensorUnpack(ops.Concat(row, _EMPTY, axis=0))
    return StringPlaces(begins[:-1], ends[:-1], chars)


def in_order(texts: StringPlaces) -> StringPlaces:
    """The same strings, one after another, where none shares a byte with another one: nothing matches."""
    return texts.replaced("(?!)")


def packed(texts: StringPlaces, sizes: Any, ordered: bool = True) -> Value:
    """The strings as a tensor of these sizes: a vector of i64, or integers. `ordered`: the places do not descend."""
    (count,) = texts.begins.type.dims
    may_be_none = not (isinstance(count, int) and count)
    whole = texts.with_empty() if may_be_none else texts
    strings = ops.StringTensorPack(*(whole if ordered else in_order(whole)))
    strings = without_last(strings) if may_be_none else strings
    is_vector = isinstance(sizes, Value) and sizes.type.dims == (1,)
    return strings if is_vector else ops.Reshape(strings, sizes)


def without_last(strings: Value) -> Value:
    """A vector of strings without its last one. Older releases need the string that a Pad would add."""
    return ops.Pad12(strings, [0], [-1], np.array(b"", object))


def as_bytes(strings: Iterable[Any]) -> list[bytes]:
    """Strings of an attribute, or of a constant."""
    return [each if isinstance(each, bytes) else str(each).encode() for each in strings]


def constant_strings(x: Value) -> list[bytes] | None:
    """The strings of a constant; None for other values."""
    tensor = getattr(x.node, "tensor", None)
    return as_bytes(tensor.array().reshape(-1).tolist()) if x.dtype is string and tensor is not None else None


def constant_texts(strings: Sequence[bytes]) -> tuple[Array, Array, Array]:
    """Begins, ends and bytes of known strings."""
    ends = np.cumsum([0, *map(len, strings)])
    data = np.frombuffer(b"".join(strings), np.uint8)
    return ends[:-1].astype(np.int32), ends[1:].astype(np.int32), data


def encoded(x: Value, keys: Sequence[bytes], default: int) -> Value:
    """i32 of the shape of x: the number of the key that a string is, or the default. Equal keys have one number."""
    numbers = np.arange(len(keys), dtype=np.int32)
    found = ops.VocabEncoder(*taken(x), *constant_texts(keys), numbers, np.array([default], np.int32))
    return found if x.rank == 1 else ops.Reshape(found, x.sizes)


def labelled_by(numbers: Value, labels: Sequence[bytes]) -> Value:
    """Strings of the shape of the numbers, which are integers from 0 to the number of labels - 1.

    Each label has a row of the same length in a table, so that the places of its bytes in the gathered rows ascend.
    """
    width = max(1, *map(len, labels))
    table = zeros((len(labels), width), np.uint8)
    for row, label in zip(table, labels, strict=True):
        row[: len(label)] = np.frombuffer(label, np.uint8)
    lengths = np.array(list(map(len, labels)), np.int32)
    flat = vector(numbers)
    begins = ops.Multiply(counted(flat.size(0), flat).astype(i32), np.int32(width))
    ends = ops.Add(begins, ops.Gather(lengths, flat, 0))
    return packed(StringPlaces(begins, ends, vector(ops.Gather(table, flat, 0))), ops.ShapeOf(numbers))


def paired(x: Value, y: Value) -> tuple[StringPlaces, StringPlaces, Value]:
    """The strings of two tensors, which are broadcast to the same sizes, and these sizes; some may share bytes."""
    parts, sizes = [taken(each) for each in (x, y)], [ops.ShapeOf(each) for each in (x, y)]
    if x.rank is not None and y.rank is not None and x.type.dims == y.type.dims:
        return parts[0], parts[1], sizes[0]
    ranks = [ranked(each, "an input of strings") for each in (x, y)]
    full = [
        ops.Concat(ones((max(ranks) - rank,), np.int64), each, axis=0) for rank, each in zip(ranks, sizes, strict=True)
    ]
    common = ops.Select(ops.Equal(full[0], 1), full[1], full[0])
    first, second = (part.broadcast(before, common) for part, before in zip(parts, sizes, strict=True))
    return first, second, common


def equal_strings(x: Value, y: Value) -> Value:
    """Whether pairs of strings have the same bytes."""
    first, second, sizes = paired(x, y)
    return ops.Reshape(ops.NotEqual(ops.EqualStr(*first, *second), 0), sizes)


def require_strings(*values: Value) -> None:
    """UnsupportedError for a tensor of numbers where ONNX defines strings."""
    for value in values:
        if value.dtype is not string:
            raise UnsupportedError(f"an input is {value.dtype}, and must be strings", code="ML303")
