"""Graphs as Graphviz dot: every node a box, every body a cluster inside the graph of its owner.

    Path("graph.dot").write_text(to_dot(graph, shapes=True))     # then: dot -Tsvg graph.dot -o graph.svg

Solid edges are data. Dashed edges are those of port maps: from the owner to the Parameters, from Results to the owner,
and each back edge from a Result to the Parameter of the next iteration.
"""

from collections.abc import Callable, Iterator
from dataclasses import fields
from typing import Any

from mo_loop.graph import Graph, Node
from mo_loop.ops.base import Constant, Parameter, Result
from mo_loop.ops.control import Control
from mo_loop.ops.front import Failed
from mo_loop.ops.port_map import Merged
from mo_loop.text.literals import INLINE_LIMIT, show_array
from mo_loop.text.spelling import show_type

HEAD = (
    "  rankdir=TB; compound=true;",
    '  graph [fontname="Helvetica", fontsize=10, style=rounded, color="#808080"];',
    '  node [fontname="Helvetica", fontsize=10, shape=box, style="rounded,filled", fillcolor="#ffffff"];',
    '  edge [fontname="Helvetica", fontsize=8, color="#404040"];',
)
_FILL = {Parameter: "#d7ecd9", Result: "#d7ecd9", Constant: "#eeeeee", Control: "#d6e4f5", Failed: "#f7c9c4"}
_TAGS = {1: ("body",), 2: ("then_body", "else_body")}


def to_dot(
    graph: Graph, *, shapes: bool = False, types: bool = False, number: Callable[[Node], int] | None = None
) -> str:
    """The whole graph, bodies included; `shapes` and `types` label the edges with shapes and element types.

    `number` gives each node a number; by default they are numbered in their order. The same graph gives the same text.
    """
    writer = _Writer(shapes, types, number)
    lines = [f"digraph {quoted(graph.name or 'graph')} {{", *HEAD, *writer.nodes(graph, "  ")]
    lines += [*writer.edges(graph), "}"]
    return "".join(line + "\n" for line in lines)


def quoted(text: str) -> str:
    """`text` as a dot string, with quotes, backslashes and entities escaped."""
    is_shown = text.replace("\n", "").isprintable()
    shown = text if is_shown else "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in text)
    for special, written in (("\\", "\\\\"), ('"', '\\"'), ("&", "&amp;"), ("\n", "\\n")):
        shown = shown.replace(special, written)
    return f'"{shown}"'


class _Writer:
    def __init__(self, shapes: bool, types: bool, number: Callable[[Node], int] | None) -> None:
        self.number = number or (lambda _: len(self.ids))
        self.shapes = shapes
        self.types = types
        self.ids: dict[Node, str] = {}
        self.clusters = 0

    def nodes(self, graph: Graph, pad: str) -> Iterator[str]:
        """The nodes of a graph, and a cluster for each body, right after its owner."""
        for node in graph.ordered():
            self.ids[node] = f"n{self.number(node)}"
            fill = next((color for cls, color in _FILL.items() if isinstance(node, cls)), "")
            color = f', fillcolor="{fill}"' if fill else ""
            yield f"{pad}{self.ids[node]} [label={quoted(self._label(node))}{color}];"
            for tag, body in zip(_TAGS.get(len(node.bodies), ()), node.bodies, strict=False):
                yield f"{pad}subgraph cluster_{self.clusters} {{"
                self.clusters += 1
                title = f"{tag} of {node.name or type(node).__name__}"
                yield f"{pad}  label={quoted(title)};"
                yield from self.nodes(body, pad + "  ")
                yield f"{pad}}}"

    def edges(self, graph: Graph) -> Iterator[str]:
        """The edges of a graph and of its bodies."""
        for node in graph.ordered():
            for port, value in enumerate(node.inputs):
                if value is not None:
                    ends = (str(value.index) if len(value.node.outputs) > 1 else "",
                            str(port) if len(node.inputs) > 1 else "")
                    note = type_note(show_type(value.type), self.shapes, self.types)
                    yield self._edge(value.node, node, note, ends)
            for body in node.bodies:
                yield from self.edges(body)
            if isinstance(node, Control):
                yield from self._port_map(node)

    def _port_map(self, node: Any) -> Iterator[str]:
        for port, entry in enumerate(node.input_map, node.first_data_port):
            for parameter in (v for v in vars(entry).values() if isinstance(v, Parameter)):
                yield self._edge(node, parameter, _described(entry), (str(port), ""), dashed=True)
            if isinstance(entry, Merged):
                yield self._edge(entry.result, entry.parameter, "back edge", dashed=True, back=True)
        for port, entry in enumerate(node.output_map):
            for result in (v for v in vars(entry).values() if isinstance(v, Result)):
                yield self._edge(result, node, _described(entry), ("", str(port)), dashed=True, back=True)
        if getattr(node, "iteration", None) is not None:
            yield self._edge(node, node.iteration, "iteration", dashed=True)
        if getattr(node, "condition", None) is not None:
            yield self._edge(node.condition, node, "condition", dashed=True, back=True)

    def _edge(
        self, source: Node, target: Node, note: str, ends: tuple[str, str] = ("", ""), *, dashed: bool = False,
        back: bool = False,
    ) -> str:
        """An edge; one that runs `back` does not push its target below its source."""
        parts = [f"label={quoted(note)}"] if note else []
        parts += [f"{side}={quoted(text)}" for side, text in zip(("taillabel", "headlabel"), ends, strict=True) if text]
        parts += ["style=dashed"] if dashed else []
        parts += ["constraint=false"] if back else []
        attributes = f" [{', '.join(parts)}]" if parts else ""
        return f"  {self.ids[source]} -> {self.ids[target]}{attributes};"

    def _label(self, node: Node) -> str:
        lines = [type(node).__name__]
        if node.name:
            lines.append(node.name)
        if isinstance(node, Constant):
            small = node.tensor.size <= INLINE_LIMIT
            lines.append(show_array(node.tensor) if small else show_type(node.output.type))
        elif isinstance(node, Parameter) and (self.shapes or self.types):
            lines.append(type_note(show_type(node.output.type), self.shapes, self.types))
        elif isinstance(node, Failed) and node.error is not None:
            lines.append(f"{node.error.code}: {node.error.message}"[:200])
        return "\n".join(lines)


def type_note(text: str, shapes: bool, types: bool) -> str:
    """The label of an edge, of `f32[2,N]`: all of it, `f32`, `[2,N]`, or nothing."""
    dtype, bracket, dims = text.partition("[")
    if shapes == types or "(" in dtype:  # the shape and type of an element are not a pair of their own
        return text if shapes or types else ""
    return dtype if types else bracket + dims


def _described(entry: Any) -> str:
    """`Sliced axis=1 stride=-1`: an entry of a port map without its nodes and defaults."""
    parts = [type(entry).__name__]
    for field in fields(entry):
        value = getattr(entry, field.name)
        if isinstance(value, int) and value != field.default:
            parts.append(f"{field.name}={value}")
    return " ".join(parts)
