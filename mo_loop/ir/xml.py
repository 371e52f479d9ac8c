"""The IR writer: model.xml as plain strings, streamed, and model.bin.

    with open("model.xml", "w") as xml, open("model.bin", "wb") as data:
        XmlWriter(xml, Weights(data)).write(graph)

The id of a layer is its position in the topological order of its graph (the ids of each body start at 0). Ports are
numbered from 0, inputs before outputs. The same graph always gives the same bytes.
"""

import io
import math
import re
import struct
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any, TextIO

from mo_loop.errors import InternalError
from mo_loop.graph import Dim, ElementType, Graph, Node, Value
from mo_loop.ir.bin import Weights
from mo_loop.ops.base import Constant, Op, Parameter, Result
from mo_loop.ops.control import Control, If, Loop
from mo_loop.ops.front import Opaque
from mo_loop.ops.port_map import Concatenated, Sliced

_ESCAPES = str.maketrans({
    "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;",
})
_FORBIDDEN = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\ufffe\\uffff]")
_SPECIAL = re.compile('[\\x00-\\x1f&<>"\\ufffe\\uffff]')

_PENDING = 1 << 12
"""Strings that are joined before they are written: one write for each takes longer, all at once take memory."""


def escape(text: str) -> str:
    """`text` as an attribute value; characters that XML forbids become U+FFFD."""
    return _FORBIDDEN.sub("\ufffd", text).translate(_ESCAPES) if _SPECIAL.search(text) else text


def spelled(value: Any) -> str:
    """An attribute's value as the IR spells it."""
    spell = _SPELLINGS.get(type(value)) or next(
        (spell for kind, spell in _SPELLINGS.items() if isinstance(value, kind)), str
    )
    return spell(value)


def _decimal(value: float) -> str:
    """Nine digits mean the f32 that they represent; other numbers, and bounds of integer types, need more."""
    short, single = f"{value:.9g}", nearest_single(value)
    if single == value or not math.isfinite(value):
        return short
    if float(short) == value:
        return short if f"{single:.9g}" != short else f"{value:#.17g}"  # with nine digits a reader takes it for an f32
    return f"{value:.0f}" if value.is_integer() and abs(value) < 1 << 63 else repr(value)


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
    return "?" if lo == 0 and hi is None else f"{lo or ''}..{'' if hi is None else hi}"


_ONLY_INT = {int}

_SPELLINGS: dict[type, Callable[[Any], str]] = {
    bool: lambda value: "true" if value else "false",
    str: escape,
    int: str,
    float: _decimal,
    tuple: lambda value: ",".join(map(str if set(map(type, value)) == _ONLY_INT else spelled, value)),
    Dim: _range,
    ElementType: lambda value: escape(value.name),  # that of a type unknown here is text of a file
}
"""The spelling of values of a type, and of the types that derive from it; others are spelled by `str`."""


class XmlWriter:
    """Writes one graph, bodies included, as IR version 11."""

    def __init__(self, file: TextIO, weights: Weights) -> None:
        self._file = file
        self._weights = weights
        self._parts: list[str] = []  # the text that is not yet in the file
        # The ids of the types of a node's ports -> their text: a model repeats its layers. The graph keeps the types.
        self._ports: dict[tuple[Any, ...], list[str]] = {}
        self._constants: dict[tuple[ElementType, tuple[int, ...]], str] = {}  # the text of their attributes

    def write(self, graph: Graph) -> None:
        """Write the whole document."""
        self._parts.append(f'<?xml version="1.0"?>\n<net name="{escape(graph.name)}" version="11">\n')
        self._graph(graph, "\t")
        self._parts += ("\t<rt_info>\n", *_info_lines(graph.rt_info, "\t\t"), "\t</rt_info>\n</net>\n")
        self._flush()

    def _flush(self) -> None:
        self._file.write("".join(self._parts))
        self._parts.clear()

    def _graph(self, graph: Graph, pad: str) -> None:
        order = layer_order(graph)
        parts, inner = self._parts, pad + "\t"
        parts.append(f"{pad}<layers>\n")
        for number, name in enumerate(layer_names(order)):
            self._layer(order[number], number, name, inner)
            if len(parts) > _PENDING:
                self._flush()
        parts.append(f"{pad}</layers>\n{pad}<edges>\n")
        self._edges(order, inner)
        parts.append(f"{pad}</edges>\n")

    def _edges(self, order: list[Node], pad: str) -> None:
        parts = self._parts
        ids = {node: number for number, node in enumerate(order)}
        for number, node in enumerate(order):
            for port, value in enumerate(node.operands):
                parts.append(
                    f'{pad}<edge from-layer="{ids[value.node]}" from-port="{output_port(value)}" '
                    f'to-layer="{number}" to-port="{port}" />\n'
                )
            if len(parts) > _PENDING:
                self._flush()

    def _layer(self, node: Any, number: int, name: str, pad: str) -> None:
        parts = self._parts
        kind = f'type="{node.type}" version="{node.opset_name}"'
        cls: Any = type(node)
        if cls is Constant:
            offset, size = self._weights.add(node.tensor)
            data = f'{self._data_of_constant(node)} offset="{offset}" size="{size}"'
        elif _has_no_data(cls):
            data = ""
        else:
            tensor = node.tensor if isinstance(node, Constant) else getattr(node, "blob", None)
            place = {} if tensor is None else dict(zip(("offset", "size"), self._weights.add(tensor), strict=True))
            data = _attributes(node.xml_attributes() | place)
            if isinstance(node, Opaque):
                kind = f'type="{escape(node.type)}" version="{escape(node.version)}"'
            elif isinstance(node, Result) and node.output_names:
                kind += f' output_names="{_joined_names(node.output_names)}"'
        head = f'{pad}<layer id="{number}" name="{escape(name)}" {kind}>\n'
        parts.append(f"{head}{pad}\t<data{data} />\n" if data else head)
        info = getattr(node, "_rt_info", None)
        if info:
            parts.append(_attribute_info(info, pad + "\t"))
        if isinstance(node, Control):
            parts.extend(port_map_lines(node, pad + "\t"))
        self._all_ports(node, pad)
        if isinstance(node, Control):
            self._bodies(node, pad + "\t")
        parts.append(f"{pad}</layer>\n")

    def _data_of_constant(self, node: Constant) -> str:
        key = (node.tensor.dtype, node.tensor.shape)
        if key not in self._constants:
            self._constants[key] = _attributes(node.xml_attributes())
        return self._constants[key]

    def _bodies(self, node: Control, pad: str) -> None:
        tags = ("then_body", "else_body") if isinstance(node, If) else ("body",)
        for tag, body in zip(tags, node.bodies, strict=True):
            self._parts.append(f"{pad}<{tag}>\n")
            self._graph(body, pad + "\t")
            lines = "".join(_info_lines(body.rt_info, pad + "\t\t"))
            info = f"{pad}\t<rt_info>\n{lines}{pad}\t</rt_info>\n" if lines else f"{pad}\t<rt_info />\n"
            self._parts.append(f"{info}{pad}</{tag}>\n")

    def _all_ports(self, node: Any, pad: str) -> None:
        parts, inputs, outputs = self._parts, node.operands, node.outputs
        key = (pad, len(inputs), *[id(value.type) for value in inputs], *[id(value.type) for value in outputs])
        texts = None if node.port_info else self._ports.get(key)
        if texts is None:
            texts = _port_texts(node, pad)
            if not node.port_info:
                self._ports[key] = texts
        parts.append(texts[0])
        for number, value in enumerate(outputs, 1):
            if value.names:
                parts.append(f' names="{_joined_names(value.names)}"')
            parts.append(texts[number])


@cache
def _has_no_data(cls: Any) -> bool:
    """Whether the layers of a class have no attributes and no weights, so that nothing is asked about each of them."""
    special = issubclass(cls, Constant | Opaque | Parameter | Result)
    return not special and not cls.attributes and cls.xml_attributes is Op.xml_attributes


def layer_order(graph: Graph) -> list[Node]:
    """The layers of a graph in the order of their ids: Parameters, other nodes in topological order, Results."""
    ends = {*graph.parameters, *graph.results}
    middle = [node for node in graph.ordered() if node not in ends]
    return [*graph.parameters, *middle, *graph.results]


def layer_names(order: list[Node]) -> list[str]:
    """A unique name for each layer: its own name, with a number if another layer has it, else its type and id.

    If several layers have one name, the one that makes the model output of this name keeps it.
    """
    own = {node.name for node in order}
    if len(own) == len(order) and "" not in own:
        return [node.name for node in order]
    taken: set[str] = set()
    last: dict[str, int] = {}
    before = {
        each.value.node for each in order
        if isinstance(each, Result) and each.value.node.name in each.output_names
    }
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
    return len(value.node.operands) + value.index


def _joined_names(names: tuple[str, ...]) -> str:
    return ",".join([escape(name.replace(",", "\\,")) for name in names])


def _attribute_info(info: Mapping[str, Any], pad: str) -> str:
    """The <rt_info> of a layer or port: name -> fields, or one value."""
    lines = [f"{pad}<rt_info>\n"]
    for key, value in info.items():
        pairs = value if isinstance(value, Mapping) else {"value": value}
        fields = "".join(f' {k}="{spelled(v)}"' for k, v in pairs.items())
        lines.append(f'{pad}\t<attribute name="{escape(key)}"{fields} />\n')
    return "".join((*lines, f"{pad}</rt_info>\n"))


def _attributes(attributes: Mapping[str, Any]) -> str:
    """The text of attributes."""
    return "".join([f' {key}="{spelled(value)}"' for key, value in attributes.items() if value is not None])


def _port_texts(node: Any, pad: str) -> list[str]:
    """The text of all ports, divided at the names of each output."""
    inputs, infos = node.operands, node.port_info
    texts = [f"{pad}\t<input>\n" if inputs else ""]
    for number, value in enumerate(inputs):
        texts[-1] += "".join(_port(number, value, pad, infos.get(("input", number))))
    texts[-1] += (f"{pad}\t</input>\n" if inputs else "") + (f"{pad}\t<output>\n" if node.outputs else "")
    for number, value in enumerate(node.outputs, len(inputs)):
        head, tail = _port(number, value, pad, infos.get(("output", value.index)))
        texts[-1] += head
        texts.append(tail)
    texts[-1] += f"{pad}\t</output>\n" if node.outputs else ""
    return texts


def _port(number: int, value: Value, pad: str, info: Mapping[str, Any] | None) -> tuple[str, str]:
    """The text of a port up to its names, and after them."""
    dtype = value.dtype
    if dtype is None or dtype.precision is None:
        raise InternalError(f"a port of type {dtype} reached the writer", where=value.node.origin)
    dims = [f"{pad}\t\t\t<dim>{dim if isinstance(dim, int) else -1}</dim>\n" for dim in value.shape or ()]
    inner = "".join((*dims, _attribute_info(info, pad + "\t\t\t") if info else ""))
    head = f'{pad}\t\t<port id="{number}" precision="{escape(dtype.precision)}"'
    return head, f">\n{inner}{pad}\t\t</port>\n" if inner else " />\n"


def _info_lines(info: Mapping[str, Any], pad: str) -> Iterator[str]:
    for key, value in info.items():
        is_tag = key.isascii() and key.replace("_", "").isalnum() and not key[0].isdigit()
        tag, extra = (key, "") if is_tag else ("info", f' name="{escape(key)}"')
        if isinstance(value, Mapping):
            yield f"{pad}<{tag}{extra}>\n"
            yield from _info_lines(value, pad + "\t")
            yield f"{pad}</{tag}>\n"
        else:
            yield f'{pad}<{tag}{extra} value="{spelled(value)}" />\n'


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


def in_memory(graph: Graph) -> tuple[bytes, bytes]:
    """The bytes of the .xml and of the .bin."""
    xml, data = io.StringIO(), io.BytesIO()
    XmlWriter(xml, Weights(data)).write(graph)
    return xml.getvalue().encode(), data.getvalue()
