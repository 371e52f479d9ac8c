"""Reads a large .onnx file without its weights.

`strip_weights(file, name)` returns the serialised model in which every large `raw_data` (also packed `float_data`,
`double_data`) of initializers, Constant nodes, bodies and functions is replaced by a reference to its offset in the
same file, as ONNX external data. protobuf then parses kilobytes of a file of gigabytes.

The reader follows the protobuf wire format: a message is a sequence of fields, each a key (number and wire type) and a
value. It descends only into fields that can contain a tensor and copies all others unchanged.
"""

from __future__ import annotations

import os
import re
from functools import cache
from typing import BinaryIO

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
_DATA_TYPE, _FLOAT_DATA, _RAW_DATA, _DOUBLE_DATA, _EXTERNAL, _LOCATION = 2, 4, 9, 10, 13, 14
# A packed field has the layout of raw data if the element type is that of the field.
_RAW_WHEN = {_FLOAT_DATA: 1, _DOUBLE_DATA: 11}


@cache
def _equals(key: int) -> re.Pattern[bytes]:
    """Fields with a key of one byte: the lists of trees hold millions of numbers, and of words of a few letters."""
    texts = b"|".join(b"%b.{%d}" % (re.escape(bytes([size])), size) for size in range(20))
    values = {_VARINT: b"[\x80-\xff]{0,9}[\x00-\x7f]", _FIXED64: b".{8}", _BYTES: b"(?:%b)" % texts, _FIXED32: b".{4}"}
    return re.compile(b"(?:%b%b)+" % (re.escape(bytes([key])), values[key & 7]), re.DOTALL)


def strip_weights(file: BinaryIO, name: str) -> bytes:
    """The model in an open file without its large tensor data. FileError when the wire format is broken."""
    return _Walk(file, name).message("model", 0, os.fstat(file.fileno()).st_size)


class _Walk:
    """Reads keys through a small buffer, so that skipped data is not read."""

    def __init__(self, file: BinaryIO, name: str) -> None:
        self._file = file
        self._name = name
        self._window = b""
        self._start = 0

    def _bytes(self, start: int, end: int) -> bytes:
        self._file.seek(start)
        data = self._file.read(end - start)
        if len(data) != end - start:
            raise self._broken()
        return data

    def _broken(self) -> FileError:
        return FileError(f"{self._name} is not an ONNX model, or was cut short", code="ML214")

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
        """The position behind the small fields with this key that begin at `position`, as far as they were read."""
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
        for number, wire, key, value, stop in self.fields(start, end, single=True):
            if wire == _BYTES and stop - value > SMALL and number in paths:
                parts.append(self._bytes(copied, key))
                parts.append(_field(number, self.message(paths[number], value, stop)))
                copied = stop
        parts.append(self._bytes(copied, end))
        return b"".join(parts)

    def _tensor(self, start: int, end: int) -> bytes:
        fields = self.fields(start, end)
        numbers = [number for number, *_ in fields]
        dtype = next((self._varint(value)[0] for number, _, _, value, _ in fields if number == _DATA_TYPE), 0)
        parts: list[bytes] = []
        found: list[bytes] = []
        for number, wire, key, value, stop in fields:
            is_raw = number == _RAW_DATA or _RAW_WHEN.get(number) == dtype
            if is_raw and wire == _BYTES and stop - value > SMALL and numbers.count(number) == 1:
                where = {b"location": OWN_FILE.encode(), b"offset": b"%d" % value, b"length": b"%d" % (stop - value)}
                for name, text in where.items():
                    found.append(_field(_EXTERNAL, _field(1, name) + _field(2, text)))
                found.append(_number(_LOCATION << 3 | _VARINT) + _number(1))
            else:
                parts.append(self._bytes(key, stop))
        # At the end: a data_location that the file itself has, the default one, comes before, and the last one counts.
        return b"".join([*parts, *found])


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
