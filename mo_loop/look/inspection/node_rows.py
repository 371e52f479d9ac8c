"""The nodes of a model with the names and types of their tensors (`mo-loop inspect --nodes`).

    for row in node_rows(opened("model.onnx")):
        row.name, row.operator, row.inputs, row.outputs

The names of the main graph of an ONNX model are those at which a conversion can be cut.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from mo_loop.look.records.structure import ONNX, Ref, ScopeRecord, Structure
from mo_loop.look.records.tensor_ports import TensorPort, tensor_name, tensor_port

SCHEMA, VERSION = "mo-loop nodes", 1
"""The version of the JSON; increased when a field changes its meaning or is removed, not when one is added."""


@dataclass(slots=True)
class NodeRow:
    """A node, an input ("input", in an IR "Parameter"), a constant, or an output ("output", in an IR "Result").

    `inputs` are names of tensors, "" for an absent input. A tensor without a name has that of its node, with the number
    of the output where there are several.
    """

    scope: str
    name: str
    operator: str
    inputs: list[str]
    outputs: list[TensorPort]

    def as_json(self) -> dict[str, Any]:
        outputs = [{"name": each.name, "type": each.type, "shape": each.shape} for each in self.outputs]
        return {
            "scope": self.scope, "name": self.name, "operator": self.operator, "inputs": self.inputs,
            "outputs": outputs,
        }  # fmt: skip


def node_rows(
    structure: Structure, scope: str | None = None, depth: int | None = None, operator: str | None = None
) -> Iterator[NodeRow]:
    """The nodes of each graph, outer before inner, and producers before consumers.

    Args:
        scope: the path of a body or function: only its nodes and those of the bodies in it.
        depth: down to this number of levels of bodies.
        operator: only nodes of this operator. Constants are left out unless this names them.
    """
    result = "output" if structure.kind == ONNX else "Result"
    starts = [structure.main, *structure.functions.values()] if scope is None else _named(structure, scope)
    for start in starts:
        for each in start.all():
            if depth is None or _levels(each, start) <= depth:
                yield from _of_scope(each, result, operator)


def _named(structure: Structure, path: str) -> list[ScopeRecord]:
    return [each for each in structure.scopes() if each.text == path]


def _levels(scope: ScopeRecord, start: ScopeRecord) -> int:
    """The number of bodies from `start` down to `scope`."""
    count = 0
    while scope is not start and scope.owner is not None:
        scope = scope.owner.scope
        count += 1
    return count


def _of_scope(scope: ScopeRecord, result: str, operator: str | None) -> Iterator[NodeRow]:
    path = scope.text
    for item in scope.items:
        if item.is_constant if operator is None else item.operator != operator:
            continue
        inputs = [tensor_name(ref) for ref in item.inputs]
        outputs = [tensor_port(Ref(item, place)) for place in range(len(item.outputs))]
        yield NodeRow(path, item.name, item.operator, inputs, outputs)
    if operator in (None, result):
        for each in scope.results:
            yield NodeRow(path, each.name, result, [tensor_name(each.ref)], [])
