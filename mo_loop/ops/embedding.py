"""Sums of rows of a table: bags of embeddings."""

from mo_loop.errors import TypeError_
from mo_loop.graph.shape import merge
from mo_loop.graph.types import TensorType
from mo_loop.ops.base import Op
from mo_loop.ops.element_kinds import WIDE_INTEGERS
from mo_loop.ops.infer import same_dtype


class EmbeddingBagOffsetsSum(
    Op, opset=3, ranks={"indices": 1, "offsets": 1, "default": 0, "weights": 1}, types={"indices": WIDE_INTEGERS}
):
    """Sums of the rows of table [N, ...] at indices [K], one for each bag; bag i begins at offsets[i] [B]. An empty
    bag has the row `default`, zeros for -1. The rows are multiplied by weights [K]. Spec: EmbeddingBagOffsetsSum-3."""

    def infer(self, table, indices, offsets, default=None, weights=None):
        same_dtype(*(each for each in (indices, offsets, default) if each is not None))
        _require_rows(table, indices, weights)
        return _rows(table, offsets)


class EmbeddingBagPackedSum(Op, opset=3, ranks={"indices": 2, "weights": 2}, types={"indices": WIDE_INTEGERS}):
    """Sums of the rows of table [N, ...] at indices [B, K], multiplied by weights [B, K]; one for each of B bags.
    Spec: EmbeddingBagPackedSum-3."""

    def infer(self, table, indices, weights=None):
        _require_rows(table, indices, weights)
        return _rows(table, indices)


def _require_rows(table, indices, weights) -> None:
    if table.shape == ():
        raise TypeError_("a table of one number has no rows", code="ML235")
    if weights is not None:
        same_dtype(table, weights)
        merge(indices.shape, weights.shape)  # raises if the shapes do not fit


def _rows(table, bags):
    if table.shape is None or bags.shape is None:
        return TensorType(table.dtype, None)
    return TensorType(table.dtype, (bags.shape[0], *table.shape[1:]))
