"""Folders of exported models: NAME.onnx for each, and a cases.toml with sets of inputs to run them on.

    [while_doubling.cases.never_entered]
    x = { shape = [3], dtype = "float32", seed = 2 }
    limit = { shape = [], dtype = "float32", values = [0.0] }

Data with a seed is normally distributed; `values` are in row-major order. ONNX Runtime is the oracle.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from support import Feeds, check


class Exports:
    """The models of one folder below tests/models."""

    def __init__(self, name: str) -> None:
        self.folder = Path(__file__).parent / "models" / name
        self.models: dict[str, Any] = tomllib.loads((self.folder / "cases.toml").read_text(encoding="utf-8"))

    @property
    def names(self) -> list[str]:
        """The names of the models, sorted."""
        return sorted(self.models)

    def feeds(self, name: str) -> list[Feeds]:
        """The sets of inputs of a model."""
        cases = self.models[name]["cases"].values()
        return [{key: array_of(entry) for key, entry in case.items()} for case in cases]

    def check(self, name: str) -> None:
        """Hold a model against ONNX Runtime: all its cases in order and then in reverse, on one compiled model."""
        check(self.folder / f"{name}.onnx", *self.feeds(name))

    def check_complete(self, least: int = 3) -> None:
        """Every file has its cases, `least` or more, and every table its file."""
        assert {path.stem for path in self.folder.glob("*.onnx")} == set(self.models)
        assert all(len(model["cases"]) >= least for model in self.models.values())


def array_of(entry: dict[str, Any]) -> np.ndarray[Any, Any]:
    """An input as cases.toml describes it: drawn from a seed, or written out."""
    if "seed" in entry:
        return np.random.default_rng(entry["seed"]).standard_normal(entry["shape"]).astype(entry["dtype"])
    return np.array(entry["values"], entry["dtype"]).reshape(entry["shape"])
