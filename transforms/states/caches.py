"""Caches: variables that something is appended to.

%past = ReadValue(%initial) {variable_id: "k", ...}
%own = Gather(%past, %beam_idx, 0)               may be absent
%all = Concat(%own, %new) {axis: 2}
%set = Assign(%all) {variable_id: "k", ...}
"""

from __future__ import annotations

from dataclasses import dataclass

from mo_loop import ops
from mo_loop.graph import Graph, Node, Use, Value
from mo_loop.graph.types import TensorType


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
            first, index = past.node.inputs[0], past.node.inputs[1]
            assert first is not None
            read = first
        if isinstance(read.node, ops.ReadValue) and read.node.variable_id == assign.variable_id:
            found[value] = Cache(read.node, past, index, value.node)
    return found


def _is_first_axis(node: ops.Gather) -> bool:
    index, axis = node.inputs[1], node.inputs[2]
    assert index is not None and axis is not None
    return index.rank == 1 and axis.type.integers == (0,) and not node.batch_dims


def why_not_held(cache: Cache, readers: frozenset[Node]) -> str:
    """Why attention cannot hold a cache that besides `readers` only ShapeOf may read; empty if it can."""
    if len(cache.append.inputs) != 2 or cache.append.axis % 4 != 2:
        return "it does not append one tensor along axis 2"
    if any(not isinstance(use.node, ops.ShapeOf) and use.node is not cache.past.node for use in _others(cache)):
        return f"{cache.read.label} has other readers than Gather and ShapeOf"
    if cache.index is not None and cache.past.only_use is None:
        return f"{cache.past.node.label} has several readers"
    for use in cache.whole.uses:
        if not isinstance(use.node, ops.ShapeOf | ops.Assign) and use.node not in readers:
            return f"{use.node.label} reads {cache.append.label} as well"
    dtype = cache.whole.type.dtype if isinstance(cache.whole.type, TensorType) else None
    return "" if dtype is cache.read.variable_type else "its element type changes"


def _others(cache: Cache) -> list[Use]:
    """The readers of the variable besides the Concat."""
    return [use for use in cache.read.output.uses if use.node is not cache.append]
