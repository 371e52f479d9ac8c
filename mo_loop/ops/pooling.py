"""Pooling: the maximum or the mean of each window."""

from typing import Any, Literal

from mo_loop.graph.dimension import fresh
from mo_loop.graph.types import ElementType, TensorType, i64
from mo_loop.ops.window import Windowed

Rounding = Literal["floor", "ceil", "ceil_torch"]
"""`ceil_torch`, of opset 14, drops a last window that starts in the padding."""


class Pooling(Windowed, abstract=True, keeps_axes=True):
    """A window over each channel of x [N, C, D...]."""

    kernel: tuple[int, ...]

    def pooled(self, x, rounding: str, dilations: tuple[int, ...] = ()) -> TensorType:
        """The type of the result."""
        sizes = self.spatial(x, len(self.kernel))
        made = self.windows(sizes, self.kernel, dilations or (1,) * len(self.kernel), rounding)
        return TensorType(x.dtype, (*((fresh(), fresh()) if x.shape is None else x.shape[:2]), *made))


class MaxPool(Pooling, opset=1):
    """The largest element of each window. Spec: MaxPool-1."""

    rounding_type: Rounding = "floor"

    def infer(self, x):
        return self.pooled(x, self.rounding_type)


class MaxPool8(Pooling, opset=8, type="MaxPool"):
    """The largest elements, and their positions in x flattened from dimension `axis` on. Spec: MaxPool-8."""

    dilations: tuple[int, ...]
    rounding_type: Rounding = "floor"
    index_element_type: ElementType = i64
    axis: int = 0

    def infer(self, x):
        made = self.pooled(x, self.rounding_type, self.dilations)
        return made, made.with_dtype(self.index_element_type)


class MaxPool14(MaxPool8, opset=14, type="MaxPool"):
    """MaxPool with a rounding mode that drops a last window in the padding. Spec: MaxPool-14."""


class AvgPool(Pooling, opset=1):
    """The mean of each window, with or without its padding. Spec: AvgPool-1."""

    exclude_pad: bool
    rounding_type: Rounding = "floor"

    def infer(self, x):
        return self.pooled(x, self.rounding_type)

    def xml_attributes(self) -> dict[str, Any]:
        return {key.replace("exclude_pad", "exclude-pad"): value for key, value in self.attribute_values().items()}

    @classmethod
    def from_xml(cls, data: dict[str, str]) -> dict[str, str]:
        return {key.replace("exclude-pad", "exclude_pad"): text for key, text in data.items()}


class AvgPool14(AvgPool, opset=14, type="AvgPool"):
    """AvgPool with a rounding mode that drops a last window in the padding. Spec: AvgPool-14."""
