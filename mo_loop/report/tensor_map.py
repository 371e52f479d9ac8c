"""mapping: the place in the IR of each tensor of an ONNX model, or why it has none.

    save_model(convert_model("model.onnx", observers=[record]), "model.xml", observers=[record])
    json.dumps(mapping(record))

    {"schema": "mo-loop mapping", "version": 1,
     "model": "model.onnx",
     "tensors": [{"scope": "", "tensor": "x", "kind": "input",
                  "became": "kept", "where": "", "layer": "x", "id": 0, "port": 0},
                 {"scope": "loop/step", "tensor": "t", "kind": "Add",
                  "became": "removed", "where": null, "layer": null, "id": null, "port": null}, ...]}

`scope` is the path of the ONNX graph: "" for the main graph, with the names of the node and the body for each level
below. `kind` is "input", "initializer" or the operator that makes the tensor. `became` is

    kept      an output port of the layer holds it
    folded    the conversion computed it; if a layer is named, its constant holds it
    removed   no port holds it: it was not needed, was fused with its neighbours, or equals another one

`where` is the path of the IR body of the layer (inlining moves tensors to an outer body), `layer` and `id` are the name
and the id of the layer in the file, `port` is its output port. A later version may add fields but does not remove any.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import OnnxTensor, all_graphs, called, function_graph, main_graph, tensors_of
from mo_loop.graph import Graph
from mo_loop.ir.xml import layer_names, layer_order, output_port
from mo_loop.ops.base import Constant
from mo_loop.report.record import Record

SCHEMA, VERSION = "mo-loop mapping", 1


class Place(NamedTuple):
    """An output port of a layer."""

    where: str
    layer: str
    id: int
    port: int
    is_constant: bool


Tensor = tuple[tuple[str, ...], str]
"""The scope path of an ONNX graph, and the name of a tensor in it."""


def mapping(record: Record) -> dict[str, Any]:
    """The tensors of the recorded model, of all scopes, in the order of the file. Call it after `save_model`."""
    assert record.model is not None and record.graph is not None
    found = _places(record.graph)
    calls = _calls(record.model, {scope for scope, _ in found})
    rows = []
    for graph in all_graphs(record.model):
        scopes = calls.get(graph.scope, []) if graph.is_in_function else [graph.scope]
        for tensor in tensors_of(graph):
            here = [(scope, tensor.name) for scope in scopes]
            place = next((found[each] for each in here if each in found), None)
            known = not record.known.isdisjoint(here)
            row = {"scope": graph.path, "tensor": tensor.name, "kind": tensor.kind}
            rows.append({**row, **_fate(tensor, place, known)})
    return {"schema": SCHEMA, "version": VERSION, "model": record.model.path, "tensors": rows}


def _fate(tensor: OnnxTensor, place: Place | None, known: bool) -> dict[str, Any]:
    if place is None:
        became = "folded" if known else "removed"
        return {"became": became, "where": None, "layer": None, "id": None, "port": None}
    is_folded = place.is_constant and tensor.kind not in ("initializer", "Constant", "input")
    became = "folded" if is_folded else "kept"
    return {"became": became, "where": place.where, "layer": place.layer, "id": place.id, "port": place.port}


def _places(graph: Graph) -> dict[Tensor, Place]:
    """The port of each tensor. For a tensor that bodies capture, it is the port in the outermost graph."""
    found: dict[Tensor, Place] = {}
    for scope in graph.scopes():
        order = layer_order(scope)
        for number, (node, name) in enumerate(zip(order, layer_names(order), strict=True)):
            for value in node.outputs:
                place = Place(scope.path, name, number, output_port(value), isinstance(node, Constant))
                for each in value.origins:
                    found.setdefault((each.scope, each.output), place)
    return found


def _calls(model: OnnxModel, present: set[tuple[str, ...]]) -> dict[tuple[str, ...], list[tuple[str, ...]]]:
    """The scope path of each function, and of each body in one, with its paths at the calls.

    Only those that are `present` in the IR are followed.
    """
    found: dict[tuple[str, ...], list[tuple[str, ...]]] = {}
    prefixes = {path[:length] for path in present for length in range(len(path) + 1)}
    stack = [(main_graph(model), main_graph(model))]
    while stack:
        listed, graph = stack.pop()
        if listed.is_in_function:
            found.setdefault(listed.scope, []).append(graph.scope)
        for node in graph.nodes:
            stack += zip(listed.bodies(node), graph.bodies(node), strict=True)
            function = called(model, node)
            scope = graph.origin_of(node).inner_scope
            if function is not None and scope in prefixes:
                by_name = function_graph(model, function, (function.name,))
                stack.append((by_name, function_graph(model, function, scope)))
    return found
