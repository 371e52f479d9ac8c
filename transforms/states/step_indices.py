"""Reads and writes of a loop by an index: which of them are those of its own step.

    for i in range(n): x[i]                     the step's own element: in one step of a sequence that is x[0]
    for i in range(n): x[max(i - 1, 0)]         an element of another step, which one step alone does not have

The first index is the iteration number, or a state that starts at 0 and grows by 1 in each iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from mo_loop.graph.dimension import Dim, Dimension
from mo_loop.ops.control import Control, Iteration, Loop
from mo_loop.ops.port_map import Invariant, Merged
from mo_loop.support.traversal import reached
from mo_loop.transforms.vocabulary import Constant, Graph, Node, Parameter, Value, is_static, ops

_INDEXED = (
    ops.Gather, ops.GatherND, ops.GatherElements, ops.Slice, ops.ScatterUpdate, ops.ScatterNDUpdate,
    ops.ScatterElementsUpdate,
)  # fmt: skip

IsStep = Callable[[Dimension], bool]


def has_one_element(dim: Dimension) -> bool:
    """Whether an axis of this size counts as the axis of the sequence, which has one step."""
    return dim == 1


def indexed_reads(node: Iteration, is_step: IsStep = has_one_element) -> list[Node]:
    """The nodes that index an outer tensor or a state of a loop, along an axis of steps, by a number that the loop
    carries.

    Reads in the bodies of inner loops and branches are among them.
    """
    carried = {entry.parameter for entry in node.back_edges if entry.parameter.output.dtype.is_integer}
    if isinstance(node, Loop) and node.iteration is not None:
        carried.add(node.iteration)
    whole = {entry.parameter for entry in node.input_map if isinstance(entry, Invariant)}
    whole |= {entry.parameter for entry in node.back_edges}
    return [
        each for each in _all_nodes(node.body)
        if isinstance(each, _INDEXED) and each.inputs[0] is not None and each.inputs[1] is not None
        and _source(each.inputs[0], node).node in whole and _has_step_axis(each, is_step)
        and _depends(each.inputs[1], carried, node)
    ]  # fmt: skip


def indexed_data(node: Iteration) -> Iterator[tuple[Value, int]]:
    """The outer tensors that a loop indexes by the number of its step, and the axes."""
    outer = {entry.parameter.output: value for entry, value in node.fed if isinstance(entry, Invariant)}
    for reader in indexed_reads(node):
        data, axis = reader.inputs[0], _indexed_axis(reader)
        source = None if data is None else outer.get(_source(data, node))
        if source is not None and axis is not None:
            yield source, axis


def lengths_by_index(node: Iteration) -> Iterator[Dimension]:
    """The sizes of the axes that a loop indexes by the number of its step."""
    for reader in indexed_reads(node, lambda dim: isinstance(dim, Dim)):
        data, axis = reader.inputs[0], _indexed_axis(reader)
        if data is not None and axis is not None and isinstance(reader, ops.Gather) and _is_step_number(node, reader):
            yield data.type.dims[axis]


def obstacle_of_reads(node: Iteration) -> tuple[str, str] | None:
    """The reason why the indices of a loop need more than one step, and the advice."""
    for reader in indexed_reads(node):
        if not isinstance(reader, ops.Gather | ops.ScatterUpdate):
            text = f"reads or writes its sequence by an index that it carries ({reader.label})"
            return text, "export the loop as a Scan, or read the sequence with Gather"
    return obstacle_of_places(node)


def obstacle_of_places(node: Iteration, is_step: IsStep = has_one_element) -> tuple[str, str] | None:
    """The obstacle of a loop that reads or writes the element of another step."""
    for reader in indexed_reads(node, is_step):
        if isinstance(reader, ops.Gather | ops.ScatterUpdate) and not _is_step_number(node, reader):
            text = f"reads or writes its sequence at another place than that of the step ({reader.label})"
            return text, "export a loop whose index is the iteration number, or carry what other steps read as a state"
    return None


def index_with_zero(node: Iteration) -> None:
    """X[i]  ->  X[0] where X has one element along that axis: in one step of a sequence that is the one of the step."""
    for reader in indexed_reads(node):
        index = reader.operands[1]
        if is_static(index.shape):
            zero = Constant(np.zeros(index.type.dims, np.int64), graph=reader.graph, dtype=index.dtype).output
        else:
            zero = ops.Multiply(index, 0).output
        reader.graph.set_input(reader, 1, zero)


def _all_nodes(graph: Graph) -> Iterator[Node]:
    for node in graph.ordered():
        yield node
        for body in node.bodies:
            yield from _all_nodes(body)


def _source(value: Value, loop: Iteration) -> Value:
    """The value in the body of the loop that a value in an inner body is."""
    while value.graph is not loop.body and isinstance(value.node, Parameter):
        owner = value.graph.owner
        assert isinstance(owner, Control)
        entry = next((each for each in owner.input_map if value.node in vars(each).values()), None)
        outer = owner.outer(value.node)
        if outer is None or isinstance(entry, Merged):
            return value
        value = outer
    return value


def _depends(value: Value, carried: set[Parameter], loop: Iteration) -> bool:
    """Whether a value is computed from one of the Parameters of the loop."""

    def sources(node: Node) -> list[Node]:
        owner = node.graph.owner
        if isinstance(node, Parameter) and node.graph is not loop.body and isinstance(owner, Control):
            outer = owner.outer(node)
            return [] if outer is None else [outer.node]
        return [each.node for each in node.operands]

    return any(node in carried for node in reached([value.node], sources))


def _has_step_axis(node: Node, is_step: IsStep) -> bool:
    """Whether the axis that is indexed is one of steps; where it is not known, whether any axis is."""
    data, axis = node.inputs[0], _indexed_axis(node)
    if data is None or data.shape is None:
        return False
    return is_step(data.shape[axis]) if axis is not None else any(map(is_step, data.shape))


def _indexed_axis(node: Node) -> int | None:
    return node.along[0] if isinstance(node, ops.Gather | ops.ScatterUpdate) and node.along else None


def _is_step_number(loop: Iteration, reader: Node) -> bool:
    """Whether the index of a read is the number of the iteration: i, or a state that starts at 0 and grows by 1."""
    index, data, axis = reader.inputs[1], reader.inputs[0], _indexed_axis(reader)
    assert index is not None and data is not None
    last = None if axis is None else data.type.dims[axis] - 1
    value = _plain(index, loop, last)
    if isinstance(loop, Loop) and value.node is loop.iteration:
        return True
    for entry, first in loop.fed:
        if isinstance(entry, Merged) and entry.parameter.output is value:
            start = first.type.integers
            return start is not None and not any(start) and _is_next(entry, loop, last)
    return False


def _is_next(entry: Merged, loop: Iteration, last: Dimension | None) -> bool:
    """Whether the next value of a state is the state + 1."""
    node = _plain(entry.result.value, loop, last).node
    if not isinstance(node, ops.Add):
        return False
    a, b = node.operands
    state = entry.parameter.output
    return any(
        _plain(one, loop, last) is state and other.type.integers is not None and set(other.type.integers) == {1}
        for one, other in ((a, b), (b, a))
    )  # fmt: skip


def _plain(value: Value, loop: Iteration, last: Dimension | None) -> Value:
    """The integer, from 0 to `last`, before operations that do not change such a one."""
    while True:
        value = _source(value, loop)
        before = _before(value, loop, last)
        if before is None:
            return value
        value = before


def _before(value: Value, loop: Iteration, last: Dimension | None) -> Value | None:
    node = value.node
    inputs = list(node.operands)
    if isinstance(node, ops.SameElements):
        return inputs[0]
    if isinstance(node, ops.Convert):
        is_same = inputs[0].dtype.is_integer and value.dtype.is_integer and value.dtype.bits >= 32
        return inputs[0] if is_same else None
    if isinstance(node, ops.Maximum | ops.Minimum):  # as exporters keep an index within its bounds
        bound: Dimension | None = 0 if isinstance(node, ops.Maximum) else last
        others = [a for a, b in (inputs, reversed(inputs)) if bound is not None and _is_all(b, bound)]
        return others[0] if others else None
    if isinstance(node, ops.Select) and isinstance(inputs[0].node, ops.Less):  # i + n if i < 0 else i
        index, zero = inputs[0].node.inputs
        assert index is not None and zero is not None
        is_same = _is_all(zero, 0) and _plain(index, loop, last) is _plain(inputs[2], loop, last)
        return inputs[2] if is_same else None
    return None


def _is_all(value: Value, wanted: Dimension) -> bool:
    known = value.type.known
    return known is not None and all(each == wanted for each in known.reshape(-1))
