"""The IR writer: model.xml as plain strings, streamed, beside model.bin.

    with open("model.xml", "w") as xml, open("model.bin", "wb") as data:
        XmlWriter(xml, Weights(data)).write(graph)

The id of a layer is its position in the topological order of its graph (the ids of each body start at 0). Ports are
numbered from 0, inputs before outputs. The same graph always gives the same bytes.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator, Mapping
from typing import Any, TextIO

from mo_loop.errors import InternalError
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.shape import Dim, Shape
from mo_loop.graph.types import ElementType
from mo_loop.ir.bin import Weights
from mo_loop.ops.base import Constant, Parameter, Result
from mo_loop.ops.control import Concatenated, Control, If, Loop, Sliced
from mo_loop.ops.opaque import Opaque

_ESCAPES = str.maketrans({
    "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;",
})  # fmt: skip
_FORBIDDEN = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\ufffe\\uffff]")


def escape(text: str) -> str:
    """`text` as an attribute value; characters that XML forbids become U+FFFD."""
    if text.isalnum():
        return text
    return (text if text.isprintable() else _FORBIDDEN.sub("\ufffd", text)).translate(_ESCAPES)


def spelled(value: Any) -> str:
    """An attribute's value as the IR spells it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return escape(value)
    if isinstance(value, float):
        return _decimal(value)
    if isinstance(value, tuple):
        return ",".join(spelled(each) for each in value)
    if isinstance(value, Dim):
        return _range(value)
    if isinstance(value, ElementType):
        return value.name
    return str(value)


def _decimal(value: float) -> str:
    """Nine digits represent any f32; other numbers, and integers (bounds of integer types), need more."""
    short = f"{value:.9g}"
    if float(short) == value or not math.isfinite(value):
        return short
    if value.is_integer() and abs(value) < 1 << 63:
        return f"{value:.0f}"
    return short if nearest_single(value) == value else repr(value)


def nearest_single(value: float) -> float:
    """The f32 next to a number; infinite outside the range of f32."""
    try:
        single: float = struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)
    return single


def _range(dim: Dim) -> str:
    """A dimension of a Parameter: `?`, `a..b`, `a..` or `..b`."""
    lo, hi = max(dim.lo, 0), dim.hi
    if lo == 0 and hi is None:
        return "?"
    return f"{lo or ''}..{'' if hi is None else hi}"


class XmlWriter:
    """Writes one graph, bodies included, as IR version 11."""

    def __init__(self, file: TextIO, weights: Weights) -> None:
        self._file = file
        self._weights = weights
        self._ports: dict[tuple[int, str, Any, Shape], tuple[str, str]] = {}  # most ports have the type of another one

    def write(self, graph: Graph) -> None:
        """Write the whole document."""
        self._file.write(f'<?xml version="1.0"?>\n<net name="{escape(graph.name)}" version="11">\n')
        self._graph(graph, "\t")
        self._file.write("\t<rt_info>\n")
        for line in _info_lines(graph.rt_info, "\t\t"):
            self._file.write(line)
        self._file.write("\t</rt_info>\n</net>\n")

    def _graph(self, graph: Graph, pad: str) -> None:
        order = layer_order(graph)
        ids = {node: number for number, node in enumerate(order)}
        names = layer_names(order)
        write = self._file.write
        write(f"{pad}<layers>\n")
        for number, node in enumerate(order):
            self._layer(node, number, names[number], pad + "\t")
        write(f"{pad}</layers>\n{pad}<edges>\n")
        lines: list[str] = []
        for number, node in enumerate(order):
            port = 0
            for value in node.inputs:
                if value is None:
                    continue
                source = value.node
                lines.append(
                    f'{pad}\t<edge from-layer="{ids[source]}" from-port="{output_port(value)}" '
                    f'to-layer="{number}" to-port="{port}" />\n'
                )
                port += 1
        write("".join(lines))
        write(f"{pad}</edges>\n")

    def _layer(self, node: Any, number: int, name: str, pad: str) -> None:
        version = escape(node.version) if isinstance(node, Opaque) else f"opset{node.opset}"
        parts = [f'{pad}<layer id="{number}" name="{escape(name)}" type="{escape(node.type)}" version="{version}"']
        if isinstance(node, Result) and node.output_names:
            parts.append(f' output_names="{_joined_names(node.output_names)}"')
        parts.append(">\n")
        attributes = node.xml_attributes()
        tensor = node.tensor if isinstance(node, Constant) else getattr(node, "blob", None)
        if tensor is not None:
            offset, size = self._weights.add(tensor)
            attributes |= {"offset": offset, "size": size}
        data = "".join(f' {key}="{spelled(value)}"' for key, value in attributes.items() if value is not None)
        if data:
            parts.append(f"{pad}\t<data{data} />\n")
        info = getattr(node, "_rt_info", None)
        if info:
            parts.append(_attribute_info(info, pad + "\t"))
        if isinstance(node, Control):
            parts.extend(port_map_lines(node, pad + "\t"))
        inputs = [value for value in node.inputs if value is not None]
        port_info = node.port_info
        if inputs:
            parts.append(f"{pad}\t<input>\n")
            for port, value in enumerate(inputs):
                parts.append(self._port(port, value, pad, "", port_info and port_info.get(("input", port))))
            parts.append(f"{pad}\t</input>\n")
        if node.outputs:
            parts.append(f"{pad}\t<output>\n")
            first = len(inputs)
            for index, value in enumerate(node.outputs):
                names = f' names="{_joined_names(value.names)}"' if value.names else ""
                info = port_info and port_info.get(("output", index))
                parts.append(self._port(first + index, value, pad, names, info))
            parts.append(f"{pad}\t</output>\n")
        self._file.write("".join(parts))
        if isinstance(node, Control):
            tags = ("then_body", "else_body") if isinstance(node, If) else ("body",)
            for tag, body in zip(tags, node.bodies, strict=True):
                self._file.write(f"{pad}\t<{tag}>\n")
                self._graph(body, pad + "\t\t")
                lines = "".join(_info_lines(body.rt_info, pad + "\t\t\t"))
                info = f"{pad}\t\t<rt_info>\n{lines}{pad}\t\t</rt_info>\n" if lines else f"{pad}\t\t<rt_info />\n"
                self._file.write(f"{info}{pad}\t</{tag}>\n")
        self._file.write(f"{pad}</layer>\n")

    def _port(self, number: int, value: Value, pad: str, names: str, info: Mapping[str, Any] | None) -> str:
        key = (number, pad, value.dtype, value.shape)
        found = self._ports.get(key)
        if found is None:
            found = self._ports[key] = _port(number, value, pad)
        head, dims = found
        if info:
            dims += _attribute_info(info, pad + "\t\t\t")
        return f"{head}{names}>\n{dims}{pad}\t\t</port>\n" if dims else f"{head}{names} />\n"


def layer_order(graph: Graph) -> list[Node]:
    """The layers of a graph in the order of their ids: Parameters, other nodes in topological order, Results."""
    ends = {*graph.parameters, *graph.results}
    middle = [node for node in graph.ordered() if node not in ends]
    return [*graph.parameters, *middle, *graph.results]


def layer_names(order: list[Node]) -> list[str]:
    """A unique name for each layer: its own name, with a number if another layer has it, else its type and id.

    Of layers with one name, the one that gives the model output of this name keeps it.
    """
    taken: set[str] = set()
    last: dict[str, int] = {}
    own = {node.name for node in order}
    before = {
        each.value.node for each in order
        if isinstance(each, Result) and each.value.node.name in each.output_names
    }  # fmt: skip
    of_outputs = {node.name for node in before}
    names = []
    for number, node in enumerate(order):
        name = node.name or f"{node.type}_{number}"  # type: ignore[attr-defined]  # every node here is an Op
        if name in taken or (not node.name and name in own) or (name in of_outputs and node not in before):
            base = name
            while name in taken or name in own:
                last[base] = last.get(base, 0) + 1
                name = f"{base}_{last[base]}"
        taken.add(name)
        names.append(name)
    return names


def output_port(value: Value) -> int:
    """The port id of a value in the file: outputs are numbered after the inputs that are present."""
    return sum(each is not None for each in value.node.inputs) + value.index


def _joined_names(names: tuple[str, ...]) -> str:
    return ",".join(escape(name.replace(",", "\\,")) for name in names)


def _attribute_info(info: Mapping[str, Any], pad: str) -> str:
    """The <rt_info> of a layer or port: name -> fields, or one value."""
    lines = [f"{pad}<rt_info>\n"]
    for key, value in info.items():
        pairs = value if isinstance(value, Mapping) else {"value": value}
        fields = "".join(f' {k}="{spelled(v)}"' for k, v in pairs.items())
        lines.append(f'{pad}\t<attribute name="{escape(key)}"{fields} />\n')
    return "".join((*lines, f"{pad}</rt_info>\n"))


def _port(number: int, value: Value, pad: str) -> tuple[str, str]:
    """A port up to its names, and its dimensions."""
    dtype, shape = value.dtype, value.shape
    if dtype is None or dtype.precision is None:
        raise InternalError(f"a port of type {dtype} reached the writer", where=value.node.origin)
    dims = "".join(f"{pad}\t\t\t<dim>{dim if isinstance(dim, int) else -1}</dim>\n" for dim in shape or ())
    return f'{pad}\t\t<port id="{number}" precision="{dtype.precision}"', dims


def _info_lines(info: Mapping[str, Any], pad: str) -> Iterator[str]:
    for key, value in info.items():
        tag, extra = (key, "") if _is_tag(key) else ("info", f' name="{escape(key)}"')
        if isinstance(value, Mapping):
            yield f"{pad}<{tag}{extra}>\n"
            yield from _info_lines(value, pad + "\t")
            yield f"{pad}</{tag}>\n"
        else:
            yield f'{pad}<{tag}{extra} value="{spelled(value)}" />\n'


def _is_tag(key: str) -> bool:
    return key.isascii() and key.replace("_", "").isalnum() and not key[0].isdigit()


# -- port maps


def port_map_lines(node: Control, pad: str) -> Iterator[str]:
    """The port_map and back_edges sections; If has a port map for each branch."""
    if isinstance(node, If):
        yield from _branch_map(node, "then_port_map", "then", node.then_body, pad)
        yield from _branch_map(node, "else_port_map", "else_", node.else_body, pad)
        return
    body = node.bodies[0]
    ids = {inner: number for number, inner in enumerate(layer_order(body))}
    yield f"{pad}<port_map>\n"
    first_output = len(node.inputs)
    for port, entry in enumerate(node.input_map, node.first_data_port):
        yield _map_line("input", port, ids[entry.parameter], entry if isinstance(entry, Sliced) else None, pad)
    for port, entry in enumerate(node.output_map, first_output):
        yield _map_line("output", port, ids[entry.result], entry if isinstance(entry, Concatenated) else None, pad)
    if isinstance(node, Loop):
        if node.iteration is not None:
            yield _special_line("input", ids[node.iteration], "current_iteration", pad)
        yield _special_line("output", ids[node.condition], "execution_condition", pad)
    yield f"{pad}</port_map>\n{pad}<back_edges>\n"
    for edge in node.back_edges:  # type: ignore[attr-defined]  # If has left above
        yield f'{pad}\t<edge from-layer="{ids[edge.result]}" to-layer="{ids[edge.parameter]}" />\n'
    yield f"{pad}</back_edges>\n"


def _map_line(side: str, port: int, layer: int, cut: Sliced | Concatenated | None, pad: str) -> str:
    if cut is None:
        return f'{pad}\t<{side} external_port_id="{port}" internal_layer_id="{layer}" />\n'
    return (
        f'{pad}\t<{side} external_port_id="{port}" internal_layer_id="{layer}" axis="{cut.axis}" '
        f'start="{cut.start}" end="{cut.end}" stride="{cut.stride}" part_size="{cut.part_size}" />\n'
    )


def _special_line(side: str, layer: int, purpose: str, pad: str) -> str:
    return f'{pad}\t<{side} external_port_id="-1" internal_layer_id="{layer}" purpose="{purpose}" />\n'


def _branch_map(node: If, tag: str, branch: str, body: Graph, pad: str) -> Iterator[str]:
    ids: dict[Parameter | Result | Any, int] = {inner: number for number, inner in enumerate(layer_order(body))}
    yield f"{pad}<{tag}>\n"
    for port, entry in enumerate(node.input_map, node.first_data_port):
        inner = getattr(entry, branch)
        if inner is not None:
            yield _map_line("input", port, ids[inner], None, pad)
    for port, entry in enumerate(node.output_map, len(node.inputs)):
        yield _map_line("output", port, ids[getattr(entry, branch)], None, pad)
    yield f"{pad}</{tag}>\n"
