"""Constants as the page shows them: the first elements, and a text by which equal contents are found.

    preview(tensor)                         # "[0.1, 0.2, 0.3, ...]"
    contents = Contents()
    contents.name(tensor)                   # "5d41402abc4b", the same for a tensor with the same bytes
    described_constant(tensor, contents)    # {"value": ..., "bytes": 64, "data": ..., "stored": "model.bin:128"}

Weights are not read as a whole: both read a few pages. Only tensors of equal pages at different places are compared.
"""

from __future__ import annotations

from contextlib import suppress
from hashlib import blake2b
from typing import Any

import numpy as np

from mo_loop.graph.tensor import SAMPLE, ArrayTensor, FileTensor, Tensor
from mo_loop.support.packed_elements import unpack
from mo_loop.text.literals import show_array

SHOWN = 16
"""The number of elements of a constant that are shown."""

LEAST = 64
"""Bytes of the smallest matrix that is compared with transposed ones."""

LIMIT = 1000
"""The number of characters of a preview."""


def described_constant(tensor: Tensor, contents: Contents, place: str = "") -> dict[str, Any]:
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
            digests = self._digests[sampled] = {_digest(first): sampled}
        whole = _digest(tensor)
        return digests.setdefault(whole, whole)


def _bytes(array: np.ndarray[Any, Any]) -> bytes:
    """The content in row-major order: NaNs are equal if their bits are."""
    return np.ascontiguousarray(array).tobytes()


def _digest(tensor: Tensor) -> str:
    content = blake2b(digest_size=6)
    for block in tensor.blocks():
        content.update(block)
    return content.hexdigest()
