"""Loops over a sequence become one step of it, with states that keep their values from one inference to the next."""

import itertools
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop.errors import ConversionErrors, ConversionWarning, UnsupportedError, UsageError
from mo_loop.graph import Dim, assume_fixed
from mo_loop.ops.control import If, Iteration, Loop
from mo_loop.ops.port_map import Merged
from mo_loop.ops.recurrent import Sequence as Recurrent
from mo_loop.origin import Origin
from mo_loop.transforms.folding import fold_constants
from mo_loop.transforms.function_pass import FunctionPass, argument
from mo_loop.transforms.loops.pieces import unrolled
from mo_loop.transforms.replace import replace_node
from mo_loop.transforms.slice_reads import index_with_zero
from mo_loop.transforms.states import recurrences
from mo_loop.transforms.states.step_axes import mixing_along_single
from mo_loop.transforms.states.variable import GraphVariable, drop_unobserved
from mo_loop.transforms.vocabulary import Constant, F, Graph, Node, Value, is_static, ops, source_of


@dataclass(eq=False)
class SetSequenceLength(FunctionPass):
    """x[N, ...], over which a loop or a recurrent layer runs  ->  x[1, ...]

    LowLatency2 with a sequence_length does the same. In a pipeline this pass comes first, so that all others see the
    known length. Without a `sequence_length` it changes nothing. Operations that mix several steps are found in both
    cases: they are refused if this pass sets the length, and cause a warning if the model has one step already.

    Raises:
        UnsupportedError: an operation needs several steps of a sequence; several of them are one ConversionErrors.
    """

    bodies = "never"  # the types of bodies follow from those of the inputs

    sequence_length: int | None = 1
    """1, or None for sequences that keep their lengths."""

    def run_on_graph(self, graph: Graph) -> bool:
        for each in mixing_along_single(graph) if recurrences.single_steps(graph) else ():
            text = (
                f"{each.node.type} {each.node.label} {each.what}: N inferences of one step may give other results than "
                "one inference of N steps"
            )
            warnings.warn(ConversionWarning(text, where=each.node.origin, code="ML526"), stacklevel=2)
        return self.sequence_length is not None and recurrences.make_single(graph)


_CELLS: dict[type[Recurrent], Callable[..., Any]] = {
    ops.LSTMSequence: ops.LSTMCell, ops.GRUSequence: ops.GRUCell, ops.RNNSequence: ops.RNNCell,
}


@dataclass(eq=False)
class LowLatency2(FunctionPass):
    """for x in X: s, y = f(s, x)  ->  s, y = f(s, X), where s keeps its value from one inference to the next

    Each Loop, TensorIterator, LSTM, GRU and RNN sequence of one step is replaced by its body, and each of its states
    becomes a variable, with the names that OpenVINO's pass of this name gives them. N inferences then give the outputs
    of the model for a sequence of length N. A loop in the body of such a loop starts from its initial values in each
    step, and so in each inference: it has no variables. An If stays; the states in its branches are variables as well.

    A body that reads its iteration number gets a variable that counts the inferences. An index into an axis of one
    element is 0 if it is the number of the step, because that element is the one of the step. A loop that runs a fixed
    number of times, not once, is not a loop over the sequence and stays, unless the model has no other one.

    Raises:
        UnsupportedError: the number of steps is not known, or not 1 in any loop; a loop reads the sequence backwards or
            another element than that of the step, may end before the sequence, or is in a loop that stays; something
            mixes the steps to which `sequence_length` cuts the sequence. Several of them are one ConversionErrors.
    """

    bodies = "never"  # a body becomes a part of the graph, or is left alone

    use_const_initializer: bool = argument(True, bool)
    """Whether states begin with zeros; otherwise with the initial values of the model."""
    sequence_length: int | None = argument(None, int)
    """1 gives this length to the dimensions of inputs over which loops and sequences run."""

    def __post_init__(self) -> None:
        if self.sequence_length not in (None, 1):
            raise UsageError(f"sequence_length is {self.sequence_length}", hint="give 1, or nothing")

    def run_on_graph(self, graph: Graph) -> bool:
        self._errors: list[UnsupportedError] = []
        self._longer: list[UnsupportedError] = []
        self.without_effect = ""
        self._ids: set[str] = {node.variable_id for node in graph.of(ops.ReadValue)}
        if self.sequence_length == 1 and recurrences.make_single(graph):
            fold_constants(graph)
        changed = self._step(graph)
        if self._errors or (self._longer and not changed and not graph.has(ops.ReadValue)):
            errors = self._errors or self._longer
            raise errors[0] if len(errors) == 1 else ConversionErrors(errors)
        if not changed and graph.has(ops.ReadValue):  # it has run before
            return False
        if not changed:
            self.without_effect = "no loop and no LSTM, GRU or RNN runs over a sequence of one step"
            return False
        graph.validate()
        fold_constants(graph)
        drop_unobserved(graph)
        return True

    def _step(self, graph: Graph) -> bool:
        """Rewrite the loops and sequences of the main graph, or of a branch."""
        changed = False
        pending = _recurrences(graph)
        while pending:
            node = pending.pop(0)
            if isinstance(node, If):
                for body in node.bodies:
                    changed = self._step(body) or changed
                continue
            if not self._becomes_a_step(node):
                continue
            known = set(_recurrences(graph))
            carries = recurrences.has_states(node)
            if isinstance(node, Recurrent):
                self._step_of_sequence(node)
            else:
                self._step_of_loop(node)
            made = [each for each in _recurrences(graph) if each not in known]
            if carries:
                _unroll_single(made)
            else:  # what was in a loop without states is as if it had been outside
                pending += made
            changed = self.accept(node)
        self.at = None
        return changed

    def _becomes_a_step(self, node: recurrences.Recurrence) -> bool:
        length = recurrences.length_of(node)
        if self.leaves(node):
            return False
        may_stay = isinstance(node, Iteration) and not recurrences.has_states(node) and not _recurrences(node.body)
        if isinstance(length, Dim) and not may_stay:
            assume_fixed([length])  # whether it is one step
        if length != 1 and (inner := recurrences.single_step_inside(node)) is not None:
            why = f"is in the body of {node.type} {node.label}, which stays: each of its iterations would need a state"
            hint = "export the outer loop as a dimension of the inner one (a batch)"
            self._errors.append(recurrences.refusal(inner, why, hint))
            return False
        if length != 1 and not recurrences.has_states(node):
            return False
        if isinstance(length, int) and length != 1:
            why = f"runs {length} times, not once"
            self._longer.append(recurrences.refusal(node, why, "give its sequence one step (--input)"))
            return self.refuse(node, f"it runs {length} times")
        obstacle = recurrences.obstacle_of(node, self.sequence_length)
        if obstacle is None:
            return True
        self._errors.append(recurrences.refusal(node, *obstacle))
        return False

    def _step_of_loop(self, node: Iteration) -> None:
        """Replace a loop by its body."""
        index_with_zero(node)
        counts = recurrences.counts_steps(node)
        carried = [(number, *fed) for number, fed in enumerate(node.fed) if isinstance(fed[0], Merged)]
        # A state of a layer has no name in the model.
        states = [(entry.parameter.name, f"variable_{number}") for number, entry, _ in carried]
        endings = ["/".join(filter(None, each)) for each in states]
        endings += [f"iteration/variable_{len(node.input_map)}"] if counts else []
        ids = self._ids_of(node, endings)
        variables: dict[Merged, GraphVariable] = {}
        initial: dict[Merged, Value] = {}
        for id_, (_, entry, value) in zip(ids, carried, strict=False):
            variables[entry] = GraphVariable(id_, entry.parameter.output.type)
            initial[entry] = variables[entry].read(self._initial(value, node))
        count, number_now = self._counted(node, ids[-1]) if counts else (None, None)
        last = unrolled(node, 1, initial, number_now)
        for entry, variable in variables.items():
            variable.assign(last[entry])
        if count is not None and number_now is not None:
            count.assign(number_now + 1)

    def _counted(self, node: Iteration, id_: str) -> tuple[GraphVariable, Value]:
        """A variable that counts the steps, and its value."""
        assert isinstance(node, Loop) and node.iteration is not None
        type_ = node.iteration.output.type
        shape = type_.dims if is_static(type_.shape) else ()
        first = F.Constant(np.zeros(shape, np.int64), graph=node.graph, dtype=type_.dtype)
        variable = GraphVariable(id_, first.type.without_known())
        return variable, variable.read(first)

    def _step_of_sequence(self, node: Recurrent) -> None:
        """A cell in place of a sequence of one step; the sequence itself if it may have no step."""
        graph = node.graph
        states = len(node.outputs) - 1
        variables = []
        inputs = list(node.inputs)
        for number, id_ in enumerate(self._ids_of(node, [f"variable_{number}" for number in range(states)])):
            initial = node.operands[1 + number]
            variable = GraphVariable(id_, initial.type.without_known())
            inputs[1 + number] = variable.read(self._initial(initial, node))
            variables.append(variable)
        is_full = _is_full(inputs[1 + states])
        if not is_full:
            graph.set_inputs(node, inputs)
        outputs = _cell(node, inputs, states) if is_full else list(node.outputs)
        for variable, value in zip(variables, outputs[1:], strict=True):
            variable.assign(value)
        if is_full:
            replace_node(node, outputs)

    def _ids_of(self, node: Node, endings: Iterable[str]) -> list[str]:
        """The ids of the variables of a loop or layer: its name with an ending, and a number if they are taken."""
        origin = node.origins[0] if node.origins else Origin()
        is_layer = origin.operator in ("LSTM", "GRU", "RNN")  # of which one output can have given the node its name
        name = (origin.node if is_layer else "") or node.name or origin.node or node.label
        parts = list(endings)
        for number in itertools.count(1):
            stem = name if number == 1 else f"{name}#{number}"
            found = [f"{stem}/{each}" for each in parts]
            if self._ids.isdisjoint(found):
                self._ids.update(found)
                return found
        raise AssertionError("a number is free")

    def _initial(self, value: Value, node: Node) -> Value:
        """The initial value of a state."""
        if not self.use_const_initializer or _is_zero(value):
            return value
        text = (
            "a state begins with zeros, and not with the initial value of the model "
            "(LowLatency2[use_const_initializer=False] keeps it)"
        )
        warnings.warn(ConversionWarning(text, where=node.origin, code="ML524"), stacklevel=2)
        zero = np.zeros((), value.dtype.numpy)
        if is_static(value.shape):
            return F.Constant(np.broadcast_to(zero, value.type.dims), graph=value.graph, dtype=value.dtype)
        return F.Broadcast(Constant(zero, graph=value.graph, dtype=value.dtype), value.sizes)


def _recurrences(graph: Graph) -> list[Any]:
    """The nodes with steps, and the Ifs whose branches may have some."""
    return [node for node in graph.ordered() if isinstance(node, Iteration | Recurrent | If)]


def _is_zero(value: Value) -> bool:
    """Whether all elements are known to be 0."""
    node = source_of(value, (ops.View, ops.Broadcast, ops.Transpose)).node
    return isinstance(node, Constant) and node.output.dtype.bits > 0 and not node.array.any()


def _unroll_single(loops: Sequence[Node]) -> None:
    """Loops of one step in the body of a loop of one step: they begin anew in each step."""
    for node in loops:
        if isinstance(node, Iteration) and node.count == 1:
            graph = node.graph
            graph.validate()
            known = set(_recurrences(graph))
            unrolled(node, 1)
            _unroll_single([each for each in _recurrences(graph) if each not in known])


def _is_full(lengths: Value | None) -> bool:
    """Whether every sequence is known to have its one step."""
    given = None if lengths is None else source_of(lengths, (ops.Broadcast, ops.Convert)).constant
    return given is not None and bool((given == 1).all())


def _cell(node: Recurrent, inputs: Sequence[Value | None], states: int) -> list[Value]:
    """The outputs of a sequence of one step, from those of a cell."""
    x, *firsts = inputs[: 1 + states]
    weights = inputs[2 + states :]
    steps = [F.Squeeze(each, [1]) for each in (x, *firsts)]
    parts = [F.Squeeze(each, [0]) for each in weights]
    attributes = {key: value for key, value in node.attribute_values().items() if key != "direction"}
    last = _CELLS[type(node)](*steps, *parts, name=node.name, **attributes).outputs
    return [F.Unsqueeze(last[0], [1, 2]), *(F.Unsqueeze(each, [1]) for each in last)]
