"""LSTM, GRU and RNN as a Scan over composed steps, for everything that the *Sequence operations do not support.

These are other activations, clipping, peepholes and coupled gates. For sequences of different lengths a mask is an
input of each step: a step after the end of a sequence keeps the state and returns zeros. x W^T + b is computed before
the loop. With the gates i, o, f, c (LSTM) and z, r, h (GRU):

    LSTM    C = f * c + i * g(c~)        h = o * h(C)
    GRU     h = (1 - z) * g(h~) + z * h
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop.frontend.ops.activation import FUNCTIONS, Activation
from mo_loop.frontend.ops.linear import array_of, rearranged, rows_rearranged
from mo_loop.frontend.ops.shared import constant_like, zeros
from mo_loop.frontend.vocabulary import Context, Graph, ModelError, Value, ops
from mo_loop.graph import TensorType, fresh, i32
from mo_loop.ops.base import Constant, Parameter, Result
from mo_loop.ops.port_map import Concatenated, Final, Invariant, Merged, Sliced

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


ACTIVATIONS = "Relu Tanh Sigmoid Softsign Softplus Affine LeakyRelu ThresholdedRelu ScaledTanh HardSigmoid Elu"
_NAMES = {name.lower(): name for name in ACTIVATIONS.split()}
"""The functions that ONNX allows; the case of letters does not matter."""


def activations_of(
    names: Sequence[str], alphas: Sequence[float] | None, betas: Sequence[float] | None, count: int, directions: int,
    kind: str,
) -> list[list[Activation]]:
    """The functions of each direction; alphas and betas are assigned in order to the functions that have one."""
    if len(names) < count * directions:
        raise ModelError(f"{kind} has {len(names)} activations, not {count * directions}", code="ML227")
    given = (iter(alphas or ()), iter(betas or ()))
    made = []
    for name in names[: count * directions]:
        if name.lower() not in _NAMES:
            raise ModelError(f"{kind} has the activation {name!r}, which ONNX does not define", code="ML227")
        standard = _NAMES[name.lower()]
        defaults = (None, None) if standard == "ScaledTanh" else FUNCTIONS[standard][1].values()
        numbers = [next(source, default) for source, default in zip(given, defaults, strict=False)]
        if None in numbers:
            raise ModelError(f"{kind}: {name} needs activation_alpha and activation_beta", code="ML227")
        alpha, beta = [*numbers, None, None][:2]
        made.append(Activation(standard, alpha, beta))
    return [made[i * count : (i + 1) * count] for i in range(directions)]


def activated(x, function: Activation):
    """One of the activations that ONNX allows in recurrent operators."""
    if function.name == "ThresholdedRelu":
        return ops.Select(x > function.alpha, x, constant_like(x, 0))
    return x / (ops.Abs(x) + 1) if function.name == "Softsign" else function.of(x)


@dataclass(frozen=True)
class Recurrence:
    """The attributes of a recurrent operator."""

    kind: str
    direction: str
    hidden: int
    layout: int
    functions: list[list[Activation]]
    clip: float
    linear_before_reset: bool
    input_forget: bool
    is_quantised: bool = False
    """Whether x and the state are quantised dynamically before they are multiplied by weights."""

    @property
    def directions(self) -> int:
        return 2 if self.direction == "bidirectional" else 1

    def clipped(self, x):
        return ops.Clamp(x, min=-self.clip, max=self.clip) if self.clip > 0 else x

    def factor(self, x: Value) -> Value:
        """The value that is multiplied by the weights, in place of x."""
        if not self.is_quantised:
            return x
        integers, scale, zero = ops.DynamicQuantize(x)
        return ops.Dequantize(integers, scale, zero, to=x.dtype)


def scanned(
    node: Context, task: Recurrence, x: Value, w: Value, r: Value, b: Value | None, lengths: Value | None,
    states: Sequence[Value | None], peepholes: Value | None,
) -> list[Value | None]:
    """The outputs Y, Y_h and, of an LSTM, Y_c: one Scan for each direction."""
    if task.layout:
        x = ops.Transpose(x, [1, 0, 2])
    outputs: list[list[Value]] = []
    for number in range(task.directions):
        backward = task.direction == "reverse" or number == 1
        firsts = [_first(task, x, each, number, lengths) for each in states]
        parts = [None if each is None else _part(each, number) for each in (w, r, b, peepholes)]
        outputs.append(_one_direction(task, task.functions[number], x, parts, lengths, firsts, backward))
    made: list[Value | None] = []
    for i, results in enumerate(zip(*outputs, strict=True)):
        if not node.wants(i):
            made.append(None)
        elif i == 0:  # [time, batch, hidden] each
            y = _stacked(results, 1)
            made.append(ops.Transpose(y, [2, 0, 1, 3]) if task.layout else y)
        else:
            made.append(_stacked(results, 1 if task.layout else 0))
    return made


def _stacked(values: Sequence[Value], axis: int) -> Value:
    raised = [ops.Unsqueeze(each, [axis]) for each in values]
    return raised[0] if len(raised) == 1 else ops.Concat(*raised, axis=axis)


def _part(value: Value, number: int) -> Value:
    """Row `number`: the weights of one direction."""
    return rows_rearranged(value, lambda array: array[number]) or ops.Gather(value, number, 0)


def _first(task: Recurrence, x: Value, given: Value | None, number: int, lengths: Value | None) -> Value:
    """The initial state [batch, hidden] of a direction, zeros if absent.

    It is zero for a sequence of length 0 too: ONNX Runtime gives zeros as its last state.
    """
    if given is not None:
        first = ops.Gather(given, number, 1 if task.layout else 0)
        return first if lengths is None else _unless_empty(first, lengths)
    if x.shape is not None and isinstance(x.shape[1], int):
        return ops.Constant(zeros((x.shape[1], task.hidden), x.dtype.numpy), graph=x.graph, dtype=x.dtype)
    zero = constant_like(x, 0)
    batch = ops.Gather(x.sizes, [1], 0)
    return ops.Broadcast(zero, ops.Concat(batch, ops.Constant([task.hidden], graph=x.graph), axis=0))


def _unless_empty(first: Value, lengths: Value) -> Value:
    known = array_of(lengths)
    if known is not None and (known > 0).all():
        return first
    return ops.Select(ops.Greater(lengths, constant_like(lengths, 0))[:, None], first, constant_like(first, 0))


def _one_direction(
    task: Recurrence, functions: list[Activation], x: Value, parts: Sequence[Value | None], lengths: Value | None,
    firsts: Sequence[Value], backward: bool,
) -> list[Value]:
    """Y [time, batch, hidden] and the last states [batch, hidden]."""
    w, r, b, peepholes = parts
    assert w is not None and r is not None
    if lengths is not None and backward:
        x = ops.ReverseSequence(x, lengths, batch_axis=1, seq_axis=0)
    # ReverseSequence reverses sequences of different lengths: each begins with its own last element.
    flips = backward and lengths is None
    mask = None if lengths is None else _mask(x, lengths)
    read = x
    if mask is not None and task.is_quantised:  # ONNX Runtime reads x up to the longest sequence
        read = ops.Select(ops.ReduceLogicalOr(mask, [1], keep_dims=True), x, constant_like(x, 0))
    gates = ops.MatMul(task.factor(read), w, transpose_b=True)
    recurrent_bias = None
    if b is not None:
        gates, recurrent_bias = _with_bias(task, gates, b)
    body = Graph("step")
    states = [_parameter(body, each) for each in firsts]
    now = _parameter(body, gates, sliced=True)
    captured: list[Any] = []
    inner = [None if each is None else _inside(body, each, captured) for each in (r, recurrent_bias, peepholes)]
    before = [each.output for each in states]
    slices: list[Any] = [(gates, now)]
    if lengths is not None and task.is_quantised:
        # ONNX Runtime sets the state to zeros one step after the end of a sequence; the scale is that of the batch.
        began = _mask(x, lengths + constant_like(lengths, 1))
        slices.append((began, _parameter(body, began, sliced=True)))
        before[0] = ops.Select(slices[-1][1], before[0], constant_like(before[0], 0))
    step = {"LSTM": _lstm_step, "GRU": _gru_step, "RNN": _rnn_step}[task.kind]
    nexts = step(task, functions, now.output, before, *inner)
    y = nexts[0]
    if mask is not None:
        live = _parameter(body, mask, sliced=True)
        slices.append((mask, live))
        y = ops.Select(live, y, constant_like(y, 0))
        nexts = [ops.Select(live, new, old) for new, old in zip(nexts, states, strict=True)]
    results = [Result(each) for each in nexts]
    every = Result(y)
    scan = ops.Scan(
        *firsts, *(value for value, _ in slices), *(value for value, _ in captured),
        graph=x.graph,
        body=body,
        input_map=(
            *(Merged(parameter, result) for parameter, result in zip(states, results, strict=True)),
            *(Sliced(parameter, 0, -1, 0, -1) if flips else Sliced(parameter, 0) for _, parameter in slices),
            *(Invariant(parameter) for _, parameter in captured),
        ),
        output_map=(
            *(Final(result) for result in results),
            Concatenated(every, 0, -1, 0, -1) if flips else Concatenated(every, 0),
        ),
    )
    *last, whole = scan
    if lengths is not None and backward:
        whole = ops.ReverseSequence(whole, lengths, batch_axis=1, seq_axis=0)
    return [whole, *last]


def _with_bias(task: Recurrence, gates: Value, b: Value) -> tuple[Value, Value | None]:
    """The gates plus biases; with linear_before_reset, the recurrence bias of the last gate stays separate."""
    count, size = GATES[task.kind], task.hidden
    inside = task.kind == "GRU" and task.linear_before_reset

    def halves(array):
        recurrent = array[count * size :].copy()
        recurrent[(count - inside) * size :] = 0
        return array[: count * size] + recurrent

    outer = rearranged(b, halves)
    last = rearranged(b, lambda array: array[(2 * count - 1) * size :]) if inside else None
    if outer is None:
        pieces = list(ops.Split(b, 0, num_splits=2 * count))
        sums = [pieces[i] + pieces[count + i] for i in range(count)]
        if inside:
            sums[-1], last = pieces[count - 1], pieces[-1]
        outer = ops.Concat(*sums, axis=0)
    return gates + outer, last


def _mask(x: Value, lengths: Value) -> Value:
    """[time, batch, 1]: whether step t is inside sequence b."""
    time = ops.Gather(x.sizes, 0, 0).astype(i32)
    lengths = lengths.astype(i32)
    steps = ops.Range(
        ops.Constant(np.int32(0), graph=x.graph), time, ops.Constant(np.int32(1), graph=x.graph), output_type=i32
    )
    return steps[:, None, None] < ops.Unsqueeze(lengths, [0, 2])


def _parameter(body: Graph, outer: Value, sliced: bool = False) -> Parameter:
    shape = outer.shape
    if sliced:
        shape = (fresh(), fresh()) if shape is None else shape[1:]
    return Parameter(graph=body, type=TensorType(outer.dtype, shape))


def _inside(body: Graph, outer: Value, captured: list[Any]) -> Value:
    """A weight in the body: a copy of the constant, or a Parameter of the captured value."""
    if isinstance(outer.node, Constant):
        return ops.Constant(outer.node.tensor, graph=body)
    parameter = _parameter(body, outer)
    captured.append((outer, parameter))
    return parameter.output


def _lstm_step(
    task: Recurrence, functions: list[Activation], now: Value, states: list[Value], r, _, peepholes
) -> list[Any]:
    f, g, h = functions
    hidden, cell = states
    products = now + ops.MatMul(task.factor(hidden), r, transpose_b=True)
    i, o, forget, c = ops.Split(products, 1, num_splits=4)
    looks = [None] * 3 if peepholes is None else list(ops.Split(peepholes, 0, num_splits=3))

    def gate(value, look, seen):
        return activated(task.clipped(value if look is None else value + seen * look), f)

    enter = gate(i, looks[0], cell)
    keep = constant_like(now, 1) - enter if task.input_forget else gate(forget, looks[2], cell)
    new = keep * cell + enter * activated(task.clipped(c), g)
    leave = gate(o, looks[1], new)
    # ONNX clips the input of each activation, but ONNX Runtime clips only those of the gates, and so does this.
    return [leave * activated(new, h), new]


def _gru_step(task: Recurrence, functions: list[Activation], now: Value, states: list[Value], r, bias, _) -> list[Any]:
    f, g = functions
    (hidden,) = states
    xz, xr, xh = ops.Split(now, 1, num_splits=3)
    rz, rr, rh = ops.Split(r, 0, num_splits=3)

    def product(value, weights):
        return ops.MatMul(value, weights, transpose_b=True)

    update = activated(task.clipped(xz + product(hidden, rz)), f)
    reset = activated(task.clipped(xr + product(hidden, rr)), f)
    if task.linear_before_reset:
        inner = product(hidden, rh)
        inner = reset * (inner if bias is None else inner + bias)
    else:
        inner = product(reset * hidden, rh)
    new = activated(task.clipped(xh + inner), g)
    return [(constant_like(now, 1) - update) * new + update * hidden]


def _rnn_step(task: Recurrence, functions: list[Activation], now: Value, states: list[Value], r, *_) -> list[Any]:
    (hidden,) = states
    return [activated(task.clipped(now + ops.MatMul(hidden, r, transpose_b=True)), functions[0])]
