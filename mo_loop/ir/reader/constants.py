"""Reads constants as spans of the .bin: their size is checked, their data are not loaded."""

from __future__ import annotations

import os
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.errors import FileError, TypeError_
from mo_loop.graph.data_file import DataFile
from mo_loop.graph.shape import is_static, require_sizes
from mo_loop.graph.tensor import FileTensor, Tensor
from mo_loop.graph.types import BY_IR_NAME, string, u8
from mo_loop.ir.reader.layer_records import Layer, shortened
from mo_loop.ir.reader.numbers import integer, parse_shape, shown


class StringTensor(FileTensor):
    """Strings in a file, in the form of `pack_strings`: count, start of each, end of the last, characters."""

    __slots__ = ("_length",)

    def __init__(self, file: DataFile | str, offset: int, length: int, shape: tuple[int, ...]) -> None:
        super().__init__(file, offset, string, shape)
        self._length = length

    @property
    def nbytes(self) -> int:
        return self._length

    def bounds(self) -> np.ndarray[Any, Any]:
        """The start of each string, and the end of the last one. Raises ValueError if the data are not in this form."""
        if not self._length and not self.size:
            return np.zeros(1, np.int64)
        head = 4 * (self.size + 2)
        if self._length < head:
            raise ValueError(f"{self._length} bytes for {self.size} strings")
        with self.file.open() as file:
            numbers = np.frombuffer(self._read(file, 0, head), "<i4")
        bounds: np.ndarray[Any, Any] = numbers[1:].astype(np.int64)
        in_order = bool((np.diff(bounds) >= 0).all())
        if numbers[0] != self.size or not in_order or bounds[0] != 0 or bounds[-1] != self._length - head:
            raise ValueError(f"not the table of {self.size} strings")
        return bounds

    def array(self) -> np.ndarray[Any, Any]:
        bounds = self.bounds() + 4 * (self.size + 2)
        data = b"".join(self.blocks())
        items = np.empty(self.size, object)
        items[:] = [data[a:b].decode(errors="replace") for a, b in pairwise(bounds)]
        return items.reshape(self.shape)

    def reshaped(self, shape: tuple[int, ...]) -> Tensor:
        return StringTensor(self.file, self.offset, self._length, shape)


class WeightFile:
    """The .bin of a model. A model without constants needs none."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: DataFile | None = None
        self._size: int | None = None

    def tensor(self, layer: Layer) -> Tensor:
        """The data of a Const; for an element type unknown here, its bytes."""
        offset, size = (self._number(layer, key) for key in ("offset", "size"))
        self._check(layer, offset, size)
        file = self._file or DataFile(os.fspath(self._path))
        dtype = BY_IR_NAME.get(layer.data.get("element_type", ""))
        if dtype is None:
            return FileTensor(file, offset, u8, (size,))
        shape = self._shape(layer)
        if dtype is string:
            strings = StringTensor(file, offset, size, shape)
            try:
                strings.bounds()
            except ValueError as error:
                raise layer.wrong(f"its data are not strings: {error}", "ML255") from None
            return strings
        tensor = FileTensor(file, offset, dtype, shape)
        if tensor.nbytes != size:
            raise layer.wrong(f"{size} bytes of data; {dtype}{list(shape)} takes {tensor.nbytes}", "ML255")
        return tensor

    def _number(self, layer: Layer, key: str) -> int:
        text = layer.data.get(key)
        if text is None:
            raise layer.wrong(f"no {key}")
        try:
            return integer(text, 0)
        except ValueError as error:
            raise layer.wrong(f"the attribute {key}: {error}") from None

    def _shape(self, layer: Layer) -> tuple[int, ...]:
        text = layer.data.get("shape", "")
        try:
            shape = parse_shape(text)
        except ValueError as error:
            raise layer.wrong(f"the attribute shape: {error}") from None
        if shape is None or not is_static(shape):
            raise layer.wrong(f"the shape {shown(text)} is not that of a constant")
        try:
            require_sizes(shape)
        except TypeError_ as error:
            raise layer.wrong(error.message, "ML255") from None
        return shape  # type: ignore[return-value]  # is_static has seen ints only

    def _check(self, layer: Layer, offset: int, size: int) -> None:
        if not size:
            return
        if self._size is None:
            with suppress(OSError, ValueError):
                self._file = DataFile.at(os.fspath(self._path))
            identity = None if self._file is None else self._file.identity
            self._size = -1 if identity is None else identity.size
        if self._size < 0:
            raise FileError(
                f"the weights {self._path} are missing", code="ML217", where=shortened(layer.where),
                hint="put the .bin beside the .xml under the same name, or pass its path",
            )  # fmt: skip
        if offset + size > self._size:
            raise FileError(
                shortened(f"layer {layer.id}: its data end at {offset + size}, {self._path.name} ends at {self._size}"),
                code="ML213", where=shortened(layer.where),
                hint="it is truncated, or belongs to another model: copy it again",
            )  # fmt: skip
