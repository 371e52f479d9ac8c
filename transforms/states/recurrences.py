"""Loops and recurrent layers as steps of a sequence: their number, what they carry, what prevents one step alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.shape import Dim, Dimension, is_static, normalise_axis, substituted
from mo_loop.graph.types import TensorType
from mo_loop.ops.base import Constant
from mo_loop.ops.control import If, Invariant, Iteration, Loop, Sliced
from mo_loop.ops.recurrent import Sequence
from transforms.slice_reads import slice_reads

Recurrence: TypeAlias = Iteration | Sequence


def length_of(node: Recurrence) -> Dimension | None:
    """The number of steps; None if nothing is known."""
    if isinstance(node, Iteration):
        return node.count
    x = node.inputs[0]
    return None if x is None or x.shape is None else x.shape[1]


def counts_steps(node: Recurrence) -> bool:
    """Whether the body reads the iteration number for more than slices."""
    return isinstance(node, Loop) and node.iteration is not None and slice_reads(node)[1] not in ("", _NONE)


_NONE = "it reads no slices"


def has_states(node: Recurrence) -> bool:
    """Whether a step depends on the steps before it."""
    return isinstance(node, Sequence) or bool(node.back_edges) or counts_steps(node)


def obstacle_of(node: Recurrence) -> tuple[str, str] | None:
    """Why a node cannot become one step of a sequence, and what helps."""
    if length_of(node) != 1:
        help_ = "give the sequence one step with --input, or with LowLatency2[sequence_length=1]"
        return "has an unknown number of steps", help_
    if isinstance(node, Sequence):
        if node.direction != "forward":
            return f"has the direction {node.direction} and needs the whole sequence", "export a forward model"
        return None
    backwards = any(isinstance(entry, Sliced) and entry.stride < 0 for entry in node.input_map)
    if backwards and has_states(node):
        return "reads the sequence backwards and needs all of it", "export a forward model"
    if isinstance(node, Loop) and not node.continues_always and node.condition.value.type.integers != (0,):
        return "has a condition that may end it before the end of the sequence", "export a loop over all steps"
    reader = next((each for each in _moving(node) if not isinstance(each, ops.Gather | ops.ScatterUpdate)), None)
    if reader is not None:
        text = f"reads or writes its sequence by an index that it carries ({reader.label})"
        return text, "export the loop as a Scan, or read the sequence with Gather"
    return None


def index_with_zero(node: Iteration) -> None:
    """X[i]  ->  X[0] where X has one element along that axis: in one step of a sequence every index into it is 0."""
    for reader in _moving(node):
        index = reader.inputs[1]
        assert index is not None
        if is_static(index.shape):
            zero = Constant(np.zeros(index.type.dims, np.int64), graph=node.body, dtype=index.dtype).output
        else:
            zero = ops.Multiply(index, 0).output
        node.body.set_input(reader, 1, zero)


def _moving(node: Iteration) -> list[Node]:
    """What indexes an axis of one element, outside the loop, by a number that the loop carries."""
    body = node.body
    carried = [entry.parameter for entry in node.back_edges if entry.parameter.output.dtype.is_integer]
    if isinstance(node, Loop) and node.iteration is not None:
        carried.append(node.iteration)
    whole: set[Value] = {entry.parameter.output for entry in node.input_map if isinstance(entry, Invariant)}
    whole |= {entry.parameter.output for entry in node.back_edges}
    found = []
    for each in body.ordered():
        if not isinstance(each, _INDEXED) or each.inputs[0] not in whole:
            continue
        if body.ancestors([value.node for value in each.inputs[1:2] if value is not None]).isdisjoint(carried):
            continue
        if _axis_of_one(each):
            found.append(each)
    return found


_INDEXED = (
    ops.Gather, ops.GatherND, ops.GatherElements, ops.Slice, ops.ScatterUpdate, ops.ScatterNDUpdate,
    ops.ScatterElementsUpdate,
)  # fmt: skip


def _axis_of_one(node: Node) -> bool:
    """Whether the axis that is indexed has one element; where it is not known, whether any axis has."""
    data = node.inputs[0]
    assert data is not None
    if data.shape is None:
        return False
    place = {ops.Gather: 2, ops.ScatterUpdate: 3}.get(type(node))
    axis = None if place is None or len(node.inputs) <= place else node.inputs[place]
    if axis is None or axis.type.integers is None:
        return 1 in data.shape
    return data.shape[normalise_axis(axis.type.integers[0], len(data.shape))] == 1


# -- the length of sequences


def make_single(graph: Graph) -> bool:
    """Give length 1 to the dimensions of inputs over which loops and recurrent layers run; True if any changed."""
    changed = False
    for _ in range(len(graph.parameters) + 1):
        symbols = [dim.symbol for dim in _lengths(graph) if isinstance(dim, Dim) and dim.symbol is not None]
        found = False
        for symbol in dict.fromkeys(symbols):
            for parameter in graph.parameters:
                type_ = parameter.output.type
                if type_.shape is None:
                    continue
                dims = tuple(substituted(dim, symbol, 1) for dim in type_.dims)
                if dims != type_.dims:
                    parameter.retype(TensorType(type_.dtype, dims))
                    found = True
        if not found:
            break
        changed = True
        graph.validate()
    return changed


def _lengths(graph: Graph) -> Iterator[Dimension]:
    """The unknown numbers of steps in the graph and in its branches, and the lengths of what is sliced."""
    for node in graph.ordered():
        if isinstance(node, If):
            for body in node.bodies:
                yield from _lengths(body)
        if isinstance(node, Iteration | Sequence):
            length = length_of(node)
            if isinstance(length, Dim):
                yield length
        if isinstance(node, Iteration):
            for entry, value in node.fed:
                if isinstance(entry, Sliced) and value.shape is not None:
                    yield value.shape[normalise_axis(entry.axis, len(value.shape))]
