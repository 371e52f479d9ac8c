"""Values of one generated input: by its element type, and by the role that its numbers have.

    array = values_of(entry, (2, 3), number=0, random=np.random.default_rng(0), longest=3)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop.compare.input_sets.roles import AXIS, CHOICE, COUNT, INDEX, LENGTH, MASK, SCALE, SIZE, Role
from mo_loop.errors import InputError, error_of_numbers
from mo_loop.graph.types import ElementType

COUNTS = (3, 0, 1, 5, 2)
"""The trip counts of the sets, in turn."""

_WORDS = ("", "a", "Loop", "zero", "naïve")


@dataclass(frozen=True)
class Input:
    """An input: its element type, and its dimensions as sizes or names. A `sequence` has such tensors."""

    name: str
    dtype: ElementType
    dims: tuple[int | str, ...]
    role: Role
    is_sequence: bool = False

    @property
    def symbols(self) -> list[str]:
        """The names of the dynamic dimensions."""
        return [each for each in self.dims if isinstance(each, str)]


@contextmanager
def possible(name: str) -> Iterator[None]:
    """InputError for values of the input `name` whose sizes exceed the memory, or the limits of numpy."""
    try:
        yield
    except (MemoryError, OverflowError, ValueError) as error:
        refused = error_of_numbers(error)
        if refused is None:
            raise
        raise InputError(
            f"no values can be generated for the input {name!r}", why=refused.message, code="ML242",
            hint="give values: --input-data FILE.npz, or other sizes: --input",
        ) from None  # fmt: skip


def values_of(
    each: Input, shape: tuple[int, ...], number: int, random: Any, *, careful: bool = False, longest: int = 1
) -> np.ndarray:
    """Values for the set of this number: `longest` is the size that a length may have, `careful` keeps integers 0 or 1.
    """
    kind, dtype = each.role.kind, each.dtype
    if dtype.kind == "string":
        found = np.empty(shape, dtype=object)
        found[...] = random.choice(_WORDS, shape) if shape else str(random.choice(_WORDS))
        return found
    if dtype.kind == "bool":
        if kind == MASK and shape:
            return _mask(shape, random).astype(bool)
        # One condition is true in the first set, and in every other one.
        return random.random(shape) < 0.7 if shape else np.asarray(number % 2 == 0)
    if kind == SCALE:
        return np.ones(shape, dtype.numpy)
    if kind or dtype.kind in ("int", "uint"):  # a float can be an index, or a size
        return _integers(each, shape, number, random, careful, longest).astype(dtype.numpy)
    plain = random.random(shape) if number % 2 else random.standard_normal(shape)
    return np.asarray(plain).astype(dtype.numpy)


def _integers(
    each: Input, shape: tuple[int, ...], number: int, random: Any, careful: bool, longest: int
) -> np.ndarray:
    role = each.role
    if role.kind == COUNT:
        return np.full(shape, COUNTS[number % len(COUNTS)])
    if role.kind == SIZE:
        return np.ones(shape, np.int64) if careful else np.asarray(random.integers(1, 9, shape))
    if role.kind == LENGTH:
        return _lengths(shape, 1 if careful else max(1, longest), random)
    if role.kind == CHOICE:
        return np.full(shape, role.values[number % len(role.values)])
    if role.kind == AXIS:
        return np.zeros(shape, np.int64)
    if role.kind == INDEX:
        below = role.below if role.below is not None else 1
        return np.asarray(random.integers(0, max(1, min(below, 2) if careful else below), shape))
    if role.kind == MASK:
        return _mask(shape, random)
    if careful:
        return np.asarray(random.integers(0, 2, shape))
    bits = each.dtype.bits
    if bits > 8:
        return np.asarray(random.integers(0, 8, shape))
    lowest = -(1 << (bits - 1)) if each.dtype.kind == "int" else 0
    return np.asarray(random.integers(lowest, lowest + (1 << bits), shape))


def _lengths(shape: tuple[int, ...], longest: int, random: Any) -> np.ndarray:
    """Lengths from 1 on; the first is that of the longest sequence, which all of them can have."""
    found = np.asarray(random.integers(1, longest + 1, shape))
    found.reshape(-1)[:1] = longest
    return found


def _mask(shape: tuple[int, ...], random: Any) -> np.ndarray:
    """Ones, then zeros along the last dimension; at least one 1."""
    if not shape:
        return np.asarray(1)
    kept = random.integers(1, shape[-1] + 1, shape[:-1]) if shape[-1] else np.zeros(shape[:-1])
    return (np.arange(shape[-1]) < np.asarray(kept)[..., None]).astype(np.int64)
