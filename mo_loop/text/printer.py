"""to_text: graphs to text. mo_loop/text/__init__.py describes the grammar."""

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields
from typing import Any

from mo_loop.errors import InternalError
from mo_loop.graph import Graph, Node, Value
from mo_loop.ops.base import Constant, Op, Parameter, Result
from mo_loop.ops.control import Control
from mo_loop.ops.front import Failed
from mo_loop.text.attributes import BODIES, PORTS, show_attribute
from mo_loop.text.literals import implied_type, kind_of, show_data, show_inline
from mo_loop.text.spelling import WORD, quoted, show_type, word_or_quoted

WIDTH = 120
_SKIPPED: dict[type[Op], set[str]] = {Control: {*PORTS, *BODIES}, Failed: {"count", "assumed"}}
"""Attributes that are printed as port maps, as bodies, as the number of outputs."""


def to_text(
    graph: Graph, *, names: bool = True, canonical: bool = False, weights_limit: int = 16,
    label: Callable[[Value], str] | None = None,
) -> str:
    """`graph` as text that `parse` reads.

    Args:
        names: print friendly names and tensor names. Without them the text is canonical.
        canonical: nodes are not printed in the order of their creation, but Parameters first, then producers before
            consumers in the order in which the Results need them. Equal graphs then have equal texts.
        weights_limit: constants of more elements are printed as one value, or as a seed.
        label: gives the label of a value, instead of the default one; each value of a graph has a label of its own.
    """
    printer = _Printer(names, canonical or not names, weights_limit, label)
    return "".join(line + "\n" for line in printer.graph("graph", printer.plan(graph), ""))


def statement(node: Any, label: Callable[[Value], str]) -> str:
    """A node as in the text of its graph, in one line and without its bodies. A small constant without a name is
    written instead of its label, also where several nodes read it."""
    printer = _Printer(True, False, 16, label)
    plan, *bodies = (_Plan(graph, []) for graph in (node.graph, *node.bodies))
    read = (value for value in node.operands if not printer.is_small(value.node))
    plan.values = {value: label(value) for value in (*read, *node.outputs)}
    for body in bodies:
        body.values = {each.output: label(each.output) for each in body.graph.parameters}
        body.results = {each: label(each.value) for each in body.graph.results}
    left, attributes, right = printer.parts(node, plan, bodies)
    return left + _braced(attributes) + right


def needed_order(graph: Graph) -> list[Node]:
    """All nodes but Parameters and Results, producers first, in the order in which the Results read them, then the
    unused ones from oldest to youngest."""
    done: set[Node] = {*graph.parameters, *graph.results}
    order: list[Node] = []
    for root in (*graph.results, *graph.ordered()):
        stack: list[tuple[Node, Iterator[Value | None]]] = [(root, iter(root.inputs))]
        if root in done and not isinstance(root, Result):
            continue
        while stack:
            node, inputs = stack[-1]
            value = next((each for each in inputs if each is not None and each.node not in done), None)
            if value is not None:
                stack.append((value.node, iter(value.node.inputs)))
                continue
            stack.pop()
            if node not in done:
                done.add(node)
                order.append(node)
    return order


class _Plan:
    """The statements of one graph, and the labels of its values and Results."""

    def __init__(self, graph: Graph, order: list[Node]) -> None:
        self.graph = graph
        self.order = order
        self.values: dict[Value, str] = {}
        self.results: dict[Node, str] = {}

    def port(self, node: Any) -> str:
        """The label of a Parameter or Result in a port map."""
        label = f"@{self.results.get(node)}" if isinstance(node, Result) else f"%{self.values.get(node.output)}"
        if label.endswith("None"):
            raise InternalError(f"a port map refers to {node!r}, which is not in its body", where=self.graph.origin)
        return label


class _Printer:
    def __init__(self, names: bool, canonical: bool, limit: int, label: Callable[[Value], str] | None) -> None:
        self.names = names
        self.canonical = canonical
        self.limit = limit
        self.label = label

    # -- planning: statements and labels

    def plan(self, graph: Graph) -> _Plan:
        ends = {*graph.parameters, *graph.results}
        middle = needed_order(graph) if self.canonical else [n for n in graph.ordered() if n not in ends]
        order = [n for n in (*graph.parameters, *middle, *graph.results) if not self._is_inline(n)]
        plan = _Plan(graph, order)
        taken: set[str] = set()
        if self.label is not None:
            plan.values = {value: self.label(value) for node in order for value in node.outputs}
            order = []
        for node in order:
            for value in node.outputs:
                label = node.name if len(node.outputs) == 1 else f"{node.name}.{value.index}"
                if not self.names or label in taken or not WORD.fullmatch(node.name) or len(node.name) > 24:
                    label = str(len(plan.values))
                taken.add(label)
                plan.values[value] = label
        counts: dict[str, int] = {}
        for result in graph.results:  # labelled like the value they read, numbered if several read one value
            label = plan.values[result.value]
            counts[label] = counts.get(label, 0) + 1
            plan.results[result] = label if counts[label] == 1 else f"{label}:{counts[label]}"
        return plan

    def _is_inline(self, node: Node) -> bool:
        """Whether the node is written among the inputs of its consumer."""
        use = node.output.only_use if isinstance(node, Constant) else None
        return use is not None and not isinstance(use.node, Result) and self.is_small(node)

    def is_small(self, node: Node) -> bool:
        """Whether the node can be written among the inputs of others."""
        if not isinstance(node, Constant) or (self.names and (node.name or node.output.names)):
            return False
        return not getattr(node, "_rt_info", None) and show_inline(node.tensor, lambda _: node.tensor.dtype) is not None

    # -- printing

    def graph(self, tag: str, plan: _Plan, pad: str) -> Iterator[str]:
        name = f" {word_or_quoted(plan.graph.name)}" if self.names and plan.graph.name else ""
        yield f"{pad}{tag}{name} {{"
        if plan.graph.rt_info:
            yield f"{pad}  info {show_attribute(plan.graph.rt_info, Any)}"
        for node in plan.order:
            yield from self._statement(node, plan, pad + "  ")
        yield f"{pad}}}"

    def _statement(self, node: Any, plan: _Plan, pad: str) -> Iterator[str]:
        bodies = [self.plan(body) for body in node.bodies]
        left, attributes, right = self.parts(node, plan, bodies)
        left = pad + left
        line = left + _braced(attributes)
        if bodies and len(line + right) > WIDTH:
            yield left + " {"
            for key, shown in attributes:
                yield from _lines(f"{key}: ", shown, pad + "    ")
            yield f"{pad}}}{right}"
        else:
            yield line + right
        for tag, body in zip(BODIES[1:] if len(bodies) == 2 else BODIES, bodies, strict=False):
            yield from self.graph(tag, body, pad + "  ")

    def parts(self, node: Any, plan: _Plan, bodies: list[_Plan]) -> tuple[str, list[tuple[str, str]], str]:
        """The outputs, the operation and its inputs; the attributes; types, names and additional info."""
        outputs = ", ".join(f"%{plan.values[value]}" for value in node.outputs)
        left = (f"{outputs} = " if outputs else "") + type(node).__name__ + self._operands(node, plan)
        return left, [*_port_map(node, bodies), *_attributes(node)], self._right(node)

    def _operands(self, node: Any, plan: _Plan) -> str:
        if isinstance(node, Parameter):
            return ""
        if isinstance(node, Constant):
            return f" {show_data(node.tensor, self.limit)}"
        types = [value.type for value in node.inputs if value in plan.values]
        shown = []
        for port, value in enumerate(node.inputs):
            label = plan.values.get(value)
            shown.append("_" if value is None else f"%{label}" if label else _inline(value, type(node), port, types))
        label = plan.results.get(node, "")
        return f"({', '.join(shown)})" + (f" @{label}" if ":" in label else "")

    def _right(self, node: Any) -> str:
        """Types, names and additional info."""
        text = " : " + ", ".join(show_type(value.type) for value in node.outputs) if node.outputs else ""
        if self.names:
            text += (f" {quoted(node.name)}" if node.name else "") + _tensor_names(node)
        info = getattr(node, "_rt_info", None)
        return text + (f" info {show_attribute(info, Any)}" if info else "")


def _braced(attributes: list[tuple[str, str]]) -> str:
    return f" {{{', '.join(f'{key}: {shown}' for key, shown in attributes)}}}" if attributes else ""


def _inline(value: Value, cls: type[Op], port: int, types: list[Any]) -> str:
    constant = value.node
    assert isinstance(constant, Constant)
    kind = kind_of(constant.tensor.dtype, constant.tensor.size)
    shown = show_inline(constant.tensor, lambda _: implied_type(cls, port, kind, types))
    assert shown is not None  # otherwise it has a statement and a label
    return shown


def _tensor_names(node: Any) -> str:
    lists = [node.output_names] if isinstance(node, Result) else [value.names for value in node.outputs]
    while lists and not lists[-1]:
        lists.pop()
    shown = ", ".join(" ".join(map(quoted, names)) if names else "_" for names in lists)
    return f" names {shown}" if shown else ""


def _attributes(node: Any) -> Iterator[tuple[str, str]]:
    skipped: set[str] = next((keys for cls, keys in _SKIPPED.items() if isinstance(node, cls)), set())
    for key, default in node.attributes.items():
        value = getattr(node, key)
        if key in skipped or value is default or (type(value) is type(default) and value == default):
            continue
        yield key, show_attribute(value, node._kinds[key])


def _port_map(node: Any, bodies: list[_Plan]) -> Iterator[tuple[str, str]]:
    if not bodies:
        return
    for key in PORTS:
        value = getattr(node, key, None)
        if value == ():
            continue
        if isinstance(value, tuple):
            yield key, f"[{', '.join(_entry(each, bodies) for each in value)}]"
        elif value is not None:
            yield key, bodies[0].port(value)


def _entry(entry: Any, bodies: list[_Plan]) -> str:
    """One entry of a port map: nodes by position, the rest by name unless it has its default."""
    plans = iter(bodies if len(bodies) == 2 else [bodies[0]] * 2)
    parts = []
    for field in fields(entry):
        value = getattr(entry, field.name)
        if value is None or isinstance(value, Node):
            plan = next(plans)
            parts.append("_" if value is None else plan.port(value))
        elif field.default is MISSING or value != field.default:
            parts.append(f"{field.name}: {list(value) if isinstance(value, tuple) else value}")
    return f"{type(entry).__name__}({', '.join(parts)})"


def _lines(key: str, shown: str, pad: str) -> Iterator[str]:
    """One attribute on its own line; a long port map has one line for each entry."""
    line = f"{pad}{key}{shown}"
    if len(line) <= WIDTH or not shown.endswith(")]"):
        yield line
        return
    yield f"{pad}{key}["
    yield from (f"{pad}  {entry})," for entry in shown[1:-2].split("), "))
    yield f"{pad}]"
