"""Optionals become sequences of at most one element."""

from __future__ import annotations

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph
from mo_loop.graph.types import OptionalType, SequenceType, TensorType
from mo_loop.ops.base import Parameter
from mo_loop.ops.control import Control
from mo_loop.ops.sequences import Optional, OptionalGetElement, OptionalHasElement
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.replace import replace_node


class LowerOptionals(FunctionPass):
    """Optional(x)  ->  [x]     Optional()  ->  []     has(o)  ->  len(o) > 0     get(o)  ->  o[0]

    Only optionals of tensors. An optional sequence stays, and the last check refuses it.
    """

    bodies = "never"

    def run_on_graph(self, graph: Graph) -> bool:
        scopes = list(graph.scopes())
        if not any(scope.of(kind) for scope in scopes for kind in (Optional, OptionalHasElement, OptionalGetElement)):
            return False
        changed = False
        for scope in scopes:
            for parameter in scope.parameters:
                _retype(parameter)
            for node in self.candidates(scope, Optional):
                changed = self._make(node) or changed
            for holder in scope.of(Control):
                scope.touch(holder)
        graph.validate()
        for scope in scopes:
            for reader in [*scope.of(OptionalHasElement), *scope.of(OptionalGetElement)]:
                changed = (not self.leaves(reader) and self._read(reader)) or changed
        self.at = None
        return changed

    def _make(self, node: Optional) -> bool:
        type_ = node.output.type.element
        if isinstance(type_, SequenceType):
            return self.refuse(node, "it is an optional sequence")
        value = node.inputs[0] if node.inputs else None
        if value is None:
            replace_node(node, ops.SequenceEmpty(graph=node.graph, dtype=type_.dtype))
        else:
            replace_node(node, ops.SequenceConstruct(value))
        return self.accept(node)

    def _read(self, node) -> bool:
        value = node.inputs[0]
        if not isinstance(value.type, SequenceType):
            return self.refuse(node, "it is an optional sequence")
        if isinstance(node, OptionalGetElement):
            replace_node(node, ops.SequenceAt(value, np.array(0)))
        else:
            replace_node(node, ops.Greater(ops.SequenceLength(value), 0))
        return self.accept(node)


def _retype(parameter: Parameter) -> None:
    type_ = parameter.output.type
    if isinstance(type_, OptionalType) and isinstance(type_.element, TensorType):
        parameter.retype(SequenceType(type_.element, {True: 1, False: 0, None: None}[type_.present]))
        parameter.graph.validate_node(parameter)
