"""Copies of nodes, in the same graph or in another one, and the states of graphs for pickle.

`topological` orders the nodes of a graph in which an edge goes from a newer to an older node.

`networkx_view` is a graph as networkx reads it, made from the uses of the values when an algorithm reads them.
"""

from __future__ import annotations

import heapq
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from mo_loop.errors import ExtensionError, ModelError
from mo_loop.graph.dimension import NUMBERING
from mo_loop.graph.node import Node, Value
from mo_loop.origin import Origins

if TYPE_CHECKING:
    from mo_loop.graph.graph import Graph
if TYPE_CHECKING:
    from mo_loop.graph.graph import Graph


class _State(NamedTuple):
    """All of a node, apart from its graph and its inputs."""

    kind: type[Node]
    name: str
    origins: Origins
    outputs: Sequence[tuple[Any, Sequence[str], Origins]]
    """Type, names and origins."""
    symbols_made: tuple[int, int] | None
    fields: dict[str, Any]
    rt_info: dict[str, Any]


def copy_nodes(source: Graph, target: Graph, values: dict[Value, Value], skip: Iterable[Node] = ()) -> dict[Node, Node]:
    """Copy the nodes of `source`, but for `skip`, into `target`; returns the copy of each.

    `values` maps the inputs that `skip` makes to values of `target`, and gets the outputs. Weights are shared, bodies
    are copied. Nodes that are marked for re-inference are so in the copy.
    """
    copies: dict[Node, Node] = {}
    skipped = set(skip)
    for node in [each for each in source.ordered() if each not in skipped]:  # the source may be the target
        inputs = tuple([None if value is None else values[value] for value in node.inputs])
        copy = copies[node] = _attached(_state_of(node), inputs, target)
        values.update(zip(node.outputs, copy.outputs, strict=True))
        if node.bodies:
            copy.remap_bodies(lambda body: body.clone_with_map())
            _own_bodies(copy)
        if source.is_marked(node):
            target.touch(copy)
    return copies


def _state_of(node: Node) -> _State:
    outputs = [(value.type, value.names, value.origins) for value in node.outputs]
    fields, info = getattr(node, "__dict__", None) or {}, getattr(node, "_rt_info", None) or {}
    return _State(type(node), node.name, node.origins, outputs, getattr(node, "symbols_made", None), fields, info)


def _attached(state: _State, inputs: tuple[Value | None, ...], graph: Graph) -> Node:
    """A new node of this state in `graph`."""
    node: Any = object.__new__(state.kind)
    if state.fields:
        node.__dict__.update(state.fields)
    node.name = state.name
    if state.symbols_made is not None:
        node.symbols_made = state.symbols_made
    if state.rt_info:
        node.rt_info.update(state.rt_info)
    node.inputs = inputs
    outputs = []
    for place, (type_, names, origins) in enumerate(state.outputs):
        value = Value(node, place, type_)
        value.names, value.origins = names, origins
        outputs.append(value)
    node.outputs = tuple(outputs)
    graph.add(node)
    node.origins = state.origins
    return node


def _own_bodies(node: Node) -> None:
    for body in node.bodies:
        body.owner = node


def state_of(graph: Graph) -> tuple[Any, ...]:
    """The state of a graph for pickle: lists, so that neither a long chain of nodes nor deep bodies need recursion.

    ExtensionError if a node has a class that no other process can import.
    """
    for kind in graph.classes:
        _require_importable(kind, graph)
    places = graph.places
    nodes = [
        (_state_of(node), [None if each is None else (places[each.node], each.index) for each in node.inputs])
        for node in graph.ordered()
    ]
    marked = [places[node] for node in graph.ordered() if graph.is_marked(node)]
    ports = [places[node] for node in graph.parameters], [places[node] for node in graph.results]
    of_model = graph.name, graph.rt_info, graph.remaining, tuple(graph.sources), graph._scope
    bodies = list(graph.scopes())[:0:-1]  # those inside of others first
    return bodies, of_model, NUMBERING, nodes, marked, *ports


def restore(graph: Graph, state: tuple[Any, ...]) -> None:
    """Fill an empty graph from this state."""
    _, of_model, numbering, nodes, marked, parameters, results = state
    graph.name, graph.rt_info, graph.remaining, graph.sources, graph._scope = of_model
    made: list[Any] = []
    for each, inputs in nodes:
        read = tuple([None if place is None else made[place[0]].outputs[place[1]] for place in inputs])
        node = _attached(each, read, graph)
        if each.symbols_made is not None:
            node.symbols_made = each.symbols_made[0] + numbering.offset, each.symbols_made[1] + numbering.offset
        _own_bodies(node)
        made.append(node)
    for place in marked:
        graph.touch(made[place])
    graph.parameters = [made[place] for place in parameters]
    graph.results = [made[place] for place in results]


def _require_importable(kind: type[Node], graph: Graph) -> None:
    try:
        found = attrgetter(kind.__qualname__)(sys.modules[kind.__module__])
    except (KeyError, AttributeError):
        found = None
    if found is not kind:
        raise ExtensionError(
            f"the model cannot be pickled: no other process can import {kind.__qualname__}, the class of a node",
            where=graph.of(kind)[0].origin, code="ML268",
            hint="define the class in a module that both processes can import, not in a function or the file of an "
            "extension",
        )


def topological(graph: Graph, nodes: Collection[Node]) -> list[Node]:
    """The nodes of a graph, given by age, producers before consumers; of several possible ones the oldest first.

    ModelError for a cycle.
    """
    # One walk by age emits nodes that are ready; only nodes that become ready after the walk need a heap.
    waiting = {node: len(node.inputs) - node.inputs.count(None) for node in nodes}
    late: list[tuple[int, Node]] = []
    order: list[Node] = []
    for reached in nodes:
        if waiting[reached]:
            continue
        node = reached
        while True:
            order.append(node)
            for output in node.outputs:
                uses = output._uses
                if uses is None:
                    continue
                for consumer, _ in uses if isinstance(uses, dict) else (uses,):
                    waiting[consumer] -= 1
                    if not waiting[consumer] and consumer.id < reached.id:
                        heapq.heappush(late, (consumer.id, consumer))
            if not late:
                break
            node = heapq.heappop(late)[1]
    if len(order) != len(waiting):
        from networkx import find_cycle

        cycle = " -> ".join(edge[0].path for edge in find_cycle(graph.nx))
        raise ModelError(f"the graph has a cycle: {cycle}", where=graph.origin, code="ML224")
    return order


Edges = dict[Node, dict[int, dict[str, Value]]]
"""The edges of one node, as networkx has them: neighbour -> input port -> {"value": the Value}."""


def networkx_view(nodes: dict[Node, dict[str, Any]]) -> Any:
    """A networkx.MultiDiGraph over the nodes of a graph, each with the data that networkx keeps for it."""
    from networkx import MultiDiGraph

    view = MultiDiGraph()
    view._node = nodes
    view._succ, view._pred = _Neighbours(nodes, _successors), _Neighbours(nodes, _predecessors)
    return view


class _Neighbours(Mapping[Node, Edges]):
    """The successors or the predecessors of every node, made when networkx asks for them."""

    def __init__(self, nodes: Collection[Node], edges: Callable[[Node], Edges]) -> None:
        self._nodes, self._edges = nodes, edges

    def __getitem__(self, node: Node) -> Edges:
        if node not in self._nodes:
            raise KeyError(node)
        return self._edges(node)

    def __iter__(self) -> Iterator[Node]:
        return iter(self._nodes)

    def __len__(self) -> int:
        return len(self._nodes)


def _successors(node: Node) -> Edges:
    found: Edges = {}
    for output in node.outputs:
        for consumer, port in output.uses:
            found.setdefault(consumer, {})[port] = {"value": output}
    return found


def _predecessors(node: Node) -> Edges:
    found: Edges = {}
    for port, value in enumerate(node.inputs):
        if value is not None:
            found.setdefault(value.node, {})[port] = {"value": value}
    return found
