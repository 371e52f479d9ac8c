"""Operations on quantised tensors that only move elements."""

from __future__ import annotations

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.ops.base import Constant
from mo_loop.support.reached import reached
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.replace import drop_dead, replace_output

MOVING = (ops.View, ops.Transpose, ops.Slice, ops.DepthToSpace, ops.Gather, ops.MaxPool, ops.MaxPool8)
"""Operations whose first output has elements of their first input only."""


class DequantizeBeforeMovement(FunctionPass):
    """Dequantize(MaxPool(q))  ->  MaxPool(Dequantize(q)), and so for other operations that only move elements

    Then a Quantize before the operation becomes a FakeQuantize. The scale must be one positive number. Other readers of
    the moved tensor keep it.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        pending = list(self.candidates(graph, ops.Dequantize))
        while pending:
            node = pending.pop()
            made = self._move(node) if node in graph else []
            changed = bool(made) or changed
            pending += made
        return changed

    def _move(self, node: ops.Dequantize) -> list[ops.Dequantize]:
        value = node.operands[0]
        mover = value.node
        if value.index or not isinstance(mover, (*MOVING, ops.Concat)):
            self.refuse(node, "its input is not the result of an operation that only moves elements")
            return []
        if not _has_one_scale(node) or not _is_quantised(value):
            self.refuse(node, "it has several scales, or its input does not come from a Quantize")
            return []
        count = len(mover.inputs) if isinstance(mover, ops.Concat) else 1
        made = [ops.Dequantize(each, *node.inputs[1:], to=node.to) for each in mover.inputs[:count]]
        moved = type(mover)(*(each.output for each in made), *mover.inputs[count:], **mover.attribute_values())
        replace_output(node.output, moved.outputs[0])
        drop_dead([node])
        self.accept(node)
        return made


def _has_one_scale(node: ops.Dequantize) -> bool:
    scale = node.inputs[1]
    if scale is None or not isinstance(scale.node, Constant) or not np.all(scale.node.array > 0):
        return False
    return not node.block_size and all(each is None or each.shape in ((), (1,)) for each in node.inputs[1:])


def _is_quantised(value: Value) -> bool:
    """Whether one of the elements comes from a Quantize."""
    return any(isinstance(each.node, ops.Quantize) for each in reached([value], _moved))


def _moved(value: Value) -> list[Value]:
    """The values whose elements an operation only moves."""
    node = value.node
    inputs = node.inputs if isinstance(node, ops.Concat) else node.inputs[:1] if isinstance(node, MOVING) else ()
    return [each for each in inputs if each is not None]
