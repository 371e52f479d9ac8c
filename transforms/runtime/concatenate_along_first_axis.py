"""Outputs concatenated along an axis that follows a dimension of 0."""

from __future__ import annotations

from dataclasses import replace
from typing import cast

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.graph.dimension import low
from mo_loop.ops.control import Iteration, Loop, TensorIterator
from mo_loop.ops.port_map import Concatenated
from mo_loop.target import CRASH, Gap
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.operands import integers
from mo_loop.transforms.replace import move_readers


class ConcatenateAlongFirstAxis(FunctionPass):
    """concatenated along axis k, where a dimension before k may be 0  ->  concatenated along axis 0, then Transpose

    The runtime divides the size of its buffer by the product of the dimensions before the axis.
    """

    instead = "axis 0, then `Transpose`"
    avoids = (Gap(
        "concatenated-behind-zero", "concatenation along an axis after a dimension of 0 crashes the process",
        severity=CRASH,
    ),)  # fmt: skip

    kinds = (Loop, TensorIterator)

    def rewrite(self, node: Iteration) -> bool:
        changed = False
        for number, entry in enumerate(node.output_map):
            if isinstance(entry, Concatenated) and _follows_zero(node.outputs[number], entry.axis):
                self._rewrite(node, number)
                changed = True
        if not changed:
            return self.refuse(node, "no output is concatenated along an axis that follows a dimension of 0")
        return self.accept(node)

    def _rewrite(self, node: Iteration, number: int) -> None:
        entry = cast(Concatenated, node.output_map[number])
        axis, rank = entry.axis, node.outputs[number].type.rank
        result = ops.Result(_with_axis_first(entry.result.value, axis))
        fed = {each.result for each in node.back_edges} | {
            each.result for place, each in enumerate(node.output_map) if place != number
        }
        if entry.result not in fed:
            node.body.remove(entry.result)
            node.body.sweep()
        maps = list(node.output_map)
        dims = entry.declared
        declared = (dims[axis], *dims[:axis], *dims[axis + 1 :]) if dims else ()
        maps[number] = replace(entry, result=result, axis=0, declared=declared)
        node.output_map = tuple(maps)
        node.graph.validate_node(node)
        output = node.outputs[number]
        readers = output.uses
        if readers:
            back = ops.Transpose(output, [*range(1, axis + 1), 0, *range(axis + 1, rank)]).output
            move_readers(output, back, readers)


def _follows_zero(output: Value, axis: int) -> bool:
    return output.shape is not None and any(low(dim) < 1 for dim in output.shape[:axis])


def _with_axis_first(piece: Value, axis: int) -> Value:
    """`piece` with its axis in front. If an Unsqueeze has made the axis, an Unsqueeze makes it in front instead."""
    node = piece.node
    if isinstance(node, ops.Unsqueeze) and integers(node, 1) == (axis,):
        return ops.Unsqueeze(node.operands[0], 0).output
    rank = piece.type.rank
    return ops.Transpose(piece, [axis, *(each for each in range(rank) if each != axis)]).output
