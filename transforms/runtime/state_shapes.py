"""States that the runtime gives the shape of their initial value, although it changes."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.graph.types import string
from mo_loop.ops.control import Final, Iteration, Merged
from transforms.runtime.inference import is_bounded


def hide_initial_shapes(node: Iteration, *, read: bool) -> bool:
    """Hide the sizes of initial values along the axes that change; `read` chooses the states whose final value is read,
    or those where it is not. True if there are any."""
    shown = {
        entry.result
        for entry, output in zip(node.output_map, node.outputs, strict=True)
        if isinstance(entry, Final) and output.is_used
    }
    changed = False
    for port, (entry, value) in enumerate(node.fed, node.first_data_port):
        if not isinstance(entry, Merged) or (entry.result in shown) != read or value.dtype is string:
            continue
        axes = _changing(value, entry)
        if axes:
            node.graph.set_input(node, port, ops.Barrier(value, hides="bounds", axes=axes).output)
            changed = True
    return changed


def _changing(initial: Value, entry: Merged) -> tuple[int, ...]:
    """The axes along which a state changes its size, and for which the runtime knows a size or bounds."""
    shape, state = initial.shape, entry.parameter.output.shape
    if shape is None or state is None:
        return ()
    return tuple(axis for axis, (a, b) in enumerate(zip(shape, state, strict=True)) if a != b and is_bounded(a))
