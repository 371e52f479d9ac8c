"""Loops and recurrent layers as steps of a sequence: their number, their states, and obstacles to a single step."""

from collections.abc import Iterator
from typing import Any, TypeAlias

import numpy as np

from mo_loop.errors import ConversionErrors, UnsupportedError
from mo_loop.graph.dimension import Dim, Dimension, Symbol, now, substituted
from mo_loop.graph.shape import assume_fixed, normalise_axis, symbols_of
from mo_loop.graph.types import TensorType
from mo_loop.ops.control import Control, If, Iteration, Loop
from mo_loop.ops.port_map import Concatenated, Invariant, Merged, Sliced
from mo_loop.ops.recurrent import Sequence
from mo_loop.transforms.slice_reads import lengths_by_index, obstacle_of_places, obstacle_of_reads, slice_reads
from mo_loop.transforms.states.step_axes import mixing_along, stepped_axes
from mo_loop.transforms.vocabulary import Constant, Graph, Node, Op, Parameter, Value, ops

Array = np.ndarray[Any, Any]

_LARGEST = 64
"""The most elements of a value that is computed."""

_MOST = 100
"""The most operations between the condition and known values."""


def runs_once(loop: Loop) -> bool:
    """Whether a loop begins, and its condition after the first iteration is known to be false."""
    trip, go = loop.inputs[0], loop.inputs[1]
    if go is None or go.type.integers != (1,) or (trip is not None and trip.type.integers == (0,)):
        return False
    condition = _First(loop).value_of(loop.condition.value)
    return condition is not None and not condition.any()


class _First:
    """The values of the body of one loop in its first iteration."""

    def __init__(self, loop: Loop) -> None:
        self.loop = loop
        self.known: dict[Node, Array] = {}
        for entry, value in loop.fed:
            given = value.constant if isinstance(entry, Invariant | Merged) else None
            if given is not None and given.dtype != object and given.size <= _LARGEST:
                self.known[entry.parameter] = given

    def value_of(self, value: Value) -> Array | None:
        """A value of the body; None if it is not known."""
        needed = self.loop.body.ancestors([value.node])
        if len(needed) > _MOST:
            return None
        found: dict[Value, Array] = {}
        for node in self.loop.body.ordered():
            result = self._of(node, found) if node in needed else None
            if result is not None and result.size <= _LARGEST:
                found[node.outputs[0]] = result
        return found.get(value)

    def _of(self, node: Node, found: dict[Value, Array]) -> Array | None:
        if isinstance(node, Parameter):
            if node is self.loop.iteration:
                return np.zeros([dim for dim in node.output.shape or () if isinstance(dim, int)], np.int64)
            return self.known.get(node)
        if isinstance(node, Constant):
            return node.array if node.tensor.nbytes <= 8 * _LARGEST else None
        if not isinstance(node, ops.Op) or len(node.outputs) != 1 or any(each not in found for each in node.inputs):
            return None
        result = node.evaluate(*(found[each] for each in node.operands))
        return None if result is NotImplemented else np.asarray(result)


Recurrence: TypeAlias = Iteration | Sequence


def length_of(node: Recurrence) -> Dimension | None:
    """The number of steps; None if nothing is known. Assumption if it is 1 for the declared sizes of the inputs."""
    if isinstance(node, Loop) and node.count != 1 and runs_once(node):
        return 1
    x = node.inputs[0]
    if isinstance(node, Iteration):
        length = node.count
    elif x is None or x.shape is None:
        return None
    else:
        length = x.shape[1]
    if now(length) == 1:
        assume_fixed([length])
    return length


def counts_steps(node: Recurrence) -> bool:
    """Whether the body reads the iteration number for more than slices."""
    return isinstance(node, Loop) and node.iteration is not None and slice_reads(node)[1] not in ("", _NONE)


_NONE = "it reads no slices"


def has_states(node: Recurrence) -> bool:
    """Whether a step depends on the steps before it."""
    return isinstance(node, Sequence) or bool(node.back_edges) or counts_steps(node)


def obstacle_of(node: Recurrence, sequence_length: int | None = None) -> tuple[str, str] | None:
    """The reason why a node cannot become one step of a sequence, and the advice; `sequence_length` is that option."""
    if length_of(node) != 1:
        return "has an unknown number of steps", _help_with_length(node, sequence_length is not None)
    if isinstance(node, Sequence):
        if node.direction != "forward":
            return f"has the direction {node.direction} and needs the whole sequence", "export a forward model"
        return None
    reads = {entry.stride < 0 for entry in node.input_map if isinstance(entry, Sliced)}
    writes = {entry.stride < 0 for entry in node.output_map if isinstance(entry, Concatenated)}
    if True in reads and (has_states(node) or False in reads | writes):
        return "reads the sequence backwards and needs all of it", "export a forward model"
    if True in writes and (has_states(node) or False in reads):
        return "writes its outputs in reverse order", "export a forward model"
    if isinstance(node, Loop) and not node.continues_always and not runs_once(node):
        return "has a condition that may end it before the end of the sequence", "export a loop over all steps"
    return obstacle_of_reads(node)


def _help_with_length(node: Recurrence, is_set: bool) -> str:
    """The advice that makes the number of steps 1."""
    name = _name_of_trip_count(node)
    if name:
        return f"its trip count is the input {name!r}: give it a value (--freeze {name}=1)"
    if is_set:
        return "sequence_length=1 does not determine it: give the shapes that it depends on with --input"
    return "give the sequence one step with --input, or with LowLatency2[sequence_length=1]"


def _name_of_trip_count(node: Recurrence) -> str:
    """The input of the model that is the trip count of a loop, or empty."""
    value = node.inputs[0] if isinstance(node, Loop) else None
    while value is not None:
        source, owner = value.node, value.graph.owner
        if isinstance(source, Parameter):
            if owner is None:
                return source.name
            value = owner.outer(source) if isinstance(owner, Control) else None
        else:
            is_same = isinstance(source, ops.SameElements | ops.Convert)
            value = source.inputs[0] if is_same else None
    return ""


# -- the length of sequences


def make_single(graph: Graph) -> bool:
    """Give length 1 to the dimensions of inputs over which loops and recurrent layers run; True if any changed.

    A length that the model declares stays: other inputs may have it too.

    Raises:
        UnsupportedError: something in the model needs several steps at once; several of them are one ConversionErrors.
    """
    changed = False
    for _ in range(len(graph.parameters) + 1):
        lengths = {dim.symbol for dim in _lengths(graph) if isinstance(dim, Dim) and dim.symbol and dim.now is None}
        dims = (dim for parameter in graph.parameters for dim in parameter.output.shape or ())
        symbols = [each for each in symbols_of(dims) if each in lengths]
        if not symbols:
            break
        errors = list(_obstacles_along(graph, frozenset(symbols)))
        if errors:
            raise errors[0] if len(errors) == 1 else ConversionErrors(errors)
        for symbol in dict.fromkeys(symbols):
            _set_to_one(graph, symbol)
        changed = True
        graph.validate()
    return changed


def _set_to_one(graph: Graph, symbol: Symbol) -> None:
    for parameter in graph.parameters:
        type_ = parameter.output.type
        if type_.shape is None:
            continue
        dims = tuple(substituted(dim, symbol, 1) for dim in type_.dims)
        if dims != type_.dims:
            parameter.retype(TensorType(type_.dtype, dims))


def _lengths(graph: Graph) -> Iterator[Dimension]:
    """The unknown numbers of steps in the graph and in its branches, and the lengths of sliced inputs."""
    for node in _recurrences(graph):
        length = length_of(node)
        if isinstance(length, Dim):
            yield length
        if isinstance(node, Iteration):
            for entry, value in node.fed:
                if isinstance(entry, Sliced) and value.shape is not None:
                    yield value.shape[normalise_axis(entry.axis, len(value.shape))]
        if isinstance(node, Loop) and not isinstance(length, int):
            yield from lengths_by_index(node)


def _recurrences(graph: Graph, within: type[Node] = If) -> Iterator[Recurrence]:
    """The loops and recurrent layers of the graph and of its branches, or of all bodies of nodes of a class."""
    for node in graph.ordered():
        if isinstance(node, Iteration | Sequence):
            yield node
        for body in node.bodies if isinstance(node, within) else ():
            yield from _recurrences(body, within)


def _obstacles_along(graph: Graph, symbols: frozenset[Symbol]) -> Iterator[UnsupportedError]:
    """Why the model cannot have one step where its sequences have these lengths."""

    def is_step(dim: object) -> bool:
        return isinstance(dim, Dim) and not symbols.isdisjoint(dim.symbols())

    for each in mixing_along(graph, symbols):
        help_ = "leave it out of the model (--output), or give the inputs one step (--input) to convert it all the same"
        yield refusal(each.node, each.what, help_, "the sequence is given one step at a time")
    for node in _recurrences(graph):
        if not isinstance(node, Iteration) or not is_step(length_of(node)):
            continue
        obstacle = obstacle_of_places(node, is_step)
        if obstacle is not None:
            yield refusal(node, *obstacle)
        for inner in _recurrences(node.body, within=Node):
            if is_step(length_of(inner)):
                text = "runs over the sequence in each step of the sequence"
                yield refusal(inner, text, "export a model in which each step reads its own element alone")


def single_step_inside(node: Recurrence) -> Recurrence | None:
    """A loop or layer in the body of a loop that has one step of a sequence, and states."""
    if isinstance(node, Sequence):
        return None
    inside = _recurrences(node.body, within=Node)
    return next((each for each in inside if length_of(each) == 1 and _carries_steps(each)), None)


def _carries_steps(node: Recurrence) -> bool:
    return isinstance(node, Sequence) or (has_states(node) and any(True for _ in stepped_axes(node)))


def single_steps(graph: Graph) -> list[Recurrence]:
    """The loops and layers with states that have one step, outside of other loops."""
    return [node for node in _recurrences(graph) if length_of(node) == 1 and has_states(node)]


def refusal(node: Op, what: str, hint: str, why: str = "") -> UnsupportedError:
    """The error of a node that prevents one step."""
    return UnsupportedError(
        f"LowLatency2: {node.type} {node.label} {what}", where=node.origin, code="ML350", hint=hint,
        why=why or "it has to become one step of a sequence, whose states keep their values from one inference to the "
        "next",
    )
