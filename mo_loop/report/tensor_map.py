"""Where the tensors of an ONNX model are in the IR, and what became of those that are not.

    save_model(convert_model("model.onnx", observers=[record]), "model.xml", observers=[record])
    json.dumps(mapping(record))

    {"version": 1,
     "model": "model.onnx",
     "tensors": [{"scope": "", "tensor": "x", "kind": "input",
                  "became": "kept", "where": "", "layer": "x", "id": 0, "port": 0},
                 {"scope": "loop/step", "tensor": "t", "kind": "Add",
                  "became": "removed", "where": null, "layer": null, "id": null, "port": null}, ...]}

`scope` is the path of the ONNX graph ("" is the main one; names of the node and of its body for each below), `kind`
what the tensor is there: "input", "initializer" or the operator that makes it. `became` is

    kept      an output port of the layer holds it
    folded    it was computed while converting; if a layer is named, its constant holds it
    removed   no port holds it: it was not needed, or fused with what is around it, or equal to another one

`where` is the path of the IR's body that the layer is in (bodies that are inlined move their tensors outward), `layer`
and `id` are those of the file, `port` the output port. In a later version fields may come, none will go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from mo_loop.frontend.onnx_graphs import OnnxGraph, all_graphs
from mo_loop.frontend.onnx_tensors import OnnxTensor, paths_in, tensors_of
from mo_loop.graph import Graph
from mo_loop.ir.xml import layer_names, layer_order, output_port
from mo_loop.ops.base import Constant
from mo_loop.report.record import Record

VERSION = 1


class Place(NamedTuple):
    """An output port of a layer."""

    where: str
    layer: str
    id: int
    port: int
    is_constant: bool


Found = dict[tuple[str, str], Place]
"""(path of a graph, tensor name) -> its place."""


def mapping(record: Record) -> dict[str, Any]:
    """The tensors of the recorded model, those of all scopes, in the order of the file. Call it after `save_model`."""
    assert record.model is not None and record.graph is not None
    onnx_paths = {path: onnx for onnx, path in paths_in(record.graph, record.model).items()}
    found = dict(_places(record.graph, onnx_paths))
    listed = {scope.path: (scope, list(tensors_of(scope))) for scope in all_graphs(record.model)}
    names = {path: {tensor.name for tensor in tensors} for path, (_, tensors) in listed.items()}
    alone = _told_by_name_alone(found, names)
    rows = []
    for path, (scope, tensors) in listed.items():
        for tensor in tensors:
            name = record.renamed.get(f"{path}/{tensor.name}" if path else tensor.name, tensor.name)
            place = found.get((path, name)) or _moved(scope, name, found, names) or alone.get(name)
            known = (path, tensor.name) in record.known
            rows.append({"scope": path, "tensor": tensor.name, "kind": tensor.kind, **_fate(tensor, place, known)})
    return {"version": VERSION, "model": record.model.path, "tensors": rows}


def _fate(tensor: OnnxTensor, place: Place | None, known: bool) -> dict[str, Any]:
    if place is None:
        became = "folded" if known else "removed"
        return {"became": became, "where": None, "layer": None, "id": None, "port": None}
    is_folded = place.is_constant and tensor.kind not in ("initializer", "Constant", "input")
    became = "folded" if is_folded else "kept"
    return {"became": became, "where": place.where, "layer": place.layer, "id": place.id, "port": place.port}


def _places(graph: Graph, onnx_paths: dict[str, str]) -> Iterator[tuple[tuple[str, str], Place]]:
    """(path of the graph as the model has it, tensor name) -> its place."""
    for scope in graph.scopes():
        path = onnx_paths.get(scope.path, scope.path)
        order = layer_order(scope)
        for number, (node, name) in enumerate(zip(order, layer_names(order), strict=True)):
            for value in node.outputs:
                place = Place(scope.path, name, number, output_port(value), isinstance(node, Constant))
                yield from (((path, each), place) for each in value.names)


def _moved(scope: OnnxGraph, name: str, found: Found, names: dict[str, set[str]]) -> Place | None:
    """The tensor in a graph around its own, where that was inlined; not what bears its name there anyway."""
    outer = scope.outer
    while outer is not None:
        if name in names[outer.path]:
            return None
        if (outer.path, name) in found:
            return found[outer.path, name]
        outer = outer.outer
    return None


def _told_by_name_alone(found: Found, names: dict[str, set[str]]) -> dict[str, Place]:
    """Names that one graph of the model and one of the IR has: a body may have got another path."""
    in_model = Counter(name for held in names.values() for name in held)
    in_ir = Counter(name for _, name in found)
    return {name: place for (_, name), place in found.items() if in_model[name] == in_ir[name] == 1}
