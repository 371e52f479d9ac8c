"""ScaledDotProductAttention: attention as one operation."""


import numpy as np

from mo_loop.graph.shape import broadcast, merge_dim
from mo_loop.graph.types import TensorType, boolean
from mo_loop.ops.base import Op
from mo_loop.ops.element_kinds import FLOATS
from mo_loop.ops.infer import same_dtype, wide


class ScaledDotProductAttention(Op, opset=13, single=("scale",), types={"query": FLOATS}, keeps_axes=True):
    """softmax(scale * Q K^T + mask) V over the last two dimensions.

    The other dimensions broadcast. Q is [.., L, size], K is [.., S, size] and V is [.., S, width]; the result is
    [.., L, width]. A mask is boolean (true where a key is read) or of the type of Q, and broadcast to [.., L, S]; a
    scalar masks nothing. Without `scale` the scale is 1 / sqrt(size). With `causal` a query reads only the keys up to
    its own position, and a mask is ignored. Spec: ScaledDotProductAttention-13.
    """

    causal: bool = False

    def infer(self, query, key, value, attention_mask=None, scale=None):
        dtype = same_dtype(query, key, value)
        masked = attention_mask is not None and attention_mask.dtype is not boolean
        same_dtype(query, *([attention_mask] if masked else []), *([scale] if scale is not None else []))
        if query.shape is None or key.shape is None or value.shape is None:
            return TensorType(dtype, None)
        for each, what in ((query, "queries"), (key, "keys"), (value, "values")):
            self.require(len(each.shape) >= 3, f"{what} of rank {len(each.shape)}")
        merge_dim(query.shape[-1], key.shape[-1])
        keys = merge_dim(key.shape[-2], value.shape[-2])
        batch = broadcast(query.shape[:-2], key.shape[:-2], value.shape[:-2])
        assert batch is not None
        if attention_mask is not None and attention_mask.shape:
            seen = broadcast((*batch, query.shape[-2], keys), attention_mask.shape)
            assert seen is not None
            batch = seen[:-2]
        return TensorType(dtype, (*batch, query.shape[-2], value.shape[-1]))

    def evaluate(self, *inputs):
        query, key, value = (wide(each) for each in inputs[:3])
        mask, scale = (None if each is None else wide(each) for each in (*inputs[3:], None, None)[:2])
        scores = (1 / np.sqrt(query.shape[-1]) if scale is None else scale) * np.matmul(query, np.swapaxes(key, -1, -2))
        if self.causal:
            mask = np.tri(*scores.shape[-2:], dtype=bool)
        if mask is not None and mask.dtype == bool:
            scores = np.where(mask, scores, -np.inf)
        elif mask is not None:
            scores = scores + mask
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-np.inf))
        weights = weights / weights.sum(axis=-1, keepdims=True)
        return np.asarray(np.matmul(weights, value)).astype(inputs[0].dtype)
