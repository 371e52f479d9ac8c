"""Every operator of a model that nothing translates, found without translating.

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
from mo_loop.frontend.translate import unsupported


def unsupported_operators(model: OnnxModel, custom: CustomTranslators) -> list[UnsupportedError]:
    """One error a node, bodies and called functions included; `custom` translators count."""
    return list(_nodes(model, custom, model.proto.graph.node, model.opsets, "", frozenset()))


def _nodes(
    model: OnnxModel, custom: CustomTranslators, nodes: Sequence[Any], opsets: Mapping[str, int], path: str,
    calls: frozenset[Any],
) -> Iterator[UnsupportedError]:  # fmt: skip
    for node in nodes:
        domain = "" if node.domain == "ai.onnx" else node.domain
        name = node.name or next((out for out in node.output if out), node.op_type)
        where = f"{path}/{name}" if path else name
        key = (domain, node.op_type, getattr(node, "overload", ""))
        opset = opsets.get(domain, 0)
        is_custom = custom.find(domain, node.op_type, opset) is not None
        function = None if is_custom else model.functions.get(key)
        if function is not None:
            if key not in calls:
                inner = {("" if e.domain == "ai.onnx" else e.domain): e.version for e in function.opset_import}
                yield from _nodes(model, custom, function.node, {**opsets, **inner}, where, calls | {key})
        elif not is_custom and not _is_translated(domain, node.op_type, opset):
            error = unsupported(domain, node.op_type, opset, custom)
            error.where = where
            yield error
        for attribute in node.attribute:
            if attribute.HasField("g"):
                graph = attribute.g
                yield from _nodes(model, custom, graph.node, opsets, f"{where}/{graph.name or 'body'}", calls)


def _is_translated(domain: str, op: str, opset: int) -> bool:
    if registry.find(op, opset, domain) is not None:
        return True
    import onnx

    try:
        schema: Any = onnx.defs.get_schema(op, opset, domain)
    except onnx.defs.SchemaError:
        return False
    return not schema.deprecated and (schema.has_function or schema.has_context_dependent_function)
