"""Attention that the runtime computes wrongly as one operation, and states of recurrent operations that it does not
compile.
"""

import math
from collections.abc import Collection, Iterator, Sequence

from mo_loop.graph.shape import of_declared_sizes
from mo_loop.ops.recurrent import Recurrent
from mo_loop.support.traversal import reached
from mo_loop.target import CRASH, ERROR, NEVER, Processor
from mo_loop.transforms.pattern import wrap_type
from mo_loop.transforms.runtime.inference import has_constant_sizes, is_computable
from mo_loop.transforms.runtime.local.rule import is_doubled, is_one_element, maximum_rule, rule
from mo_loop.transforms.vocabulary import Constant, F, Gap, Graph, Node, Result, Use, Value, is_static, ops, order_of

BETWEEN = (ops.Elementwise, ops.Reshape)
"""Operations that may be between the products and the softmax."""


def _is_attention(value: Value) -> bool:
    """Whether `value` is the product of a softmax that is computed of a product."""
    if not value.graph.has(ops.Softmax):
        return False
    known: dict[Value, bool] = value.graph.note("attention", dict)  # for the next rule
    if value not in known:
        softmax = _softmax_before(value.node.operands[0])
        known[value] = softmax is not None and _product_before(softmax) is not None
    return known[value]


ATTENTION = wrap_type(ops.MatMul, when=_is_attention)


@maximum_rule(ATTENTION, "`max(x, x)` at this `Transpose`", Gap(
    "attention-with-as-many-queries-as-heads",
    "static attention gives wrong values if there are as many queries as heads, a computed operand is added or "
    "multiplied, and a `Transpose` is directly at only one of Q and the result", on={Processor.SSE41: NEVER},
))
def MaximumBetweenHeads(node: ops.MatMul) -> Use | None:
    """Transpose(softmax(Q K^T) V)  ->  Transpose(max(A, A)) of the attention A, if Q is not the result of a Transpose
    softmax(Q K^T) V                ->  softmax(max(Q, Q) K^T) V, if Q is a Transpose and the result is not transposed

    where there are as many queries as heads. The runtime computes static attention as one operation, with the
    Transposes of the heads. It splits the queries for its threads. If only one of Q and the result is transposed, it
    takes the heads of another operand of this operation for the queries. The maximum separates the Transpose.
    """
    if not _has_as_many_queries_as_heads(node.output):
        return None
    softmax = _softmax_before(node.operands[0])
    product = softmax and _product_before(softmax)
    if product is None:
        return None
    q, uses = product.operands[0], list(node.output.uses)
    is_transposed = len(uses) == 1 and _swaps_heads(uses[0].node)
    if is_transposed == _swaps_heads(_unscaled(q).node):
        return None
    return uses[0] if is_transposed else Use(product, 0)


@maximum_rule(ATTENTION, "`max(w, w)` after the `Softmax`", Gap(
    "attention-of-constant-heads", "attention reads the first head of constant keys or values for all heads",
    since="2025.2.0", until="2026.0.0", on={Processor.SSE41: NEVER},
))
def MaximumBehindSoftmax(node: ops.MatMul) -> Use | None:
    """softmax(Q K^T) V  ->  max(w, w) V with the weights w, where K or V is constant, with a matrix for each head

    The runtime computes attention as one operation, and reads constants of the first head for all of them. The maximum
    separates the second product.
    """
    if node.output.rank is not None and node.output.rank <= 2:
        return None
    weights, v = node.operands
    softmax = None if isinstance(weights.node, ops.Maximum) else _softmax_before(weights)
    product = softmax and _product_before(softmax)
    if product is None or not any(_is_constant_of_heads(each) for each in (v, product.operands[1])):
        return None
    return Use(node, 0)


@maximum_rule(
    ATTENTION, "`max(x, x)` of the attention",
    Gap(
        "compared-attention",
        "the process ends when it compiles static attention that is compared with a computed tensor", severity=CRASH,
        on={Processor.SSE41: NEVER},
    ),
    Gap(
        "attention-of-more-dimensions", "a model does not compile if attention meets an operand of more dimensions",
        severity=ERROR, on={Processor.SSE41: NEVER},
    ),
)
def MaximumBehindAttention(node: ops.MatMul) -> Value | None:
    """softmax(Q K^T) V -> max(A, A) of the attention A, if the next operation cannot be a part of one operation with it

    That is a comparison with a computed tensor, and an operand of more dimensions. Elementwise operations may be
    between.
    """
    rank, is_known = node.output.rank, is_static(of_declared_sizes(node.output.shape))
    # Residual connections lead on to the readers of all attention after this one.
    without: set[Node] = node.graph.note(("no reader that is no part of attention", rank, is_known), set)
    seen = []
    for reader in _elementwise_readers(node.output, without):
        has_more = rank is not None and reader.output.rank is not None and reader.output.rank > rank
        compared = reader.operands if is_known and isinstance(reader, ops.Comparison) else ()
        if has_more or (compared and not any(isinstance(each.node, Constant) for each in compared)):
            return node.output
        seen.append(reader)
    without.update(seen)
    return None


@maximum_rule(ATTENTION, MaximumBehindAttention.instead, Gap(
    "attention-as-result", "the second inference fails if static attention with one head is a result of the model",
    severity=ERROR, until="2026.1.0", on={Processor.SSE41: NEVER},
))
def MaximumBehindOneHead(node: ops.MatMul) -> Value | None:
    """softmax(Q K^T) V  ->  max(A, A) of the attention A, if it is one matrix, and a result of the model

    Elementwise operations may be between. The runtime splits the rows for its threads, and with them the result.
    """
    dims = of_declared_sizes(node.output.shape)
    if not dims or not is_static(dims) or math.prod(dims[:-2]) != 1:
        return None
    readers = [node, *_elementwise_readers(node.output)]
    is_result = any(isinstance(use.node, Result) for reader in readers for use in reader.output.uses)
    return node.output if is_result else None


def _elementwise_readers(value: Value, ends: Collection[Node] = ()) -> Iterator[Node]:
    """The elementwise operations that read `value`, or the result of another one of these that is not one of `ends`."""

    def readers(value: Value) -> list[Node]:
        return [use.node for use in value.uses if isinstance(use.node, ops.Elementwise) and not is_doubled(use.node)]

    return reached(readers(value), lambda node: () if node in ends else readers(node.output))


def _is_constant_of_heads(value: Value) -> bool:
    """Whether `value` is several matrices, computed of constants."""
    if not is_static(value.shape) or math.prod(value.type.dims[:-2]) == 1:
        return False
    sources = reached([value.node], lambda node: [each.node for each in node.operands])
    return all(isinstance(node, (*BETWEEN, Constant)) for node in sources)


def _has_as_many_queries_as_heads(value: Value) -> bool:
    """Whether `value` is [.., heads, queries, size], of which all are known."""
    dims = of_declared_sizes(value.shape)
    if dims is None or len(dims) < 3 or not is_static(dims):
        return False
    heads, queries = dims[-3:-1]
    return heads == queries != 1


def _softmax_before(value: Value) -> Node | None:
    """The Softmax that `value` is computed of, through operations between."""
    # Residual connections lead back to all products before `value`, or forward to all after a Softmax. Both searches
    # take turns, so the shorter one decides; that from the Softmax serves all values until the graph changes.
    following, after = value.graph.note("after a Softmax", lambda: (_after_softmax(value.graph), set[Value]()))
    for each in reached([value], _between):
        if isinstance(each.node, ops.Softmax):
            return each.node
        found = next(following, None)
        if found is None:
            break
        after.add(found)
    while value in after and not isinstance(value.node, ops.Softmax):
        value = next(each for each in reversed(value.node.operands) if each in after)
    return value.node if value in after else None


def _after_softmax(graph: Graph) -> Iterator[Value]:
    """The results of all Softmax, and of the operations between that read one of these values."""

    def readers(value: Value) -> list[Value]:
        return [use.node.output for use in value.uses if isinstance(use.node, BETWEEN)]

    return reached((node.output for node in graph.of(ops.Softmax)), readers)


def _product_before(softmax: Node) -> Node | None:
    """The product that the operand of a Softmax is computed of, through operations between."""
    without: set[Value] = softmax.graph.note("no product before", set)
    seen = []
    for each in reached(softmax.operands, lambda value: () if value in without else _between(value)):
        if isinstance(each.node, ops.MatMul):
            return each.node
        seen.append(each)
    without.update(seen)
    return None


def _between(value: Value) -> tuple[Value, ...]:
    return value.node.operands if isinstance(value.node, BETWEEN) else ()


def _unscaled(value: Value) -> Value:
    """The value that is multiplied by a constant number: the runtime moves the number after the product."""
    while isinstance(value.node, ops.Multiply):
        a, b = value.node.operands
        if not is_one_element(a) and not is_one_element(b):
            return value
        value = a if is_one_element(b) else b
    return value


def _swaps_heads(node: Node) -> bool:
    """Whether `node` is a Transpose that swaps heads and queries."""
    order = order_of(node) if isinstance(node, ops.Transpose) else None
    if order is None or len(order) < 3:
        return False
    rank = len(order)
    return tuple(order) == (*range(rank - 3), rank - 2, rank - 3, rank - 1)


READS = (ops.Gather, ops.GatherElements, ops.GatherND)
"""Operations with indices of which the known sizes of the output do not depend on their numbers."""


@rule(wrap_type(Recurrent), "a `Reshape` of the input to the size of the batch", Gap(
    "batch-of-constant-state",
    "a recurrent operation with a constant state does not compile if the runtime does not infer the batch size of its "
    "input: after a `Pad`, `Slice` or `Tile` of computed sizes, for example", severity=ERROR,
))
def ReshapeToBatchOfState(node: Recurrent) -> Node | None:
    """LSTMSequence(Transpose(Pad(x, n, m), [0, 2, 1]), h : [2,1,4], ...)  ->  the same of Reshape(Pad(...), [2, 0, 0])

    for a constant h. The Reshape is before the Transpose: the runtime merges a Transpose into the operation.
    """
    states = node.operands[1 : 3 if isinstance(node, ops.LSTMCell | ops.LSTMSequence) else 2]
    known: dict[Value, bool] = {}
    size = next((each.type.dims[0] for each in states if each.rank and is_computable(each, known)), None)
    reader: Node = node
    axis = 0
    while isinstance(reader.operands[0].node, ops.Transpose) and (order := order_of(reader.operands[0].node)):
        reader, axis = reader.operands[0].node, order[axis]
    x = reader.operands[0]
    if not isinstance(size, int) or x.rank is None or has_inferred_size(x, axis):
        return None
    shape = [size if each == axis else 0 for each in range(x.rank)]
    node.graph.set_input(reader, 0, F.Reshape(x, shape, special_zero=True))
    return node


def has_inferred_size(value: Value, axis: int) -> bool:
    """Whether the runtime surely infers the known size along an axis: it does not come from a computed number."""
    pattern = value.node.operands[1].type.integers if isinstance(value.node, ops.Reshape) else None
    if pattern is not None and pattern[axis] == value.type.dims[axis]:
        return True
    return not any(_may_hide(each.node) for each in reached([value], _sources_of_sizes))


def _sources_of_sizes(value: Value) -> Sequence[Value]:
    node = value.node
    if has_constant_sizes(node):
        return ()
    return node.operands[:1] if isinstance(node, Recurrent) else node.operands


def _may_hide(node: Node) -> bool:
    if isinstance(node, ops.Parameter):
        return node.graph.owner is not None
    if isinstance(node, ops.Control | ops.Barrier) or not isinstance(node, ops.Op):
        return True
    computed = (node.inputs[port] for port in node.index_ports if port < len(node.inputs))
    return not isinstance(node, READS) and any(each and not isinstance(each.node, Constant) for each in computed)
