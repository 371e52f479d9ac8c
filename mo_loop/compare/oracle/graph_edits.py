"""Edits of a GraphProto that cutting, reducing and reshaping a model share."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from mo_loop.frontend.names_read import NamesRead
from mo_loop.frontend.onnx_graphs import graph_protos


def replace_entries(field: Any, entries: Sequence[Any]) -> None:
    """Give a repeated field these messages, which may be its own."""
    kept = [copy.deepcopy(each) for each in entries]
    del field[:]
    field.extend(kept)


def sweep(graph: Any) -> set[str]:
    """Remove the nodes that no output needs; returns the names that the outputs and the other nodes read."""
    names, needed, kept = NamesRead(), {entry.name for entry in graph.output}, []
    for node in reversed(graph.node):  # ONNX orders the nodes
        if needed.intersection(node.output):
            kept.append(node)
            needed |= names.of_node(node)
    replace_entries(graph.node, list(reversed(kept)))
    return needed


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
