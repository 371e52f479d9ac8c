"""The gated delta rule over tokens of several sequences."""

from typing import Any

import numpy as np

from tests.fuzz.operators.attention.linear_attention import RULES
from tests.fuzz.operators.draw import OMITTED, Draw, Node, Port


def gated_delta_net(d: Draw) -> Node:
    """Sequences of one length, with an axis of their own or without, or of different lengths; packed tensors too."""
    rule, way = d.pick(*RULES), d.pick("axis", "uniform", "uniform", "ragged", "ragged")
    heads, size, width = d.integer(1, 2), d.integer(1, 4), d.integer(1, 4)
    states, batch, length = heads * d.integer(1, 2), d.size(1, 3, 0), d.size(1, d.pick(5, 5, 40), 0)
    inner = np.sort(d.values.integers(0, batch * length + 1, batch))[1:]
    ends = np.array([0, *inner, batch * length], np.int32)
    kind, gate_kind = np.dtype(d.dtype("T", "float float16")), np.dtype(np.float32)
    gate_kind = kind if d.chance(0.5) else gate_kind
    before = [batch, length] if way == "axis" else [batch * length]
    is_gated, has_delta = "gated" in rule, "delta" in rule
    gate = d.pick("none", "softplus", "qwen", "sigmoid", "kda") if is_gated else "none"
    by_key = d.chance(0.4)
    decay = d.data([*before, states, *([size] if by_key else [])], gate_kind, "unit")
    bias = d.pick([states], [states, size], [states * size]) if by_key else [states]
    vectors = [d.data(each, np.float32, constant=0.8, computed=False) for each in ([states], bias)]
    state = d.data([batch, states, width, size], np.float32, constant=0.05, computed=False)
    is_packed, capacity = d.chance(0.25), d.pick(0, 0, 1, 3)
    count = d.given(d.values.integers(-1, 5, batch).astype(np.int32), 0.1 if d.dims == "static" else 0)
    active = d.optional(d.given(np.array([d.pick(0, 1)], np.int32), 0.5, fixed=True), 0.4)
    norm, outputs = d.maybe(d.pick(0, 1)), 3 if capacity and d.chance(0.8) else d.pick(1, 2)
    return d.node(
        [*_tensors(d, before, (heads, states, size, width), kind, is_packed),
         d.given(ends, 0.1 if d.dims == "static" else 0) if way == "ragged" else None,
         decay if is_gated else None, d.data([*before, states], gate_kind, "unit") if has_delta else None,
         state if way == "uniform" or is_packed else d.optional(state, 0.7),
         *(vectors if gate != "none" else (None, None)), count if capacity else None, active if capacity else None],
        outputs, update_rule=OMITTED if rule == "gated_delta" and d.chance(0.4) else rule,
        gate_activation=gate if gate != "none" else d.maybe(gate, 0.2), gate_lower_bound=d.maybe(d.number(-4, -1), 0.4),
        beta_activation=d.maybe(d.pick("none", "sigmoid")), qk_l2_norm=norm, scale=d.maybe(d.number(0, 1), 0.4),
        state_update_capacity=capacity or OMITTED, **({"rtol": 1e-4, "atol": 1e-4} if kind == np.float32 else {}),
    )


def _tensors(d: Draw, before: list[int], sizes: tuple[int, int, int, int], kind: Any,
             is_packed: bool) -> list[Port | None]:
    heads, states, size, width = sizes
    if is_packed:
        # The sizes of packed tensors have to be known.
        return [d.data([*before, 2 * heads * size + states * width], kind, "unit", computed=False), None, None]
    shapes = [[heads, size], [heads, size], [states, width]]
    return [d.data([*before, *each], kind, "unit") for each in shapes]


OPERATORS = {"com.microsoft::GatedDeltaNet": gated_delta_net}
