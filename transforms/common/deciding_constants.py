"""Constants that decide shapes, indices or control flow: rounding one changes the result, not only its precision.

%scales = Constant [2.1, 2.1]        2.0996 in f16, for which Interpolate gives other sizes
%limits = Constant [0.1, 0.2, 0.3]   all(x < limits) ends a loop
"""

from __future__ import annotations

from collections.abc import Iterator

from mo_loop import ops
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.shape import element_count
from mo_loop.graph.types import KNOWN_LIMIT
from mo_loop.ops.base import Constant, Op, Parameter
from mo_loop.ops.control import Control, If, Loop
from mo_loop.ops.port_map import Branched, Merged, Selected
from mo_loop.support.reached import reached


def deciding_constants(graph: Graph) -> frozenset[Node]:
    """The constants of all scopes that such a value is computed from, through small values only.

    A value of more than KNOWN_LIMIT elements is data: the threshold of a detector decides, the weights before it do
    not.
    """
    deciding = (value for scope in graph.scopes() for node in scope.ordered() for value in _deciding_inputs(node))
    small = reached(filter(_is_small, deciding), lambda value: filter(_is_small, _sources(value)))
    return frozenset(value.node for value in small if isinstance(value.node, Constant))


def _sources(value: Value) -> Iterator[Value]:
    """The values that a value is computed from: for a body Parameter its outer values, for control flow the Results."""
    node, owner = value.node, value.graph.owner
    if isinstance(node, Control):
        entry = node.output_map[value.index]
        results = (entry.then, entry.else_) if isinstance(entry, Selected) else (entry.result,)
        yield from (result.value for result in results)
    elif isinstance(node, Parameter) and isinstance(owner, Control):
        for each, outer in owner.fed:
            if node in ((each.then, each.else_) if isinstance(each, Branched) else (each.parameter,)):
                yield from (outer, each.result.value) if isinstance(each, Merged) else (outer,)
    else:
        yield from node.operands


def _deciding_inputs(node: Node) -> Iterator[Value]:
    assert isinstance(node, Op)
    for port in _ports(node):
        value = node.inputs[port] if port < len(node.inputs) else None
        if value is not None:
            yield value
    if isinstance(node, Loop):
        yield node.condition.value


def _ports(node: Op) -> tuple[int, ...]:
    """The input ports for shapes, indices, counts and conditions."""
    if isinstance(node, ops.Interpolate | ops.Interpolate11):
        return (1, 2)
    if isinstance(node, ops.Range):
        return (0, 1, 2)
    if isinstance(node, Loop):
        return (0, 1)
    return (0,) if isinstance(node, If) else tuple(node.index_ports)


def _is_small(value: Value) -> bool:
    count = element_count(value.shape)
    return count <= KNOWN_LIMIT if isinstance(count, int) else value.rank == 1
