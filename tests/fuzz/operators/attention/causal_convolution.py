"""Convolutions of channels over their past."""

import numpy as np

from tests.fuzz.operators.draw import Draw, Node


def _activation(d: Draw) -> str:
    return str(d.pick("none", "silu", "swish"))


def with_state(d: Draw) -> Node:
    """Sequences of one length, with the channels first or last."""
    batch, length, taps, gap = d.size(1, 3, 0.01), d.size(1, 6), d.integer(1, 4), d.pick(1, 1, 2, 3)
    kind, is_last = d.dtype("T", "float float16"), d.chance(0.4)
    channels = [d.integer(1, 4) for _ in range(d.pick(1, 1, 2, 3) if is_last else 1)]
    count, width = int(np.prod(channels)), (taps - 1) * gap
    shapes = [[batch, each, *channels] if is_last else [batch, *channels, each] for each in (length, width)]
    weight = d.data([count, 1, taps], kind, constant=0.8, computed=False)
    bias = d.optional(d.data([count], kind, constant=0.8, computed=False))
    return d.node([d.data(shapes[0], kind), weight, bias, d.optional(d.data(shapes[1], kind, constant=0.05), 0.75)], 2,
                  activation=d.maybe(_activation(d)), dilation=d.maybe(1) if gap == 1 else gap,
                  channels_last=1 if is_last else d.maybe(0, 0.3))


def packed(d: Draw) -> Node:
    """Sequences of different lengths, some of them empty."""
    batch, channels, taps, gap = d.size(1, 4, 0), d.integer(1, 4), d.integer(1, 4), d.pick(1, 1, 2)
    kind, tokens = d.dtype("T", "float float16"), batch + d.size(0, 6, 0)
    inner = np.sort(d.values.integers(0, tokens + 1, batch))[1:]
    ends = d.given(np.array([0, *inner, tokens], np.int32), 0.1 if d.dims == "static" else 0)
    state = d.data([batch, channels, (taps - 1) * gap], kind, constant=0.05)
    weight = d.data([channels, 1, taps], kind, constant=0.8, computed=False)
    bias = d.optional(d.data([channels], kind, constant=0.8, computed=False))
    capacity = d.pick(0, 0, 1, 3)
    count = d.given(d.values.integers(-1, 5, batch).astype(np.int32), 0.1 if d.dims == "static" else 0)
    return d.node([d.data([tokens, channels], kind), weight, ends, bias, state, count if capacity else None],
                  3 if capacity and d.chance(0.8) else 2, activation=d.maybe(_activation(d)),
                  dilation=d.maybe(1) if gap == 1 else gap, state_update_capacity=capacity or d.maybe(0, 0.3))


OPERATORS = {"com.microsoft::CausalConvWithState": with_state, "com.microsoft::VarlenCausalConvWithState": packed}
