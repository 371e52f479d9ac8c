"""LSTM, GRU and RNN as a *Sequence operation if it gives the same numbers, else as a Scan over composed steps."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from mo_loop.errors import TypeError_
from mo_loop.frontend.ops.elementwise.activation import Activation
from mo_loop.frontend.ops.linear import array_of
from mo_loop.frontend.ops.recurrent.recurrent_sequences import sequence
from mo_loop.frontend.ops.recurrent.recurrent_steps import GATES, Recurrence, activations_of, scanned
from mo_loop.frontend.vocabulary import Attributes, Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.ops.ranges import Integers, Matrix, Positive, Rank3, Vector
from mo_loop.target import Gap

AVOIDS = {
    "LSTM": (
        Gap(
            "sequence-of-length-zero", "recurrent sequence operations of length 0 do not write their last state",
            "`Select` of zeros",
        ),
    ),
}  # fmt: skip
"""Operator -> the errors of the runtime that its translator avoids."""

Floats = tuple[float, ...]
Strings = tuple[str, ...]

TANH = {"activations": ("Tanh", "Tanh")}
"""The default that ONNX gives to RNN alone."""

_DEFAULTS = {"LSTM": ("sigmoid", "tanh", "tanh"), "GRU": ("sigmoid", "tanh"), "RNN": ("tanh",)}
_NATIVE: dict[str, set[tuple[str, ...]]] = {
    "RNN": {("tanh",), ("relu",), ("sigmoid",)}, "GRU": {("sigmoid", "tanh")}, "LSTM": {("sigmoid", "tanh", "tanh")},
}  # fmt: skip


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
    given: RecurrentAttributes,
    layout: int = 0,
    linear_before_reset: int = 0,
    input_forget: int = 0,
    is_quantised: bool = False,
) -> list[Value | None]:
    """The outputs Y, Y_h and, of an LSTM, Y_c."""
    direction, hidden_size = given.direction, given.hidden_size
    if direction not in ("forward", "reverse", "bidirectional"):
        raise ModelError(f"direction {direction!r}: ONNX defines forward, reverse and bidirectional", code="ML227")
    directions = 2 if direction == "bidirectional" else 1
    hidden = r.shape[-1] if r.shape else hidden_size
    hidden = hidden if isinstance(hidden, int) else hidden_size
    if not isinstance(hidden, int):
        raise UnsupportedError(f"{kind} of unknown hidden size", code="ML314", hint="give the attribute hidden_size")
    rows = GATES[kind] * hidden
    sizes: dict[str, tuple[int | None, ...]] = {
        "w": (directions, rows, None), "r": (directions, rows, hidden), "b": (directions, 2 * rows),
        "p": (directions, 3 * hidden), "state": (None, directions, hidden) if layout else (directions, None, hidden),
    }  # fmt: skip
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
    )  # fmt: skip
    if lengths is not None and _all_equal(lengths, x, layout):
        lengths = None
    native = _native_activations(functions, kind)
    is_plain = not task.clip and not task.input_forget and peepholes is None
    if native is None or not is_plain or is_quantised:
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


def _native_activations(functions: Sequence[Sequence[Activation]], kind: str) -> Strings | None:
    """The names, if both directions have the same ones and the runtime's kernels support them."""
    names = tuple(str(each.name).lower() for each in functions[0])
    same = all([each.name for each in others] == [each.name for each in functions[0]] for others in functions)
    return names if same and names in _NATIVE[kind] else None


def _all_equal(lengths: Value, x: Value, layout: int) -> bool:
    """Whether every sequence is known to have the full length of the input."""
    time = None if x.shape is None else x.shape[1 if layout else 0]
    given = array_of(lengths)
    return given is not None and isinstance(time, int) and bool((given == time).all())


@translates("LSTM", since=1, without="layout")
@translates("LSTM", since=7, without="layout output_sequence")
@translates("LSTM", since=14, without="output_sequence", ignored="output_sequence")
def lstm(
    x: Rank3,
    w: Rank3,
    r: Rank3,
    b: Matrix = None,
    sequence_lens: Vector | Integers = None,
    initial_h: Rank3 = None,
    initial_c: Rank3 = None,
    p: Matrix = None,
    *,
    input_forget: int = 0,
    layout: int = 0,
    output_sequence: int = 0,
    given: RecurrentAttributes,
    node: Context,
):
    """With `layout` 1 the batch comes first everywhere.

    Until opset 6 the first output exists if `output_sequence` is set, or if the output has a name.
    """
    return recurrent_outputs(
        node, x, w, r, b, sequence_lens, (initial_h, initial_c), p, kind="LSTM", given=given, layout=layout,
        input_forget=input_forget,
    )  # fmt: skip


@translates("GRU", since=1, without="layout linear_before_reset", defaults={"direction": "foward"})
@translates("GRU", since=3, without="layout")
@translates("GRU", since=7, without="layout output_sequence")
@translates("GRU", since=14, without="output_sequence", ignored="output_sequence")
def gru(
    x: Rank3,
    w: Rank3,
    r: Rank3,
    b: Matrix = None,
    sequence_lens: Vector | Integers = None,
    initial_h: Rank3 = None,
    *,
    layout: int = 0,
    linear_before_reset: int = 0,
    output_sequence: int = 0,
    given: RecurrentAttributes,
    node: Context,
):
    """With `layout` 1 the batch comes first everywhere. The default direction is misspelt in the schema of opset 1."""
    if given.direction == "foward" and node.opset < 3:
        given = replace(given, direction="forward")
    return recurrent_outputs(
        node, x, w, r, b, sequence_lens, (initial_h,), kind="GRU", given=given, layout=layout,
        linear_before_reset=linear_before_reset,
    )  # fmt: skip


@translates("RNN", since=1, without="layout", defaults=TANH)
@translates("RNN", since=7, without="layout output_sequence", defaults=TANH)
@translates("RNN", since=14, without="output_sequence", defaults=TANH, ignored="output_sequence")
def rnn(
    x: Rank3,
    w: Rank3,
    r: Rank3,
    b: Matrix = None,
    sequence_lens: Vector | Integers = None,
    initial_h: Rank3 = None,
    *,
    layout: int = 0,
    output_sequence: int = 0,
    given: RecurrentAttributes,
    node: Context,
):
    """With `layout` 1 the batch comes first everywhere."""
    states = (initial_h,)
    return recurrent_outputs(node, x, w, r, b, sequence_lens, states, kind="RNN", given=given, layout=layout)
