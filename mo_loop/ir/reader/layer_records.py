"""The records of an IR file: layers, ports, edges and port maps, with ids, labels and attributes as text.

Reads constants as spans of the .bin: their size is checked, their data are not loaded.

Numbers in an IR file: decimal digits of 64 bits, and shapes of at most 64 dimensions.

Every number that the reader uses is parsed here. Python's `int` accepts more: digits of other scripts, underscores, and
numbers of any length.
"""

import os
import re
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.errors import FileError, IrError, TypeError_
from mo_loop.graph import BY_IR_NAME, DataFile, FileTensor, Tensor, string, u8
from mo_loop.graph.dimension import Dimension, fresh, named
from mo_loop.graph.shape import MOST_DIMENSIONS, Shape, is_static, require_sizes

LEAST, MOST = -(2**63), 2**63 - 1

_LONGEST = 40

_DIGITS = re.compile("-?[0-9]{1,19}")


def integer(text: str, least: int = LEAST, most: int = MOST) -> int:
    """The number in `text`. Raises ValueError unless it is an integer from `least` to `most`."""
    number = int(text) if _DIGITS.fullmatch(text.strip()) else None
    if number is None or not least <= number <= most:
        raise ValueError(f"{shown(text)} is not an integer {_range(least, most)}")
    return number


def _range(least: int, most: int) -> str:
    return "of 64 bits" if (least, most) == (LEAST, MOST) else f"from {least} to {'2^63 - 1' if most == MOST else most}"


def shown(text: str) -> str:
    """A value of the file in a message: quoted, and shortened."""
    return repr(text) if len(text) <= _LONGEST else f"{text[:_LONGEST]!r}... ({len(text)} characters)"


def parse_shape(text: str, symbol: str = "") -> Shape:
    """A shape such as `2,?,1..5`, None for `...`. Raises ValueError for other text.

    Unknown dimensions are fresh, or have the name `symbol` with their position appended.
    """
    text = text.strip().removeprefix("[").removesuffix("]")
    if text == "...":
        return None
    texts = text.split(",") if text else []
    require_dimensions(len(texts))
    dims: list[Dimension] = []
    for position, each in enumerate(texts):
        lo, hi = _bounds(each.strip())
        if lo == hi:
            dims.append(lo)
        else:
            dims.append(named(f"{symbol}{position}", lo, hi) if symbol else fresh(lo, hi))
    return tuple(dims)


def require_dimensions(count: int) -> None:
    """ValueError if a tensor has more dimensions than an array can have."""
    if count > MOST_DIMENSIONS:
        raise ValueError(f"{count} dimensions are more than {MOST_DIMENSIONS}")


def _bounds(text: str) -> tuple[int, int | None]:
    if text in ("?", "-1"):
        return 0, None
    first, dots, last = text.partition("..")
    lo = integer(first, 0) if first or not dots else 0
    hi = integer(last, 0) if last else None if dots else lo
    if hi is not None and hi < lo:
        raise ValueError(f"the dimension {text!r} ends before it begins")
    return lo, hi


LONGEST, LONGEST_NAME = 400, 40
"""Characters of the message of an error, and of an id or type in it: those of a file may have any length."""

Info = dict[str, dict[str, str]]
"""The <rt_info> of a layer or port: name of an attribute -> its fields."""


def shortened(text: str, longest: int = LONGEST) -> str:
    """A text of the file, for a message."""
    return text if len(text) <= longest else f"{text[:longest]}..."


def _name(text: str) -> str:
    return shortened(text, LONGEST_NAME)


def ir_error(message: str, where: str, code: str = "ML250") -> IrError:
    """An error with texts of the file in it."""
    return IrError(shortened(message), where=shortened(where), code=code)


@dataclass(slots=True)
class LayerPort:
    """A port of a layer. `dims` holds -1 for an unknown dimension; () is a scalar or an unknown rank."""

    label: str
    precision: str
    dims: tuple[int, ...]
    names: tuple[str, ...]
    rt_info: Info


@dataclass(slots=True)
class SliceRange:
    """The way in which a port map cuts a tensor into slices, or concatenates slices to a tensor."""

    axis: int
    start: int
    end: int
    stride: int
    part_size: int


@dataclass(slots=True)
class Link:
    """A line of a port map. `port` is the label of the outer port, or None."""

    port: str | None
    layer: str
    purpose: str
    cut: SliceRange | None


@dataclass(slots=True)
class PortMap:
    """The inputs and outputs that a port map connects with layers of a body."""

    inputs: list[Link] = field(default_factory=list)
    outputs: list[Link] = field(default_factory=list)


@dataclass(slots=True)
class Layer:
    """A layer. `where` is its place in the model, for messages."""

    where: str
    id: str
    name: str
    type: str
    version: str
    data: dict[str, str]
    inputs: list[LayerPort] = field(default_factory=list)
    outputs: list[LayerPort] = field(default_factory=list)
    output_names: tuple[str, ...] = ()
    rt_info: Info = field(default_factory=dict)
    port_maps: dict[str, PortMap] = field(default_factory=dict)
    back_edges: list[tuple[str, str]] = field(default_factory=list)
    """(Result, Parameter): ids of layers of the body."""
    bodies: "dict[str, Net]" = field(default_factory=dict)

    def wrong(self, message: str, code: str = "ML250") -> IrError:
        """An error at this layer."""
        return ir_error(f"layer {_name(self.id)} ({_name(self.type)}): {message}", self.where, code)


@dataclass(slots=True)
class Edge:
    """An edge between two ports."""

    from_layer: str
    from_port: str
    to_layer: str
    to_port: str

    def __str__(self) -> str:
        ends = map(_name, (self.from_layer, self.from_port, self.to_layer, self.to_port))
        return "the edge from layer {}:{} to layer {}:{}".format(*ends)


@dataclass(slots=True, eq=False)
class Net:
    """A model or a body. Several can have the same path, because layers can have the same name."""

    name: str
    path: str
    layers: list[Layer]
    edges: list[Edge]
    rt_info: dict[str, object]


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
                hint="put the .bin next to the .xml, under the same name, or pass its path",
            )
        if offset + size > self._size:
            raise FileError(
                shortened(f"layer {layer.id}: its data end at {offset + size}, {self._path.name} ends at {self._size}"),
                code="ML213", where=shortened(layer.where),
                hint="it is truncated, or belongs to another model: copy it again",
            )
