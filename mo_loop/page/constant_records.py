"""Constants as the page shows them: the first elements, and a text by which equal contents are found.

    preview(tensor)                         # "[0.1, 0.2, 0.3, ...]"
    contents = Contents()
    contents.name(tensor)                   # "5d41402abc4b", the same for a tensor with the same bytes
    described_constant(tensor, contents)    # {"value": ..., "bytes": 64, "data": ..., "stored": "model.bin:128"}

Weights are not read as a whole: both read a few pages. Only tensors of equal pages at different places are compared.
"""

from __future__ import annotations

import os
from contextlib import suppress
from hashlib import blake2b
from typing import Any

import numpy as np

from mo_loop.graph.tensor import SAMPLE, ArrayTensor, FileTensor, Tensor, unpack
from mo_loop.text.literals import show_array

SHOWN = 16
"""The number of elements of a constant that are shown."""

LIMIT = 1000
"""The number of characters of a preview."""


def described_constant(tensor: Tensor, contents: Contents, place: str = "") -> dict[str, Any]:
    """The fields of a record. `place` is where data in memory stand in the file of the model."""
    found: dict[str, Any] = {"value": preview(tensor)}
    with suppress(UnicodeEncodeError):  # a string that is not UTF-8, which the last check refuses
        found |= {"bytes": tensor.nbytes, "data": contents.name(tensor)}
    stored = f"{os.path.basename(tensor.path)}:{tensor.offset}" if isinstance(tensor, FileTensor) else place
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
        return unpack(data, SHOWN, tensor.dtype)
    return np.frombuffer(data, tensor.dtype.numpy)


class Contents:
    """Names contents by a digest. Equal names mean equal bytes of one element type, whatever the shape.

    A large tensor that is only computed when it is written can get another name than an equal one of a file.
    """

    def __init__(self) -> None:
        self._names: dict[Any, str] = {}  # by tensor, and by place in a file
        self._first: dict[str, Tensor] = {}  # by the digest of a sample
        self._digests: dict[str, dict[str, str]] = {}  # by the digest of a sample: digest -> name

    def name(self, tensor: Tensor) -> str:
        """A short hexadecimal text."""
        place = (tensor.path, tensor.offset, tensor.nbytes) if isinstance(tensor, FileTensor) else tensor
        found = self._names.get(place)
        if found is None:
            found = self._names[place] = self._new(tensor)
        return found

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


def _digest(tensor: Tensor) -> str:
    content = blake2b(digest_size=6)
    for block in tensor.blocks():
        content.update(block)
    return content.hexdigest()
