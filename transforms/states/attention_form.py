"""Writes an attention over caches in the form that the CPU plugin runs as one operation with the caches inside.

    %index = Convert(Range(0, batch, 1)) {destination_type: i32}          or the index that the model has
    %past = Gather(%read, %index, 0)
    %keys = Concat(%past, %new) {axis: 2}
    %every = Reshape(Broadcast(Unsqueeze(%keys, 2), [1,1,times,1,1]), [0, heads, -1, size])
    %y = ScaledDotProductAttention(%query, %every, ..)

The plugin recognises a Multiply by ones as well, which openvino_genai does not turn into paged attention. The rule
PreserveEmptyBroadcasts leaves such a Broadcast as it is.
"""

import math
from typing import Any

import numpy as np

from mo_loop.graph import Dimension, i32, i64
from mo_loop.transforms.replace import copy_runtime_info, replace_node
from mo_loop.transforms.states.cache_movements import Cache, scalar
from mo_loop.transforms.states.cached_attention import Attention, AttentionScores
from mo_loop.transforms.vocabulary import Constant, F, Graph, Node, Value, ops

LOWEST = float(np.finfo(np.float32).min)
"""Added to a score it gives itself: a row of nothing else has equal weights, as one of equal scores has."""


class AttentionWriter:
    """Replaces the attentions of one graph; they share the indices of sequences."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._indices: dict[Any, Value] = {}

    def replace(self, found: Attention) -> None:
        """Replace an attention by ScaledDotProductAttention, with Gathers before its caches."""
        self._reorder(found.keys)
        self._reorder(found.values)
        keys, values = (_repeated(each.whole, found.times) for each in (found.keys, found.values))
        mask, scale, query = _mask(found.scores), _scale(found), found.query
        if mask is None and scale is not None:
            # The scale is the input after the mask, and the plugin takes no scalar as a mask that masks nothing.
            query, scale = query * (scale * math.sqrt(query.type.dims[3])), None
        extra = () if mask is None else (mask,) if scale is None else (mask, self._number(scale))
        whole = ops.ScaledDotProductAttention(query, keys, values, *extra)
        result: Node = whole
        if found.folded:
            heads = found.keys.whole.type.dims[1]
            result = ops.Reshape(whole, [0, heads, -1, found.values.whole.type.dims[3]], special_zero=True)
        if found.guarded and not _is_finite(found.scores):
            result = ops.Select(F.IsNaN(result), self._number(0.0), result)
        copy_runtime_info([*found.scores.nodes, found.root], [whole, result])
        replace_node(found.root, result)
        for cache in (found.keys, found.values):
            _measure_parts(cache)

    def _number(self, value: float) -> Value:
        return F.Constant(np.float32(value), graph=self.graph)

    # -- the index of sequences

    def _reorder(self, cache: Cache) -> None:
        """Read the past of a cache through a Gather."""
        if cache.index is None:
            self.graph.set_input(cache.append, 0, F.Gather(cache.read, self._index(cache), 0))

    def _index(self, cache: Cache) -> Value:
        """0, 1, .. up to the number of sequences."""
        batch = cache.read.output.type.dims[0]
        if batch not in self._indices:
            self._indices[batch] = self._counted(cache, batch)
        return self._indices[batch]

    def _counted(self, cache: Cache, batch: Dimension) -> Value:
        if isinstance(batch, int):
            return F.Constant(np.arange(batch, dtype=np.int32), graph=self.graph)
        source = next((p.output for p in self.graph.parameters if p.output.shape and p.output.shape[0] == batch), None)
        new = cache.append.operands[1]
        size = F.Gather(F.ShapeOf(new if source is None else source), 0, 0)
        return F.Convert(F.Range(0, size, 1, output_type=i64), destination_type=i32)


def _scale(found: Attention) -> float | None:
    """The scale unless it is 1 / sqrt(size), up to the rounding of the factors that it is the product of."""
    usual = 1 / math.sqrt(found.query.type.dims[3])
    return None if math.isclose(found.scale, usual, rel_tol=1e-6) else found.scale


def _repeated(whole: Value, times: int) -> Value:
    """[batch, heads, T, size] with each head `times` times."""
    if times == 1:
        return whole
    _, heads, _, size = whole.type.dims
    assert isinstance(heads, int)
    every = F.Broadcast(F.Unsqueeze(whole, [2]), [1, 1, times, 1, 1], mode="bidirectional")
    return F.Reshape(every, [0, heads * times, -1, size], special_zero=True)


def _measure_parts(cache: Cache) -> None:
    """Compute the shape of the whole cache from its parts.

    The plugin makes the whole an output of the attention, which cannot depend on its own output: masks often have the
    length of the cache.
    """
    new = cache.append.operands[1]
    for use in cache.whole.uses:
        node = use.node
        if isinstance(node, ops.ShapeOf):
            kind = node.output_type
            own, past = F.ShapeOf(new, output_type=kind), F.ShapeOf(cache.read, output_type=kind)
            length = F.Gather(past, [2], 0) + F.Gather(own, [2], 0)
            replace_node(node, ops.Concat(F.Gather(own, [0, 1], 0), length, F.Gather(own, [3], 0), axis=0))


# -- masks


def _mask(scores: AttentionScores) -> Value | None:
    """The addend of the scores; None if there is none."""
    mask: Value | None = None
    for each in scores.masks:
        mask = each if mask is None else mask + each
    if scores.chosen is None:
        return mask
    # Masked scores are equal, whatever their values: the lowest number absorbs them, a higher one would not.
    graph = scores.chosen.graph
    instead = F.Constant(np.float32(scores.instead if math.isinf(scores.instead) else LOWEST), graph=graph)
    kept = F.Constant(np.float32(0), graph=graph) if mask is None else mask
    return F.Select(scores.chosen, *((kept, instead) if scores.kept else (instead, kept)))


def _is_finite(scores: AttentionScores) -> bool:
    """Whether the masks are known to leave a number in each row."""
    if scores.chosen is not None and math.isinf(scores.instead):
        return False
    return all(_is_finite_mask(each) for each in scores.masks)


def _is_finite_mask(mask: Value) -> bool:
    """Whether a mask is chosen from finite numbers."""
    node = mask.node
    if isinstance(node, Constant):
        return node.tensor.nbytes <= 1 << 20 and bool(np.isfinite(node.array).all())
    if isinstance(node, ops.Select):
        numbers = [None if value is None else scalar(value) for value in node.inputs[1:]]
        return all(number is not None and math.isfinite(number) for number in numbers)
    return isinstance(node, ops.Movement) and node.inputs[0] is not None and _is_finite_mask(node.inputs[0])
