"""The structure of a Graph: an IR that was read, a text dump that was parsed, or a converted model in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.dimension import Dim
from mo_loop.graph.types import TensorType
from mo_loop.ir.xml import layer_names, layer_order
from mo_loop.look.records.data import Data
from mo_loop.look.records.node_records import shown_attributes
from mo_loop.look.records.port_entries import connect, ports_of, tags
from mo_loop.look.records.structure import Item, Output, OutputRecord, Ref, ScopeRecord, Structure, in_order
from mo_loop.ops import base
from mo_loop.ops.front import Opaque
from mo_loop.text.literals import show_data
from mo_loop.text.spelling import show_type

LIMIT = 16
"""The number of elements of a constant that a JSON dump holds."""


def structure_of(graph: Graph, kind: str, source: str, *, dumped: bool = False) -> Structure:
    """The structure of a graph. With `dumped` names, types and data are those that a dump shows."""
    reader = _Reader(dumped)
    main = reader.scope(graph, ScopeRecord())
    metadata = dict(flat(graph.rt_info))
    if graph.name:
        metadata["name"] = graph.name
    return Structure(kind, source, main, metadata=metadata, made_of=graph)


class _Reader:
    """Makes scopes. `dumped` as of `structure_of`."""

    def __init__(self, dumped: bool) -> None:
        self.dumped = dumped

    def scope(self, graph: Graph, scope: ScopeRecord) -> ScopeRecord:
        """Fill `scope` with the items of a graph and those of its bodies."""
        order = layer_order(graph)
        names = [node.name for node in order] if self.dumped else layer_names(order)
        items: dict[Node, Item] = {}
        for node, name in zip(order, names, strict=True):
            if not isinstance(node, base.Result):
                items[node] = self._item(node, name, scope)
        for node, item in items.items():
            item.inputs = [_ref(items, value) for value in node.inputs]
        for node, item in items.items():
            if node.bodies:
                self._bodies(node, item)
        scope.items = in_order(list(items.values()))
        scope.parameters = [items[node] for node in graph.parameters]
        for place, node in enumerate(graph.results):
            known = (*node.output_names, *node.value.names, node.name)[0] or f"output {place}"
            scope.results.append(OutputRecord(known, _ref(items, node.value)))
        if scope.owner is not None:
            scope.info = dict(flat(graph.rt_info))
        return scope

    def _item(self, node: Any, name: str, scope: ScopeRecord) -> Item:
        tensor = node.tensor if isinstance(node, base.Constant) else getattr(node, "blob", None)
        info = dict(flat(getattr(node, "_rt_info", None) or {}))
        for (side, port), fields in getattr(node, "port_info", {}).items():
            info |= {f"{side} {port}/{key}": value for key, value in flat(fields)}
        return Item(
            operator=type(node).__name__ if self.dumped else node.type,
            name=name,
            scope=scope,
            version=node.version if isinstance(node, Opaque) and not self.dumped else f"opset{node.opset}",
            attributes=self._attributes(node),
            outputs=[self._output(value) for value in node.outputs],
            data=None if tensor is None else self._data(tensor),
            origins=() if self.dumped else tuple(each.path for each in node.origins),
            info=info,
            made_of=node,
        )

    def _attributes(self, node: Any) -> dict[str, str]:
        if isinstance(node, Opaque) and not self.dumped:
            return {key: str(value) for key, value in node.data.items() if key not in ("offset", "size")}
        return shown_attributes(node)

    def _data(self, tensor: Any) -> Data:
        if not self.dumped:
            return Data.of(tensor)
        return Data.written(f"{tensor.dtype}[{','.join(map(str, tensor.shape))}]", show_data(tensor, LIMIT))

    def _output(self, value: Value) -> Output:
        dtype, shape = split(show_type(value.type)) if self.dumped else shown_type(value.type)
        return Output(tuple(value.names), dtype, shape)

    def _bodies(self, node: Any, item: Item) -> None:
        inner: dict[Node, Item] = {}
        ends: dict[Node, Ref | None] = {}
        for tag, graph in zip(tags(node), node.bodies, strict=True):
            body = self.scope(graph, ScopeRecord((*item.scope.path, item.label, tag), item, tag))
            item.bodies[tag] = body
            inner |= zip(graph.parameters, body.parameters, strict=True)
            ends |= {result: found.ref for result, found in zip(graph.results, body.results, strict=True)}
        connect(item, ports_of(node), inner, ends)


def _ref(items: Mapping[Node, Item], value: Value | None) -> Ref | None:
    return None if value is None else Ref(items[value.node], value.index)


def shown_type(type_: Any) -> tuple[str, str]:
    """Element type and dimensions as in an IR: a dimension is a number, a range, or `?`."""
    if not isinstance(type_, TensorType):
        return split(show_type(type_))
    if type_.shape is None:
        return str(type_.dtype), "[...]"
    return str(type_.dtype), f"[{','.join(map(_dim, type_.shape))}]"


def _dim(dim: Any) -> str:
    if not isinstance(dim, Dim):
        return str(dim)
    low = max(dim.lo, 0)
    return "?" if low == 0 and dim.hi is None else f"{low}..{'' if dim.hi is None else dim.hi}"


def split(shown: str) -> tuple[str, str]:
    """`f32[2,N]` -> (f32, [2,N])."""
    head, bracket, rest = shown.partition("[")
    return (head, bracket + rest) if head.isalnum() or head == "?" else (shown, "")


def flat(info: Mapping[str, Any], mark: str = "/", prefix: str = "") -> Iterator[tuple[str, str]]:
    """Nested dictionaries as pairs of a path and a text; `mark` separates the keys of a path."""
    for key, value in info.items():
        if isinstance(value, Mapping):
            yield from flat(value, mark, f"{prefix}{key}{mark}")
        else:
            yield f"{prefix}{key}", str(value)
