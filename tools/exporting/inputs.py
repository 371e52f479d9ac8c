"""Data for the inputs of a model, small enough to be written into a text file.

    normal(7, 2, 4)             float32 of shape [2, 4] from seed 7
    exact([[1, 2], [3, 4]])     int64 of shape [2, 2]

Data with a seed is `numpy.random.default_rng(seed).standard_normal(shape)`; values are in row-major order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Data:
    """One input of one case: normal random numbers from a seed, or explicit values."""

    shape: tuple[int, ...]
    dtype: str
    seed: int | None = None
    values: tuple[float | int | bool, ...] | None = None

    def array(self) -> np.ndarray:
        """The data as an array of `shape` and `dtype`."""
        if self.values is not None:
            return np.array(self.values, self.dtype).reshape(self.shape)
        return np.random.default_rng(self.seed).standard_normal(self.shape).astype(self.dtype)

    def toml(self) -> str:
        """The data as a TOML inline table."""
        source = f"seed = {self.seed}" if self.values is None else f"values = {str(list(self.values)).lower()}"
        return f'{{ shape = {list(self.shape)}, dtype = "{self.dtype}", {source} }}'


Inputs = Mapping[str, Data]


def normal(seed: int, *shape: int) -> Data:
    """float32 data of normal distribution."""
    return Data(shape, "float32", seed=seed)


def exact(values: float | int | bool | list) -> Data:
    """The given scalar or nested list: float32, int64 or bool, as its elements are."""
    array = np.array(values)
    dtype = "float32" if array.dtype == np.float64 else str(array.dtype)
    return Data(array.shape, dtype, values=tuple(array.ravel().tolist()))


def tokens(seed: int, batch: int, time: int, end: int, start: int = 3) -> Data:
    """int64 token numbers from `start` to before `end`, written out as values."""
    return exact(np.random.default_rng(seed).integers(start, end, (batch, time)).tolist())
