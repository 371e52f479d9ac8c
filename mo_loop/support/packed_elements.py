"""Elements of types below 8 bits share bytes, the first element in the lowest bits; wider ones take whole bytes.

    data = pack(np.array([1, -1, 7], ml_dtypes.int4), 4)       # two bytes
    unpack(data, 3, 4, ml_dtypes.int4)                         # one element for each cell
"""

from __future__ import annotations

from typing import Any

import numpy as np

BLOCK = 1 << 20
"""Elements that are packed at once."""


def pack(array: np.ndarray[Any, Any], bits: int) -> bytes:
    """The elements as bytes. Those of 2 or 4 bits share them."""
    if bits >= 8:
        return array.tobytes()
    cells = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    return b"".join(_packed(cells[start : start + BLOCK], bits) for start in range(0, len(cells), BLOCK))


def _packed(cells: np.ndarray[Any, Any], bits: int) -> bytes:
    per_byte = 8 // bits
    cells = cells & np.uint8((1 << bits) - 1)
    made = cells[::per_byte].copy()
    for place in range(1, per_byte):
        part = cells[place::per_byte]
        made[: len(part)] |= part << np.uint8(place * bits)
    return made.tobytes()


def unpack(data: bytes | bytearray, count: int, bits: int, dtype: Any) -> np.ndarray[Any, Any]:
    """The inverse of `pack`: `count` elements of this numpy type. Those of whole bytes are a view of the data."""
    dtype = np.dtype(dtype)
    if bits >= 8:
        return np.frombuffer(data, dtype, count)
    shifts = np.arange(8 // bits, dtype=np.uint8) * np.uint8(bits)
    cells = (np.frombuffer(data, np.uint8)[:, None] >> shifts).reshape(-1)[:count] & np.uint8((1 << bits) - 1)
    if dtype.name.startswith("int"):  # sign-extend within the byte
        return ((cells.view(np.int8) << (8 - bits)) >> (8 - bits)).astype(dtype)
    return cells.astype(dtype) if dtype.name.startswith("uint") else cells.view(dtype)
