"""The model that converters get: forms that ONNX Runtime refuses or does not produce, equal to those that it computes.

    c = Cast(n, to bool); If(c)         ->  If(n)                     a condition of integers; likewise of rank 2
    branch { y = Identity(outer) }      ->  branch {} => (outer)      a body without nodes
    Loop(M, c, a) { s -> t }            ->  Loop(M, c, a) { a -> t }  a body input with an outer name
    If(c) { x, y } { z, w }             ->  If(c) { x, y } { x, y }   the same names in sibling bodies
    nodes in order                      ->  nodes in any order
    a branch that is never taken        ->  the same with an unknown operator

Both models have the same inputs, outputs and results; the expected values are those of the first one.
"""

import random
from collections import Counter
from collections.abc import Iterator, Mapping

from onnx import GraphProto, ModelProto, NodeProto

from .scope import Context

UNKNOWN_OPERATOR = "NoSuchOperator"


def disguised(model: ModelProto, context: Context) -> ModelProto:
    """A copy of the model in another form; the changes are counted among the features."""
    copy = ModelProto()
    copy.CopyFrom(model)
    rng, features = context.rng, context.features
    _undeclare(copy.graph, context.undeclared)
    for node in _nodes(copy.graph):
        if node.name in context.dropped:
            _make_identity(node)
        elif node.name in context.broken:
            node.op_type, node.domain = UNKNOWN_OPERATOR, ""
            features["invalid branch never taken"] += 1
    tricks = {name: rng.random() < 0.35 for name in ("direct", "siblings", "outer names", "order", "unnamed")}
    if tricks["direct"]:
        _return_directly(copy.graph, features)
    if tricks["unnamed"]:
        _leave_unnamed(copy.graph, features)
    if tricks["siblings"] and not context.shadowing:
        _share_names(copy.graph, features)
    if tricks["outer names"] and not context.shadowing:
        _take_outer_names(copy.graph, features)
    if tricks["order"]:
        _shuffle(copy.graph, rng, features)
    return copy


def _bodies(node: NodeProto) -> list[GraphProto]:
    return [attribute.g for attribute in node.attribute if attribute.HasField("g")]


def _graphs(graph: GraphProto) -> Iterator[GraphProto]:
    """A graph and all bodies in it, the inner ones first."""
    for node in graph.node:
        for body in _bodies(node):
            yield from _graphs(body)
    yield graph


def _nodes(graph: GraphProto) -> Iterator[NodeProto]:
    return (node for each in _graphs(graph) for node in each.node)


def _undeclare(graph: GraphProto, bodies: Mapping[str, str]) -> None:
    """Remove the declared shape, or the whole type, of the iteration number and condition of the named bodies."""
    for each in _graphs(graph):
        for port in each.input[:2] if each.name in bodies else ():
            if bodies[each.name] == "nothing":
                port.ClearField("type")
            else:
                port.type.tensor_type.ClearField("shape")


def _make_identity(node: NodeProto) -> None:
    node.op_type, node.domain = "Identity", ""
    del node.input[1:]
    del node.attribute[:]


def _own_names(graph: GraphProto) -> list[str]:
    """The names that a graph defines itself, without its inputs, in the order of its nodes."""
    names = [tensor.name for tensor in graph.initializer]
    return [*names, *(name for node in graph.node for name in node.output if name)]


def _read(graph: GraphProto) -> Counter[str]:
    """How often a graph and the bodies in it read each name."""
    found: Counter[str] = Counter(port.name for port in graph.output)
    for node in graph.node:
        found.update(node.input)
        for body in _bodies(node):
            found.update(_read(body))
    return found


def _rename(graph: GraphProto, names: Mapping[str, str]) -> None:
    """Replace names everywhere in a graph and its bodies: all names stay different."""
    for port in (*graph.input, *graph.output, *graph.initializer):
        port.name = names.get(port.name, port.name)
    for node in graph.node:
        node.input[:] = [names.get(name, name) for name in node.input]
        node.output[:] = [names.get(name, name) for name in node.output]
        for body in _bodies(node):
            _rename(body, names)


def _return_directly(graph: GraphProto, features: Counter[str]) -> None:
    """Bodies return captured values and initializers under their own names."""
    for body in _graphs(graph):
        if body is graph:
            continue
        read = _read(body)
        made = {name for node in body.node for name in node.output} | {port.name for port in body.input}
        copies = {node.output[0]: node for node in body.node
                  if node.op_type == "Identity" and read[node.output[0]] == 1 and node.input[0] not in made}
        for port in body.output:
            node = copies.get(port.name)
            if node is not None:
                port.name = node.input[0]
                body.node.remove(node)
                features["body returns a capture directly"] += 1
        if all(node.op_type == "Constant" for node in body.node):
            for node in body.node:
                tensor = body.initializer.add()
                tensor.CopyFrom(node.attribute[0].t)
                tensor.name = node.output[0]
            del body.node[:]
            features["body without nodes"] += 1


def _leave_unnamed(graph: GraphProto, features: Counter[str]) -> None:
    """Remove the names of unused outputs of control flow."""
    for each in _graphs(graph):
        read = _read(each)
        for node in each.node:
            unread = [name for name in node.output if not read[name]]
            if _bodies(node) and unread and len(unread) < len(node.output):
                node.output[:] = ["" if name in unread else name for name in node.output]
                features["output without a name"] += 1


def _share_names(graph: GraphProto, features: Counter[str]) -> None:
    """The second of two bodies of one graph gets the names of the first."""
    for each in _graphs(graph):
        bodies = [body for node in each.node for body in _bodies(node)]
        for first, second in zip(bodies[::2], bodies[1::2], strict=False):
            names = dict(zip(_own_names(second), _own_names(first), strict=False))
            if names and not set(names.values()) & set(_read(second)):
                _rename(second, names)
                features["same names in sibling bodies"] += 1


def _take_outer_names(graph: GraphProto, features: Counter[str]) -> None:
    """Inputs of bodies get the names of their initial outer values."""
    for each in _graphs(graph):
        for node in each.node:
            for body in _bodies(node):
                ports = list(body.input)
                outer = list(node.input)[-len(ports) :] if node.op_type == "Scan" else list(node.input)
                names: dict[str, str] = {}
                read = _read(body)
                taken = {port.name for port in ports} | set(_own_names(body))
                for port, name in zip(ports, outer, strict=False):
                    if name and not read[name] and name not in taken and name not in names.values():
                        names[port.name] = name
                if names:
                    _rename(body, names)
                    features["outer name as body input"] += 1


def _shuffle(graph: GraphProto, rng: random.Random, features: Counter[str]) -> None:
    for each in _graphs(graph):
        nodes = []
        for node in each.node:
            copy = NodeProto()
            copy.CopyFrom(node)
            nodes.append(copy)
        rng.shuffle(nodes)
        del each.node[:]
        each.node.extend(nodes)
    features["nodes out of order"] += 1
