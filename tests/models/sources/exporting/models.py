"""The description of a model, for any framework."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.models.sources.exporting.inputs import Inputs

WEIGHT_SEED = 20240229


@dataclass(frozen=True)
class Model:
    """The function or class that makes the model, and the settings of its export and tests. Inputs are in the order of
    the first case."""

    make: Callable[..., Any]
    exporter: str
    opset: int
    cases: Mapping[str, Inputs]

    @property
    def about(self) -> str:
        """The docstring of the function or class."""
        return " ".join((self.make.__doc__ or "").split())

    @property
    def example(self) -> Inputs:
        """The inputs to export with: the first case."""
        return next(iter(self.cases.values()))

    @property
    def listed(self) -> Mapping[str, Inputs]:
        """The cases that ONNX Runtime runs, which cases.toml lists."""
        return self.cases
