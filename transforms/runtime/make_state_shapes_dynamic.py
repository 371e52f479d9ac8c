"""States that change their shape where the runtime assumes a constant one."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.types import string
from mo_loop.ops.control import Final, Iteration, Merged
from transforms.function_pass import FunctionPass
from transforms.runtime.inference import is_bounded


class MakeStateShapesDynamic(FunctionPass):
    """initial value  ->  Barrier(initial value, bounds of its sizes)

    The runtime infers only from the outputs of a loop that a state changes its shape. If the final value is not read,
    the state keeps the shape, or the bounds, of its initial value, and the loop ends without a message when the next
    value does not fit. The dimensions of the initial value that change become dynamic.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for node in self.candidates(graph, Iteration):
            narrow = _narrow(node)
            for port, value, axes in narrow:
                graph.set_input(node, port, ops.Barrier(value, hides="bounds", axes=tuple(axes)).output)
            if narrow:
                changed = self.accept(node)
            else:
                self.refuse(node, "each state that changes its shape is read outside, or is dynamic already")
        return changed


def _narrow(node: Iteration) -> list[tuple[int, Value, list[int]]]:
    """States that change their shape and whose final value is not read: input port, initial value, and the axes."""
    shown = {
        entry.result
        for entry, output in zip(node.output_map, node.outputs, strict=True)
        if isinstance(entry, Final) and output.is_used
    }
    found = []
    for port, entry in enumerate(node.input_map, node.first_data_port):
        value = node.inputs[port]
        if isinstance(entry, Merged) and entry.result not in shown and value is not None and value.dtype is not string:
            axes = _changing(value, entry)
            if axes:
                found.append((port, value, axes))
    return found


def _changing(initial: Value, entry: Merged) -> list[int]:
    """The axes along which a state changes its size, and for which the runtime knows a size or bounds."""
    shape, state = initial.shape, entry.parameter.output.shape
    if shape is None or state is None:
        return []
    return [axis for axis, (a, b) in enumerate(zip(shape, state, strict=True)) if a != b and is_bounded(a)]
