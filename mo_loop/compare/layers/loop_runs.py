"""Loops that are run iteration by iteration: Loop, Scan and SequenceMap of ONNX, Loop and TensorIterator of the IR.

loop = IrLoop(frame, node)                      # or OnnxLoop(frame, place)
while loop.goes_on():
    inner = loop.begin()                        # a frame of the body, with slices, states and invariant inputs
    ...
    loop.end(inner)                             # the next states, and the parts of joined outputs
loop.outputs()
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from mo_loop.compare.layers.ir_side import IrFrame, IrRunError
from mo_loop.compare.layers.onnx_side import Iterations, OnnxError, OnnxFrame, OnnxPlan
from mo_loop.graph.shape import normalise_axis
from mo_loop.ops.control import Iteration, Loop
from mo_loop.ops.port_map import Concatenated, Merged, Sliced


class LoopOutput(NamedTuple):
    """An output of a loop: `state` itself; else the last value of `result`, or with an axis all of its values, in
    reverse order with a negative step."""

    result: Any
    state: Any = None
    axis: int | None = None
    step: int = 1


class LoopRun:
    """One run of a loop.

    Tensors have the keys by which the frames of a side know them. `states` are the values of the states by the input of
    the body that receives them, `_results` the tensors of the body that are their next values, `_inputs` gives each
    other input of the body its array by the number of the iteration, and `_goes_on` the condition.
    """

    states: dict[Any, Any]
    _results: dict[Any, Any]
    _inputs: dict[Any, Callable[[int], Any]]
    _condition: Any = None
    _limit: int | None = None
    _goes = True
    _outputs: list[LoopOutput]

    def __init__(self) -> None:
        self.count = 0
        self._parts: list[list[Any]] = [[] for _ in self._outputs]

    def goes_on(self) -> bool:
        """Whether there is another iteration."""
        return self._goes and (self._limit is None or self.count < self._limit)

    def is_sampled(self) -> bool:
        """Whether the next iteration is compared where some are enough: 0, 1, 2, 4, 8 and so on, and the last one of a
        known number."""
        return self.count & (self.count - 1) == 0 or self.count + 1 == self._limit

    def inputs(self) -> dict[Any, Any]:
        """The inputs of the body in the next iteration."""
        return {key: array_of(self.count) for key, array_of in self._inputs.items()} | self.states

    def end(self, inner: Any) -> None:
        """Take the results of an iteration from its frame."""
        self.states = {key: inner.get(self._results[key]) for key in self.states}
        for each, parts in zip(self._outputs, self._parts, strict=True):
            if each.state is None:
                kept = parts if each.axis is not None else []
                parts[:] = [*kept, inner.get(each.result)]
        if self._condition is not None:
            self._goes = _is_true(inner.get(self._condition))
        self.count += 1

    def outputs(self) -> list[Any]:
        """The final states and the joined values."""
        return [
            self.states[each.state] if each.state is not None else self._empty(number) if not parts
            else parts[0] if each.axis is None else self._joined(parts[:: each.step], each.axis)
            for number, (each, parts) in enumerate(zip(self._outputs, self._parts, strict=True))
        ]

    def _joined(self, parts: list[Any], axis: int) -> Any:
        return np.stack(parts, axis)

    def _empty(self, number: int) -> Any:
        """An output after no iterations, where it is not a state."""
        raise NotImplementedError


class OnnxLoop(LoopRun):
    """One run of a Loop, Scan or SequenceMap."""

    def __init__(self, frame: OnnxFrame, place: int) -> None:
        self.frame = frame
        self.place = place
        self.node = frame.plan.nodes[place]
        self.plan: OnnxPlan = frame.plan.bodies(place)["body"]
        self.path: str = frame.plan.graph.path_of(self.node)
        self._before: OnnxFrame | None = None
        given = [frame.get(name) if name else None for name in self.node.input]
        set_up = {"Loop": self._set_loop, "Scan": self._set_scan, "SequenceMap": self._set_map}[self.node.op_type]
        set_up(given, self.plan.graph.input_names, self.plan.graph.output_names)
        super().__init__()

    def _set_loop(self, given: list[Any], names: list[str], results: list[str]) -> None:
        trip, go = (*given, None, None)[:2]
        self._limit = None if trip is None else int(np.asarray(trip).reshape(-1)[0])
        self._goes = go is None or _is_true(go)
        # The iteration number and the condition are scalars, unless the body declares another rank.
        kinds = [each.type.tensor_type for each in self.plan.graph.proto.input[:2]]
        shapes = [(1,) * len(each.shape.dim) for each in kinds] + [()] * 2
        number, going = (lambda count: np.full(shapes[0], count, np.int64)), (lambda _: np.full(shapes[1], True))
        self._inputs = dict(zip(names, (number, going), strict=False))
        self._condition = results[0]
        self._set_states(names[2:], given[2:], results[1:])
        self._outputs += [LoopOutput(each, axis=0) for each in results[1 + len(self._outputs) :]]

    def _set_scan(self, given: list[Any], names: list[str], results: list[str]) -> None:
        attributes: dict[str, Any] = {each.name: list(each.ints) or each.i for each in self.node.attribute}
        count = len(given) - attributes["num_scan_inputs"]

        def per_item(what: str, items: Sequence[Any]) -> Iterator[Any]:
            """Each item with its name, its axis and its step."""
            zeros = [0] * len(items)
            axes, directions = (attributes.get(f"scan_{what}_{each}") or zeros for each in ("axes", "directions"))
            return zip(items, axes, (-1 if backward else 1 for backward in directions), strict=True)

        self._set_states(names[:count], given[:count], results[:count])
        self._inputs = {}
        for name, (array, axis, step) in zip(names[count:], per_item("input", given[count:]), strict=False):
            elements = np.moveaxis(array, axis, 0)[::step]
            self._inputs[name] = elements.__getitem__
            self._limit = len(elements) if self._limit is None else self._limit
        self._outputs += [LoopOutput(each, None, *more) for each, *more in per_item("output", results[count:])]

    def _set_map(self, given: list[Any], names: list[str], results: list[str]) -> None:
        """An iteration for each element. Elements have no counterparts in the IR."""
        self._limit = len(given[0])
        self._inputs = {
            name: each.__getitem__ if isinstance(each, list) else partial(_same, each)
            for name, each in zip(names, given, strict=True)
        }
        self._set_states([], [], [])
        self._outputs = [LoopOutput(result, axis=0) for result in results]

    def _set_states(self, names: Sequence[str], arrays: Sequence[Any], results: Sequence[str]) -> None:
        self.states = dict(zip(names, arrays, strict=False))
        self._results = dict(zip(self.states, results, strict=False))
        self._outputs = [LoopOutput(self._results[name], name) for name in self.states]

    @property
    def at(self) -> Iterations:
        """The next iteration, with those around the loop."""
        return (*self.frame.at, (self.path, self.count))

    def begin(self) -> OnnxFrame:
        """The frame of the next iteration."""
        return OnnxFrame(self.plan, self.inputs(), self.frame, at=self.at)

    def end(self, inner: OnnxFrame) -> None:
        """Take the results of an iteration."""
        super().end(inner)
        self._before = inner

    def sources(self) -> dict[str, tuple[OnnxFrame, str]]:
        """The tensors that the states of the next iteration are: outputs of the last one, or inputs of the node."""
        if self._before is not None:
            return {name: (self._before, result) for name, result in self._results.items()}
        given = self.node.input[0 if self.node.op_type == "Scan" else 2 :]
        return {name: (self.frame, outer) for name, outer in zip(self.states, given, strict=False) if outer}

    def resumed(self, states: Mapping[str, Any]) -> "OnnxLoop":
        """The loop as it is now, with these states and without outputs."""
        other = copy.copy(self)
        other.states, other._parts = dict(states), [[] for _ in self._parts]
        return other

    def _joined(self, parts: list[Any], axis: int) -> Any:
        return parts if self.node.op_type == "SequenceMap" else super()._joined(parts, axis)

    def outputs(self) -> list[Any]:
        """The outputs; those of no iterations are the initial states, and empty tensors.

        The shapes of these come from ONNX Runtime. It divides by zero in a Scan of length 0, and does not run some
        nodes alone: then they have the shapes of the outputs of the IR, or else the declared ones.
        """
        states = self.states.values()
        if not self.count and self.node.op_type == "Loop" and not any(isinstance(each, list | None) for each in states):
            with suppress(OnnxError):
                values = self.frame.run(self.place)
                return [values.get(name) for name in self.node.output]
        return super().outputs()

    def _empty(self, number: int) -> Any:
        from onnx import helper

        if self.node.op_type == "SequenceMap":
            return []
        result, axis = self._outputs[number].result, self._outputs[number].axis or 0
        name = self.node.output[number] if number < len(self.node.output) else ""
        for holder, value in self.frame.counterparts(name) if name else ():
            with suppress(IrRunError):
                return np.take(holder.get(value), np.zeros(0, np.int64), axis)
        kind = self.plan.graph.proto.output[self.plan.graph.output_names.index(result)].type.tensor_type
        dtype = helper.tensor_dtype_to_np_dtype(kind.elem_type) if kind.elem_type else np.dtype(np.float32)
        return np.moveaxis(np.zeros((0, *(dim.dim_value for dim in kind.shape.dim)), dtype), 0, axis)


class IrLoop(LoopRun):
    """One run of a Loop or TensorIterator of the IR by its port map."""

    def __init__(self, frame: IrFrame, node: Iteration) -> None:
        self.frame = frame
        self.node = node
        frame.need([value for value in node.inputs if value is not None])
        self.states, self._results, self._inputs = {}, {}, {}
        self._slice_counts: list[int] = []
        for entry, value in node.fed:
            key, array = entry.parameter.output, frame.get(value)
            if isinstance(entry, Merged):
                self.states[key], self._results[key] = array, entry.result.value
            elif isinstance(entry, Sliced):
                parts = _slices(entry, array)
                self._slice_counts.append(len(parts))
                self._inputs[key] = parts.__getitem__
            else:
                self._inputs[key] = partial(_same, array)
        if isinstance(node, Loop):
            trip, go = (np.asarray(frame.get(each)).reshape(-1)[0] for each in node.inputs[:2] if each is not None)
            self._limit, self._goes, self._condition = int(trip) if trip >= 0 else None, bool(go), node.condition.value
            if node.iteration is not None:
                kind = node.iteration.output.type
                shape = (1,) * (kind.rank or 0)
                self._inputs[node.iteration.output] = lambda number: np.full(shape, number, kind.dtype.numpy)
        else:
            self._limit = next(iter(self._slice_counts), 1)
        states = {entry.result: entry.parameter.output for entry in node.back_edges}
        self._outputs = [
            LoopOutput(each.result.value, axis=each.axis, step=-1 if each.stride < 0 else 1)
            if isinstance(each, Concatenated)
            else LoopOutput(each.result.value, states.get(each.result))
            for each in node.output_map
        ]
        super().__init__()

    def begin(self) -> IrFrame:
        """The frame of the next iteration."""
        for number in self._slice_counts:
            if self.count >= number:
                raise IrRunError("run", f"iteration {self.count} has no slice: the input has {number}")
        return IrFrame(self.frame.side, self.node.body, self.inputs(), self.frame)

    def end(self, inner: IrFrame) -> None:
        """Take the results of an iteration."""
        inner.need([result.value for result in self.node.body.results])
        super().end(inner)

    def resume(self, count: int, states: Mapping[Any, Any]) -> None:
        """Let the next iteration, or the end, be this one, with these numbers in states."""
        self.count = count
        for key, value in states.items():
            known, array = np.asarray(self.states[key]), np.asarray(value)
            array = array if array.ndim == known.ndim else array.reshape(known.shape)
            self.states[key] = array.astype(known.dtype)

    def finish(self) -> None:
        """Give the outputs to the frame."""
        try:
            self.frame.set_outputs(self.node, self.outputs())
        except ValueError as error:
            raise IrRunError("run", f"the values of the iterations cannot be concatenated: {error}") from error

    def _joined(self, parts: list[Any], axis: int) -> Any:
        return np.concatenate(parts, axis)

    def _empty(self, number: int) -> Any:
        """An undefined output, or one without elements along the axis."""
        kind, axis = self.node.outputs[number].type, self._outputs[number].axis
        dims = [dim if isinstance(dim, int) else 0 for dim in kind.shape or ()]
        if axis is not None and dims:
            dims[normalise_axis(axis, len(dims))] = 0
        return np.zeros(dims, kind.dtype.numpy)


def _slices(entry: Sliced, array: Any) -> list[Any]:
    """The slices of an array, which share its memory."""
    axis = normalise_axis(entry.axis, array.ndim)
    length, size = array.shape[axis], entry.part_size
    first, last = (each + length + 1 if each < 0 else each for each in (entry.start, entry.end))
    low, high = sorted((first, last))
    begin, end = (high - size, low - 1) if entry.stride < 0 else (low, high - size + 1)
    starts = range(begin, end, entry.stride)
    return [array[(*(slice(None),) * axis, slice(start, start + size))] for start in starts]


def _same(array: Any, _: int) -> Any:
    return array


def _is_true(condition: Any) -> bool:
    return bool(np.asarray(condition).reshape(-1)[0])
