"""Lists the unsupported operators of a model without translating it.

Translation skips nodes that depend on a failure. This module checks every node, so that one run reports all missing
operators.
"""

from __future__ import annotations

from collections.abc import Iterator

from mo_loop.errors import UnsupportedError
from mo_loop.frontend import registry
from mo_loop.frontend.custom_translators import CustomTranslators
from mo_loop.frontend.loose_nodes import version_read
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import OnnxGraph, called, domain_of, function_graph, main_graph
from mo_loop.frontend.refusals import unsupported
from mo_loop.frontend.schemas import onnx_schema


def unsupported_operators(model: OnnxModel, custom: CustomTranslators) -> list[UnsupportedError]:
    """One error for each unsupported node, also in bodies and called functions. `custom` translators are considered."""
    return list(_errors(model, custom, main_graph(model), frozenset()))


def _errors(
    model: OnnxModel, custom: CustomTranslators, graph: OnnxGraph, calls: frozenset[int]
) -> Iterator[UnsupportedError]:
    """The errors of a graph, its bodies and the functions it calls; `calls` are the ids of the functions around it."""
    for node in graph.nodes:
        domain = domain_of(node)
        opset = graph.opsets.get(domain, 0)
        is_custom = custom.find(domain, node.op_type, opset) is not None
        function = None if is_custom else called(model, node)
        if function is not None and id(function) not in calls:
            inner = function_graph(model, function, graph.origin_of(node).inner_scope)
            yield from _errors(model, custom, inner, calls | {id(function)})
        elif function is None and not is_custom and not _is_translated(domain, node.op_type, opset):
            yield unsupported(domain, node.op_type, opset, custom).at(graph.origin_of(node))
        for body in graph.bodies(node):
            yield from _errors(model, custom, body, calls)


def _is_translated(domain: str, op: str, opset: int) -> bool:
    if registry.find(op, opset, domain) is not None or version_read(op, opset, domain) is not None:
        return True
    schema = onnx_schema(op, opset, domain)
    if schema is None:
        return False
    return not schema.deprecated and (schema.has_function or schema.has_context_dependent_function)
