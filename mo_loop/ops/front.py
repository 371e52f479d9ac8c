"""Operations of the front end's making that never reach the IR: passes lower them, the last check refuses leftovers."""

from collections.abc import Sequence
from typing import Any

from mo_loop.errors import MoLoopError
from mo_loop.graph import Graph
from mo_loop.graph.shape import Dimension, Symbol
from mo_loop.graph.types import UNKNOWN, TensorType
from mo_loop.ops.base import Op
from mo_loop.ops.control import Concatenated, Iteration, Sliced, iteration_count
from mo_loop.ops.joining import exported


class Failed(Op):
    """Stands for a node that could not be translated or typed. Its outputs are of unknown type, or of those `assumed`.

    `error` is what happened, None when the node merely depends on another that failed.
    """

    error: Any = None
    count: int = 1
    assumed: Any = ()

    def __init__(
        self, *inputs, graph: Graph, error: MoLoopError | None, count: int, name: str = "",
        assumed: Sequence[Any] = (),
    ) -> None:  # fmt: skip
        super().__init__(*inputs, graph=graph, name=name, error=error, count=count, assumed=tuple(assumed))

    def infer(self, *inputs):
        return self.assumed or (UNKNOWN,) * self.count

    def _inferred(self, types: Sequence[Any]) -> Sequence[Any]:
        return self.assumed or (UNKNOWN,) * self.count


class Scan(Iteration):
    """ONNX's Scan: as TensorIterator, but the body sees elements, not slices: the axis is gone inside.

    A `Sliced` input is squeezed at its axis, a `Concatenated` output unsqueezed at its; both say the direction by
    their stride. ScanLowering makes TensorIterator-1 or Loop-5 of it.
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
