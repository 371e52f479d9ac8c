"""The data of a constant, and how much two of them differ.

    data = Data.of(tensor)
    data.key                        # equal data have equal keys; different data can have, too
    changed(data, other)            # None if they are equal, else a DataChange

Data are first compared as bytes, block by block up to the first difference. Only data that differ are read as numbers.

    preview(tensor)                         # "[0.1, 0.2, 0.3, ...]", as the page shows it
    contents = Contents()
    contents.name(tensor)                   # "5d41402abc4b", the same for a tensor with the same bytes
    described_constant(tensor, contents)    # {"value": ..., "bytes": 64, "data": ..., "stored": "model.bin:128"}

The page does not read weights as a whole, but a few pages. Only tensors of equal pages at other places are compared.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from hashlib import blake2b
from typing import Any

import numpy as np

from mo_loop.errors import MoLoopError
from mo_loop.graph.tensor import BLOCK, SAMPLE, ArrayTensor, FileTensor, Tensor, same_bytes
from mo_loop.support.packed_arrays import unpack
from mo_loop.text.literals import show_array

LISTED = 8
"""The largest number of elements of which a difference shows the values."""

SHOWN = 16
"""The number of elements of a constant that are shown."""

LEAST = 64
"""Bytes of the smallest matrix that is compared with transposed ones."""

LIMIT = 1000
"""The number of characters of a preview."""


@dataclass(frozen=True, slots=True)
class Data:
    """The data of a constant: a tensor, or only a text for it, as in a dump, or its size and a function that reads it.
    """

    key: tuple[Any, ...] = ()
    tensor: Tensor | None = None
    text: str = ""
    elements: int = 0
    nbytes: int = 0
    read: Callable[[], Tensor] | None = None

    @classmethod
    def of(cls, tensor: Tensor) -> "Data":
        # The hash of a sample distinguishes most weights without reading them.
        key = tensor.dtype.name, tensor.shape, hash(tensor.sample())
        return cls(key, tensor, "", tensor.size, tensor.nbytes)

    def array(self, longest: int) -> np.ndarray[Any, Any] | None:
        """The elements in row-major order; None if they are more than `longest`, or cannot be read."""
        if self.tensor is None and (self.read is None or self.elements > longest):
            return None
        try:
            tensor = self.tensor or self.read()  # type: ignore[misc]  # one of both is there
            return None if tensor.size > longest else tensor.array().reshape(-1)
        except (MoLoopError, OSError, ValueError):
            return None

    @property
    def brief(self) -> str:
        """The values of a very small constant as text, else ""."""
        if self.tensor is None:
            return self.text if len(self.text) <= 20 else ""
        if self.tensor.size > 4 or self.tensor.dtype.bits == 0:
            return ""
        text = str(self.tensor.array().tolist())
        return text if len(text) <= 40 else ""

    @property
    def is_large(self) -> bool:
        """Whether equal data of this size are hardly a coincidence."""
        return self.tensor is not None and self.tensor.size > LISTED and self.tensor.dtype.is_float

    @property
    def kind(self) -> Any:
        """The part that does not depend on the values: element type and shape."""
        return self.key[:-1]


@dataclass(frozen=True, slots=True)
class DataChange:
    """The difference of the data of a constant.

    `count` of `size` elements differ, None where the values are not known. `largest` is the largest absolute
    difference, `relative` the largest one relative to the larger of both magnitudes; `index` is the place of the
    largest difference, `old` and `new` the values there, or all values of a small constant.
    """

    size: int
    count: int | None = None
    largest: float | None = None
    relative: float | None = None
    index: tuple[int, ...] | None = None
    old: str = ""
    new: str = ""

    def as_json(self) -> dict[str, Any]:
        index = None if self.index is None else list(self.index)
        found = asdict(self) | {"largest": _number(self.largest), "relative": _number(self.relative), "index": index}
        return {key: value for key, value in found.items() if value not in (None, "")}

    def __str__(self) -> str:
        if self.count is None:
            return f"{self.old} -> {self.new}" if self.old else "other values"
        if self.size <= LISTED:
            return f"{self.old} -> {self.new}"
        parts = [f"{self.count} of {self.size} elements differ"]
        if self.largest is not None:
            at = f" at {list(self.index)}" if self.index else ""
            parts.append(f"by at most {self.largest:.3g}{at} ({self.old} -> {self.new})")
        if self.relative is not None:
            parts.append(f"relatively {self.relative:.3g}")
        return ", ".join(parts)


def _number(value: float | None) -> float | str | None:
    """JSON has no infinity."""
    return value if value is None or math.isfinite(value) else str(value)


def changed(old: Data, new: Data, tolerance: float = 0.0) -> DataChange | None:
    """The difference of two constants; None without one.

    With a tolerance, numbers may differ by that part of the largest magnitude in the old constant. Shapes are not
    compared: constants of different shapes differ in their values only if their elements do, in row-major order.
    """
    if old.tensor is None or new.tensor is None:
        if old.text == new.text:
            return None
        small = max(len(old.text), len(new.text)) <= 80
        return DataChange(0, old=old.text, new=new.text) if small else DataChange(0)
    if _are_equal(old.tensor, new.tensor):
        return None
    if old.tensor.size != new.tensor.size:
        return DataChange(new.tensor.size)
    return _measured(old.tensor, new.tensor, tolerance)


def _are_equal(old: Tensor, new: Tensor) -> bool:
    if old.dtype is not new.dtype or old.nbytes != new.nbytes:
        return False
    if isinstance(old, FileTensor) and isinstance(new, FileTensor) and (old.path, old.offset) == (new.path, new.offset):
        return True
    return same_bytes(old, new)


def _measured(old: Tensor, new: Tensor, tolerance: float) -> DataChange | None:
    """The elements of both compared as numbers, piece by piece."""
    size, count, start = old.size, 0, 0
    largest, relative, magnitude = -1.0, 0.0, 0.0
    place: int | None = None
    values: tuple[Any, Any] = ("", "")
    if "O" in (old.dtype.numpy.kind, new.dtype.numpy.kind):
        return _differing_items(old, new)
    for raw in _pieces(old, new):
        a, b = (each if each.dtype.kind == "c" else each.astype(np.float64) for each in raw)
        other = _other(*raw)
        with np.errstate(all="ignore"):
            gap = np.abs(a - b)
        gap = np.where(other & ~(np.isnan(a) & np.isnan(b)), np.where(np.isnan(gap), np.inf, gap), 0)
        count += int(np.count_nonzero(other))
        finite = np.abs(a[np.isfinite(a)])
        magnitude = max(magnitude, float(finite.max()) if finite.size else 0.0)
        if gap.size and float(gap.max()) > largest and other.any():
            at = int(gap.argmax())
            largest, place, values = float(gap[at]), start + at, (a[at], b[at])
        scale = np.maximum(np.abs(a), np.abs(b))
        with np.errstate(all="ignore"):
            part = np.where(other, np.where(np.isfinite(gap), gap / np.where(scale > 0, scale, 1), np.inf), 0)
        relative = max(relative, float(part.max()) if part.size else 0.0)
        start += a.size
    if not count or (tolerance and largest <= tolerance * magnitude):
        return None
    index = tuple(int(each) for each in np.unravel_index(place or 0, old.shape)) if old.shape else ()
    if size <= LISTED:
        shown = [str(each.array().reshape(old.shape).tolist()) for each in (old, new)]
    else:
        shown = [f"{each:.6g}" for each in values]
    return DataChange(size, count, largest, relative, index, *shown)


def _differing_items(old: Tensor, new: Tensor) -> DataChange | None:
    """The number of differing items; of strings nothing more is known."""
    a, b = old.array().reshape(-1), new.array().reshape(-1)
    places = [place for place in range(a.size) if _text(a[place]) != _text(b[place])]
    if not places:
        return None
    index = tuple(int(each) for each in np.unravel_index(places[0], old.shape)) if old.shape else ()
    return DataChange(old.size, len(places), index=index, old=_text(a[places[0]]), new=_text(b[places[0]]))


def _text(item: Any) -> str:
    return item.decode(errors="replace") if isinstance(item, bytes) else str(item)


def _pieces(old: Tensor, new: Tensor) -> Iterator[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]]:
    """The elements of both, in pieces of one length."""
    if min(old.dtype.bits, new.dtype.bits) < 8:
        yield old.array().reshape(-1), new.array().reshape(-1)
        return
    count = BLOCK // 8
    one, other = old.dtype.numpy, new.dtype.numpy
    for a, b in zip(old.pieces(count * one.itemsize), new.pieces(count * other.itemsize), strict=True):
        yield np.frombuffer(a, one), np.frombuffer(b, other)


def _other(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """The mask of the elements that differ: of one type in any bit, so that -0 is not 0; of two types in their value.
    """
    if a.dtype == b.dtype and a.dtype.itemsize in (1, 2, 4, 8):
        bits = np.dtype(f"u{a.dtype.itemsize}")
        found: np.ndarray[Any, Any] = a.view(bits) != b.view(bits)
        return found
    return np.asarray(a != b)


# -- as the page shows them


def described_constant(tensor: Tensor, contents: "Contents", place: str = "") -> dict[str, Any]:
    """The fields of a record. `place` is where data in memory lie in the file of the model."""
    found: dict[str, Any] = {"value": preview(tensor)}
    with suppress(UnicodeEncodeError):  # a string that is not UTF-8, which the last check refuses
        found |= {"bytes": tensor.nbytes, "data": contents.name(tensor)}
        if other := contents.transposed(tensor):
            found["transposed"] = other
    stored = f"{tensor.file.name}:{tensor.offset}" if isinstance(tensor, FileTensor) else place
    return found | {"stored": stored} if stored else found


def preview(tensor: Tensor) -> str:
    """All values of a small constant, nested like its shape; of a larger one the first in row-major order."""
    if tensor.size <= SHOWN:
        text = show_array(tensor)
    else:
        text = f"{show_array(ArrayTensor(_first(tensor), tensor.dtype))[:-1]}, ...]"
    return text if len(text) <= LIMIT else f"{text[:LIMIT]}..."


def _first(tensor: Tensor) -> np.ndarray[Any, Any]:
    """The first elements. A sample begins with the first bytes of the content."""
    if isinstance(tensor, ArrayTensor):
        return tensor.array().reshape(-1)[:SHOWN]
    data = tensor.sample()[: tensor.dtype.size_of(SHOWN)]
    if tensor.dtype.bits < 8:
        return unpack(data, SHOWN, tensor.dtype.bits, tensor.dtype.numpy)
    return np.frombuffer(data, tensor.dtype.numpy)


class Contents:
    """Names contents by a digest. Equal names mean equal bytes of one element type, with any shape.

    A large tensor that is only computed when it is written can get another name than an equal one of a file.
    """

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}  # by tensor, and by place in a file
        self._first: dict[str, Tensor] = {}  # by the digest of a sample
        self._digests: dict[str, dict[str, str]] = {}  # by the digest of a sample: digest -> name
        self._matrices: dict[Any, dict[str, Tensor]] = {}  # by type, shape and two corners: name -> matrix
        self._transposed: dict[tuple[str, tuple[int, ...]], str | None] = {}

    def name(self, tensor: Tensor) -> str:
        """A short hexadecimal text."""
        place = (tensor.path, tensor.offset, tensor.nbytes) if isinstance(tensor, FileTensor) else tensor
        found = self._names.get(place)
        if found is None:
            found = self._names[place] = self._new(tensor)
        return found

    def transposed(self, tensor: Tensor) -> str | None:
        """The name of an earlier matrix whose rows are the columns of this one, None if there is none.

        A model with tied weights often has both. Transposed matrices have the same first and the same last element,
        so that few are compared. Data that are only computed when they are written are not looked at.
        """
        is_matrix = len(tensor.shape) == 2 and min(tensor.shape) > 1 and tensor.nbytes >= LEAST
        if not is_matrix or tensor.dtype.bits < 8 or not isinstance(tensor, ArrayTensor | FileTensor):
            return None
        key = self.name(tensor), tensor.shape
        if key not in self._transposed:
            self._transposed[key] = self._find_transposed(tensor, key[0])
        return self._transposed[key]

    def _find_transposed(self, tensor: Tensor, name: str) -> str | None:
        sample, size = tensor.sample(), tensor.dtype.bits // 8
        corners = tensor.dtype, sample[:size], sample[-size:]
        self._matrices.setdefault((corners, tensor.shape), {}).setdefault(name, tensor)
        for other, matrix in self._matrices.get((corners, tensor.shape[::-1]), {}).items():
            if other != name and _bytes(matrix.array().T) == _bytes(tensor.array()):
                return other
        return None

    def _new(self, tensor: Tensor) -> str:
        sampled = blake2b(f"{tensor.dtype} {tensor.nbytes} ".encode() + tensor.sample(), digest_size=6).hexdigest()
        first = self._first.setdefault(sampled, tensor)
        if first is tensor or tensor.nbytes <= SAMPLE:
            return sampled  # the same in each run
        digests = self._digests.get(sampled)
        if digests is None:
            digests = self._digests[sampled] = {digest(first): sampled}
        whole = digest(tensor)
        return digests.setdefault(whole, whole)


def _bytes(array: np.ndarray[Any, Any]) -> bytes:
    """The content in row-major order: NaNs are equal if their bits are."""
    return np.ascontiguousarray(array).tobytes()


def digest(tensor: Tensor) -> str:
    """A short hexadecimal digest of the content."""
    content = blake2b(digest_size=6)
    for block in tensor.blocks():
        content.update(block)
    return content.hexdigest()
