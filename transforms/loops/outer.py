"""The inputs of a loop for all steps at once, and outputs made of values of all steps."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np

from mo_loop.graph.dimension import Dimension, low
from mo_loop.graph.shape import symbols_of
from mo_loop.graph.types import TensorType, i64
from mo_loop.ops.control import Iteration, Loop
from mo_loop.ops.lengths import Length, as_i64, as_value, dimension, scalar
from mo_loop.ops.port_map import Concatenated, Final, Invariant, Merged, Sliced
from mo_loop.transforms.loops.closed_forms import State, solved_as_window
from mo_loop.transforms.loops.lifted import Steps, moved, unsqueezed, with_sizes
from mo_loop.transforms.loops.lifting import Lifting
from mo_loop.transforms.loops.linear_states import solved_in_chunks
from mo_loop.transforms.port_maps import is_one_after_another, reversed_along
from mo_loop.transforms.replace import move_readers
from mo_loop.transforms.runtime.zero_trips import RunGuard, cut
from mo_loop.transforms.slice_reads import ends_by_trip_count
from mo_loop.transforms.vocabulary import F, Graph, Node, Parameter, Result, Value


def may_end(node: Iteration) -> bool:
    """Whether a step may end the loop."""
    return isinstance(node, Loop) and not node.continues_always


def obstacle_of(node: Iteration) -> str:
    """Why not all steps of a loop are known before it starts, or empty."""
    return "its condition may end it" if may_end(node) else obstacle_of_steps(node)


def obstacle_of_steps(node: Iteration) -> str:
    """Why nothing of a loop can be computed for all steps that it executes, or empty."""
    if node.body.acts:
        return "its body has an effect"
    for entry, value in node.fed:
        if isinstance(entry, Sliced):
            if not is_one_after_another(entry) or value.shape is None:
                return "its slices are not one after another"
            if isinstance(node, Loop) and value.shape[entry.axis] != node.count:
                return "its trip count is not proven to be the length of its slices"
    return ""


def may_be_carried(node: Iteration, value: Value) -> bool:
    """Whether the values of all steps are one tensor: their sizes depend on sizes outside alone, and are known by those
    of the inputs if there is no step."""
    outside = set(symbols_of(dim for each in node.operands for dim in each.shape or ()))
    if value.shape is None or not outside.issuperset(symbols_of(value.shape)):
        return False
    return low(node.count) > 0 or all(isinstance(d, int) or _place(node, d) is not None for d in value.shape)


def carried(node: Iteration, value: Value) -> Value:
    """A new output with a value of the body in all steps, [T, ...]."""
    return concatenated(node, F.Unsqueeze(value, [0]), 0)


def concatenated(node: Iteration, piece: Value, axis: int, *, backwards: bool = False) -> Value:
    """A new output with a value of the body of all steps along an axis, along which it has the size 1."""
    start, end, stride = (-1, 0, -1) if backwards else (0, -1, 1)
    node.output_map = (*node.output_map, Concatenated(Result(piece), axis, start, end, stride))
    return node.graph.add_output(node, piece.type.with_size(axis, node.count))


def with_known_sizes(node: Iteration, made: Value, dims: Sequence[Dimension]) -> Value:
    """The values of all steps [T, ...] with the sizes `dims` after T, also if there are none."""
    if low(node.count) > 0 or all(isinstance(dim, int) for dim in dims):
        return made
    sizes = [dim if isinstance(dim, int) else dimension(*_place(node, dim) or (made, 0)) for dim in dims]
    return with_sizes(made, 0, sizes)


def _place(node: Iteration, dim: Dimension) -> tuple[Value, int] | None:
    """An input of a loop, and the axis along which it has this size."""
    places = ((value, axis) for value in node.operands for axis, each in enumerate(value.shape or ()) if each == dim)
    return next(places, None)


class Draft:
    """A graph for the values of all steps of a loop, with a Parameter for each outer value that it reads.

    Args:
        replaces: the loop is removed. Only then may the steps be in reverse order; a loop that stays reads them in
            order.
        at_most: all steps up to the trip count, of which a step may be the last one that the loop executes.
    """

    def __init__(self, node: Iteration, *, replaces: bool = False, at_most: bool = False) -> None:
        self.node = node
        self.graph = Graph("draft")
        self.length = node.count
        """The number of steps as a dimension."""
        self.executed: Parameter | None = None
        """The number of steps that the loop has executed, where only that gives it."""
        if may_end(node) and not at_most:
            self.executed = Parameter(graph=self.graph, type=TensorType(i64, (), known=np.array(self.length, object)))
        self._parameters: dict[Value, Parameter] = {}
        self._outer: dict[Node, Value] = {}
        sliced = [entry for entry in node.input_map if isinstance(entry, Sliced)]
        is_backwards = bool(sliced) and all(entry.stride < 0 for entry in sliced)
        self.backwards = replaces and is_backwards and not node.back_edges
        """Whether the steps are in reverse order: where all slices are read so, none has to be reversed."""
        self.last: dict[Result, Value] = {}
        """The final values of the states that are solved."""
        self.has_chunks = False
        """Whether one of them is computed in chunks of steps."""
        count = self._count(at_most) if self.executed is None else self.executed.output
        self.lifting = Lifting(node.body, self.graph, count, may_not_run=low(self.length) < 1, may_end=at_most)
        for entry, value in node.fed:
            if isinstance(entry, Invariant):
                self.lifting.give(entry.parameter, self.inner(value), varies=False)
            elif isinstance(entry, Sliced):
                self.lifting.give(entry.parameter, self._slices(entry, value), varies=True)
        if isinstance(node, Loop) and node.iteration is not None:
            self.lifting.give(node.iteration, self._numbers(node.iteration), varies=True)

    def solve(self, *, exact_order: bool) -> list[Merged]:
        """Lift all values that can be lifted, and find the values of states; returns the remaining states."""
        waiting = [(entry, value) for entry, value in self.node.fed if isinstance(entry, Merged)]
        if may_end(self.node):  # its states are needed in any case: its condition reads them
            self.lifting.lift_all()
            return [entry for entry, _ in waiting]
        found = True
        while found:
            self.lifting.lift_all()
            found = False
            for entry, value in list(waiting):
                state = State(self.node, entry, self.inner(value), self.lifting, exact_order)
                chunks = solved_in_chunks(state)
                self.has_chunks |= chunks is not None
                solved = chunks or solved_as_window(state) or state.solved()
                if solved is None:
                    continue
                found = True
                waiting.remove((entry, value))
                self.last[entry.result] = solved.last
                if solved.before is not None:
                    self.lifting.give(entry.parameter, solved.before, varies=True)
                if solved.after is not None and self.lifting[state.next] is None:
                    self.lifting.put(state.next, solved.after)
                for read, made in solved.read.items():
                    self.lifting.put(read, made)
        return [entry for entry, _ in waiting]

    @property
    def obstacle(self) -> str:
        """Why something is not lifted that does not depend on states, or empty."""
        return next(iter(self.lifting.obstacles.values()), "")

    @property
    def steps(self) -> Steps:
        return self.lifting.steps

    def inner(self, value: Value) -> Value:
        """An outer value in the draft."""
        if value not in self._parameters:
            self._parameters[value] = Parameter(graph=self.graph, type=value.type)
            self._outer[self._parameters[value]] = value
        return self._parameters[value].output

    def bind(self, parameter: Parameter, value: Value) -> None:
        """Set the outer value of another Parameter of the draft."""
        self._outer[parameter] = value

    def values_before(self, values: Iterable[Value]) -> Iterator[Value]:
        """All values of the draft from which `values` are computed."""
        nodes = self.graph.ancestors(value.node for value in values)
        made = [node for node in self.graph.ordered() if node in nodes]
        made += [each for node in made for body in node.bodies for scope in body.scopes() for each in scope.ordered()]
        return (output for node in made for output in node.outputs)

    @property
    def outer(self) -> list[Value]:
        """The outer values that it reads."""
        return list(dict.fromkeys(self._outer.values()))

    def place(
        self, values: Sequence[Value], graph: Graph | None = None, there: Mapping[Value, Value] | None = None
    ) -> list[Value]:
        """Put the nodes that make `values` of the draft into the graph of the loop; returns the values there.

        Args:
            graph: another graph, which has the outer values as `there` says.
        """
        made = {
            each.output: value if there is None else there[value]
            for each, value in self._outer.items() if isinstance(each, Parameter)
        }
        needed = self.graph.ancestors(value.node for value in values)
        nodes = {each for each in needed if not isinstance(each, Parameter)}
        (graph or self.node.graph).adopt(self.graph, nodes, made)
        return [made[value] for value in values]

    def _count(self, at_most: bool) -> Length:
        node = self.node
        if isinstance(node.count, int):
            return node.count
        found = next(((entry, value) for entry, value in node.fed if isinstance(entry, Sliced)), None)
        if found is not None:
            return dimension(self.inner(found[1]), found[0].axis)
        trip, go = node.operands[:2]
        count = F.Maximum(scalar(as_i64(self.inner(trip))), 0)
        if at_most or ends_by_trip_count(node):  # type: ignore[arg-type]
            return count
        return F.Select(scalar(self.inner(go)), count, as_value(0, self.graph))

    def _slices(self, entry: Sliced, value: Value) -> Value:
        """[T, ...] with the dimension of 1 that slices have."""
        whole = self.inner(value)
        if (entry.stride < 0) != self.backwards:
            whole = reversed_along(whole, entry.axis)
        return unsqueezed(moved(whole, entry.axis, 0), [entry.axis + 1])

    def _numbers(self, iteration: Parameter) -> Value:
        """The iteration numbers."""
        count = as_value(self.steps.count, self.graph)
        number = iteration.output
        made = F.Range(as_value(0, self.graph), count, as_value(1, self.graph), output_type=number.dtype)
        if self.backwards:
            made = reversed_along(made, 0)
        return unsqueezed(made, [1]) if number.rank == 1 else made


def output_of(draft: Draft, entry: Concatenated | Final) -> Value | None:
    """An output of the loop, made of the values of a Result in all steps; None if they are not lifted."""
    if isinstance(entry, Final) and entry.result in draft.last:
        return draft.last[entry.result]
    x = draft.lifting[entry.result.value]
    if x is None or (isinstance(entry, Final) and low(draft.node.count) < 1):  # there may be no last step
        return None
    if isinstance(entry, Final):
        return F.Gather(x.value, 0 if draft.backwards else -1, 0) if x.varies else x.value
    made = draft.steps.along(x, entry.axis)
    return reversed_along(made, entry.axis) if (entry.stride < 0) != draft.backwards else made


def replace_outputs(node: Iteration, places: Iterable[int], values: Iterable[Value]) -> None:
    """Readers of outputs of a loop read other values, with the sizes that an output has in ONNX after no step."""
    for number, made in zip(places, values, strict=True):
        entry, output = node.output_map[number], node.outputs[number]
        if isinstance(node, Loop) and isinstance(entry, Concatenated) and low(node.count) < 1:
            dims = output.type.dims
            others = [dim for axis, dim in enumerate(dims) if axis != entry.axis]
            if not all(isinstance(dim, int) or dim == node.count for dim in others):
                made = cut(made, entry, RunGuard(node), dims)
        move_readers(output, made, output.uses)
