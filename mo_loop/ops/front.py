"""Operations that the IR does not have: passes lower them, and the last check refuses those that remain.

Opaque is an operation of an IR without a class here, kept as it is in the file.
"""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal

from mo_loop.errors import MoLoopError
from mo_loop.graph import Dimension, Graph, Symbol, fresh, high, low, normalise_axis
from mo_loop.graph.types import BY_PRECISION, UNKNOWN, ElementType, TensorType, foreign
from mo_loop.ops.base import Op, SameElements
from mo_loop.ops.control import Iteration, iteration_count
from mo_loop.ops.infer import exported
from mo_loop.ops.port_map import Concatenated, Sliced


class Failed(Op):
    """Replaces a node whose translation or inference failed. The types of its outputs are unknown, or those `assumed`.

    `error` is the reason; None if the node only depends on another one that failed.
    """

    error: Any = None
    count: int
    assumed: Any

    def __init__(
        self, *inputs, graph: Graph, error: MoLoopError | None, count: int, name: str = "", assumed: Sequence[Any] = ()
    ) -> None:
        super().__init__(*inputs, graph=graph, name=name, error=error, count=count, assumed=tuple(assumed))

    def infer(self, *inputs):
        return self.assumed or (UNKNOWN,) * self.count

    def _inferred(self, types: Sequence[Any]) -> Sequence[Any]:
        return self.assumed or (UNKNOWN,) * self.count


class Barrier(Op, keeps_axes=True):
    """x unchanged; it hides a fact from the runtime, or prevents an optimisation.

    - `bounds` without axes: the bounds of the elements, which are integers
    - `bounds` with axes: the sizes along these axes, their bounds and symbols
    - `symbols`: the symbols of the sizes along the axes
    - `value`: the elements, integers or booleans, which it may compute before the first inference
    - `memory`: other nodes must not write into the memory of x, and x is not a view of other memory

    LowerBarriers makes the cheapest operations of it that the runtime does not see through.
    """

    hides: Literal["bounds", "symbols", "value", "memory"]
    axes: tuple[int, ...] = ()

    def infer(self, x):
        if self.hides == "value":
            return x.without_known()
        if self.hides != "bounds" or not self.axes or x.shape is None:
            return x
        hidden = {normalise_axis(axis, len(x.shape)) for axis in self.axes}
        return x.with_shape(tuple(fresh() if axis in hidden else dim for axis, dim in enumerate(x.shape)))


class AtLeast(SameElements, keeps_axes=True):
    """x unchanged; its sizes are at least `sizes`, which inference cannot see. LowerBarriers removes it."""

    sizes: tuple[int, ...]

    def infer(self, x):
        if x.shape is None:
            return x
        self.require(len(x.shape) == len(self.sizes), f"{len(self.sizes)} sizes are given for rank {len(x.shape)}")
        pairs = zip(x.shape, self.sizes, strict=True)
        return x.with_shape(tuple(fresh(size, high(dim)) if low(dim) < size else dim for dim, size in pairs))

    def evaluate(self, *inputs):
        return inputs[0]


class Scan(Iteration):
    """Scan of ONNX. It differs from TensorIterator in that the body receives elements without the axis, not slices.

    A `Sliced` input is squeezed at its axis, a `Concatenated` output unsqueezed at its axis; the stride is the
    direction. ScanLowering makes a TensorIterator-1 or a Loop-5 of it.
    """

    def infer(self, *types):
        return self._output_types(types, iteration_count(None, self._infer_body(types)))

    def _slice_type(self, entry: Sliced, type_: TensorType) -> tuple[TensorType, Dimension]:
        piece, count = super()._slice_type(entry, type_)
        if piece.shape is None:
            return piece, count
        return piece.with_shape((*piece.shape[: entry.axis], *piece.shape[entry.axis + 1 :])), count

    def _concatenated_type(
        self, entry: Concatenated, inner: TensorType, count: Dimension, visible: set[Symbol]
    ) -> TensorType:
        element = exported(inner, visible)
        if element.shape is None:
            return element
        return element.with_shape((*element.shape[: entry.axis], count, *element.shape[entry.axis :]))


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
