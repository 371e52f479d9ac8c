"""Origins for a graph that was read from files: which ONNX node and tensor each layer and value comes from.

    graph = read_model("model.xml").graph
    assign_origins(graph, "model.onnx")             # then first_difference("model.onnx", graph, feeds)

The model is converted again with the options in the rt_info of the IR, and layers are matched by their path and type.
Where this gives nothing (the IR of another converter, a changed model), values are matched by their tensor names.
"""

import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

from mo_loop.conversion import Conversion
from mo_loop.errors import MoLoopError
from mo_loop.frontend.input_text import value_of
from mo_loop.frontend.model import load
from mo_loop.frontend.onnx_graphs import OnnxGraph, label, main_graph
from mo_loop.graph import Graph, Node
from mo_loop.ir.xml import layer_names, layer_order
from mo_loop.ops.control import If
from mo_loop.options import ConvertOptions
from mo_loop.origin import Origin
from mo_loop.support.flags import parts, unquoted
from mo_loop.target import Target
from mo_loop.transforms.config import PassConfig
from mo_loop.transforms.low_precision.compress_weights import CompressFloatConstants
from mo_loop.transforms.manager import Observer


def assign_origins(
    graph: Graph, model: Any, options: ConvertOptions | None = None, observers: Iterable[Observer] = (),
    allowed: Sequence[str] = (),
) -> None:
    """Set the origins of all nodes and values of `graph`, as far as they are found.

    `options` are those of its conversion, if they are known better than from its rt_info; `observers` see the
    conversion that is made for the comparison, for example a History; `allowed` are more folders of external data.
    """
    recorded = graph.rt_info.get("conversion_parameters", {})
    is_compressed = isinstance(recorded, Mapping) and str(recorded.get("compress_to_fp16")) == "True"
    for each in (options, recorded_options(graph.rt_info), ConvertOptions()):
        again = None if each is None else _converted(model, replace(each, allow_external=allowed), observers)
        if again is not None and is_compressed:  # the weights were stored as f16 when the IR was written
            CompressFloatConstants().run(again)
            again.validate()
        if again is not None and _by_layers(again, graph):
            break
    _by_names(graph, main_graph(load(model)))


def recorded_options(info: Mapping[str, Any]) -> ConvertOptions | None:
    """The options that the rt_info of an IR records; None if they cannot be had from it."""
    recorded = info.get("conversion_parameters", {})
    converter = info.get("converter", {})
    if not isinstance(recorded, Mapping) or not isinstance(converter, Mapping):
        return None
    try:
        return _options_of(recorded, str(converter.get("target", "")))
    except (MoLoopError, ValueError):
        return None


def _options_of(recorded: Mapping[str, Any], target: str) -> ConvertOptions:
    kinds = {each.name: each.default for each in fields(ConvertOptions)}
    values: dict[str, Any] = {}
    for name, text in recorded.items():
        if name in ("disable_pass", "enable_pass"):
            config = values.setdefault("config", PassConfig())
            (config.disable if name == "disable_pass" else config.enable)(*str(text).split(","))
        elif name in kinds and name not in ("extensions", "compress_to_fp16"):
            values[name] = _READERS.get(name, lambda each, name=name: _value(each, kinds[name]))(str(text))
    if target not in ("", str(Target())):
        values["target"] = target
    return ConvertOptions(**values)


def _names(text: str) -> Any:
    """Names as they were given: a text, or a list that is recorded in brackets."""
    return [unquoted(each) for each in parts(text[1:-1])] if text.startswith("[") and text.endswith("]") else text


def _pairs(text: str) -> dict[str, str]:
    """The mapping that is recorded as name=value, separated by commas."""
    return {name: value for name, _, value in (each.rpartition("=") for each in parts(text))}


_READERS: Mapping[str, Callable[[str], Any]] = {
    "output": _names, "rename": _pairs, "stateful_pairs": _pairs,
    "freeze": lambda text: {name: value_of(value) for name, value in _pairs(text).items()},
}
"""The options whose values are not texts or numbers. UsageError for a large array to which an input is frozen: only its
type is recorded."""


def _value(text: str, default: Any) -> Any:
    """The value of an option, which has this default. ValueError for digits that spell no number."""
    if isinstance(default, bool):
        return text == "True"
    return int(text) if isinstance(default, int) or (default is None and text.isdigit()) else text


def _converted(model: Any, options: ConvertOptions, observers: Iterable[Observer]) -> Graph | None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return Conversion(options, observers).run(model)
        except (MoLoopError, ValueError):
            return None


# -- by layers


def _by_layers(source: Graph, target: Graph) -> bool:
    """Take the origins of the layers with the same path and type; whether most layers have one.

    An output that has other tensor names is not a tensor that the file names elsewhere.
    """
    pairs = [(source, target)]
    matched = total = 0
    while pairs:
        a, b = pairs.pop()
        twins = _twins(a, b)
        b.scope = a.scope
        tensors = {name for node in b.ordered() for value in node.outputs for name in value.names}
        for node in b.ordered():
            total += 1
            twin = twins.get(node)
            if twin is None or len(twin.outputs) != len(node.outputs):
                continue
            matched += 1
            node.origins = twin.origins
            for mine, other in zip(node.outputs, twin.outputs, strict=True):
                elsewhere = () if set(mine.names) == set(other.names) else tensors.difference(mine.names)
                mine.origins = tuple(each for each in other.origins if each.output not in elsewhere)
            pairs += zip(twin.bodies, node.bodies, strict=False)
    return 2 * matched > total


def _twins(source: Graph, target: Graph) -> dict[Node, Node]:
    """The layer of `source` for each of `target` that has one of the same path and type.

    The name of a layer without a name of its own has a number in it, which means the same layer only if both graphs
    have as many. Those with bodies that are left are the same in their order, if they have the same types.
    """
    order = layer_order(source)
    names = zip(order, layer_names(order), strict=True)
    known = {(name, _type(node)): node for node, name in names if node.name or len(order) == len(target)}
    found = {node: known[node.name, _type(node)] for node in target.ordered() if (node.name, _type(node)) in known}
    left = [node for node in source.nodes_with_bodies() if node not in set(found.values())]
    others = [node for node in target.nodes_with_bodies() if node not in found]
    if [_type(node) for node in left] == [_type(node) for node in others]:
        found.update(zip(others, left, strict=True))
    return found


def _type(node: Node) -> str:
    return str(getattr(node, "type", ""))


# -- by names


def _by_names(graph: Graph, onnx: OnnxGraph) -> None:
    """Find the origins of values without any by their tensor names, in bodies of matched nodes too."""
    stack = [(graph, onnx)]
    while stack:
        here, source = stack.pop()
        here.scope = source.scope
        tensors = _tensors(source)
        labels = {label(node): source.origin_of(node) for node in source.nodes}
        for node in here.ordered():
            for value in node.outputs:
                if not value.origins:
                    value.origins = tuple(tensors[name] for name in value.names if name in tensors)
            if not node.origins:
                made = next((each.of_node() for value in node.outputs for each in value.origins if each.node), None)
                made = made or labels.get(node.name)
                node.origins = () if made is None else (made,)
            if node.bodies:
                stack += _bodies(node, source)


def _tensors(source: OnnxGraph) -> dict[str, Origin]:
    """The origins of the tensors of a graph and of those around it."""
    found = {} if source.outer is None else _tensors(source.outer)
    for name in (*source.input_names, *(each.name for each in source.initializers)):
        found[name] = Origin(source.scope, output=name)
    for node in source.nodes:
        for name in filter(None, node.output):
            found[name] = source.origin_of(node)._replace(output=name)
    return found


def _bodies(node: Node, source: OnnxGraph) -> list[tuple[Graph, OnnxGraph]]:
    """The bodies of a layer, each with that of its ONNX node."""
    owners = {label(each): each for each in source.nodes}
    owner = next(
        (owners[each.node] for each in node.origins if each.scope == source.scope and each.node in owners), None
    )
    if owner is None:
        return []
    bodies = {each.kind: each for each in source.bodies(owner)}
    names = ("then_branch", "else_branch") if isinstance(node, If) else ("body",)
    return [(graph, bodies[name]) for graph, name in zip(node.bodies, names, strict=False) if name in bodies]
