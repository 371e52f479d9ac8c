"""The models of one folder, each with what its export and its tests need.

MODELS = Catalogue()

@MODELS.exported("lstm_dynamo", exporter="dynamo", opset=21, cases=CASES, dynamic={"x": {0: "batch"}})
@MODELS.exported("lstm", exporter="trace", opset=11, cases=CASES, dynamic={"x": {0: "batch"}})
class Lstm(nn.Module):
    "nn.LSTM, one layer, batch first."
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from torch import nn

from tools.exporting.inputs import Inputs

DynamicAxes = Mapping[str, Mapping[int, str]]
Weights = Callable[[str, tuple[int, ...], np.random.Generator], np.ndarray]

OPSETS = {"script": (7, 20), "trace": (7, 20), "dynamo": (18, 23)}
"""Exporter -> the first and the last opset it writes."""


def wide_weights(name: str, shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Normal numbers of deviation 0.5; positive ones for the variances of a batch normalisation."""
    values = random.normal(scale=0.5, size=shape).astype(np.float32)
    return np.abs(values) + np.float32(0.5) if name.endswith("running_var") else values


@dataclass(frozen=True)
class Model:
    """A module with what its export and its tests need. Inputs are named and ordered as the module's parameters.

    `weights` makes the values of a parameter or buffer from its name and shape.
    """

    make: Callable[[], nn.Module]
    exporter: str
    opset: int
    cases: Mapping[str, Inputs]
    dynamic: DynamicAxes
    outputs: tuple[str, ...]
    weights: Weights = wide_weights

    @property
    def about(self) -> str:
        """The docstring of the module."""
        return " ".join((self.make.__doc__ or "").split())

    @property
    def example(self) -> Inputs:
        """The inputs the exporters trace with: the first case."""
        return next(iter(self.cases.values()))


class Catalogue(dict[str, Model]):
    """Models by name, in the order of their definition; `weights` makes the weights of all of them."""

    def __init__(self, weights: Weights = wide_weights) -> None:
        super().__init__()
        self.weights = weights

    def exported(
        self,
        name: str,
        *,
        exporter: str,
        opset: int,
        cases: Mapping[str, Inputs],
        dynamic: DynamicAxes | None = None,
        outputs: tuple[str, ...] = ("y",),
    ) -> Callable[[Callable[[], nn.Module]], Callable[[], nn.Module]]:
        """Register a module class, or a function that makes a module, as NAME.onnx.

        exporter: "script" (TorchScript, keeps Python's control flow), "trace" (TorchScript, loses it) or "dynamo".
        dynamic: for each input, the axes that stay symbolic, with the names of their symbols.
        """

        def register(make: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
            self[name] = Model(make, exporter, opset, cases, dynamic or {}, outputs, self.weights)
            return make

        return register
