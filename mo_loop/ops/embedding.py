"""Sums of rows of a table: bags of embeddings."""

from mo_loop.graph.types import TensorType
from mo_loop.ops.base import Op


class EmbeddingBagOffsetsSum(Op, opset=3, ranks={"indices": 1, "offsets": 1}):
    """Sums of the rows of table [N, ...] at indices [K], one for each bag; bag i begins at offsets[i] [B]. An empty
    bag has the row `default`, zeros for -1. The rows are multiplied by weights [K]. Spec: EmbeddingBagOffsetsSum-3."""

    def infer(self, table, indices, offsets, default=None, weights=None):
        return _rows(table, offsets)


class EmbeddingBagPackedSum(Op, opset=3, ranks={"indices": 2}):
    """Sums of the rows of table [N, ...] at indices [B, K], multiplied by weights [B, K]; one for each of B bags.
    Spec: EmbeddingBagPackedSum-3."""

    def infer(self, table, indices, weights=None):
        return _rows(table, indices)


def _rows(table, bags):
    if table.shape is None or bags.shape is None:
        return TensorType(table.dtype, None)
    return TensorType(table.dtype, (bags.shape[0], *table.shape[1:]))
