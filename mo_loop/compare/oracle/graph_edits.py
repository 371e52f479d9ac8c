"""Edits of an ONNX model, which `verify` and `reduce` share.

    keep(graph.output, {"y"})                       # the other outputs are removed
    rename(graph, {"x": "input"})                   # also where nodes and bodies read it
    sweep(graph)                                    # nodes that no output needs are removed
    graphs_in(graph)                                # the graph itself, and all bodies
"""

import copy
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import onnx

from mo_loop.frontend.node_order import NamesRead, needed, renamed
from mo_loop.frontend.onnx_graphs import body_protos, graph_protos


def proto_of(model: Any) -> Any:
    """The model of a path, of bytes, or the ModelProto itself; data in other files are not read."""
    if isinstance(model, bytes):
        return onnx.load_from_string(model)
    return onnx.load(str(model), load_external_data=False) if isinstance(model, (str, Path)) else model


def graphs_in(graph: Any) -> Iterator[Any]:
    """A graph and all bodies in it, outer ones first."""
    yield graph
    yield from (body for _, _, body in bodies_in(graph))


def bodies_in(graph: Any) -> Iterator[tuple[Any, Any, Any]]:
    """All bodies in a graph, outer ones first, each after the graph and the node that have it."""
    pending = [graph]
    while pending:
        outer = pending.pop(0)
        for node in outer.node:
            for body in body_protos(node):
                yield outer, node, body
                pending.append(body)


def tensors_in(graph: Any) -> Iterator[Any]:
    """The initializers of a graph or function, and the tensors that are attributes of its nodes; not those of bodies.
    """
    yield from getattr(graph, "initializer", ())
    yield from (each.t for node in graph.node for each in node.attribute if each.HasField("t"))


def names_needed(graph: Any) -> set[str]:
    """The names that the nodes and outputs of a graph read, bodies included."""
    return {each.name for each in graph.output}.union(*map(NamesRead().of_node, graph.node))


def sizes_of(type_: Any) -> tuple[int | None, ...] | None:
    """The sizes in a TypeProto, None for each that is not known; None for an unknown rank, and no tensor type."""
    if type_ is None or not type_.HasField("tensor_type") or not type_.tensor_type.HasField("shape"):
        return None
    return tuple(dim.dim_value if dim.HasField("dim_value") else None for dim in type_.tensor_type.shape.dim)


def may_agree(sizes: Sequence[int | None] | None, others: Sequence[int | None] | None) -> bool:
    """Whether two shapes do not contradict each other."""
    if sizes is None or others is None:
        return True
    return len(sizes) == len(others) and all(a in (b, None) or b is None for a, b in zip(sizes, others, strict=True))


def replace_entries(field: Any, entries: Sequence[Any]) -> None:
    """Give a repeated field these messages, which may be its own."""
    kept = [copy.deepcopy(each) for each in entries]
    del field[:]
    field.extend(kept)


def keep(field: Any, names: Collection[str]) -> None:
    """Remove the entries of a repeated field that have other names."""
    replace_entries(field, [each for each in field if each.name in names])


def rename(graph: Any, names: Mapping[str, str], *, ports: bool = True) -> None:
    """Give tensors of a graph other names, where nodes make them, and where nodes and bodies read them.

    Without `ports` its inputs, outputs and initializers keep their names.
    """
    replace_entries(graph.node, [renamed(node, names) for node in graph.node])
    for entry in (*graph.input, *graph.output, *graph.initializer, *graph.value_info) if ports else ():
        entry.name = names.get(entry.name, entry.name)


def sweep(graph: Any) -> None:
    """Remove the nodes that no output needs."""
    reads, made = [*map(NamesRead().of_node, graph.node)], [node.output for node in graph.node]
    kept = needed(made, [entry.name for entry in graph.output], (), reads)
    replace_entries(graph.node, [graph.node[place] for place in kept])


def with_all_outputs(model: Any) -> Any:
    """A copy of a ModelProto in which all tensors that nodes of its main graph make are outputs too."""
    model = copy.deepcopy(model)
    outputs = {entry.name for entry in model.graph.output}
    for name in dict.fromkeys(name for node in model.graph.node for name in node.output if name):
        if name not in outputs:
            model.graph.output.add(name=name)
    return model


def of_unknown_sizes(model: Any) -> Any:
    """A copy of a ModelProto whose inputs have a symbol in place of each declared size, so that others can be given.

    So do those of bodies: ONNX Runtime allocates the results of a body with the sizes that it declares.
    """
    model = copy.deepcopy(model)
    for graph in graph_protos(model):
        del graph.value_info[:]
        if not hasattr(graph, "initializer"):  # the ports of a function are names
            continue
        constants = {each.name for each in graph.initializer}
        for port in graph.input:
            for axis, dim in enumerate(() if port.name in constants else port.type.tensor_type.shape.dim):
                if dim.HasField("dim_value"):
                    dim.dim_param = f"{port.name}[{axis}]"
        for port in graph.output:
            if port.type.HasField("tensor_type"):
                port.type.tensor_type.ClearField("shape")
    return model
