"""Opaque: an operation of an IR without a class here, kept as it is in the file."""

from collections.abc import Sequence
from typing import Any, ClassVar

from mo_loop.graph.dimension import fresh
from mo_loop.graph.types import BY_PRECISION, ElementType, TensorType, foreign
from mo_loop.ops.base import Op


class Opaque(Op, opset=1, random=True):
    """An operation with a type, a version and attributes as written in the file, and nothing else known.

    Its outputs have the types that the file declares: `precisions` and `shapes`, -1 for an unknown dimension. It is not
    inferred, evaluated, or merged with an equal one.
    """

    kind: str
    version: str
    data: Any  # attribute -> its text, in the order of the file
    precisions: tuple[str, ...]
    shapes: tuple[Any, ...]

    blob: ClassVar[Any] = None
    """The Tensor that the attributes `offset` and `size` describe, for a constant of an element type unknown here."""

    def __init__(self, *inputs, graph, name: str = "", **attributes: Any) -> None:
        super().__init__(*inputs, graph=graph, name=name, **attributes)
        self.__dict__["type"] = self.kind

    def infer(self, *inputs):
        return self._declared()

    def _inferred(self, types: Sequence[Any]) -> Sequence[Any]:
        return self._declared()  # also if the type of an input is unknown

    def _declared(self) -> Sequence[Any]:
        return [
            TensorType(element_type(precision), tuple(fresh() if dim < 0 else dim for dim in shape))
            for precision, shape in zip(self.precisions, self.shapes, strict=True)
        ]

    def xml_attributes(self) -> dict[str, Any]:
        return dict(self.data)


class OpaqueSink(Opaque, opset=1, random=True, kept=True):
    """An opaque operation that has an effect when it runs, such as Assign of a version unknown here."""


def element_type(precision: str, name: str = "") -> ElementType:
    """The element type of a port precision; for an unknown precision a placeholder."""
    return BY_PRECISION.get(precision) or foreign(name or precision.lower(), precision)
