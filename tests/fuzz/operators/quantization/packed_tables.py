"""Packed weights that are gathered, and weights that are numbers of a table."""

from typing import Any

import numpy as np

from tests.fuzz.operators.draw import Draw, Node
from tests.fuzz.operators.quantization.packed_weights import packed, scales_of


def gathered(d: Draw) -> Node:
    """GatherBlockQuantized: data of u8 are packed along the last axis, which is the one of the blocks."""
    kind = d.dtype("T1", "uint8 uint4 int4" if d.opset >= 21 else "uint8", default="uint8")
    scale_kind, index_kind = d.dtype("T2"), d.dtype("Tind")
    bits, block = d.pick(2, 4, 4, 8) if kind == np.uint8 else 4, d.pick(16, 32)
    rank = d.integer(2, 3)
    shape = [d.integer(1, 5) for _ in range(rank)]
    blocked = rank - 1 if kind == np.uint8 else d.integer(0, rank - 1)
    shape[blocked] = d.pick(block, 2 * block, block + d.integer(1, 9) * 4)
    axis = 0 if kind == np.uint8 else d.integer(0, rank - 1)
    cells = [-(-size // block) if at == blocked else size for at, size in enumerate(shape)]
    stored = [*shape[:-1], shape[-1] * bits // 8] if kind == np.uint8 else shape
    data = d.given(_integers(d, stored, kind), 1.0)
    scales = d.given(scales_of(d, cells, scale_kind), 1.0)
    last = -(-cells[-1] * bits // 8) if kind == np.uint8 else cells[-1]
    zero = d.optional(d.given(_integers(d, [*cells[:-1], last], kind), 1.0))
    places = d.data(d.shape(0, 2), index_kind)
    places.array = d.values.integers(-shape[axis], shape[axis], places.shape).astype(index_kind)
    return d.node([data, places, scales, zero], bits=bits if bits != 4 else d.maybe(4), block_size=block,
                  quantize_axis=d.signed(blocked, rank), gather_axis=d.signed(axis, rank) if axis else d.maybe(0),
                  atol=0.02 if scale_kind == np.float16 else 1e-4)


def _integers(d: Draw, shape: list[int], kind: Any) -> Any:
    if kind == np.uint8:
        return packed(d, shape)
    low = 0 if kind.name == "uint4" else -8
    return d.values.integers(low, low + 16, shape).astype(kind)


def table(d: Draw) -> Node:
    """MatMulBnb4."""
    size, columns, block = d.integer(1, 40), d.integer(1, 9), d.pick(16, 32, 64)
    a = d.data([*d.shape(1, 2), size], np.float32, "small")
    a.fixed = True
    constant = 0.0 if d.chance(0.15) else 1.0
    weights = d.given(packed(d, [-(-size * columns // 2)]), constant, fixed=True)
    largest = d.given(d.values.random(-(-size * columns // block)).astype(np.float32), constant, fixed=True)
    return d.node([a, weights, largest], K=size, N=columns, block_size=block, quant_type=d.pick(0, 1),
                  transB=d.maybe(1), training_mode=d.maybe(0), atol=2e-4)


OPERATORS = {"com.microsoft::GatherBlockQuantized": gathered, "com.microsoft::MatMulBnb4": table}
