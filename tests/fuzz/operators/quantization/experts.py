"""Mixtures of experts."""

from typing import Any

import numpy as np

from tests.fuzz.operators.draw import OMITTED, Draw, Node, Port
from tests.fuzz.operators.quantization.packed_weights import packed


def routed(d: Draw, kind: Any, hidden: int) -> tuple[list[Port | None], int, dict[str, Any], int]:
    """The tokens and logits, the number of experts, attributes, and how many rows the first layer has for each."""
    experts = d.integer(1, 5)
    shape = [d.size(empty=0), hidden] if d.chance(0.3) else [d.size(empty=0), d.size(empty=0), hidden]
    x = d.data(shape, kind, "small", computed=False)
    logits = d.data([int(np.prod(shape[:-1])), experts], kind, "small", computed=False)
    numbers = d.values.standard_normal(logits.shape) * 2
    logits.array = (np.round(numbers) if d.chance(0.3) else numbers).astype(kind)  # some are equal if rounded
    name = d.pick("relu", "gelu", "silu", "identity", "swiglu", "swiglu")
    attributes: dict[str, Any] = {
        "k": d.integer(1, min(experts, 3)), "activation_type": name if name != "relu" else d.maybe(name),
        "normalize_routing_weights": d.maybe(d.pick(0, 1)),
    }
    if name == "swiglu":
        attributes |= {"swiglu_fusion": 1, "activation_alpha": d.maybe(d.number(0.5, 2)),
                       "swiglu_limit": d.maybe(d.number(1, 5)), "activation_beta": d.maybe(d.number(0, 1))}
    return [x, logits], experts, attributes, 2 if name == "swiglu" else 1


def plain(d: Draw) -> Node:
    """MoE."""
    kind, hidden, inner = d.dtype("T"), d.integer(1, 6), d.integer(1, 6)
    ports, experts, attributes, factor = routed(d, kind, hidden)
    for rows, length in ((factor * inner, hidden), (hidden, inner)):
        fixed = 0.8
        ports.append(d.given(d.values.standard_normal([experts, rows, length]).astype(kind), fixed, fixed=True))
        bias = d.given(d.values.standard_normal([experts, rows]).astype(kind), fixed, fixed=True)
        ports.append(d.optional(bias))
    return d.node(ports, atol=1e-3 if kind == np.float32 else 0.2, **attributes)


def quantised(d: Draw) -> Node:
    """QMoE with a scale for each row, or for each block."""
    kind, bits = d.dtype("T", "float float16"), d.pick(2, 4, 4, 8)
    # The kernel rounds activations before blocks of 8 bits, and before blocks of 32 of 2 bits.
    block = {2: d.pick(0, 0, 16), 4: d.pick(0, 0, 16, 32), 8: 0}[bits]
    unit = block or 4
    hidden, inner = unit * d.integer(1, 3), unit * d.integer(1, 3)
    ports, experts, attributes, factor = routed(d, kind, hidden)
    zeros: list[Port | None] = []
    has_zeros = d.chance(0.4)
    for rows, length in ((factor * inner, hidden), (hidden, inner)):
        ports.append(d.given(packed(d, [experts, rows, length * bits // 8]), 1.0))
        cells = [experts, rows, length // block] if block else [experts, rows]
        size = 1.6 / (1 << bits)
        ports.append(d.given((d.values.uniform(0.3, 1, cells) * size).astype(kind), 1.0))
        ports.append(d.optional(d.given(d.values.standard_normal([experts, rows]).astype(kind), 1.0)))
        stored = [*cells[:-1], -(-cells[-1] * bits // 8)]
        zeros.append(d.given(packed(d, stored), 1.0) if has_zeros else None)
    ports += [None, None, None, *zeros, None]
    if d.chance(0.3):
        ports.append(d.data(ports[1].shape, kind, "positive", computed=False))  # type: ignore[union-attr]
    return d.node(ports, atol=0.02 if kind == np.float32 else 0.3, expert_weight_bits=bits if bits != 4 else d.maybe(4),
                  block_size=block or OMITTED, **attributes)


OPERATORS = {"com.microsoft::MoE": plain, "com.microsoft::QMoE": quantised}
