"""LSTM, GRU and RNN as a *Sequence operation if it gives the same numbers, else as a Scan over composed steps.

The gates and layouts are rearranged for LSTMSequence, GRUSequence and RNNSequence. The runtime ignores lengths of
sequences that are known only at run time. So sequences of different lengths all run to the end, forwards;
ReverseSequence puts the backward ones in order. Outputs past the end of a sequence become zeros, and its last state is
the output at its end. The last cell state of an LSTM is not an output, so the steps after the end keep it: their input
is 0, and one more that is 1 there opens the forget gate and closes the input gate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mo_loop.errors import TypeError_
from mo_loop.frontend.ops.linear import array_of, rearranged, rows_rearranged
from mo_loop.frontend.ops.recurrent_steps import GATES, Recurrence, activations_of, scanned
from mo_loop.frontend.ops.shared import constant_like, full, require_choice, zeros
from mo_loop.frontend.vocabulary import Attributes, Context, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import i32
from mo_loop.ops.base import follows_from_constants
from mo_loop.ops.ranges import Floats, Integers, Matrix, Positive, Rank3, Strings, Vector
from mo_loop.target import ERROR, GPU, Gap

_SWITCH = 1e4
"""Far beyond all sums of gates; the sigmoid is 1, and 0 at its negative."""


def sequence(
    node: Context, task: Recurrence, activations: tuple[str, ...], x: Value, w: Value, r: Value, b: Value | None,
    lengths: Value | None, states: Sequence[Value | None],
) -> list[Value | None]:
    if not task.layout:
        x = ops.Transpose(x, [1, 0, 2])
    axis = 0 if task.layout else 1
    holders = [(x, 0), (lengths, 0), *((each, axis) for each in states)]
    sizes = (each.shape[at] for each, at in holders if each is not None and each.shape is not None)
    size = next((each for each in sizes if isinstance(each, int)), None)
    x = _of_batch(x, 0, size)
    states = [None if each is None else _of_batch(each, axis, size) for each in states]
    batch, time = _dimension(x, 0), _dimension(x, 1)
    firsts = [_state(task, x, batch, each) for each in states]
    attributes: dict[str, Any] = {"hidden_size": task.hidden, "activations": activations}
    if task.kind == "GRU":
        attributes["linear_before_reset"] = task.linear_before_reset
    kind = {"LSTM": ops.LSTMSequence, "GRU": ops.GRUSequence, "RNN": ops.RNNSequence}[task.kind]

    def run(x: Value, firsts: Sequence[Value], weights: Sequence[Value], direction: str) -> Sequence[Value]:
        return kind(x, *firsts, _filled(x, time, batch), *weights, direction=direction, **attributes)

    bias = _summed_bias(task, x, b)
    keeps = lengths is not None and task.kind == "LSTM" and node.wants(2)
    w = _with_switch(w, task) if keeps else w
    if task.kind == "LSTM":
        w, r = _regated(w), _regated(r)
    if lengths is None:
        every, *last = run(x, firsts, (w, r, bias), task.direction)
        last = [_unless_no_steps(each, time) if node.wants(1 + i) else each for i, each in enumerate(last)]
    else:
        every, *last = _to_their_ends(task, run, x, firsts, (w, r, bias), lengths.astype(i32), keeps)
    y = ops.Transpose(every, [0, 2, 1, 3] if task.layout else [2, 1, 0, 3]) if node.wants(0) else None
    ends = [
        None if not node.wants(1 + i) else each if task.layout else ops.Transpose(each, [1, 0, 2])
        for i, each in enumerate(last)
    ]
    return [y, *ends]


def _to_their_ends(
    task: Recurrence, run: Callable[..., Sequence[Value]], x: Value, firsts: Sequence[Value], weights: Sequence[Value],
    lengths: Value, keeps: bool,
) -> list[Value]:
    """All outputs [batch, directions, time, hidden] of sequences of such lengths and the last states, zeros if a length
    is 0. The last cell state is right only if the steps past the end keep it."""
    zero, one = (ops.Constant(np.int32(each), graph=x.graph) for each in (0, 1))
    places = ops.Range(zero, ops.Gather(x.sizes, 1, 0).astype(i32), one, output_type=i32)
    inside = ops.Unsqueeze(places, [0, 2]) < lengths[:, None, None]  # [batch, time, 1]
    if keeps:
        x = ops.Select(inside, x, constant_like(x, 0))
    found: list[list[Value]] = []
    for number in range(task.directions):
        backward = task.direction == "reverse" or number == 1
        steps = ops.ReverseSequence(x, lengths, batch_axis=0, seq_axis=1) if backward else x
        if keeps:
            steps = ops.Concat(steps, (~inside).astype(x.dtype), axis=2)
        states = [_row(each, number, 1) for each in firsts]
        every, *last = run(steps, states, [_row(each, number, 0) for each in weights], "forward")
        last[0] = ops.Gather(every, lengths - np.int32(1), 2, batch_dims=1)
        if backward:
            every = ops.ReverseSequence(every, lengths, batch_axis=0, seq_axis=2)
        found.append([every, *last])
    every, *last = [each[0] if len(each) == 1 else ops.Concat(*each, axis=1) for each in zip(*found, strict=True)]
    known = array_of(lengths)
    if known is None or not (known > 0).all():
        runs = (lengths > np.int32(0))[:, None, None]
        last = [ops.Select(runs, each, constant_like(x, 0)) for each in last]
    return [ops.Select(inside[:, None], every, constant_like(x, 0)), *last]


def _row(value: Value, number: int, axis: int) -> Value:
    """The part of one direction, along an axis of length 1."""
    if value.shape is not None and value.shape[axis] == 1:
        return value
    return rows_rearranged(value, lambda array: array.take([number], axis)) or ops.Gather(value, [number], axis)


def _with_switch(w: Value, task: Recurrence) -> Value:
    """The weights of one more input, which opens the forget gate (i, o, f, c) and closes the input gate."""
    size = task.hidden
    column = zeros((task.directions, 4 * size, 1), w.dtype.numpy)
    column[:, :size], column[:, 2 * size : 3 * size] = -_SWITCH, _SWITCH
    constant = rearranged(w, lambda array: np.concatenate([array, column], axis=2))
    return constant or ops.Concat(w, ops.Constant(column, graph=w.graph, dtype=w.dtype), axis=2)


def _unless_no_steps(last: Value, time) -> Value:
    """The last state; zeros after 0 steps, as in ONNX Runtime. The runtime does not write it then."""
    if isinstance(time, int) and time > 0:
        return last
    steps = ops.Constant(np.full(1, time), graph=last.graph) if isinstance(time, int) else time
    return ops.Select(steps > 0, last, constant_like(last, 0))


def _of_batch(x: Value, axis: int, size: int | None) -> Value:
    """`x` with the batch size: the runtime does not compile a dynamic one together with that of a constant state."""
    if not size or x.shape is None or isinstance(x.shape[axis], int):
        return x
    shape = [0, 0, 0]
    shape[axis] = size
    return ops.Reshape(x, shape, special_zero=True)


def _dimension(x: Value, axis: int):
    """The length along an axis: an int if static, else a tensor [1]."""
    dim = None if x.shape is None else x.shape[axis]
    return dim if isinstance(dim, int) else ops.Gather(x.sizes, [axis], 0)


def _filled(x: Value, number, count) -> Value:
    """A number repeated; both are an int or a tensor [1]."""
    if isinstance(number, int) and isinstance(count, int):
        return ops.Constant(full((count,), number, np.int32), graph=x.graph)
    number, count = (np.full(1, each, np.int64) if isinstance(each, int) else each for each in (number, count))
    return ops.Broadcast(number, count, graph=x.graph).astype(i32)


def _state(task: Recurrence, x: Value, batch, given: Value | None) -> Value:
    """An initial state [batch, directions, hidden], zeros if absent."""
    if given is not None:
        return given if task.layout else ops.Transpose(given, [1, 0, 2])
    if isinstance(batch, int):
        none = zeros((batch, task.directions, task.hidden), x.dtype.numpy)
        return ops.Constant(none, graph=x.graph, dtype=x.dtype)
    rest = ops.Constant(np.array([task.directions, task.hidden]), graph=x.graph)
    return ops.Broadcast(constant_like(x, 0), ops.Concat(batch, rest, axis=0))


def _regated(value: Value) -> Value:
    """LSTM gates along axis 1, from ONNX's order i, o, f, c to f, i, c, o."""
    return _rejoined(value, 4, lambda gates: [gates[2], gates[0], gates[3], gates[1]])


def _rejoined(value: Value, count: int, arrange: Callable[[list[Any]], list[Any]]) -> Value:
    """Splits `value` into equal parts along axis 1, and concatenates the list that `arrange` returns for them."""
    constant = rows_rearranged(value, lambda array: np.concatenate(arrange(np.split(array, count, axis=1)), axis=1))
    if constant is not None:
        return constant
    return ops.Concat(*arrange(list(ops.Split(value, 1, num_splits=count))), axis=1)


def _summed_bias(task: Recurrence, x: Value, b: Value | None) -> Value:
    """The sum of the input and recurrence biases; with linear_before_reset, those of the hidden gate are not summed."""
    gates = GATES[task.kind]
    apart = task.kind == "GRU" and task.linear_before_reset
    if b is None:
        width = (gates + apart) * task.hidden
        return ops.Constant(zeros((task.directions, width), x.dtype.numpy), graph=x.graph, dtype=x.dtype)

    def arrange(parts: list[Any]) -> list[Any]:
        inputs, recurrent = parts[:gates], parts[gates:]
        if apart:
            return [inputs[0] + recurrent[0], inputs[1] + recurrent[1], inputs[2], recurrent[2]]
        return [a + c for a, c in zip(inputs, recurrent, strict=True)]

    summed = _rejoined(b, 2 * gates, arrange)
    return _regated(summed) if task.kind == "LSTM" else summed


AVOIDS = (
    Gap(
        "sequence-of-length-zero", "recurrent sequence operations of length 0 do not write their last state",
        "`Select` of zeros", rule="translator of LSTM",
    ),
    Gap(
        "gru-of-computed-weights", "a GRU whose recurrent weights are not constant does not compile, unless it resets "
        "after the product", "a loop over its steps", ERROR, rule="translator of GRU", device=GPU,
    ),
)
"""The errors of the runtime that these translators avoid."""


TANH = {"activations": ("Tanh", "Tanh")}
"""The default that ONNX gives to RNN alone."""

_DEFAULTS = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh"), "RNN": ("tanh",)}
_NATIVE: dict[str, set[tuple[str, ...]]] = {
    "RNN": {("tanh",), ("relu",), ("sigmoid",)}, "GRU": {("sigmoid", "tanh")}, "LSTM": {("sigmoid", "tanh", "tanh")},
}


@dataclass(frozen=True)
class RecurrentAttributes(Attributes):
    """The attributes of all recurrent operators, with ONNX's defaults."""

    activation_alpha: Floats | None = None
    activation_beta: Floats | None = None
    activations: Strings | None = None
    clip: float | None = None
    direction: str = "forward"
    hidden_size: Positive | None = None


def recurrent_outputs(
    node: Context, x: Value, w: Value, r: Value, b: Value | None, lengths: Value | None, states: Sequence[Value | None],
    peepholes: Value | None = None, *, kind: str, given: RecurrentAttributes, layout: int = 0,
    linear_before_reset: int = 0, input_forget: int = 0, is_quantised: bool = False,
) -> list[Value | None]:
    """The outputs Y, Y_h and, of an LSTM, Y_c."""
    direction, hidden_size = given.direction, given.hidden_size
    require_choice("direction", direction, ("forward", "reverse", "bidirectional"))
    directions = 2 if direction == "bidirectional" else 1
    hidden = r.shape[-1] if r.shape else hidden_size
    hidden = hidden if isinstance(hidden, int) else hidden_size
    if not isinstance(hidden, int):
        raise UnsupportedError("the hidden size is unknown", code="ML314", hint="give the attribute hidden_size")
    rows = GATES[kind] * hidden
    sizes: dict[str, tuple[int | None, ...]] = {
        "w": (directions, rows, None), "r": (directions, rows, hidden), "b": (directions, 2 * rows),
        "p": (directions, 3 * hidden), "state": (None, directions, hidden) if layout else (directions, None, hidden),
    }
    for name, value in [("w", w), ("r", r), ("b", b), ("p", peepholes), *(("state", each) for each in states)]:
        _require_sizes(kind, name, value, sizes[name])
    w, r = _of_sizes(w, sizes["w"]), _of_sizes(r, sizes["r"])
    b, peepholes = (None if each is None else _of_sizes(each, sizes[key]) for key, each in (("b", b), ("p", peepholes)))
    names = given.activations or _DEFAULTS[kind] * directions
    alphas, betas = given.activation_alpha, given.activation_beta
    functions = activations_of(names, alphas, betas, len(_DEFAULTS[kind]), directions, kind)
    task = Recurrence(
        kind=kind, direction=direction, hidden=hidden, layout=layout, functions=functions, clip=given.clip or 0.0,
        linear_before_reset=bool(linear_before_reset), input_forget=bool(input_forget), is_quantised=is_quantised,
    )
    time, known = None if x.shape is None else x.shape[1 if layout else 0], array_of(lengths)
    if known is not None and isinstance(time, int) and (known == time).all():
        lengths = None
    native = tuple(str(each.name).lower() for each in functions[0])
    are_same = all([each.name for each in others] == [each.name for each in functions[0]] for others in functions)
    is_plain = not task.clip and not task.input_forget and peepholes is None
    # The CPU device makes such a loop itself.
    is_composed = kind == "GRU" and not linear_before_reset and not follows_from_constants(r)
    if not are_same or native not in _NATIVE[kind] or not is_plain or is_quantised or is_composed:
        return scanned(node, task, x, w, r, b, lengths, states, peepholes)
    return sequence(node, task, native, x, w, r, b, lengths, states)


def _require_sizes(kind: str, name: str, value: Value | None, sizes: Sequence[int | None]) -> None:
    """Raise TypeError_ if an input has other sizes than those of the direction and the hidden size."""
    shape = None if value is None else value.shape
    if value is None or shape is None:
        return
    pairs = zip(shape, sizes, strict=False)
    if len(shape) != len(sizes) or any(isinstance(a, int) and b is not None and a != b for a, b in pairs):
        shown = ", ".join("?" if each is None else str(each) for each in sizes)
        raise TypeError_(f"{kind}: the input {name!r} is {value.type}, not [{shown}]", code="ML233")


def _of_sizes(value: Value, sizes: Sequence[int | None]) -> Value:
    """The same weights with the sizes that they have to have: without them the runtime does not compile the layer."""
    is_known = all(isinstance(dim, int) or size is None for dim, size in zip(value.type.dims, sizes, strict=True))
    return value if is_known else ops.Reshape(value, [-1 if size is None else size for size in sizes])


@translates("LSTM", since=1, without="layout")
@translates("LSTM", since=7, without="layout output_sequence")
@translates("LSTM", since=14, without="output_sequence", ignored="output_sequence")
def lstm(
    x: Rank3, w: Rank3, r: Rank3, b: Matrix = None, sequence_lens: Vector | Integers = None, initial_h: Rank3 = None,
    initial_c: Rank3 = None, p: Matrix = None, *, input_forget: int = 0, layout: int = 0, output_sequence: int = 0,
    given: RecurrentAttributes, node: Context,
):
    """With `layout` 1 the batch comes first everywhere.

    Until opset 6 the first output exists if `output_sequence` is set, or if the output has a name.
    """
    return recurrent_outputs(
        node, x, w, r, b, sequence_lens, (initial_h, initial_c), p, kind="LSTM", given=given, layout=layout,
        input_forget=input_forget,
    )


@translates("GRU", since=1, without="layout linear_before_reset", defaults={"direction": "foward"})
@translates("GRU", since=3, without="layout")
@translates("GRU", since=7, without="layout output_sequence")
@translates("GRU", since=14, without="output_sequence", ignored="output_sequence")
def gru(
    x: Rank3, w: Rank3, r: Rank3, b: Matrix = None, sequence_lens: Vector | Integers = None, initial_h: Rank3 = None, *,
    layout: int = 0, linear_before_reset: int = 0, output_sequence: int = 0, given: RecurrentAttributes, node: Context,
):
    """With `layout` 1 the batch comes first everywhere. The default direction is misspelt in the schema of opset 1."""
    if given.direction == "foward" and node.opset < 3:
        given = replace(given, direction="forward")
    return recurrent_outputs(
        node, x, w, r, b, sequence_lens, (initial_h,), kind="GRU", given=given, layout=layout,
        linear_before_reset=linear_before_reset,
    )


@translates("RNN", since=1, without="layout", defaults=TANH)
@translates("RNN", since=7, without="layout output_sequence", defaults=TANH)
@translates("RNN", since=14, without="output_sequence", defaults=TANH, ignored="output_sequence")
def rnn(
    x: Rank3, w: Rank3, r: Rank3, b: Matrix = None, sequence_lens: Vector | Integers = None, initial_h: Rank3 = None, *,
    layout: int = 0, output_sequence: int = 0, given: RecurrentAttributes, node: Context,
):
    """With `layout` 1 the batch comes first everywhere."""
    states = (initial_h,)
    return recurrent_outputs(node, x, w, r, b, sequence_lens, states, kind="RNN", given=given, layout=layout)
