"""The invariants of a graph, which hold before and after every pass. A violation is a bug."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from mo_loop.errors import MoLoopError
from mo_loop.graph import Graph
from mo_loop.ops.base import Parameter, Result
from mo_loop.ops.control import Control


def invariants(graph: Graph) -> list[str]:
    """The violated invariants of the graph and its bodies, each with its place; empty if there are none."""
    found = [
        f"{scope.path or scope.name or 'graph'}: {finding}"
        for scope in graph.scopes()
        for check in INVARIANTS
        for finding in check(scope)
    ]
    return found or list(_stale_types(graph))  # an inconsistent graph can be neither copied nor typed


def _edges(graph: Graph) -> Iterator[str]:
    """`inputs` and the edges of networkx agree."""
    wanted = {
        (value.node, node, port): value
        for node in graph.nx
        for port, value in enumerate(node.inputs)
        if value is not None
    }
    found = {(a, b, port): data["value"] for a, b, port, data in graph.nx.edges(keys=True, data=True)}
    for a, b, port in wanted.keys() - found.keys():
        yield f"input {port} of {b.path} reads {a.path}, but there is no such edge"
    for a, b, port in found.keys() - wanted.keys():
        yield f"an edge from {a.path} to input {port} of {b.path}, which does not read it"
    for a, b, port in wanted.keys() & found.keys():
        if wanted[a, b, port] is not found[a, b, port]:
            yield f"input {port} of {b.path} and its edge from {a.path} carry different outputs"


def _membership(graph: Graph) -> Iterator[str]:
    """Nodes refer to their graph, values to their node and index; no edge crosses graphs."""
    for node in graph.nx:
        if node.graph is not graph:
            yield f"{node.path} refers to another graph"
        for index, output in enumerate(node.outputs):
            if output.node is not node or output.index != index:
                yield f"output {index} of {node.path} refers to itself as output {output.index} of {output.node!r}"
        for port, value in enumerate(node.inputs):
            if value is None:
                continue
            if value.node not in graph:
                yield f"input {port} of {node.path} comes from another graph"
            elif not any(value is output for output in value.node.outputs):
                yield f"input {port} of {node.path} is an output that {value.node.path} no longer has"


def _order(graph: Graph) -> Iterator[str]:
    """`ordered()` holds every node once, producers first."""
    order = {node: place for place, node in enumerate(graph.ordered())}
    if len(order) != len(graph.ordered()) or order.keys() != set(graph.nx):
        yield "the order is not that of the nodes"
        return
    for a, b in graph.nx.edges():
        if order[a] >= order[b]:
            yield f"{a.path} is after its consumer {b.path}"


def _ends(graph: Graph) -> Iterator[str]:
    """The lists of Parameters and Results hold exactly those nodes, each once."""
    for what, listed, cls in (("parameters", graph.parameters, Parameter), ("results", graph.results, Result)):
        there = [node for node in graph.nx if isinstance(node, cls)]
        if len(set(listed)) != len(listed):
            yield f"{what} lists a node twice"
        if set(listed) != set(there):
            yield f"{what} lists {len(listed)} nodes, the graph contains {len(there)}"


def _owners(graph: Graph) -> Iterator[str]:
    """A body belongs to the one node that holds it."""
    seen: set[Graph] = set()
    for node in graph.nx:
        for body in node.bodies:
            if body.owner is not node:
                yield f"a body of {node.path} has the owner {body.owner!r}"
            if body in seen:
                yield f"{node.path} shares a body"
            seen.add(body)


def _port_maps(graph: Graph) -> Iterator[str]:
    """Port maps have an entry for each input and output, refer to ports of the bodies, and feed each Parameter once."""
    for node in graph.of(Control):
        inputs, outputs = len(node.inputs) - node.first_data_port, len(node.outputs)
        if (len(node.input_map), len(node.output_map)) != (inputs, outputs):
            yield f"the port map of {node.path} is not parallel to {inputs} inputs and {outputs} outputs"
        extra = [getattr(node, key, None) for key in ("iteration", "condition")]
        entries = [each for entry in (*node.input_map, *node.output_map) for each in vars(entry).values()]
        ends = {end: body for body in node.bodies for end in (*body.parameters, *body.results)}
        for each in (*extra, *entries):
            if isinstance(each, Parameter | Result) and each not in ends:
                yield f"the port map of {node.path} refers to {each!r}, which is not a port of its bodies"
        fed = [*extra, *(each for entry in node.input_map for each in vars(entry).values())]
        parameters = [each for each in fed if isinstance(each, Parameter)]
        for parameter in dict.fromkeys(parameters):
            if parameters.count(parameter) > 1:
                yield f"{parameter.path} is fed {parameters.count(parameter)} times"
        for end in ends:
            if isinstance(end, Parameter) and end not in parameters:
                yield f"nothing feeds {end.path}"


def _validated(graph: Graph) -> Iterator[str]:
    """No node waits for inference."""
    if graph.is_dirty:
        yield "types were not validated"


INVARIANTS: tuple[Callable[[Graph], Iterator[str]], ...] = (
    _edges, _membership, _order, _ends, _owners, _port_maps, _validated,
)


def _stale_types(graph: Graph) -> Iterator[str]:
    """The types equal those of a new inference. It runs on a copy, because it changes the types of bodies."""
    pairs = [(graph, graph.clone())]
    while pairs:
        original, copy = pairs.pop()
        for node, twin in zip(original.ordered(), copy.ordered(), strict=True):
            try:
                types = twin.infer_types()
            except MoLoopError as error:
                yield f"{node.path} can no longer be typed: {error.message}"
                continue
            for output, type_ in zip(node.outputs, types, strict=True):
                if repr(output.type) != repr(type_):
                    yield f"output {output.index} of {node.path} is {output.type}, inference gives {type_}"
            pairs.extend(zip(node.bodies, twin.bodies, strict=True))
