"""Counted loops over slices to TensorIterator-1."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.ops.control import Invariant, Iteration, Loop, Sliced, TensorIterator
from mo_loop.shape import low, normalise_axis
from transforms.base import FunctionPass
from transforms.replace import replace_output


class LoopToTI(FunctionPass):
    """for i in range(len(X)): Gather(X, i)  ->  TensorIterator that slices X

    Holds when the condition is always true, the trip count is proven equal to X's length and at least 1, the iteration
    number serves nothing but such Gathers, and no TensorIterator is the direct owner (the runtime fails on one directly
    inside another).
    """

    bodies = "last"

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        if isinstance(graph.owner, TensorIterator):
            return False
        for node in graph.of(Loop):
            changed = self._rewrite(node) or changed
        return changed

    def _rewrite(self, node: Loop) -> bool:
        go = node.inputs[1]
        assert go is not None
        if go.type.integers != (1,) or not node.continues_always or node.iteration is None:
            return False
        count = node.count
        if low(count) < 1:
            return False
        gathers = _gathers(node)
        if not gathers or not all(_length(node, entry, axis) == count for _, entry, axis, _ in gathers):
            return False
        axes: dict[Invariant, int] = {}
        nodes = {gather for gather, *_ in gathers}
        for _, entry, axis, _ in gathers:
            if axes.setdefault(entry, axis) != axis or any(u.node not in nodes for u in entry.parameter.output.uses):
                return False
        for gather, entry, axis, is_scalar in gathers:
            parameter = entry.parameter
            piece = parameter.output.type.dims
            parameter.retype(parameter.output.type.with_shape((*piece[:axis], 1, *piece[axis + 1 :])))
            node.body.validate_node(parameter)
            new = ops.Squeeze(parameter.output, [axis]).output if is_scalar else parameter.output
            gather.outputs[0].replace_with(new)
        _replace(node, axes)
        return True


def _gathers(node: Loop) -> list[tuple[ops.Gather, Invariant, int, bool]]:
    """Every reader of the iteration number, if all are Gathers from an invariant: (node, entry, axis, scalar index)."""
    entries = {entry.parameter: entry for entry in node.input_map if isinstance(entry, Invariant)}
    found: list[tuple[ops.Gather, Invariant, int, bool]] = []
    pending: list[tuple[Value, bool]] = [(node.iteration.output, True)]
    while pending:
        index, is_scalar = pending.pop()
        for reader, port in index.uses:
            if isinstance(reader, ops.Unsqueeze | ops.Reshape) and port == 0 and reader.output.shape == (1,):
                pending.append((reader.output, False))
                continue
            if not isinstance(reader, ops.Gather) or port != 1 or reader.batch_dims:
                return []
            data, axis = reader.inputs[0], reader.inputs[2]
            assert data is not None and axis is not None
            if data.node not in entries or axis.type.integers is None or data.rank is None:
                return []
            found.append((reader, entries[data.node], normalise_axis(axis.type.integers[0], data.rank), is_scalar))
    return found


def _length(node: Loop, entry: Invariant, axis: int) -> object:
    return entry.parameter.output.type.dims[axis]


def _replace(node: Loop, axes: dict[Invariant, int]) -> Iteration:
    body = node.body
    body.remove(node.condition)
    body.sweep()
    body.remove(node.iteration)
    input_map = tuple(
        Sliced(entry.parameter, axes[entry]) if isinstance(entry, Invariant) and entry in axes else entry
        for entry in node.input_map
    )
    new = TensorIterator(
        *node.data_inputs, graph=node.graph, name=node.name, body=body, input_map=input_map,
        output_map=node.output_map,
    )  # fmt: skip
    for old, replacement in zip(node.outputs, new.outputs, strict=True):
        replacement.names = old.names
        replace_output(old, replacement)
    node.graph.remove(node)
    return new
