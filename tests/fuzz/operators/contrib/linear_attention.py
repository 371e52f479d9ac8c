"""Attention without a softmax: states that each token updates."""

from __future__ import annotations

import numpy as np

from ..draw import Draw, Node


def gate(d: Draw) -> Node:
    """Decays, and update rates if they are asked for."""
    shape, kind = d.shape(2, 4), d.dtype("T", "float float16")
    heads = d.integer(1, 4)
    vectors = [d.data([heads], np.float32, constant=0.8, computed=False) for _ in range(2)]
    outputs = d.pick(1, 2, 2)
    b = d.data([*shape[:-1], heads], kind)
    return d.node([d.data([*shape[:-1], heads], kind), *vectors, b if outputs == 2 else d.optional(b)], outputs)


OPERATORS = {"com.microsoft::LinearAttentionGate": gate}
