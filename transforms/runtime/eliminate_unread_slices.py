"""Sliced inputs of a TensorIterator that its body does not read."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.shape import low
from mo_loop.graph.types import boolean, i64
from mo_loop.ops.base import Constant, Result
from mo_loop.ops.control import Loop, Sliced, TensorIterator
from mo_loop.target import Gap
from transforms.function_pass import FunctionPass
from transforms.port_maps import drop_unused_inputs, keep_inputs, replace_iteration


class EliminateUnreadSlices(FunctionPass):
    """TensorIterator over X that reads no slice  ->  Loop with the length of X; over X and Y that reads X  ->  over X

    The runtime removes inputs that the body does not read.
    """

    instead = "`Loop`"
    avoids = (Gap("unread-slice", "a TensorIterator whose body reads no slice runs once"),)

    kinds = (TensorIterator,)

    def run_on_graph(self, graph: Graph) -> bool:
        is_swept = graph.sweep() > 0  # readers without readers do not count
        return super().run_on_graph(graph) or is_swept

    def rewrite(self, node: TensorIterator) -> bool:
        sliced = {entry: entry.parameter.output.is_used for entry in node.input_map if isinstance(entry, Sliced)}
        if all(sliced.values()):
            return self.refuse(node, "its body reads all its slices")
        if any(sliced.values()):
            keep_inputs(node, [number for number, entry in enumerate(node.input_map) if sliced.get(entry, True)])
            return self.accept(node)
        graph, body = node.graph, node.body
        go = Constant(True, graph=graph, dtype=boolean)
        condition = Result(Constant(True, graph=body).output)
        new = Loop(
            _length(node), go, *node.inputs, name=node.name, body=body, input_map=node.input_map,
            output_map=node.output_map, condition=condition,
        )  # fmt: skip
        replace_iteration(node, new)
        drop_unused_inputs(new)
        return self.accept(new)


def _length(node: TensorIterator) -> Value:
    count = node.count
    if isinstance(count, int):
        return Constant(count, graph=node.graph, dtype=i64).output
    assert low(count) > 0, "a TensorIterator runs at least once"
    entry, value = next((entry, value) for entry, value in node.fed if isinstance(entry, Sliced))
    assert entry.part_size == 1 and abs(entry.stride) == 1
    return ops.Gather(ops.ShapeOf(value), entry.axis, 0).output
