"""Models as PyTorch writes them, each with all its sets of inputs on one compiled model."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import check

FOLDER = Path(__file__).parent / "models" / "pytorch"
MODELS: dict[str, Any] = tomllib.loads((FOLDER / "cases.toml").read_text(encoding="utf-8"))


def array_of(entry: dict[str, Any]) -> np.ndarray[Any, Any]:
    """An input as cases.toml describes it: drawn from a seed, or written out."""
    if "seed" in entry:
        return np.random.default_rng(entry["seed"]).standard_normal(entry["shape"]).astype(entry["dtype"])
    return np.array(entry["values"], entry["dtype"]).reshape(entry["shape"])


def test_every_model_has_cases() -> None:
    assert {path.stem for path in FOLDER.glob("*.onnx")} == set(MODELS)
    assert all(len(model["cases"]) >= 3 for model in MODELS.values())


@pytest.mark.parametrize("name", sorted(MODELS))
def test_model(name: str) -> None:
    """The numbers of ONNX Runtime, in the order of the cases and then in reverse."""
    cases = MODELS[name]["cases"].values()
    check(FOLDER / f"{name}.onnx", *({key: array_of(entry) for key, entry in case.items()} for case in cases))
