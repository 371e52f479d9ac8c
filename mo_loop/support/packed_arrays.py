"""Elements of types below 8 bits that share bytes, and lists of arrays packed into two.

    data = pack(np.array([1, -1, 7], ml_dtypes.int4), 4)       # two bytes
    unpack(data, 3, 4, ml_dtypes.int4)                         # one element for each cell

The first element is in the lowest bits; wider ones take whole bytes. Lists of arrays are the two tensors of a packed
sequence input or output (`sequence_io="packed"`):

>>> import numpy as np
>>> data, shapes = pack_sequence([np.ones((2, 3)), np.zeros((1, 4))])
>>> data.shape, shapes.tolist()
((10,), [[2, 3], [1, 4]])
>>> [each.shape for each in unpack_sequence(data, shapes)]
[(2, 3), (1, 4)]
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from mo_loop.errors import UsageError

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


Array = np.ndarray[Any, Any]


def pack_sequence(items: Sequence[Any], *, rank: int | None = None, dtype: Any = None) -> tuple[Array, Array]:
    """Pack a list of arrays into two: all elements flattened and concatenated, and the table of their shapes.

    The shapes of the two are [?] and [N, rank]; the table is of int64. Elements of rank 0 are stored as [1].

    Args:
        items: Arrays of one type and rank.
        rank: The rank of the elements; an empty list needs it.
        dtype: The type of the elements; an empty list needs it.

    Raises:
        UsageError: elements differ in rank or type, or an empty list comes without `rank` and `dtype`.
    """
    arrays = [np.atleast_1d(np.asarray(item) if dtype is None else np.asarray(item, dtype)) for item in items]
    if not arrays and (rank is None or dtype is None):
        raise UsageError("the rank and element type of an empty list are unknown", hint="give rank and dtype")
    ranks = {array.ndim for array in arrays} or {max(rank or 0, 1)}
    types = {array.dtype for array in arrays} or {np.dtype(dtype)}
    if len(ranks) > 1 or len(types) > 1 or (rank is not None and ranks != {max(rank, 1)}):
        raise UsageError(f"elements of ranks {sorted(ranks)} and types {sorted(map(str, types))} in one sequence")
    data = np.concatenate([array.reshape(-1) for array in arrays]) if arrays else np.zeros(0, types.pop())
    return data, np.array([array.shape for array in arrays], np.int64).reshape(-1, ranks.pop())


def unpack_sequence(data: Any, shapes: Any, *, scalars: bool = False) -> list[Array]:
    """Unpack the result of `pack_sequence`.

    Args:
        data: All elements, flattened and concatenated.
        shapes: The table of their shapes.
        scalars: Return elements of rank 0, whose shape in the table is [1].

    Raises:
        UsageError: data and shapes do not fit together.
    """
    flat, table = np.asarray(data).reshape(-1), np.asarray(shapes)
    if table.dtype.kind not in "iu" and table.size:
        raise UsageError(f"a table of shapes has the element type {table.dtype}", hint="give integers")
    table = table.astype(np.int64)
    if table.ndim != 2 or (table < 0).any() or int(table.prod(1).sum()) != flat.size:
        raise UsageError(f"{flat.size} numbers do not fill a sequence with a table of shape {list(table.shape)}")
    ends = np.cumsum(table.prod(1))
    pieces = [flat[end - row.prod() : end].reshape(row) for end, row in zip(ends, table, strict=True)]
    return [piece.reshape(()) for piece in pieces] if scalars else pieces
