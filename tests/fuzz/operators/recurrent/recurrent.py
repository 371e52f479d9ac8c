"""LSTM, GRU, RNN: directions, lengths, states, activations, clipping, omitted outputs."""

import numpy as np

from tests.fuzz.operators.draw import OMITTED, Draw, Node

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}
FUNCTIONS = ("Tanh", "Sigmoid", "Relu", "HardSigmoid", "Softsign", "LeakyRelu", "Elu")


def recurrent(d: Draw) -> Node:
    op = "LSTM" if d.op.endswith("LSTM") else d.op
    dtype, gates = d.dtype("T", "float float16"), GATES[op]
    direction = d.pick("forward", "reverse", "bidirectional")
    ways = 2 if direction == "bidirectional" else 1
    length, batch, in_order = d.size(1, 5, 0.01), d.size(1, 3, 0), d.chance(0.1)
    batch = max(length, 1) if in_order else batch
    features, hidden = d.integer(1, 4), d.integer(1, 4)
    state = [ways, batch, hidden]
    x = d.data([length, batch, features], dtype)
    w, r = (d.data([ways, gates * hidden, n], dtype, "unit", constant=0.8, computed=False) for n in (features, hidden))
    b = d.optional(d.data([ways, 2 * gates * hidden], dtype, "unit", constant=0.8, computed=False))
    lengths = np.arange(1, batch + 1) if in_order else d.values.integers(1, max(length, 1) + 1, batch)
    given = d.optional(d.given(lengths.astype(np.int32), 1.0 if in_order else 0.1), 1.0 if in_order else 0.3)
    ports = [x, w, r, b, given, d.optional(d.data(state, dtype, "unit", constant=0.3), 0.5)]
    if op == "LSTM":
        ports.append(d.optional(d.data(state, dtype, "unit", constant=0.3), 0.5))
        ports.append(d.optional(d.data([ways, 3 * hidden], dtype, "unit", constant=0.9), 0.15))
    count = {"LSTM": 3, "GRU": 2, "RNN": 1}[op]
    chosen = [d.pick(*FUNCTIONS[:3]) if d.chance(0.8) else d.pick(*FUNCTIONS) for _ in range(count)] * ways
    names = ["Y", "Y_h", "Y_c"][: 3 if op == "LSTM" else 2]
    wanted = [name if d.chance(0.7) else "" for name in names]
    activations = d.chance(0.25)
    return d.node(
        ports, outputs=_trimmed(wanted) or ["Y"], hidden_size=hidden, direction=d.maybe(direction) if ways == 1 and
        direction == "forward" else direction,
        activations=chosen if activations else OMITTED, clip=d.maybe(d.number(0.3, 3), 0.15),
        linear_before_reset=d.maybe(d.pick(0, 1)), input_forget=d.maybe(1, 0.08),
        atol=None if dtype.itemsize == 2 else 2e-4,
    )


def _trimmed(names: list[str]) -> list[str]:
    while names and not names[-1]:
        names = names[:-1]
    return names


OPERATORS = dict.fromkeys(GATES, recurrent)
