"""layer_map: which layers of an IR each node of its ONNX model became, and from which nodes each layer was made.

    found = layer_map("model.onnx", "model.xml")
    print(found)
    found.layers[item], found.nodes[layer]          # both ways, as items of found.model and found.ir

The origins of the layers give it (mo_loop/ir_origins.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Any

from mo_loop.errors import UsageError
from mo_loop.frontend.onnx_graphs import label
from mo_loop.ir_origins import assign_origins
from mo_loop.look.differences.comparing import require_scope
from mo_loop.look.records.opening import opened
from mo_loop.look.records.structure import IR, ONNX, Item, ScopeRecord, Structure
from mo_loop.origin import Origin
from mo_loop.printable import PLAIN, ShownResult, Style, counted, first_few, printable
from mo_loop.support.process_memory import paused_collector

if TYPE_CHECKING:
    import onnx

    from mo_loop.converted_model import Model

SCHEMA, VERSION = "mo-loop layers", 1

SHOWN = 4
"""The number of layers of a node that are listed without `complete`."""


@dataclass(frozen=True, repr=False)
class LayerMap(ShownResult):
    """The layers of each node and the nodes of each layer; constants are among both.

    The layer that is most like a node comes first. `scope` is the body to which text and JSON are limited.
    """

    model: Structure
    ir: Structure
    layers: dict[Item, list[Item]]
    nodes: dict[Item, list[Item]]
    scope: str | None = None

    def lines(self, style: Style = PLAIN, *, complete: bool = False) -> Iterator[str]:
        """The lines of the text: nodes with their layers, by scope, then the layers without a node."""
        nodes, layers = self._computing(self.model), self._computing(self.ir)
        lost = [item for item in nodes if not self.layers.get(item)]
        made = [item for item in layers if not self.nodes.get(item)]
        title = style.paint(f"{self.model.source} -> {self.ir.source}", bold=True)
        yield f"{title}: {counted(len(nodes), 'node')}, {counted(len(layers), 'layer')}"
        yield f"{counted(len(lost), 'node')} without a layer, {counted(len(made), 'layer')} without a node"
        for scope, group in groupby(nodes, key=lambda item: item.scope.text):
            yield style.paint(scope or "(main)", bold=True)
            yield from (f"  {self._line(item, style, complete)}" for item in group)
        if made:
            yield style.paint("layers without a node", bold=True)
            yield from (style.paint(f"  + {_named(item)}", fg="green") for item in made)

    def _line(self, node: Item, style: Style, complete: bool) -> str:
        found = self.layers.get(node, [])
        name = f"{node.label} ({node.operator})"
        if not found:
            return style.paint(f"- {name}: no layer", fg="red")
        shown = [item for item in found if not item.is_constant] or found[:1]
        return printable(f"{name} -> {first_few(list(map(_named, shown)), len(shown) if complete else SHOWN)}")

    def to_dict(self) -> dict[str, Any]:
        """Both ways as plain data. `id` is that of the layer in its net; without it, the IR is not in a file."""
        nodes, layers = self._computing(self.model), self._computing(self.ir)
        return {
            "schema": SCHEMA, "version": VERSION, "model": self.model.source, "ir": self.ir.source,
            "nodes": [{**_node(each), "layers": list(map(self._layer, self.layers.get(each, ())))} for each in nodes],
            "layers": [{**self._layer(each), "nodes": list(map(_node, self.nodes.get(each, ())))} for each in layers],
        }

    def _layer(self, item: Item) -> dict[str, Any]:
        id_ = self.ir.layers.get(item.made_of, "")
        found = {"scope": item.scope.text, "layer": item.label, "type": item.operator}
        return {**found, "id": int(id_) if id_.isdecimal() else None}

    def _computing(self, side: Structure) -> list[Item]:
        """The items that compute something, in the scope."""
        inside = f"{self.scope}/" if self.scope is not None else ""
        scopes = (scope for scope in side.scopes() if f"{scope.text}/".startswith(inside))
        return [item for scope in scopes for item in scope.nodes]

    def _brief(self) -> str:
        return " ".join(self.text().split("\n", 1)[0].split())


def layer_map(
    model: str | os.PathLike[str] | onnx.ModelProto, ir: str | os.PathLike[str] | Model, *, scope: str | None = None,
    allow_external: Sequence[str] = (),
) -> LayerMap:
    """Find the layers of the nodes of an ONNX model. The model is converted again, to compare its layers with the IR.

    Args:
        model: A path, or an `onnx.ModelProto`.
        ir: The .xml of its IR, of any converter, or a `Model`. Layers of other converters are found by tensor names.
        scope: The path of a body of either; only this body and those in it count.
        allow_external: More folders whose files may hold external data.

    Returns:
        The layers of each node, and the nodes of each layer.

    Raises:
        InputError: a file cannot be read.
        UsageError: the models are not an ONNX model and an IR.
    """
    with paused_collector():
        found = layer_map_of(opened(model, allowed=allow_external), opened(ir), model, allow_external)
        if scope is not None:
            require_scope(scope, found.model, found.ir)
        return LayerMap(found.model, found.ir, found.layers, found.nodes, scope)


def layer_map_of(model: Structure, ir: Structure, source: Any, allowed: Sequence[str] = ()) -> LayerMap:
    """The same for models that are open; `source` is the ONNX model as it was given."""
    if (model.kind, ir.kind) != (ONNX, IR):
        raise UsageError(
            f"{model.source} and {ir.source} are not an ONNX model and an IR", hint="give the .onnx and its .xml"
        )
    graph = ir.made_of
    if not any(node.origins for each in graph.scopes() for node in each):
        assign_origins(graph, os.fspath(source) if isinstance(source, os.PathLike) else source, allowed=allowed)
    origins = {item: list(_origins(item)) for scope in ir.scopes() for item in scope.items}
    find = _finder(model, {each.scope for found in origins.values() for each in found})
    layers: dict[Item, list[Item]] = {}
    nodes: dict[Item, list[Item]] = {}
    for item, found in origins.items():
        nodes[item] = list(dict.fromkeys(node for origin in found for node in find(origin)))
        for node in nodes[item]:
            layers.setdefault(node, []).append(item)
    for node, made in layers.items():
        made.sort(key=lambda each: (each.is_constant, bool(each.bodies) < bool(node.bodies), each.name != node.name))
    return LayerMap(model, ir, layers, nodes)


def _origins(layer: Item) -> Iterator[Origin]:
    """The nodes and tensors from which a layer was made. A Parameter of a body is a port of its owner."""
    if layer.operator == "Parameter" and layer.scope.owner is not None:
        return
    yield from layer.made_of.origins
    for value in layer.made_of.outputs:
        yield from value.origins


def _finder(model: Structure, present: set[tuple[str, ...]]) -> Callable[[Origin], list[Item]]:
    """Finds the items of an origin. The nodes of a function are found at those of its calls that are `present`."""
    nodes: dict[tuple[tuple[str, ...], str], list[Item]] = {}
    tensors: dict[tuple[tuple[str, ...], str], list[Item]] = {}
    prefixes = {path[:length] for path in present for length in range(len(path) + 1)}
    stack: list[tuple[tuple[str, ...], ScopeRecord]] = [((), model.main)]
    while stack:
        path, scope = stack.pop()
        for item in scope.items:
            for name in (name for output in item.outputs for name in output.names):
                tensors.setdefault((path, name), []).append(item)
            if item.made_of is None:
                continue
            name = label(item.made_of)
            nodes.setdefault((path, name), []).append(item)
            stack += [((*path, *body.path[len(scope.path) :]), body) for body in item.bodies.values()]
            if item.called in model.functions and (*path, name) in prefixes:
                stack.append(((*path, name), model.functions[item.called]))

    def find(origin: Origin) -> list[Item]:
        named = nodes.get((origin.scope, origin.node), []) if origin.node else []
        making = tensors.get((origin.scope, origin.output), [])
        return named if len(named) == 1 else [item for item in named if item in making] or named or making

    return find


def _node(item: Item) -> dict[str, str]:
    return {"scope": item.scope.text, "node": item.label, "operator": item.operator}


def _named(layer: Item) -> str:
    return f"{'/'.join((*layer.scope.path, layer.label))} ({'constant' if layer.is_constant else layer.operator})"
