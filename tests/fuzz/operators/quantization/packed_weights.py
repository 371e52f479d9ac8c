"""Matrix products with packed weights."""

from typing import Any

import numpy as np

from tests.fuzz.operators.draw import Draw, Node, Port


def packed(d: Draw, shape: list[int]) -> Any:
    """Random bytes."""
    return d.values.integers(0, 256, shape).astype(np.uint8)


def scales_of(d: Draw, shape: list[int], kind: Any) -> Any:
    return (d.values.choice((0.125, 0.25, 0.1), shape) * d.values.choice((1, 1, -1), shape)).astype(kind)


def n_bits(d: Draw) -> Node:
    """MatMulNBits. The kernels for f16 compute 8 bits only with constant weights and without floating zero points."""
    kind = d.dtype("T1")
    bits, block = d.pick(2, 4, 4, 4, 8), d.pick(16, 32, 64)
    size = d.pick(block, 2 * block, 3 * block, d.integer(1, block), block + d.integer(1, 2 * block))
    columns, blocks = d.integer(1, 9), -(-size // block)
    a = d.data([*d.shape(1, 2), size], kind, "small")
    a.fixed = True
    weights = packed(d, [columns, blocks, block * bits // 8])
    fixed = 1.0 if d.chance(0.8) or (bits == 8 and kind == np.float16) else 0.0
    way = d.pick("none", "none", "packed", "packed", "floats")
    zero: Port | None = None
    if way == "packed":
        zero = d.given(packed(d, [columns * -(-blocks * bits // 8)]), fixed, fixed=True)
        if d.chance(0.7):
            zero.array = zero.array.reshape(columns, -1)
    if way == "floats" and bits < 8:
        zero = d.given((d.values.random([columns, blocks]) * (1 << bits)).astype(kind), fixed, fixed=True)
    groups = None
    # With g_idx the kernel ignores packed zero points, and reads weights of 2 bits as 4 bits.
    if d.chance(0.2) and bits == 4 and way != "packed":
        groups = d.given(_groups(d, size, block), 0.8, fixed=True)
    scales = scales_of(d, [columns, blocks] if d.chance(0.7) else [columns * blocks], kind)
    bias = d.optional(d.given(d.values.standard_normal(columns).astype(kind), 0.8, fixed=True), 0.4)
    return d.node([a, d.given(weights, fixed, fixed=True), d.given(scales, fixed, fixed=True), zero, groups, bias],
                  K=size, N=columns, bits=bits if bits != 4 else d.maybe(4), block_size=block,
                  accuracy_level=d.maybe(d.pick(0, 1, 2, 3)), weight_prepacked=d.maybe(0, 0.2), atol=_tolerance(kind))


def _groups(d: Draw, size: int, block: int) -> Any:
    """The groups of the elements: as without g_idx, blocks in any order of the elements, or any."""
    plain, way = np.arange(size) // block, d.pick("plain", "shuffled", "any")
    if way == "any":
        plain = d.values.integers(0, -(-size // block), size)
    return (plain if way == "plain" else d.values.permutation(plain)).astype(np.int32)


def _tolerance(kind: Any) -> float:
    return 0.05 if kind == np.float16 else 2e-4


OPERATORS = {"com.microsoft::MatMulNBits": n_bits}
