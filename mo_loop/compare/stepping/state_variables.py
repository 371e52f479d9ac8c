"""The variables of an IR, and their counterparts in the ONNX model.

    found = state_variables(graph)                 # of the IR
    states = matched(found, inputs, outputs)       # names of the ONNX model; states.caches, states.others

A variable whose id is the name of an input of the ONNX model followed by that of an output is a state which the caller
of the ONNX model carries: a `Carried`. Every other one replaces a state of a loop or a sequence operation.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from mo_loop import ops
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.dimension import Dim, Symbol
from mo_loop.graph.shape import Shape
from mo_loop.ops.front import Opaque
from mo_loop.transforms.states.port_names import BEAM_INDEX, variable_id

_KINDS = ("ReadValue", "Assign")


@dataclass(frozen=True)
class RuntimeVariable:
    """A variable of the main graph: the shape that it is declared with, and whether the IR computes its initial value.

    `grows` are the axes along which an inference makes it longer, None if the types do not show it, and `by` are the
    dimensions of inputs by which it does: (names of the input, axis). `batch` is the axis along which the input
    `beam_idx` reorders it, if it does.
    """

    id: str
    shape: Shape
    has_initial: bool
    grows: tuple[int, ...] | None = None
    by: tuple[tuple[tuple[str, ...], int], ...] = ()
    batch: int | None = None


@dataclass(frozen=True)
class Carried:
    """A state that an input of the ONNX model takes and an output returns."""

    input: str
    output: str
    variable: RuntimeVariable


@dataclass(frozen=True)
class Matched:
    """The variables of an IR by their counterparts in the ONNX model."""

    caches: list[Carried] = field(default_factory=list)
    others: list[RuntimeVariable] = field(default_factory=list)


def has_states(graph: Graph) -> bool:
    """Whether an inference leaves something for the next one."""
    return any(_kind(node) in _KINDS for scope in graph.scopes() for node in scope)


def state_variables(graph: Graph) -> list[RuntimeVariable]:
    """The variables that the main graph reads, in its order; those that only a body reads come last, without shape."""
    assigned = {_id(node): node.inputs[0] for scope in graph.scopes() for node in scope if _kind(node) == "Assign"}
    found: dict[str, RuntimeVariable] = {}
    for scope in graph.scopes():
        for node in scope.ordered():
            if _kind(node) != "ReadValue" or _id(node) in found:
                continue
            shape = node.outputs[0].shape
            grows, by = _growth(graph, shape, assigned.get(_id(node))) if scope is graph else (None, ())
            batch = _batch_axis(node.outputs[0])
            found[_id(node)] = RuntimeVariable(_id(node), shape, bool(node.inputs), grows, by, batch)
    return list(found.values())


def matched(variables: Iterable[RuntimeVariable], inputs: Sequence[str], outputs: Sequence[str]) -> Matched:
    """Assign each variable to a cache or to the others, by the `inputs` of the ONNX model that the IR lacks, and all
    its `outputs`."""
    found = Matched()
    pairs = {variable_id(before, after): (before, after) for before in inputs if before for after in outputs}
    taken: set[str] = set()
    for each in variables:
        pair = pairs.get(each.id)
        if pair is None or pair[0] in taken:
            found.others.append(each)
            continue
        taken.add(pair[0])
        found.caches.append(Carried(*pair, each))
    return found


def _kind(node: Node) -> str:
    return str(node.kind if isinstance(node, Opaque) else getattr(node, "type", ""))


def _id(node: Any) -> str:
    return str(node.data.get("variable_id", "") if isinstance(node, Opaque) else node.variable_id)


def _growth(
    graph: Graph, shape: Shape, assigned: Value | None
) -> tuple[tuple[int, ...] | None, tuple[tuple[tuple[str, ...], int], ...]]:
    """The axes along which the assigned value is the variable and something more, and the inputs that gives it."""
    after = None if assigned is None else assigned.shape
    if shape is None or after is None or len(shape) != len(after):
        return None, ()
    axes, added = [], []
    for axis, (old, new) in enumerate(zip(shape, after, strict=True)):
        if isinstance(old, int) or isinstance(new, int) or new == old:
            continue
        before = set(old.symbols())
        if before <= set(new.symbols()):
            axes.append(axis)
            added += [symbol for symbol in new.symbols() if symbol not in before]
        elif new.has_fresh():
            return None, ()
    return tuple(axes), tuple(_dimensions(graph, added))


def _dimensions(graph: Graph, symbols: Sequence[Symbol]) -> Iterable[tuple[tuple[str, ...], int]]:
    for parameter in graph.parameters:
        for axis, dim in enumerate(parameter.output.shape or ()):
            if isinstance(dim, Dim) and any(symbol in symbols for symbol in dim.symbols()):
                yield (parameter.name, *parameter.output.names), axis


def _batch_axis(value: Value) -> int | None:
    """The axis along which a Gather with the indices `beam_idx` selects from a variable."""
    for use in value.uses:
        if isinstance(use.node, ops.Gather) and use.port == 0:
            indices, axis = use.node.inputs[1], use.node.inputs[2]
            constant = None if axis is None else axis.constant
            if indices is not None and is_beam(indices) and constant is not None:
                number = int(constant.reshape(-1)[0])
                return number + len(value.shape) if number < 0 and value.shape is not None else number
    return None


def is_beam(value: Value) -> bool:
    """Whether it is the input `beam_idx`, or a cast of it."""
    while _kind(value.node) == "Convert" and value.node.inputs[0] is not None:
        value = value.node.inputs[0]
    return isinstance(value.node, ops.Parameter) and BEAM_INDEX in (value.node.name, *value.names)
