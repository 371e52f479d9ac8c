"""Reads a large .onnx file without its weights.

`strip_weights(file, name)` returns the serialised model in which every large `raw_data` (also packed `float_data`,
`double_data`) of initializers, Constant nodes, bodies and functions is replaced by a reference to its offset in the
same file, as ONNX external data. protobuf then parses kilobytes of a file of gigabytes.

With `lists`, the long lists of the attributes of decision trees stay in the file, too, as a tensor of their bytes that
`listed` reads: of a list whose length is not written before it, protobuf takes several times the memory.

The reader follows the protobuf wire format: a message is a sequence of fields, each a key (number and wire type) and a
value. It descends only into fields that can contain a tensor and copies all others unchanged.
"""

import os
import re
from functools import cache
from typing import Any, BinaryIO

import numpy as np

from mo_loop.errors import FileError

OWN_FILE = "\0"
"""The external data location that means the model's own file; no file can have this name."""

SMALL = 4096
"""Tensor data of fewer bytes stays in the message."""

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5

# Kind of message -> field number -> kind of the inner message, for fields that can contain a tensor.
_PATHS: dict[str, dict[int, str]] = {
    "model": {7: "graph", 25: "function"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "function": {7: "node", 11: "attribute"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
}
_NAME, _TENSOR, _TYPE = 1, 5, 20
FLOATS, INTS, STRINGS = 7, 8, 9
"""The lists of an attribute."""
_OF_TREES = re.compile(rb"(?:nodes|target|class|leaf)_[a-z]+")
_WIRES = {FLOATS: _FIXED32, INTS: _VARINT, STRINGS: _BYTES}
_UINT8 = 2
_DIMS, _DATA_TYPE, _FLOAT_DATA, _RAW_DATA, _DOUBLE_DATA, _EXTERNAL, _LOCATION = 1, 2, 4, 9, 10, 13, 14
# A packed field has the layout of raw data if the element type is that of the field.
_RAW_WHEN = {_FLOAT_DATA: 1, _DOUBLE_DATA: 11}


@cache
def _equals(key: int) -> re.Pattern[bytes]:
    """Fields with a key of one byte: the lists of trees hold millions of numbers, and of words of a few letters."""
    texts = b"|".join(b"%b.{%d}" % (re.escape(bytes([size])), size) for size in range(20))
    values = {_VARINT: b"[\x80-\xff]{0,9}[\x00-\x7f]", _FIXED64: b".{8}", _BYTES: b"(?:%b)" % texts, _FIXED32: b".{4}"}
    return re.compile(b"(?:%b%b)+" % (re.escape(bytes([key])), values[key & 7]), re.DOTALL)


def strip_weights(file: BinaryIO, name: str, *, lists: bool = False) -> bytes:
    """The model in an open file without its large tensor data, with `lists` also without long lists of trees. FileError
    when the wire format is broken."""
    return _Walk(file, name, lists).message("model", 0, os.fstat(file.fileno()).st_size)


class _Walk:
    """Reads keys through a small buffer, so that skipped data is not read."""

    def __init__(self, file: BinaryIO, name: str, lists: bool) -> None:
        self._file = file
        self._name = name
        self._lists = lists
        self._window = b""
        self._start = 0

    def _bytes(self, start: int, end: int) -> bytes:
        self._file.seek(start)
        data = self._file.read(end - start)
        if len(data) != end - start:
            raise self._broken()
        return data

    def _broken(self) -> FileError:
        return FileError(f"{self._name} is not an ONNX model, or is truncated", code="ML214")

    def _varint(self, position: int) -> tuple[int, int]:
        """The varint at `position`, and the position after it."""
        offset = position - self._start
        if offset < 0 or offset + 10 > len(self._window):
            self._file.seek(position)
            self._window, self._start, offset = self._file.read(1 << 16), position, 0
        value = shift = 0
        for byte in self._window[offset : offset + 10]:
            position += 1
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value, position
            shift += 7
        raise self._broken()

    def fields(self, start: int, end: int, single: bool = False) -> list[tuple[int, int, int, int, int]]:
        """The fields of a message: (number, wire type, start of the key, start and end of the value); with `single`, of
        small fields that follow each other under one key perhaps only the first one."""
        found = []
        position = start
        while position < end:
            key, value = self._varint(position)
            number, wire = key >> 3, key & 7
            if wire == _BYTES:
                size, value = self._varint(value)
                stop = value + size
            elif wire == _VARINT:
                _, stop = self._varint(value)
            elif wire in (_FIXED64, _FIXED32):
                stop = value + (8 if wire == _FIXED64 else 4)
            else:
                raise self._broken()
            if stop > end or not number:
                raise self._broken()
            found.append((number, wire, position, value, stop))
            position = self._after_equals(key, stop, end) if single and key < 0x80 else stop
        return found

    def _after_equals(self, key: int, position: int, end: int) -> int:
        """The position after the small fields with this key that begin at `position`, as far as they were read."""
        offset = position - self._start
        if not 0 <= offset < len(self._window) or self._window[offset] != key:
            return position
        found = _equals(key).match(self._window, offset, end - self._start)
        return position if found is None else self._start + found.end()

    def message(self, kind: str, start: int, end: int) -> bytes:
        """A message of `kind` without the large tensor data in it."""
        if kind == "tensor":
            return self._tensor(start, end)
        paths = _PATHS[kind]
        parts: list[bytes] = []
        copied = start  # the bytes before this position are in `parts`
        fields = self.fields(start, end, single=True)
        if kind == "attribute" and self._lists:
            first, after = self._list_of_trees(fields, end)
            if after - first > SMALL:
                kept = [_small(_DIMS, after - first), _small(_DATA_TYPE, _UINT8)]
                tensor = b"".join([*kept, *_reference(first, after)])
                return self._bytes(start, first) + self._bytes(after, end) + _field(_TENSOR, tensor)
        for number, wire, key, value, stop in fields:
            if wire == _BYTES and stop - value > SMALL and number in paths:
                parts.append(self._bytes(copied, key))
                parts.append(_field(number, self.message(paths[number], value, stop)))
                copied = stop
        parts.append(self._bytes(copied, end))
        return b"".join(parts)

    def _list_of_trees(self, fields: list[tuple[int, int, int, int, int]], end: int) -> tuple[int, int]:
        """The place of the list of an attribute of trees, if its items have a key each and are consecutive."""
        names = [self._bytes(value, stop) for number, _, _, value, stop in fields if number == _NAME]
        places = [place for place, (number, *_) in enumerate(fields) if number in (FLOATS, INTS, STRINGS)]
        kinds = {number for number, *_ in fields}
        if not places or _TYPE not in kinds or _TENSOR in kinds or len(names) != 1 or not _OF_TREES.fullmatch(names[0]):
            return 0, 0
        run = fields[places[0] : places[-1] + 1]
        if any(each[:2] != (run[0][0], _WIRES[run[0][0]]) for each in run):
            return 0, 0
        return run[0][2], fields[places[-1] + 1][2] if places[-1] + 1 < len(fields) else end

    def _tensor(self, start: int, end: int) -> bytes:
        fields = self.fields(start, end)
        numbers = [number for number, *_ in fields]
        dtype = next((self._varint(value)[0] for number, _, _, value, _ in fields if number == _DATA_TYPE), 0)
        parts: list[bytes] = []
        found: list[bytes] = []
        for number, wire, key, value, stop in fields:
            is_raw = number == _RAW_DATA or _RAW_WHEN.get(number) == dtype
            if is_raw and wire == _BYTES and stop - value > SMALL and numbers.count(number) == 1:
                found += _reference(value, stop)
            else:
                parts.append(self._bytes(key, stop))
        # At the end: a data_location that the file itself has, the default one, comes before, and the last one counts.
        return b"".join([*parts, *found])


def listed(data: Any, kind: int) -> Any:
    """The elements of a list attribute, from its bytes in the file, as an array or a tuple of texts."""
    if kind == FLOATS:
        return np.ascontiguousarray(data.reshape(-1, 5)[:, 1:]).view("<f4").reshape(-1).astype(np.float64)
    if kind == INTS:
        return _varints(data)
    whole, texts, position, found = data.tobytes(), Texts(), 0, []
    while position < len(whole):
        size, shift, position = whole[position + 1], 7, position + 2
        while size >> shift:  # the last byte announces one more
            size = size & ~(1 << shift) | whole[position] << shift
            shift, position = shift + 7, position + 1
        found.append(texts[whole[position : position + size]])
        position += size
    return tuple(found)


def _varints(data: Any) -> Any:
    """Numbers that each come after a key of one byte. The last byte of a varint is below 0x80, as a key is."""
    ends = np.flatnonzero(data < 0x80)
    first = ends[::2] + 1
    sizes = ends[1::2] + 1 - first
    del ends
    found = np.zeros(len(first), np.uint64)
    for place in range(int(sizes.max())):
        longer = np.flatnonzero(sizes > place)
        found[longer] |= (data[first[longer] + place] & np.uint8(0x7F)).astype(np.uint64) << np.uint64(7 * place)
    numbers = found.view(np.int64)
    small = numbers.astype(np.int32)
    return small if np.array_equal(small, numbers) else numbers


class Texts(dict[bytes, str]):
    """The text of bytes; equal texts are one object."""

    def __missing__(self, item: bytes) -> str:
        return self.setdefault(item, item.decode("utf-8", "replace"))


def _reference(start: int, stop: int) -> list[bytes]:
    """The fields of a tensor that refer to these bytes of the file as its data."""
    where = {b"location": OWN_FILE.encode(), b"offset": b"%d" % start, b"length": b"%d" % (stop - start)}
    found = [_field(_EXTERNAL, _field(1, name) + _field(2, text)) for name, text in where.items()]
    return [*found, _small(_LOCATION, 1)]


def _small(number: int, value: int) -> bytes:
    return _number(number << 3 | _VARINT) + _number(value)


def _number(value: int) -> bytes:
    """A varint."""
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _field(number: int, data: bytes) -> bytes:
    return _number(number << 3 | _BYTES) + _number(len(data)) + data
