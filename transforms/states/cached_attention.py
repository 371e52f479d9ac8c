"""Finds softmax(scale * Q K^T + masks) V over caches, in the forms that exporters write.

root        MatMul(weights, values), or the Reshape after it where the heads of a group are rows
weights     Softmax(scores), perhaps with 0 in rows that are not numbers: Select(IsNaN(w), 0, w)
scores      the product, perhaps times a number, plus masks; Select(mask, scores, -10000) is a mask as well
product     MatMul(queries, keys)
keys        a cache, perhaps repeated for the heads of a group, transposed, times a number (cache_movements.py)
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from mo_loop.graph import Dimension, f32, high
from mo_loop.transforms.states import cache_movements
from mo_loop.transforms.vocabulary import Node, Value, ops

VERY_NEGATIVE = -1e4
"""The highest number that exporters put in place of a masked score: its weight is 0 beside any other score."""

_DEEPEST = 8
"""The most nodes between a product and its Softmax."""


@dataclass(frozen=True)
class AttentionScores:
    """The scores of an attention: their product, and the later changes of it.

    `nodes` are all nodes from the product on. Where `chosen` is not `kept` the score is `instead`. With `rows` a
    Reshape makes heads of the rows of the product.
    """

    product: ops.MatMul
    keys: cache_movements.Chain
    nodes: tuple[Node, ...]
    scale: float = 1.0
    masks: tuple[Value, ...] = ()
    chosen: Value | None = None
    kept: bool = True
    instead: float = 0.0
    rows: bool = False

    @property
    def is_plain(self) -> bool:
        return not self.masks and self.chosen is None


@dataclass(frozen=True)
class Attention:
    """An attention over two caches. `times` heads of queries share a head of the cache; rows that are not numbers have
    weights of 0 if it is `guarded`."""

    root: Node
    weights: Value
    """The factor of the values."""
    values_in: Value
    """The factor of the weights: the values of the cache, moved."""
    query: Value
    keys: cache_movements.Cache
    values: cache_movements.Cache
    scale: float
    times: int
    scores: AttentionScores
    guarded: bool
    folded: bool
    """Whether queries and result have the heads of the cache, each with the queries of its group as rows."""


class AttentionSearch:
    """Looks for attentions over caches, which are given by their whole."""

    def __init__(self, caches: dict[Value, cache_movements.Cache]) -> None:
        self.caches = caches
        self.sources = frozenset(caches)

    def find(self, product: ops.MatMul) -> Attention | str | None:
        """The attention that ends with `product`, or why there is none; None for a product that is not over a cache."""
        weights, right = product.operands
        values = cache_movements.chain_to(right, self.sources)
        if values is None or product.transpose_a or product.transpose_b:
            return None
        nodes, softmax, guarded = _weights(weights)
        if softmax is None:
            return None
        if softmax.axis not in (-1, (softmax.output.rank or 0) - 1):
            return "its softmax is not along the keys"
        scores = self._scores(_input(softmax), _DEEPEST)
        if scores is None:
            return "its scores are not a product of queries and the keys of a cache, with masks"
        rows = any(isinstance(node, ops.Reshape) for node in nodes)
        if rows != scores.rows:
            return "the heads of a group are rows of one of its products alone"
        use = product.output.only_use
        root = product if not rows else None if use is None else use.node
        if not isinstance(root, ops.Reshape | ops.MatMul):
            return "the rows of its result do not become heads"
        inner = [*nodes, softmax, *scores.nodes, *([product] if rows else ())]
        return self._joined(root, product, scores, values, guarded, inner)

    # -- the scores

    def _scores(self, value: Value, depth: int) -> AttentionScores | None:
        """The derivation of scores from a product with the keys of a cache; None if there is none."""
        node = value.node
        if isinstance(node, ops.MatMul):
            right = node.inputs[1]
            keys = None if right is None or node.transpose_a else cache_movements.chain_to(right, self.sources)
            return None if keys is None else AttentionScores(node, keys, (node,))
        if depth == 0:
            return None
        if isinstance(node, ops.Add):
            return self._masked(node, depth - 1)
        if isinstance(node, ops.Select):
            return self._selected(node, depth - 1)
        factor = cache_movements.scalar_factor(node)
        if factor is not None:
            inner = self._scores(factor[0], depth - 1)
            return _with(inner, node, scale=inner.scale * factor[1]) if inner is not None and inner.is_plain else None
        if isinstance(node, ops.Reshape):
            inner = self._scores(_input(node), depth - 1)
            return _with(inner, node, rows=True) if inner is not None and inner.is_plain and not inner.rows else None
        if _is_copy(node):
            inner = self._scores(_input(node), depth - 1)
            return None if inner is None else _with(inner, node)
        return None

    def _masked(self, node: Node, depth: int) -> AttentionScores | None:
        left, right = node.operands
        for value, mask in ((left, right), (right, left)):
            inner = self._scores(value, depth)
            if inner is not None:
                # Above a Select it would change the scores of masked keys, which are equal.
                return _with(inner, node, masks=(*inner.masks, mask)) if inner.chosen is None else None
        return None

    def _selected(self, node: Node, depth: int) -> AttentionScores | None:
        chosen, then, otherwise = node.operands
        for value, constant, kept in ((then, otherwise, True), (otherwise, then, False)):
            instead = cache_movements.scalar(constant)
            inner = None if instead is None else self._scores(value, depth)
            if inner is not None and instead is not None:
                is_mask = inner.chosen is None and instead <= VERY_NEGATIVE
                return _with(inner, node, chosen=chosen, kept=kept, instead=instead) if is_mask else None
        return None

    # -- the whole

    def _joined(
        self, root: Node, product: ops.MatMul, scores: AttentionScores, values: cache_movements.Chain, guarded: bool,
        inner: list[Node],
    ) -> Attention | str:
        weights, right = product.operands
        query, scale = self._query(scores)
        keys_of, values_of = self.caches[scores.keys.source], self.caches[values.source]
        apart = _unfolded(query, keys_of.append.inputs[1])
        folded = apart is not None and not scores.rows
        query = apart if folded and apart is not None else query
        heads, times = _heads(query, keys_of)
        scale *= scores.keys.scale
        result = Attention(root, weights, right, query, keys_of, values_of, scale, times, scores, guarded, folded)
        readers = frozenset((*scores.keys.nodes, *values.nodes, *inner, root))
        reason = (
            _why_no_form(result, scores, values, heads)
            or _why_read(inner, root)
            or cache_movements.why_not_held(keys_of, readers)
            or cache_movements.why_not_held(values_of, readers)
        )
        return reason or result

    @staticmethod
    def _query(scores: AttentionScores) -> tuple[Value, float]:
        """The queries [batch, heads, L, size] before scalars multiply them, and the product of the scalars."""
        value = scores.product.operands[0]
        scale, rows = scores.scale, scores.rows
        while True:
            factor = cache_movements.scalar_factor(value.node)
            if factor is not None:
                value, scale = factor[0], scale * factor[1]
            elif rows and isinstance(value.node, ops.Reshape):
                value, rows = _input(value.node), False
            else:
                return value, scale


def _with(scores: AttentionScores, node: Node, **changes: object) -> AttentionScores:
    return replace(scores, nodes=(*scores.nodes, node), **changes)  # type: ignore[arg-type]  # fields of AttentionScores


def _weights(value: Value) -> tuple[list[Node], ops.Softmax | None, bool]:
    """The nodes after the Softmax, the Softmax, and whether rows that are not numbers become 0."""
    nodes: list[Node] = []
    guarded = False
    while not isinstance(value.node, ops.Softmax):
        node = value.node
        if isinstance(node, ops.Select) and not guarded:
            test, zero, weights = node.operands
            is_test = isinstance(test.node, ops.IsNaN) and _input(test.node) is weights
            if not is_test or cache_movements.scalar(zero) != 0:
                return nodes, None, False
            nodes += [node, test.node]
            value, guarded = weights, True
        elif _is_copy(node) or (isinstance(node, ops.Reshape) and not any(isinstance(n, ops.Reshape) for n in nodes)):
            nodes.append(node)
            value = _input(node)
        else:
            return nodes, None, False
    return nodes, value.node, guarded


def _why_no_form(found: Attention, scores: AttentionScores, values: cache_movements.Chain, heads: int) -> str:
    """Why the operation does not compute the same; empty if it does."""
    query, product = found.query, scores.product
    every = (query, found.keys.whole, found.values.whole, found.root.outputs[0], *scores.masks)
    if any(value.dtype is not f32 for value in every):
        return "its tensors are not f32"
    if query.rank != 4 or any(value.rank is None or value.rank > 4 for value in every):
        return "its tensors are not of rank 4"
    if not isinstance(query.type.dims[3], int) or not isinstance(found.values.whole.type.dims[3], int):
        return "the size of its heads is not known"
    if not found.times:
        return f"{heads} heads of queries do not share the heads of the cache evenly"
    if not _may_equal(query.type.dims[0], found.keys.whole.type.dims[0]):
        return f"the queries are of {query.type.dims[0]} sequences, the keys of {found.keys.whole.type.dims[0]}"
    if not _keeps_shape(scores):
        return "a mask gives its scores another shape"
    if any(not mask.shape or high(mask.type.dims[-1]) in (0, 1) for mask in _masks(scores)):
        return "a mask is the same for all keys"
    if scores.rows and not _are_rows(found, scores):
        return "its rows are not the heads of a group"
    sizes = [mask.rank is not None and mask.type.dims[-3:-1] for mask in _masks(scores)]  # of heads and rows
    if found.folded and not all(each in ((1, 1), (1,), ()) for each in sizes):
        return "the heads of a group are rows, and have masks of their own"
    new = found.keys.append.inputs[1]
    if new is None or query.type.dims[2] != new.type.dims[2]:
        return "it is not known that there are as many queries as new keys"
    times = 1 if scores.rows or found.folded else found.times
    if not cache_movements.is_repeated(scores.keys, product.operands[1], times, not product.transpose_b):
        return "its keys are not those of the cache, repeated or transposed"
    last = found.values_in
    if values.scale != 1 or not cache_movements.is_repeated(values, last, times, False):
        return "its values are not those of the cache, repeated"
    return "its keys and values are one cache" if found.keys.append is found.values.append else ""


def _unfolded(query: Value, new: Value | None) -> Value | None:
    """[batch, heads, L, size], of which `query` [batch, heads of the cache, rows, size] has the groups as rows."""
    node = query.node
    if new is None or not isinstance(node, ops.Reshape) or query.rank != 4 or new.rank != 4:
        return None
    before, dims = _input(node), query.type.dims
    if before.rank != 4 or dims[2] == new.type.dims[2] or before.type.dims[2] != new.type.dims[2]:
        return None
    fits = dims[1] == new.type.dims[1] and dims[3] == before.type.dims[3] and _may_equal(dims[0], before.type.dims[0])
    return before if fits else None


def _masks(scores: AttentionScores) -> list[Value]:
    return [*scores.masks, *([] if scores.chosen is None else [scores.chosen])]


def _keeps_shape(scores: AttentionScores) -> bool:
    """Whether no mask makes the scores larger. The product with the values says that there is a score for each key."""
    places = [n for n, node in enumerate(scores.nodes) if isinstance(node, ops.MatMul | ops.Reshape)]
    before, after = scores.nodes[places[-1]].outputs[0], scores.nodes[-1].outputs[0]
    if before.rank != 4 or after.rank != 4:
        return False
    return all(_may_equal(a, b) for a, b in zip(before.type.dims[:3], after.type.dims[:3], strict=True))


def _are_rows(found: Attention, scores: AttentionScores) -> bool:
    """Whether queries, scores and results are [batch, heads, L, ..] around products [batch, heads of the cache, ..].

    A Reshape to heads keeps L or the last dimension. The other dimensions are determined then.
    """
    batch, heads, queries = found.query.type.dims[:3]
    own = found.keys.whole.type.dims[1]
    product, root = scores.product, found.root.outputs[0]
    apart = next(node.outputs[0] for node in scores.nodes if isinstance(node, ops.Reshape))
    places = ((product.inputs[0], own), (apart, heads), (found.weights, own), (root, heads))
    if not all(
        value is not None and value.rank == 4 and value.type.dims[1] == count and _may_equal(value.type.dims[0], batch)
        for value, count in places
    ):
        return False
    lasts = ((apart, product.output.type.dims[3]), (root, found.values.whole.type.dims[3]))
    return all(value.type.dims[2] == queries or value.type.dims[3] == last for value, last in lasts)


def _may_equal(a: Dimension, b: Dimension) -> bool:
    """Whether two sizes are not known to differ, and neither is a 1 that broadcasts."""
    return a == b or (1 not in (a, b) and not (isinstance(a, int) and isinstance(b, int)))


def _heads(query: Value, keys: cache_movements.Cache) -> tuple[int, int]:
    """The heads of the queries, and how many of them share one of the cache: 0 if that is not known."""
    heads, own = query.type.dims[1] if query.rank == 4 else 0, keys.whole.type.dims[1]
    if not isinstance(heads, int) or not isinstance(own, int) or not own or heads % own:
        return 0, 0
    return heads, heads // own


def _why_read(inner: Iterable[Node], root: Node) -> str:
    """The node outside that reads a value that the operation does not return; empty if there is none."""
    own = {*inner, root}
    for node in own - {root}:
        for reader in node.consumers:
            if reader not in own:
                return f"{reader.label} reads {node.label} as well"
    return ""


def _input(node: Node) -> Value:
    return node.operands[0]


def _is_copy(node: Node) -> bool:
    return isinstance(node, ops.Identity) or (isinstance(node, ops.Convert) and _input(node).dtype is node.output.dtype)
