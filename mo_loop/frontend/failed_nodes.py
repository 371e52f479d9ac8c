"""Placeholders for nodes that cannot be translated: a Failed node, and the known facts about its outputs.

    values = failed(node, inputs, error)     # outputs of unknown type
    values = as_declared(node, values)       # of the types that the model declares, so that later nodes are translated
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mo_loop.errors import MoLoopError
from mo_loop.frontend.context import Context
from mo_loop.frontend.declared_types import type_from
from mo_loop.frontend.scope import Scope
from mo_loop.graph import Value
from mo_loop.graph.types import BY_ONNX, UNKNOWN, TensorType
from mo_loop.ops.front import Failed
from mo_loop.ops.unknown_rank import advice


def failed(context: Context, inputs: Sequence[Value | None], error: MoLoopError | None) -> list[Value]:
    """The outputs of a Failed node in place of a node; without an error it depends on another Failed node."""
    count = max(len(context.outputs), 1)
    node = Failed(*inputs, graph=context.graph, error=error, count=count, name=context.path)
    return list(node.outputs)


def as_declared(context: Context, values: Sequence[Value | None]) -> Sequence[Value | None]:
    """The values with outputs of a Failed node replaced by outputs of the types that the model declares."""
    node = values[0].node if values and values[0] is not None else None
    if not isinstance(node, Failed) or list(values) != list(node.outputs) or any(each.is_used for each in node.outputs):
        return values
    types = [_declared(context.scope, name) for name in context.outputs]
    if len(types) != len(values) or all(each is UNKNOWN for each in types):
        return values
    context.graph.remove(node)
    made = Failed(*node.inputs, graph=context.graph, error=node.error, count=len(types), name=node.name, assumed=types)
    return list(made.outputs)


def _declared(scope: Scope, name: str) -> TensorType:
    """The type that the model declares for a tensor, if it has an element type and a rank."""
    proto = scope.declared.get(name)
    if proto is None or not proto.HasField("tensor_type") or proto.tensor_type.elem_type not in BY_ONNX:
        return UNKNOWN
    type_: TensorType = type_from(proto, symbolic=not scope.depth)
    return UNKNOWN if type_.shape is None else type_


def with_advice(error: MoLoopError, inputs: Iterable[Value | None], scope: Scope) -> MoLoopError:
    """An error about an unknown rank, with the inputs of the model to declare."""
    unknown = [each for each in inputs if each is not None and isinstance(each.type, TensorType) and each.rank is None]
    return error.at(hint=advice(unknown[0], scope.all_captured())) if error.code == "ML314" and unknown else error
