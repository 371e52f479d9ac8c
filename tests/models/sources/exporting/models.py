"""What is known of a model whatever framework it is written in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.models.sources.exporting.inputs import Inputs

WEIGHT_SEED = 20240229


@dataclass(frozen=True)
class Model:
    """What makes the model, and what its export and its tests need. Inputs are in the order of the first case."""

    make: Callable[..., Any]
    exporter: str
    opset: int
    cases: Mapping[str, Inputs]

    @property
    def about(self) -> str:
        """The docstring of what makes the model."""
        return " ".join((self.make.__doc__ or "").split())

    @property
    def example(self) -> Inputs:
        """The inputs to export with: the first case."""
        return next(iter(self.cases.values()))

    @property
    def listed(self) -> Mapping[str, Inputs]:
        """The cases that ONNX Runtime runs, which cases.toml lists."""
        return self.cases
