"""LSTM, GRU and RNN: a *Sequence operation where it means the same, else a Scan over written-out steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mo_loop import ops
from mo_loop.errors import ModelError, UnsupportedError
from mo_loop.frontend.ops.layout import array_of, rearranged
from mo_loop.frontend.ops.steps import KINDS, Activation, Recurrence, activations_of, run
from mo_loop.frontend.registry import translates
from mo_loop.frontend.translate import Context
from mo_loop.graph import Value
from mo_loop.ops.base import Constant
from mo_loop.types import i32, i64

Floats = tuple[float, ...]
Strings = tuple[str, ...]

_DEFAULTS = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh"), "RNN": ("tanh",)}
_NATIVE = {"RNN": {("tanh",), ("relu",), ("sigmoid",)}, "GRU": {("sigmoid", "tanh")}, "LSTM": {("sigmoid", "tanh", "tanh")}}


def translated(
    node: Context,
    x: Value,
    w: Value,
    r: Value,
    b: Value | None,
    lengths: Value | None,
    states: Sequence[Value | None],
    peepholes: Value | None = None,
    *,
    kind: str,
    direction: str,
    hidden_size: int | None,
    layout: int,
    activations: Strings | None,
    activation_alpha: Floats | None,
    activation_beta: Floats | None,
    clip: float | None,
    linear_before_reset: int = 0,
    input_forget: int = 0,
) -> list[Value | None]:
    """Y, Y_h (and Y_c) of any of the three."""
    if direction not in ("forward", "reverse", "bidirectional"):
        raise ModelError(f"direction {direction!r} is none of forward, reverse, bidirectional", code="ML227")
    directions = 2 if direction == "bidirectional" else 1
    hidden = r.shape[-1] if r.rank else hidden_size
    if not isinstance(hidden, int):
        raise UnsupportedError(f"{kind} of unknown hidden size", code="ML314", hint="give the attribute hidden_size")
    names = activations or _DEFAULTS[kind] * directions
    functions = activations_of(names, activation_alpha, activation_beta, len(_DEFAULTS[kind]), directions, kind)
    task = Recurrence(
        kind=kind, direction=direction, hidden=hidden, layout=layout, functions=functions, clip=clip or 0.0,
        linear_before_reset=bool(linear_before_reset), input_forget=bool(input_forget),
    )  # fmt: skip
    if lengths is not None and _all_equal(lengths, x, layout):
        lengths = None
    native = _native_activations(functions, kind)
    is_plain = not task.clip and not task.input_forget and peepholes is None
    if native is None or not is_plain or lengths is not None:
        return run(node, task, x, w, r, b, lengths, states, peepholes)
    return _sequence(node, task, native, x, w, r, b, states)


def _native_activations(functions: Sequence[Sequence[Activation]], kind: str) -> Strings | None:
    """The names, if both directions have the same and the runtime's kernels know them."""
    names = tuple(each.name for each in functions[0])
    same = all(tuple(each.name for each in others) == names for others in functions)
    return names if same and names in _NATIVE[kind] else None


def _all_equal(lengths: Value, x: Value, layout: int) -> bool:
    """Whether every sequence is known to be as long as the input."""
    time = None if x.shape is None else x.shape[1 if layout else 0]
    given = array_of(lengths)
    return given is not None and isinstance(time, int) and bool((given == time).all())


def _sequence(
    node: Context,
    task: Recurrence,
    activations: Strings,
    x: Value,
    w: Value,
    r: Value,
    b: Value | None,
    states: Sequence[Value | None],
) -> list[Value | None]:
    if not task.layout:
        x = ops.Transpose(x, [1, 0, 2]).output
    batch, time = _dimension(x, 0), _dimension(x, 1)
    firsts = [_state(task, x, batch, each) for each in states]
    lengths = _filled(x, time, [batch])
    attributes: dict[str, Any] = {
        "direction": task.direction, "hidden_size": task.hidden, "activations": activations,
    }  # fmt: skip
    if task.kind == "LSTM":
        w, r = (_regated(each, task.kind) for each in (w, r))
    bias = _summed_bias(task, x, b)
    if task.kind == "GRU":
        attributes["linear_before_reset"] = task.linear_before_reset
    kind = {"LSTM": ops.LSTMSequence, "GRU": ops.GRUSequence, "RNN": ops.RNNSequence}[task.kind]
    every, *last = kind(x, *firsts, lengths, w, r, bias, **attributes).outputs
    y = ops.Transpose(every, [0, 2, 1, 3] if task.layout else [2, 1, 0, 3]).output if node.wants(0) else None
    ends = [
        None if not node.wants(1 + i) else each if task.layout else ops.Transpose(each, [1, 0, 2]).output
        for i, each in enumerate(last)
    ]
    return [y, *ends]


def _dimension(x: Value, axis: int) -> Any:
    """A dimension: an int if static, else a tensor [1]."""
    dim = None if x.shape is None else x.shape[axis]
    return dim if isinstance(dim, int) else ops.Gather(ops.ShapeOf(x), [axis], 0).output


def _filled(x: Value, number: Any, dims: Sequence[Any]) -> Value:
    """The lengths: a number (int or tensor [1]) repeated."""
    if all(isinstance(each, int) for each in (number, *dims)):
        return Constant(np.full(dims, number, np.int32), graph=x.graph).output
    shape = dims[0] if not isinstance(dims[0], int) else Constant(np.array(dims, np.int64), graph=x.graph).output
    if isinstance(number, int):
        number = Constant(np.full(1, number, np.int64), graph=x.graph).output
    return ops.Convert(ops.Broadcast(number, shape), destination_type=i32).output


def _state(task: Recurrence, x: Value, batch: Any, given: Value | None) -> Value:
    """A first state [batch, directions, hidden], zeros if absent."""
    if given is not None:
        return given if task.layout else ops.Transpose(given, [1, 0, 2]).output
    if isinstance(batch, int):
        zeros = np.zeros((batch, task.directions, task.hidden), x.dtype.numpy)
        return Constant(zeros, graph=x.graph, dtype=x.dtype).output
    zero = Constant(np.zeros((), x.dtype.numpy), graph=x.graph, dtype=x.dtype)
    rest = Constant(np.array([task.directions, task.hidden]), graph=x.graph)
    return ops.Broadcast(zero, ops.Concat(batch, rest, axis=0)).output


def _regated(value: Value, kind: str) -> Value:
    """LSTM gates along axis 1, from ONNX's order i, o, f, c to f, i, c, o."""
    return pieces_along_1(value, 4, lambda gates: [gates[2], gates[0], gates[3], gates[1]])


def pieces_along_1(value: Value, count: int, arrange: Callable[[list[Any]], list[Any]]) -> Value:
    """`value` cut into equal pieces along axis 1, and what `arrange` makes of their list joined again."""
    constant = rearranged(value, lambda array: np.concatenate(arrange(np.split(array, count, axis=1)), axis=1))
    if constant is not None:
        return constant
    pieces = [each for each in ops.Split(value, 1, num_splits=count).outputs]
    return ops.Concat(*arrange(pieces), axis=1).output


def _summed_bias(task: Recurrence, x: Value, b: Value | None) -> Value:
    """Biases of input and recurrence summed; of a GRU that resets after the product, those of h stay apart."""
    gates = KINDS[task.kind].gates
    apart = task.kind == "GRU" and task.linear_before_reset
    if b is None:
        width = (gates + apart) * task.hidden
        return Constant(np.zeros((task.directions, width), x.dtype.numpy), graph=x.graph, dtype=x.dtype).output

    def arrange(parts: list[Any]) -> list[Any]:
        inputs, recurrent = parts[:gates], parts[gates:]
        if apart:
            return [_plus(inputs[0], recurrent[0]), _plus(inputs[1], recurrent[1]), inputs[2], recurrent[2]]
        return [_plus(a, c) for a, c in zip(inputs, recurrent, strict=True)]

    summed = pieces_along_1(b, 2 * gates, arrange)
    return _regated(summed, task.kind) if task.kind == "LSTM" else summed


def _plus(a: Any, b: Any) -> Any:
    return a + b if isinstance(a, np.ndarray) else ops.Add(a, b).output


@translates("LSTM", since=1)
def lstm_1(
    x: Any,
    w: Any,
    r: Any,
    b: Any = None,
    sequence_lens: Any = None,
    initial_h: Any = None,
    initial_c: Any = None,
    p: Any = None,
    *,
    activation_alpha: Floats | None = None,
    activation_beta: Floats | None = None,
    activations: Strings | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    output_sequence: int = 0,
    node: Context,
) -> Any:
    """`output_sequence` said whether the first output is made; that it is named says so, too."""
    return translated(
        node, x, w, r, b, sequence_lens, (initial_h, initial_c), p, kind="LSTM", direction=direction, layout=0,
        hidden_size=hidden_size, activations=activations, activation_alpha=activation_alpha,
        activation_beta=activation_beta, clip=clip, input_forget=input_forget,
    )  # fmt: skip


@translates("LSTM", since=7)
def lstm_7(
    x: Any,
    w: Any,
    r: Any,
    b: Any = None,
    sequence_lens: Any = None,
    initial_h: Any = None,
    initial_c: Any = None,
    p: Any = None,
    *,
    activation_alpha: Floats | None = None,
    activation_beta: Floats | None = None,
    activations: Strings | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    node: Context,
) -> Any:
    """Time first."""
    return lstm_14(
        x, w, r, b, sequence_lens, initial_h, initial_c, p, activation_alpha=activation_alpha,
        activation_beta=activation_beta, activations=activations, clip=clip, direction=direction,
        hidden_size=hidden_size, input_forget=input_forget, node=node,
    )  # fmt: skip


@translates("LSTM", since=14)
def lstm_14(
    x: Any,
    w: Any,
    r: Any,
    b: Any = None,
    sequence_lens: Any = None,
    initial_h: Any = None,
    initial_c: Any = None,
    p: Any = None,
    *,
    activation_alpha: Floats | None = None,
    activation_beta: Floats | None = None,
    activations: Strings | None = None,
    clip: float | None = None,
    direction: str = "forward",
    hidden_size: int | None = None,
    input_forget: int = 0,
    layout: int = 0,
    node: Context,
) -> Any:
    """With `layout` 1 the batch comes first everywhere."""
    return translated(
        node, x, w, r, b, sequence_lens, (initial_h, initial_c), p, kind="LSTM", direction=direction, layout=layout,
        hidden_size=hidden_size, activations=activations, activation_alpha=activation_alpha,
        activation_beta=activation_beta, clip=clip, input_forget=input_forget,
    )  # fmt: skip
