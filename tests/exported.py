"""Models on disk as exporters wrote them: a folder below tests/models, and the inputs to run them on in its cases.toml.

    FOLDER = Exported("pytorch")
    FOLDER.check("lstm")            # converts it; every case on one compiled model, compared with ONNX Runtime
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
from support import check

MODELS = Path(__file__).parent / "models"


class Exported:
    """One folder of models."""

    def __init__(self, name: str) -> None:
        self.folder = MODELS / name
        self.models: dict[str, Any] = tomllib.loads((self.folder / "cases.toml").read_text(encoding="utf-8"))

    @property
    def names(self) -> list[str]:
        """Names of the models, sorted."""
        return sorted(self.models)

    def path(self, name: str) -> Path:
        """The file of a model."""
        return self.folder / f"{name}.onnx"

    def sets(self, name: str) -> list[dict[str, np.ndarray[Any, Any]]]:
        """The sets of inputs of a model, in the order of cases.toml."""
        cases = self.models[name]["cases"].values()
        return [{key: _array(entry) for key, entry in case.items()} for case in cases]

    def check(self, name: str) -> None:
        """The numbers of ONNX Runtime, in the order of the cases and then in reverse. AssertionError if not."""
        check(self.path(name), *self.sets(name))

    def check_listed(self, at_least: int = 3) -> None:
        """Every file is listed, and has so many cases. AssertionError if not."""
        assert {path.stem for path in self.folder.glob("*.onnx")} == set(self.models)
        assert [name for name in self.names if len(self.models[name]["cases"]) < at_least] == []


def _array(entry: dict[str, Any]) -> np.ndarray[Any, Any]:
    """An input as cases.toml describes it: drawn from a seed, or written out."""
    if "seed" in entry:
        return np.random.default_rng(entry["seed"]).standard_normal(entry["shape"]).astype(entry["dtype"])
    return np.array(entry["values"], entry["dtype"]).reshape(entry["shape"])
