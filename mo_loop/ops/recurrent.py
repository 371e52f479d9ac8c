"""LSTM, GRU and RNN: one step (cells) and whole sequences.

The order of the gates is f, i, c, o in LSTM weights and z, r, h in GRU weights; the biases of input and recurrence are
summed. Variables keep their value from one inference to the next.
"""

from typing import Any, ClassVar, Literal

from mo_loop.graph import Dimension, ElementType, TensorType, fresh
from mo_loop.graph.shape import merge
from mo_loop.ops.base import Op
from mo_loop.ops.infer import same_dtype

Direction = Literal["forward", "reverse", "bidirectional"]


class Recurrent(Op, abstract=True):
    """Base of cells and sequences. A clip of 0 means no clipping."""

    hidden_size: int
    activations: tuple[str, ...]
    activations_alpha: tuple[float, ...] = ()
    activations_beta: tuple[float, ...] = ()
    clip: float = 0.0

    _gates: ClassVar[int] = 1

    def _require_weights(self, x, weights, recurrence, bias, lead: tuple[int, ...] = ()) -> None:
        """Raise TypeError_ unless weights have `lead` and rows for each gate; `lead` is the number of directions."""
        same_dtype(*(each for each in (x, weights, recurrence, bias) if each is not None))
        rows, size = self._gates * self.hidden_size, fresh() if x.shape is None else x.shape[-1]
        merge((*lead, rows, size), weights.shape)
        merge((*lead, rows, self.hidden_size), recurrence.shape)
        if bias is not None:
            extra = self.hidden_size if getattr(self, "linear_before_reset", False) else 0
            merge((*lead, rows + extra), bias.shape)


class Cell(Recurrent, abstract=True):
    """One step: x [batch, input], states [batch, hidden]."""

    def stepped(self, x, *states, weights: tuple[Any, Any, Any]) -> TensorType:
        """The type of a next state."""
        batch: Dimension = fresh()
        if x.shape is not None:
            self.require(len(x.shape) == 2, f"the input has rank {len(x.shape)}, and must have 2")
            batch = x.shape[0]
        for each in states:
            batch = (merge((batch, self.hidden_size), each.shape) or (batch,))[0]
        self._require_weights(x, *weights)
        return TensorType(same_dtype(x, *states), (batch, self.hidden_size))


class RNNCell(Cell, opset=1):
    """h' = f(x W^T + h R^T + b). Spec: RNNCell-1."""

    activations: tuple[str, ...] = ("tanh",)

    def infer(self, x, hidden, weights, recurrence, bias=None):
        return self.stepped(x, hidden, weights=(weights, recurrence, bias))


class GRUCell(Cell, opset=3):
    """A step of a GRU. Spec: GRUCell-3."""

    _gates = 3

    activations: tuple[str, ...] = ("sigmoid", "tanh")
    linear_before_reset: bool = False

    def infer(self, x, hidden, weights, recurrence, bias=None):
        return self.stepped(x, hidden, weights=(weights, recurrence, bias))


class LSTMCell(Cell, opset=4):
    """A step of an LSTM; returns the next hidden and the next cell state. Spec: LSTMCell-4."""

    _gates = 4

    activations: tuple[str, ...] = ("sigmoid", "tanh", "tanh")

    def infer(self, x, hidden, cell, weights, recurrence, bias=None):
        state = self.stepped(x, hidden, cell, weights=(weights, recurrence, bias))
        return state, state


class Sequence(Recurrent, abstract=True):
    """All steps: x [batch, time, input], states [batch, directions, hidden], lengths [batch].

    The outputs are those of all steps [batch, directions, time, hidden] and the last states.
    """

    direction: Direction

    def run(self, x, *states, lengths, weights: tuple[Any, Any, Any]) -> tuple[TensorType, TensorType]:
        """The types of the outputs of all steps and of a last state."""
        batch: Dimension = fresh()
        time: Dimension = fresh()
        directions = 2 if self.direction == "bidirectional" else 1
        if x.shape is not None:
            self.require(len(x.shape) == 3, f"the input has rank {len(x.shape)}, and must have 3")
            batch, time = x.shape[:2]
        for each in states:
            batch = (merge((batch, directions, self.hidden_size), each.shape) or (batch,))[0]
        batch = (merge((batch,), lengths.shape) or (batch,))[0]
        self._require_weights(x, *weights, lead=(directions,))
        dtype = same_dtype(x, *states)
        every = TensorType(dtype, (batch, directions, time, self.hidden_size))
        return every, TensorType(dtype, (batch, directions, self.hidden_size))


class RNNSequence(Sequence, opset=5):
    """RNNCell over a sequence. Spec: RNNSequence-5."""

    activations: tuple[str, ...] = ("tanh",)

    def infer(self, x, hidden, lengths, weights, recurrence, bias):
        return self.run(x, hidden, lengths=lengths, weights=(weights, recurrence, bias))


class GRUSequence(Sequence, opset=5):
    """GRUCell over a sequence. Spec: GRUSequence-5."""

    _gates = 3

    activations: tuple[str, ...] = ("sigmoid", "tanh")
    linear_before_reset: bool = False

    def infer(self, x, hidden, lengths, weights, recurrence, bias):
        return self.run(x, hidden, lengths=lengths, weights=(weights, recurrence, bias))


class LSTMSequence(Sequence, opset=5):
    """LSTMCell over a sequence. Spec: LSTMSequence-5."""

    _gates = 4

    activations: tuple[str, ...] = ("sigmoid", "tanh", "tanh")

    def infer(self, x, hidden, cell, lengths, weights, recurrence, bias):
        every, last = self.run(x, hidden, cell, lengths=lengths, weights=(weights, recurrence, bias))
        return every, last, last


class Variable(Op, abstract=True):
    """The base of both operations: the name of the variable, and its type."""

    variable_id: str
    variable_type: ElementType
    variable_shape: tuple  # of ints and Dims


class ReadValue(Variable, opset=6):
    """The value of a variable; `initial` before it is assigned. Spec: ReadValue-6."""

    def infer(self, initial=None):
        return TensorType(self.variable_type, self.variable_shape)


class Assign(Variable, opset=6, kept=True):
    """Sets the variable, and returns the value. A sink. Spec: Assign-6."""

    def infer(self, value):
        return value

    def xml_attributes(self):
        return {"variable_id": self.variable_id}  # the file has the type at the ReadValue alone
