"""Data for the inputs of a model, small enough to be written into a text file.

    normal(7, 2, 4)             float32 of shape [2, 4] from seed 7
    exact([[1, 2], [3, 4]])     int64 of shape [2, 2]

Data with a seed is `numpy.random.default_rng(seed).standard_normal(shape)`; values are in row-major order.
`read_cases` reads the files that `writing` writes.
"""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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
    """float32 data from a normal distribution."""
    return Data(shape, "float32", seed=seed)


def exact(values: float | int | bool | list) -> Data:
    """The given scalar or nested list as float32, int64 or bool, by its elements."""
    array = np.array(values)
    dtype = "float32" if array.dtype == np.float64 else str(array.dtype)
    return Data(array.shape, dtype, values=tuple(array.ravel().tolist()))


def tokens(seed: int, batch: int, time: int, end: int, start: int = 3) -> Data:
    """int64 token numbers from `start` up to `end`, written as values."""
    return exact(np.random.default_rng(seed).integers(start, end, (batch, time)).tolist())


@dataclass(frozen=True)
class Listed:
    """A model of a folder as its cases.toml describes it."""

    about: str
    exporter: str
    opset: int
    cases: Mapping[str, Inputs]

    @property
    def example(self) -> Inputs:
        """The first case."""
        return next(iter(self.cases.values()))

    @property
    def sets(self) -> list[dict[str, np.ndarray]]:
        """The arrays of every case, in order."""
        return [{name: data.array() for name, data in case.items()} for case in self.cases.values()]

    @property
    def largest(self) -> dict[str, np.ndarray]:
        """The arrays of the case with the most elements."""
        return max(self.sets, key=lambda each: sum(array.size for array in each.values()))


def read_cases(path: Path) -> dict[str, Listed]:
    """The models listed in a cases.toml, by name."""
    return {
        name: Listed(
            entry["about"], entry["exporter"], entry["opset"],
            {case: {key: _data(**data) for key, data in inputs.items()} for case, inputs in entry["cases"].items()},
        )
        for name, entry in tomllib.loads(path.read_text(encoding="utf-8")).items()
    }


def _data(shape: list[int], dtype: str, seed: int | None = None, values: list | None = None) -> Data:
    return Data(tuple(shape), dtype, seed, None if values is None else tuple(values))
