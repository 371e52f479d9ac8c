"""The states of an IR: its variables, and their counterparts in the ONNX model.

    found = state_variables(graph, inputs, outputs)      # of the IR; names of the ONNX model

A variable whose id is the name of an input of the ONNX model followed by that of an output is a state which the caller
of the ONNX model carries. Every other one replaces a state of a loop or a sequence operation.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.dimension import Dim
from mo_loop.transforms.states.port_names import BEAM_INDEX, variable_id
from mo_loop.transforms.vocabulary import integers
from mo_loop.transforms.vocabulary import source_of as behind

Axes = tuple[int, ...] | None
Growth = tuple[Axes, tuple[tuple[tuple[str, ...], int], ...]]


@dataclass(frozen=True)
class StateVariable:
    """A variable, and the input and the output of the ONNX model that take and return it; both empty for another state.

    `grows` are the axes along which an inference makes it longer, None if the types do not show it, and `by` are the
    dimensions of inputs by which it does: (names of the input, axis). `batch` is the axis along which the input
    `beam_idx` reorders it, if it does.
    """

    id: str
    input: str
    output: str
    grows: Axes = None
    by: tuple[tuple[tuple[str, ...], int], ...] = ()
    batch: int | None = None


def has_states(graph: Graph) -> bool:
    """Whether an inference leaves something for the next one."""
    return any(_variable_nodes(graph))


def state_variables(graph: Graph, inputs: Sequence[str], outputs: Sequence[str]) -> list[StateVariable]:
    """The variables that the main graph reads, in its order, and those that only a body reads, by the `inputs` of the
    ONNX model that the IR lacks, and all its `outputs`."""
    pairs = {variable_id(before, after): (before, after) for before in inputs if before for after in outputs}
    assigned = {name: node.inputs[0] for node, name in _variable_nodes(graph) if node.type == "Assign"}
    found: dict[str, StateVariable] = {}
    for node, name in _variable_nodes(graph):
        if node.type == "ReadValue" and name not in found:
            before, after = pairs.get(name, ("", ""))
            if before in [each.input for each in found.values()]:
                before, after = "", ""
            growth = _growth(graph, node.outputs[0], assigned.get(name)) if node.graph is graph else (None, ())
            found[name] = StateVariable(name, before, after, *growth, _batch_axis(node.outputs[0]))
    return list(found.values())


def _variable_nodes(graph: Graph) -> Iterator[tuple[Any, str]]:
    """The nodes that read and assign variables, those of bodies last, and the ids of these. Older ones are Opaque."""
    nodes: Iterator[Any] = (node for scope in graph.scopes() for node in scope)
    found = (each for each in nodes if each.type in ("ReadValue", "Assign"))
    return ((each, str(each.xml_attributes().get("variable_id", ""))) for each in found)


def _growth(graph: Graph, value: Value, assigned: Value | None) -> Growth:
    """The axes along which the assigned value is the variable and something more, and the inputs that give it."""
    shape, after = value.shape, None if assigned is None else assigned.shape
    if shape is None or after is None or len(shape) != len(after):
        return None, ()
    axes, added = [], set()
    for axis, (old, new) in enumerate(zip(shape, after, strict=True)):
        if isinstance(old, int) or isinstance(new, int) or new == old:
            continue
        before, now = set(old.symbols()), set(new.symbols())
        if before <= now:
            axes.append(axis)
            added |= now - before
        elif new.has_fresh():
            return None, ()
    return tuple(axes), tuple(
        ((parameter.name, *parameter.output.names), axis) for parameter in graph.parameters
        for axis, dim in enumerate(parameter.output.shape or ())
        if isinstance(dim, Dim) and not added.isdisjoint(dim.symbols())
    )  # fmt: skip


def _batch_axis(value: Value) -> int | None:
    """The axis along which a Gather with the indices `beam_idx`, or a cast of them, selects from a variable."""
    for use in value.uses:
        if isinstance(use.node, ops.Gather) and use.port == 0:
            rows, axis = behind(use.node.operands[1], ops.Convert), integers(use.node, 2)
            is_beam = isinstance(rows.node, ops.Parameter) and BEAM_INDEX in (rows.node.name, *rows.names)
            if is_beam and axis:
                return axis[0] + len(value.shape) if axis[0] < 0 and value.shape is not None else axis[0]
    return None
