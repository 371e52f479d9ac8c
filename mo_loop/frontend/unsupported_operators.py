"""Lists the unsupported operators of a model without translating it.

Translation skips nodes that depend on a failure. This module checks every node, so that one run reports all missing
operators.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mo_loop.errors import UnsupportedError
from mo_loop.frontend import registry
from mo_loop.frontend.custom_translators import CustomTranslators
from mo_loop.frontend.cut import Cut
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.node_order import needed
from mo_loop.frontend.onnx_graphs import OnnxGraph, called, domain_of, function_graph, main_graph
from mo_loop.frontend.refusals import unsupported
from mo_loop.frontend.schemas import onnx_schema
from mo_loop.frontend.tolerated_nodes import version_read


def unsupported_operators(model: OnnxModel, custom: CustomTranslators) -> list[UnsupportedError]:
    """One error for each unsupported node, also in bodies and called functions. `custom` translators are considered."""
    return list(_errors(model, custom, main_graph(model), frozenset()))


def certain_refusal(model: OnnxModel, cut: Cut, custom: CustomTranslators) -> UnsupportedError | None:
    """The error of an unsupported node of the main graph that an output depends on, whichever branches are taken."""
    graph = main_graph(model)
    kinds: dict[tuple[str, str], bool] = {}
    for node in graph.nodes:
        key = domain_of(node), node.op_type
        if key not in kinds:
            kinds[key] = _is_unsupported(model, custom, graph, node)
    if not any(kinds.values()):
        return None
    made = [node.output for node in graph.nodes]
    live = needed(made, cut.outputs or graph.output_names, cut.inputs or (), [node.input for node in graph.nodes])
    refused = (node for node in (graph.nodes[place] for place in live) if kinds[domain_of(node), node.op_type])
    first = next(refused, None)
    return None if first is None else _error(graph, first, custom)


def _errors(
    model: OnnxModel, custom: CustomTranslators, graph: OnnxGraph, calls: frozenset[int]
) -> Iterator[UnsupportedError]:
    """The errors of a graph, its bodies and the functions it calls; `calls` are the ids of the functions around it."""
    for node in graph.nodes:
        function = None if _is_custom(custom, graph, node) else called(model, node)
        if function is not None and id(function) not in calls:
            inner = function_graph(model, function, graph.origin_of(node).inner_scope)
            yield from _errors(model, custom, inner, calls | {id(function)})
        elif _is_unsupported(model, custom, graph, node):
            yield _error(graph, node, custom)
        for body in graph.bodies(node):
            yield from _errors(model, custom, body, calls)


def _is_custom(custom: CustomTranslators, graph: OnnxGraph, node: Any) -> bool:
    domain = domain_of(node)
    return custom.find(domain, node.op_type, graph.opsets.get(domain, 0)) is not None


def _is_unsupported(model: OnnxModel, custom: CustomTranslators, graph: OnnxGraph, node: Any) -> bool:
    if _is_custom(custom, graph, node) or called(model, node) is not None:
        return False
    domain = domain_of(node)
    return not _is_translated(domain, node.op_type, graph.opsets.get(domain, 0))


def _error(graph: OnnxGraph, node: Any, custom: CustomTranslators) -> UnsupportedError:
    domain = domain_of(node)
    return unsupported(domain, node.op_type, graph.opsets.get(domain, 0), custom).at(graph.origin_of(node))


def _is_translated(domain: str, op: str, opset: int) -> bool:
    if registry.find(op, opset, domain) is not None or version_read(op, opset, domain) is not None:
        return True
    schema = onnx_schema(op, opset, domain)
    if schema is None:
        return False
    return not schema.deprecated and (schema.has_function or schema.has_context_dependent_function)
