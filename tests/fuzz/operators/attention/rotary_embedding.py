"""Rotary embeddings of whole heads and of parts, with positions for each token or for the first."""

from typing import Any

import numpy as np

from tests.fuzz.operators.draw import OMITTED, Draw, Node


def rotary(d: Draw) -> Node:
    """Heads apart in 4 dimensions, or together in 3."""
    batch, rows, heads, length = d.size(1, 3, 0), d.size(1, 4, 0), d.integer(1, 3), d.integer(6, 9)
    size, is_part = 2 * d.integer(1, 4), d.chance(0.35)
    turned = 2 * d.integer(1, size // 2) if is_part else size
    kind = np.dtype(d.dtype("T"))
    x = _tokens(d, batch, rows, heads, size, kind)
    first = d.given(d.values.integers(0, 3, d.pick((1,), (1,), ())), 0.3, fixed=True)
    each = d.given(d.values.integers(0, length, (batch, rows)), 0.1)
    cos, sin = (d.data([length, turned // 2], kind, constant=0.85, computed=False) for _ in range(2))
    named = is_part or d.chance(0.4)
    return d.node([x, each if d.chance(0.6) else first, cos, sin], interleaved=d.maybe(d.pick(0, 1), 0.7),
                  num_heads=heads if named else OMITTED, rotary_embedding_dim=turned if is_part else OMITTED,
                  scale=d.maybe(1.0, 0.2), rtol=_rtol(kind))


def multimodal(d: Draw) -> Node:
    """Positions of three kinds for each token."""
    batch, rows, heads, length = d.size(1, 3, 0), d.size(1, 4, 0), d.integer(1, 3), d.integer(6, 9)
    sections = d.pick([2, 1, 1], [1, 2, 2], [4, 0, 0], [2, 2, 2], [0, 1, 3], [3, 3, 2])
    turned, is_part = 2 * sum(sections), d.chance(0.3)
    size = turned + (2 * d.integer(1, 3) if is_part else 0)
    kind = np.dtype(d.dtype("T"))
    x = _tokens(d, batch, rows, heads, size, kind)
    places = d.given(d.values.integers(0, length, (3, batch, rows)), 0.1)
    cos, sin = (d.data([length, turned // 2], kind, constant=0.85, computed=False) for _ in range(2))
    return d.node([x, places, cos, sin], interleaved=d.maybe(d.pick(0, 1), 0.7), mrope_section=sections,
                  mrope_layout=d.maybe(d.pick(0, 1), 0.7), num_heads=heads,
                  rotary_embedding_dim=turned if is_part else OMITTED, rtol=_rtol(kind))


def _tokens(d: Draw, batch: int, rows: int, heads: int, size: int, kind: Any) -> Any:
    return d.data([batch, heads, rows, size] if d.chance(0.4) else [batch, rows, heads * size], kind)


def _rtol(kind: Any) -> float | None:
    return 1e-4 if kind == np.float32 else None


OPERATORS = {"com.microsoft::RotaryEmbedding": rotary, "com.microsoft::MRotaryEmbedding": multimodal}
