"""Lists the unsupported operators of a model without translating it.

Translation stops at what depends on a failure; the survey looks everywhere, so that a user learns of all missing
operators at once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from mo_loop.errors import UnsupportedError
from mo_loop.frontend import registry
from mo_loop.frontend.custom_translators import CustomTranslators
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import body_name, label, operator_of
from mo_loop.frontend.translate import unsupported
from mo_loop.graph.origin import Origin


def unsupported_operators(model: OnnxModel, custom: CustomTranslators) -> list[UnsupportedError]:
    """One error a node, bodies and called functions included; `custom` translators count."""
    return list(_nodes(model, custom, model.proto.graph.node, model.opsets, (), frozenset()))


def _nodes(
    model: OnnxModel, custom: CustomTranslators, nodes: Sequence[Any], opsets: Mapping[str, int],
    path: tuple[str, ...], calls: frozenset[Any],
) -> Iterator[UnsupportedError]:  # fmt: skip
    for node in nodes:
        domain = "" if node.domain == "ai.onnx" else node.domain
        origin = Origin(path, label(node), operator_of(node))
        key = (domain, node.op_type, getattr(node, "overload", ""))
        opset = opsets.get(domain, 0)
        is_custom = custom.find(domain, node.op_type, opset) is not None
        function = None if is_custom else model.functions.get(key)
        if function is not None:
            if key not in calls:
                inner = {("" if e.domain == "ai.onnx" else e.domain): e.version for e in function.opset_import}
                yield from _nodes(model, custom, function.node, {**opsets, **inner}, origin.inner_scope, calls | {key})
        elif not is_custom and not _is_translated(domain, node.op_type, opset):
            yield unsupported(domain, node.op_type, opset, custom).at(origin)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                inner_path = (*origin.inner_scope, body_name(node, attribute.name, attribute.g))
                yield from _nodes(model, custom, attribute.g.node, opsets, inner_path, calls)


def _is_translated(domain: str, op: str, opset: int) -> bool:
    if registry.find(op, opset, domain) is not None:
        return True
    import onnx

    try:
        schema: Any = onnx.defs.get_schema(op, opset, domain)
    except onnx.defs.SchemaError:
        return False
    return not schema.deprecated and (schema.has_function or schema.has_context_dependent_function)
