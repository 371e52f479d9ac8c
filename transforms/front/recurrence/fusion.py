"""One cell of one loop becomes a sequence operation, or there is a reason why not.

x [time, batch, input], h [batch, hidden]  ->  x [batch, time, input], h [batch, 1, hidden]  ->  the sequence
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop.graph import f16, f32, i32, normalise_axis
from mo_loop.graph.dimension import Assumption, Dimension, low, open_symbols
from mo_loop.ops.control import Iteration, Loop, TensorIterator
from mo_loop.ops.movement import FAR
from mo_loop.ops.port_map import Concatenated, Final, Invariant, Merged, Sliced
from mo_loop.support.traversal import reached
from mo_loop.transforms import port_maps
from mo_loop.transforms.front.recurrence.cells import Gate, RecognisedCell, recognised
from mo_loop.transforms.front.recurrence.columns import Columns, NotACell, batch_of, width_of
from mo_loop.transforms.replace import copy_runtime_info, replace_output
from mo_loop.transforms.slice_reads import ends_by_trip_count, slice_reads
from mo_loop.transforms.vocabulary import Constant, F, Parameter, Value, ops


@dataclass(frozen=True)
class Leaf:
    """A slice that the body reads: `value` in the body, of `outer` along `axis`, in reverse order if `reverse`."""

    value: Value
    outer: Value
    axis: int
    reverse: bool


@dataclass(frozen=True)
class EmittedOutputs:
    """All hidden states [batch, time, hidden] in the order of the slices, and the final states [batch, hidden].

    `every` is `steps` with a batch of 0 if there is no step, as a loop of ONNX returns it.
    """

    node: Any
    steps: Value
    every: Value
    last: tuple[Value, ...]


def emitted(cell: RecognisedCell, leaves: Sequence[Leaf], initial: Sequence[Value], batch: Dimension, time: Dimension,
            name: str) -> EmittedOutputs:
    """The sequence on the outer values. `leaves` are the slices that the gates read, `initial` the initial states."""
    x = joined([_batch_first(leaf) for leaf in leaves])
    graph, hidden, dtype = x.graph, len(cell.gates[0].bias), x.dtype
    places, start = {}, 0
    for leaf in leaves:
        places[leaf.value] = start
        start += width_of(leaf.value)
    firsts = [F.Unsqueeze(rows(each), [1]) for each in initial]
    weights = [_weights(gate, places, start) for gate in cell.gates]
    biases = [*(gate.bias for gate in cell.gates), *([] if cell.recurrent_bias is None else [cell.recurrent_bias])]
    arrays = map(np.concatenate, (weights, [gate.recurrence for gate in cell.gates], biases))
    constants = [F.Constant(each[np.newaxis].astype(dtype.numpy), graph=graph, dtype=dtype) for each in arrays]
    attributes: dict[str, Any] = {
        "direction": "reverse" if leaves[0].reverse else "forward", "hidden_size": hidden,
        "activations": cell.activations,
    }
    if cell.kind == "GRU":
        attributes["linear_before_reset"] = cell.linear_before_reset
    kind = {"LSTM": ops.LSTMSequence, "GRU": ops.GRUSequence, "RNN": ops.RNNSequence}[cell.kind]
    node = kind(x, *firsts, _lengths(x, batch, time), *constants, name=name, **attributes)
    steps = every = F.Squeeze(node.outputs[0], [1])
    last = [F.Squeeze(output, [1]) for output in node.outputs[1:]]
    if low(time) < 1:  # without a step the runtime leaves old contents in the final states
        ran = F.Greater(F.Gather(x.sizes, 1, 0), 0)
        last = [F.Select(ran, a, rows(b)) for a, b in zip(last, initial, strict=True)]
        every = steps if isinstance(batch, int) else _cut(steps, ran)
    return EmittedOutputs(node, steps, every, tuple(last))


def _cut(every: Value, ran: Value) -> Value:
    """A tensor without elements if there were no steps and the batch size is dynamic, as in ONNX Runtime."""
    large, none = (Constant(np.array([end]), graph=every.graph) for end in (FAR, 0))
    end = F.Barrier(F.Select(ran, large, none), hides="bounds")
    return F.Slice(every, [0], end, [1], [0])


def _weights(gate: Gate, places: dict[Value, int], width: int):
    found = np.zeros((len(gate.bias), width), np.float32)
    for source, matrix in gate.inputs:
        start = places[source.value]
        found[:, start + source.first : start + source.last] += matrix
    return found


def _lengths(x: Value, batch: Dimension, time: Dimension) -> Value:
    """The lengths of the sequences: each is as long as the input."""
    if isinstance(batch, int) and isinstance(time, int):
        return F.Constant(np.full(batch, time, np.int32), graph=x.graph)
    dims = x.sizes
    return F.Convert(F.Broadcast(F.Gather(dims, [1], 0), F.Gather(dims, [0], 0)), destination_type=i32)


# -- layouts


def joined(values: Sequence[Value]) -> Value:
    """Concatenated along the last axis."""
    return values[0] if len(values) == 1 else F.Concat(*values, axis=2)


def row_axis(dims: Sequence[Dimension], taken: int | None = None) -> int | None:
    """The axis of the batch before the last: the one that is not 1, else the first; None if there is no axis."""
    free = [axis for axis in range(len(dims) - 1) if axis != taken]
    return next((axis for axis in free if dims[axis] != 1), free[0] if free else None)


def rows(value: Value) -> Value:
    """The value as [batch, columns], without dimensions of 1 and with a batch."""
    dims = value.type.dims
    batch = row_axis(dims)
    if batch is None:
        return F.Unsqueeze(value, [0])
    ones = [axis for axis in range(len(dims) - 1) if axis != batch]
    return F.Squeeze(value, ones) if ones else value


def _batch_first(leaf: Leaf) -> Value:
    dims = leaf.outer.type.dims
    batch = row_axis(dims, leaf.axis)
    ones = [axis for axis in range(len(dims) - 1) if axis not in (leaf.axis, batch)]
    value = F.Squeeze(leaf.outer, ones) if ones else leaf.outer
    if batch is None:
        return F.Unsqueeze(value, [0])
    return F.Transpose(value, [1, 0, 2]) if leaf.axis < batch else value


def as_final(value: Value, dims: Sequence[Dimension]) -> Value:
    """[batch, columns] in the shape of a Result of the body."""
    batch = row_axis(dims)
    if batch is None:
        return F.Squeeze(value, [0])
    ones = [axis for axis in range(len(dims) - 1) if axis != batch]
    return F.Unsqueeze(value, ones) if ones else value


def as_concatenated(value: Value, dims: Sequence[Dimension], axis: int) -> Value:
    """[batch, time, columns] as slices of shape `dims` concatenated along `axis`."""
    batch = row_axis(dims, axis)
    if batch is None:
        return F.Squeeze(value, [0])
    if axis < batch:
        value = F.Transpose(value, [1, 0, 2])
    ones = [each for each in range(len(dims) - 1) if each not in (axis, batch)]
    return F.Unsqueeze(value, ones) if ones else value


def fused(node: Iteration) -> str:
    """Fuse one cell that the loop computes; returns the reason if there is none, else an empty string."""
    reason = "it has no states"
    try:
        leaves = _leaves(node)
        states = [entry for entry in node.back_edges if _is_matrix(entry.parameter.output)]
    except NotACell as refusal:
        return str(refusal)
    for hidden in states:
        try:
            _Fusion(node, leaves, states, hidden).run()
        except NotACell as refusal:
            reason = str(refusal)
        else:
            return ""
    return reason


def _is_matrix(value: Value) -> bool:
    return value.dtype in (f32, f16) and bool(value.shape) and isinstance(value.type.dims[-1], int)


def _leaves(node: Iteration) -> list[Leaf]:
    """The slices that the body reads, if it has exactly one iteration per slice; NotACell otherwise."""
    if not isinstance(node, Loop | TensorIterator):
        raise NotACell("it is a Scan still")
    if isinstance(node, Loop) and not ends_by_trip_count(node):
        raise NotACell("its condition may be false")
    found = [
        Leaf(entry.parameter.output, value, entry.axis, entry.stride < 0)
        for entry, value in node.fed
        if isinstance(entry, Sliced) and port_maps.is_one_after_another(entry) and value.shape is not None
    ]
    if isinstance(node, Loop) and node.iteration is not None:
        outer = {entry: value for entry, value in node.fed if isinstance(entry, Invariant)}
        reads, _ = slice_reads(node)
        found += [Leaf(read.node.output, outer[read.entry], read.axis, read.reverse) for read in reads if not read.rest]
    counted = [leaf for leaf in found if _length(leaf) == node.count]
    if not counted:
        unproven = "its number of iterations is not proven to be the length of its slices"
        raise NotACell(unproven if found else "it reads no slices")
    return counted


def _is_multiplied(value: Value) -> bool:
    """Whether a matrix product reads a value, which then has as many columns as the matrix has rows."""
    views = (ops.Squeeze, ops.Unsqueeze, ops.Reshape, ops.Transpose, ops.Identity)
    readers = [use.node for use in value.uses]
    return any(
        isinstance(each, ops.MatMul) or (isinstance(each, views) and _is_multiplied(each.output)) for each in readers
    )


def _length(leaf: Leaf) -> Dimension:
    return leaf.outer.type.dims[leaf.axis]


class _Fusion:
    """One cell of one loop: all conditions are checked first, then the graph is changed."""

    def __init__(self, node: Iteration, leaves: list[Leaf], states: list[Merged], hidden: Merged) -> None:
        self.node = node
        self.hidden = hidden
        self.batch = batch_of(hidden.parameter.output)
        ends = [*(leaf.value for leaf in leaves), *(state.parameter.output for state in states)]
        outer = {entry.parameter.output: value for entry, value in node.fed if isinstance(entry, Invariant)}
        self.columns = Columns(ends, outer, self.batch)
        self.cell: RecognisedCell = recognised(self.columns, hidden, states)
        self.leaves = self._read_by_gates(leaves)
        self.time = _length(self.leaves[0])
        self.roots = [self.columns.plain(state.result.value) for state in self.cell.states]
        initial = {entry: value for entry, value in node.fed if isinstance(entry, Merged)}
        self.initial = [initial[state] for state in self.cell.states]
        self.require_fit()
        self.direct = [output for output in node.outputs if output.is_used and self._is_direct(output)]
        self.needs_slices = self._needs_slices()

    def _read_by_gates(self, leaves: list[Leaf]) -> list[Leaf]:
        read = {source.value for gate in self.cell.gates for source, _ in gate.inputs}
        found = [leaf for leaf in leaves if leaf.value in read]
        if len(found) < len(read):
            raise NotACell("a gate reads a state that is not its own")
        if not found:
            raise NotACell("the cell reads no slices")
        if len({leaf.reverse for leaf in found}) > 1:
            raise NotACell("the cell reads slices in both directions")
        return found

    def require_fit(self) -> None:
        """NotACell if batches are not proven equal outside the loop, or a TensorIterator could not run the result."""
        if any(value.shape is None or batch_of(value) != self.batch for value in self.initial):
            raise NotACell("the initial state is not proven to have the batch size of the other states")
        if any(leaf.axis == len(leaf.outer.type.dims) - 1 for leaf in self.leaves):
            raise NotACell("the last dimension is sliced")
        if len({_length(leaf) for leaf in self.leaves}) > 1:
            raise NotACell("the sliced inputs have different lengths")
        is_static = isinstance(self.batch, int) and isinstance(self.time, int)
        if isinstance(self.node.graph.owner, TensorIterator) and not is_static:
            raise NotACell("it is directly in the body of a TensorIterator, and batch or length are dynamic")

    # -- outputs

    def _is_direct(self, output: Value) -> bool:
        """Whether an output is a state in another layout."""
        entry = self.node.output_map[output.index]
        root = self.columns.plain(entry.result.value)
        if isinstance(entry, Final):
            return root in self.roots
        dims = entry.result.value.type.dims
        axis = normalise_axis(entry.axis, len(dims))
        is_one_step = axis < len(dims) - 1 and dims[axis] == 1 and port_maps.is_one_after_another(entry)
        return root is self.roots[0] and is_one_step

    def _needs_slices(self) -> bool:
        """Whether the rest of the body reads the next hidden state; NotACell if it reads another value of the cell."""
        own = {state.result for state in self.cell.states}
        rest = [self.node.output_map[o.index].result for o in self.node.outputs if o.is_used and o not in self.direct]
        rest += [state.result for state in self.node.back_edges if state.result not in own]
        if isinstance(self.node, Loop):
            rest.append(self.node.condition)
        root, *forbidden = (*self.roots, *(state.parameter.output for state in self.cell.states))
        read = (value for result in rest for value in result.operands)
        seen = set(reached(read, lambda value: () if value is root else value.node.operands))
        if not seen.isdisjoint(forbidden):
            raise NotACell("another node of the body reads a state of the cell")
        sliced = {entry.parameter.output for entry in self.node.input_map if isinstance(entry, Sliced)}
        if rest and isinstance(self.node, TensorIterator) and seen.isdisjoint({*sliced, root}):
            raise NotACell("the rest of the body reads no slices: the runtime would execute it once")
        return root in seen

    # -- changes

    def run(self) -> None:
        """Assumption if sizes of inputs may change that the model's constant weights fit, or those of no step."""
        node = self.node
        read = [leaf.value for leaf in self.leaves] + [state.parameter.output for state in self.cell.states]
        read = [value for value in read if not isinstance(value.type.dims[-1], int)]
        if not all(map(_is_multiplied, read)):
            raise NotACell("a value may have one column, which is added to all columns of the state")
        fixed = open_symbols(value.type.dims[-1] for value in read)
        least = {symbol: 1 for symbol in open_symbols([self.time]) if symbol.lo == 0}
        if fixed or least:
            raise Assumption(fixed, least=least.items())
        outcome = emitted(self.cell, self.leaves, self.initial, self.batch, self.time, f"{node.name}/sequence")
        copy_runtime_info(node, outcome.node)
        for output in self.direct:
            replace_output(output, self._outer(output, outcome))
        if self.needs_slices:
            self._slice(outcome)
        port_maps.drop_unused_outputs(node)
        if not node.outputs:
            node.graph.remove(node)
            return
        node.body.sweep()
        port_maps.drop_unused_inputs(node)
        if self.direct:  # model outputs among them have the name now
            node.name = f"{node.name}/rest"

    def _outer(self, output: Value, outcome: EmittedOutputs) -> Value:
        entry = self.node.output_map[output.index]
        value = entry.result.value
        if isinstance(entry, Final):
            return as_final(outcome.last[self.roots.index(self.columns.plain(value))], value.type.dims)
        assert isinstance(entry, Concatenated)
        axis = normalise_axis(entry.axis, len(value.type.dims))
        made = as_concatenated(outcome.every, value.type.dims, axis)
        return made if (entry.stride < 0) == self.leaves[0].reverse else port_maps.reversed_along(made, axis)

    def _slice(self, outcome: EmittedOutputs) -> None:
        """The body reads slices of the hidden states instead of computing them."""
        node, root = self.node, self.roots[0]
        readers = root.uses
        piece = outcome.steps.type
        parameter = Parameter(graph=node.body, type=piece.with_shape((piece.dims[0], 1, piece.dims[2])))
        element = as_final(F.Squeeze(parameter.output, [1]), root.type.dims)
        for reader, port in readers:
            node.body.set_input(reader, port, element)
        sliced = Sliced(parameter, 1, start=-1, end=0, stride=-1) if self.leaves[0].reverse else Sliced(parameter, 1)
        port_maps.add_input(node, sliced, outcome.steps)
