"""--scale-values and --scale."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mo_loop import ops
from mo_loop.errors import UsageError
from mo_loop.graph import Graph
from mo_loop.ops.base import Parameter
from mo_loop.preprocessing.per_input import PerInput
from transforms.preprocess.channel_values import ChannelValues, Values
from transforms.preprocess.inputs import inputs_of


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
