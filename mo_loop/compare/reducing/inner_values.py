"""The values and types of the inner tensors of a model, which become inputs where nodes are removed.

    values = recorded(candidate)             # runs in a worker: by name for each set of inputs
    types = inferred(candidate.proto)        # TypeProtos of the main graph and the bodies, by graph and name
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from mo_loop.compare.reducing.candidate import Candidate, Feeds
from mo_loop.frontend.onnx_graphs import body_protos

Path = tuple[tuple[int, int], ...]
"""The place of a body: for each level the number of the node and that of the body in it."""


def recorded(candidate: Candidate) -> list[Feeds]:
    """All tensors of the main graph for each set of inputs, as far as ONNX Runtime gives them."""
    import onnx

    from mo_loop.compare.oracle.checked_oracle import Oracle

    proto = candidate.copy()
    names = [name for node in proto.graph.node for name in node.output if name]
    del proto.graph.output[:]
    proto.graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in dict.fromkeys(names))
    constants = {each.name: onnx.numpy_helper.to_array(each) for each in proto.graph.initializer}
    oracle = Oracle(proto.SerializeToString())
    found: list[Feeds] = []
    for feeds in candidate.sets:
        inner = {name: value for name, value in oracle.run(feeds) if isinstance(value, np.ndarray)}
        found.append({**constants, **feeds, **inner})
    return found


def inferred(proto: Any) -> dict[tuple[Path, str], Any]:
    """The TypeProto of each tensor that ONNX types, by the place of its graph and its name."""
    import onnx

    try:
        with warnings.catch_warnings(action="ignore"):
            typed = onnx.shape_inference.infer_shapes(proto, data_prop=True)
    except Exception:  # an operator of another domain, or a model that contradicts itself
        typed = proto
    found: dict[tuple[Path, str], Any] = {}
    pending: list[tuple[Path, Any]] = [((), typed.graph)]
    while pending:
        path, graph = pending.pop()
        for each in (*graph.value_info, *graph.output, *graph.input):
            if each.type.WhichOneof("value"):
                found[path, each.name] = each.type
        for each in graph.initializer:
            found[path, each.name] = onnx.helper.make_tensor_type_proto(each.data_type, each.dims)
        for number, node in enumerate(graph.node):
            pending += [((*path, (number, place)), body) for place, body in enumerate(body_protos(node))]
    return found


def graph_at(proto: Any, path: Path) -> Any:
    """The graph at a place."""
    graph = proto.graph
    for number, place in path:
        graph = list(body_protos(graph.node[number]))[place]
    return graph


def places(proto: Any) -> list[Path]:
    """The places of all bodies, outer ones first."""
    found: list[Path] = []
    pending: list[Path] = [()]
    while pending:
        path = pending.pop(0)
        for number, node in enumerate(graph_at(proto, path).node):
            inner = [(*path, (number, place)) for place, _ in enumerate(body_protos(node))]
            found += inner
            pending += inner
    return found


def likely_shape(type_: Any) -> tuple[int, ...] | None:
    """The shape of a TypeProto, with 1 for dimensions that are not known; None if the rank is not known."""
    if type_ is None or type_.WhichOneof("value") != "tensor_type" or not type_.tensor_type.HasField("shape"):
        return None
    return tuple(each.dim_value if each.HasField("dim_value") else 1 for each in type_.tensor_type.shape.dim)
