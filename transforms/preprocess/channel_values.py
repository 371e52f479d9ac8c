"""--mean-values, --scale-values and --scale: arithmetic of an input with one number for each channel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import ClassVar

import numpy as np

from mo_loop import ops
from mo_loop.errors import UsageError
from mo_loop.graph import Graph
from mo_loop.graph.types import TensorType
from mo_loop.ops.base import Parameter
from mo_loop.preprocessing import BRACKETS, PerInput
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.preprocess.inputs import (
    channel_axis,
    inputs_of,
    is_done,
    mark_done,
    narrow,
    put_behind,
    values_by_input,
)

Values = tuple[float, ...]


class ChannelValues(FunctionPass):
    """x  ->  x op values, with one value for each channel, or one for all

    It is computed in the element type of the input, which must be a floating-point type: with integers the subtraction
    of a mean would round, and the model itself converts the input later.
    """

    bodies = "never"

    operation: ClassVar[type[ops.Binary]]
    neutral: ClassVar[float]
    """The number that changes nothing."""
    step: ClassVar[str]
    """The name in the model's rt_info; with dashes, the flag."""

    def __init__(self, values: PerInput[Values] | Mapping[str, Sequence[float]] | None) -> None:
        self._flag = f"--{self.step.replace('_', '-')}"
        if isinstance(values, Mapping):
            values = PerInput.of(values, BRACKETS, tuple, self._flag)
        self._values: PerInput[Values] | None = values

    def run_on_graph(self, graph: Graph) -> bool:
        asked = [(each, values) for each, values in self.wanted(graph) if any(v != self.neutral for v in values)]
        if not asked:
            raise UsageError(f"{self._flag} changes nothing: every value is {self.neutral:g}")
        if not any(parameter.output.is_used for parameter, _ in asked):
            names = ", ".join(parameter.name for parameter, _ in asked)
            raise UsageError(f"{self._flag} changes nothing: no output depends on {names}")
        changed = False
        for parameter, values in asked:
            if not is_done(graph, self.step, parameter.name):
                changed = self._put(parameter, values)
        return changed

    def wanted(self, graph: Graph) -> list[tuple[Parameter, Values]]:
        """The inputs and their values."""
        assert self._values is not None
        return values_by_input(graph, self._values)

    def _put(self, parameter: Parameter, values: Values) -> bool:
        constant = self._constant(parameter, values)
        name = f"{parameter.name}/{self.step}"
        put_behind(parameter, lambda x: self.operation(x, constant, name=name))
        mark_done(parameter.graph, self.step, parameter.name, ",".join(f"{value:.9g}" for value in values))
        return self.accept(parameter)

    def _constant(self, parameter: Parameter, values: Values) -> np.ndarray:
        """The values as a constant that broadcasts to the input: a scalar, or along the channels."""
        type_ = parameter.output.type
        if not isinstance(type_, TensorType) or type_.dtype is None or not type_.dtype.is_float:
            raise UsageError(
                f"{self._flag}: the input {parameter.name!r} is of {type_}, not of floating-point numbers",
                hint=f"change its type, if the model allows it: --input '{parameter.name}{{f32}}'",
            )
        with np.errstate(over="ignore"):  # an overflow raises the error below
            found = np.array(values, np.float64).astype(type_.dtype.numpy)
        if not np.all(np.isfinite(found)) or np.any((found == 0) != (np.array(values) == 0)):
            raise UsageError(f"{self._flag}: {type_.dtype}, the type of {parameter.name!r}, cannot hold the values")
        if len(values) == 1:
            return found.reshape(())
        axis = channel_axis(parameter, len(values), self._flag)
        narrow(parameter, axis, len(values))
        return found.reshape([len(values) if each == axis else 1 for each in range(len(type_.dims))])


class SubtractMean(ChannelValues):
    """x  ->  x - mean"""

    operation = ops.Subtract
    neutral = 0.0
    step = "mean_values"


class DivideByScale(ChannelValues):
    """x  ->  x / scale"""

    operation = ops.Divide
    neutral = 1.0
    step = "scale_values"

    def __init__(
        self, values: PerInput[Values] | Mapping[str, Sequence[float]] | None = None, scale: float | None = None
    ) -> None:
        """Either `values` of some inputs, or one `scale` for every input of floating-point numbers."""
        super().__init__(values)
        self._scale = scale

    def wanted(self, graph: Graph) -> list[tuple[Parameter, Values]]:
        if self._scale is None:
            return super().wanted(graph)
        floats = [each for each in inputs_of(graph) if each.output.dtype is not None and each.output.dtype.is_float]
        if not floats:
            raise UsageError("--scale changes nothing: no input is of floating-point numbers")
        return [(parameter, (self._scale,)) for parameter in floats]
