"""Caches, and chains of movements that give their keys or values, repeated for each head of a group, or transposed.

A cache is a variable that something is appended to:

    %past = ReadValue(%initial) {variable_id: "k", ...}
    %own = Gather(%past, %beam_idx, 0)               may be absent
    %all = Concat(%own, %new) {axis: 2}
    %set = Assign(%all) {variable_id: "k", ...}

A chain of movements:

    %u = Unsqueeze(%keys, 2)
    %b = Broadcast(%u, [1, 1, 4, 1, 1]) {mode: bidirectional}
    %r = Reshape(%b, [0, 8, -1, 64]) {special_zero: true}         keys repeated for 4 heads each
    %t = Transpose(%r, [0, 1, 3, 2])                              and transposed

Exporters write this in dozens of forms. The chain is therefore not matched form by form: it is evaluated with the
numbers 0, 1, 2, .. in place of the cache, for two choices of the sizes that are not known. Movements of elements
whose result is right for distinct sizes, element by element, are right for all.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop.graph.dimension import Dim, Dimension, Symbol
from mo_loop.transforms.vocabulary import Constant, Graph, Node, Value, ops


@dataclass(frozen=True)
class Cache:
    """`whole` is the past with the new rows appended; `index` reorders the past, None if nothing does."""

    read: ops.ReadValue
    past: Value
    index: Value | None
    append: ops.Concat

    @property
    def whole(self) -> Value:
        return self.append.output


def caches_of(graph: Graph) -> dict[Value, Cache]:
    """The caches of a graph by their whole."""
    found: dict[Value, Cache] = {}
    for assign in graph.of(ops.Assign):
        value = assign.inputs[0]
        if value is None or not isinstance(value.node, ops.Concat) or value.rank != 4:
            continue
        past = value.node.operands[0]
        index, read = None, past
        if isinstance(past.node, ops.Gather) and _is_first_axis(past.node):
            read, index = past.node.operands[:2]
        if isinstance(read.node, ops.ReadValue) and read.node.variable_id == assign.variable_id:
            found[value] = Cache(read.node, past, index, value.node)
    return found


def _is_first_axis(node: ops.Gather) -> bool:
    index, axis = node.operands[1:]
    return index.rank == 1 and axis.type.integers == (0,) and not node.batch_dims


def why_not_held(cache: Cache, readers: frozenset[Node]) -> str:
    """Why attention cannot hold a cache that besides `readers` only ShapeOf may read; empty if it can."""
    if len(cache.append.inputs) != 2 or cache.append.axis % 4 != 2:
        return "it does not append one tensor along axis 2"
    others = [use for use in cache.read.output.uses if use.node is not cache.append]
    if any(not isinstance(use.node, ops.ShapeOf) and use.node is not cache.past.node for use in others):
        return f"{cache.read.label} has other readers than Gather and ShapeOf"
    if cache.index is not None and cache.past.only_use is None:
        return f"{cache.past.node.label} has several readers"
    for use in cache.whole.uses:
        if not isinstance(use.node, ops.ShapeOf | ops.Assign) and use.node not in readers:
            return f"{use.node.label} reads {cache.append.label} as well"
    return "" if cache.whole.dtype is cache.read.variable_type else "its element type changes"


_LONGEST = 16
"""The most nodes of a chain; real ones have at most eight."""

_MOST = 1 << 22
"""The most elements of an array that is computed: those of real caches, of short sequences, are fewer."""

_SIZES = ((2, 3, 5, 7, 11, 13), (3, 5, 4, 9, 6, 10))
"""Sizes of unknown dimensions, in the order in which they are met."""

_MOVES = (ops.SameElements, ops.Transpose, ops.Broadcast, ops.Tile, ops.Gather)
"""Movements that are the same for all sizes: a Slice may keep all of the sizes that are tried, and not of others."""

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Chain:
    """The nodes from a value back to a source, and the product of the scalars that they multiply by."""

    source: Value
    nodes: tuple[Node, ...]
    scale: float


def chain_to(value: Value, sources: frozenset[Value]) -> Chain | None:
    """The chain of movements that makes `value` from one of `sources`; None if there is none."""
    nodes: list[Node] = []
    scale = 1.0
    while value not in sources:
        node = value.node
        factor = scalar_factor(node)
        before = _moved(node) if factor is None else factor[0]
        if before is None or len(nodes) == _LONGEST:
            return None
        scale *= 1.0 if factor is None else factor[1]
        nodes.append(node)
        value = before
    return Chain(value, tuple(nodes), scale)


def _moved(node: Node) -> Value | None:
    """The value whose elements the output of a node is made of, each perhaps several times; None for other nodes."""
    first = node.inputs[0] if node.inputs else None
    if isinstance(node, _MOVES) or (isinstance(node, ops.Concat) and len(set(node.inputs)) == 1):
        return first
    if isinstance(node, ops.Convert):
        return first if first is not None and first.dtype is node.output.dtype else None
    if isinstance(node, ops.Multiply):
        left, right = node.inputs
        return next((a for a, b in ((left, right), (right, left)) if b is not None and _is_ones(b)), None)
    return None


def _is_ones(value: Value) -> bool:
    if not isinstance(value.node, Constant) or value.node.tensor.nbytes > 1 << 16:
        return False
    return bool((value.node.array == 1).all())


def scalar_factor(node: Node) -> tuple[Value, float] | None:
    """The value that a node multiplies or divides by a constant scalar, and the factor."""
    if not isinstance(node, ops.Multiply | ops.Divide):
        return None
    left, right = node.operands
    if (factor := scalar(right)) is not None and left.shape == node.output.shape:
        return (left, factor) if isinstance(node, ops.Multiply) else (left, 1 / factor) if factor else None
    if isinstance(node, ops.Multiply) and (factor := scalar(left)) is not None and right.shape == node.output.shape:
        return right, factor
    return None


def scalar(value: Value) -> float | None:
    """The number that a constant of one element holds."""
    if value.shape is None or any(dim != 1 for dim in value.shape):
        return None
    array = value.constant
    return None if array is None or array.dtype == object else float(array.reshape(-1)[0])


def is_repeated(chain: Chain, target: Value, times: int, transposed: bool) -> bool:
    """Whether the chain repeats each head (axis 1) of a cache [B,H,T,S], and then transposes T and S if requested."""
    return all(_holds(chain, target, times, transposed, _Sizes(sizes)) for sizes in _SIZES)


class _Sizes:
    """A size for each symbol."""

    def __init__(self, sizes: tuple[int, ...]) -> None:
        self._free = list(sizes)
        self._chosen: dict[Symbol, int] = {}

    def of(self, dim: Dimension) -> int:
        if not isinstance(dim, Dim):
            return int(dim)
        total = dim.const
        for symbol, factor in dim.terms:
            if symbol not in self._chosen:
                self._chosen[symbol] = max(symbol.lo, self._free.pop(0) if self._free else 17)
            total += factor * self._chosen[symbol]
        return total


def _holds(chain: Chain, target: Value, times: int, transposed: bool, sizes: _Sizes) -> bool:
    shape = tuple(sizes.of(dim) for dim in chain.source.type.dims)
    if math.prod(shape) * times > _MOST or any(
        math.prod(dim for dim in node.outputs[0].shape or () if isinstance(dim, int)) > _MOST for node in chain.nodes
    ):
        return False
    start = np.arange(math.prod(shape), dtype=np.float64).reshape(shape)
    wanted = np.repeat(start, times, axis=1)
    wanted = np.swapaxes(wanted, 2, 3) if transposed else wanted
    try:
        found = _evaluated(chain, start, sizes)
    except (ValueError, IndexError, TypeError):  # sizes that the chain does not allow
        return False
    return found is not None and found.shape == wanted.shape and bool((found == wanted).all())


def _evaluated(chain: Chain, start: Array, sizes: _Sizes) -> Array | None:
    """The result of the chain without its scalars; None if an operand is not known."""
    current, value = start, chain.source
    for node in reversed(chain.nodes):
        if scalar_factor(node) is None and not isinstance(node, ops.Convert):
            operands = [current if each is value else _operand(each, sizes) for each in node.inputs]
            if any(each is None for each in operands):
                return None
            current = node.evaluate(*operands) if isinstance(node, ops.Op) else NotImplemented
            if current is NotImplemented:
                return None
        value = node.outputs[0]
    return current


def _operand(value: Value | None, sizes: _Sizes) -> Array | None:
    if value is None:
        return None
    known = value.type.known
    if known is not None:
        return np.array([sizes.of(each) for each in known.reshape(-1)], np.int64).reshape(known.shape)
    return value.constant
