"""Normalisations with a sum before them, embeddings, branches and gates."""

import numpy as np

from tests.fuzz.operators.draw import OMITTED, Draw, Node, Port


def _tolerance(dtype: np.dtype) -> float | None:
    return 1e-4 if dtype.itemsize > 2 else None


def _epsilon(d: Draw) -> object:
    return d.maybe(d.pick(1e-12, 1e-5, 1e-3))


def skip_layer(d: Draw) -> Node:
    """The skip has the shape of x, or one sample, or no batch; the sum is an output."""
    dtype = d.dtype("T")
    shape = [d.size(empty=0.01), d.size(empty=0.01), d.size(3, 6, 0)]
    shape = shape[1:] if d.chance(0.3) else shape
    kind = d.pick("same", "same", "one", "none") if len(shape) == 3 else "same"
    skip = shape if kind == "same" else [1, *shape[1:]] if kind == "one" else shape[1:]
    gamma, beta, bias = (d.data(shape[-1:], dtype, constant=0.6, computed=False) for _ in range(3))
    ports: list[Port | None] = [d.data(shape, dtype), d.data(skip, dtype), gamma]
    if d.op.endswith("SkipLayerNormalization"):
        ports.append(d.optional(beta))
    outputs = ("y", "", "", "sum") if d.chance(0.4) else ("y",)
    return d.node([*ports, d.optional(bias, 0.5)], outputs=outputs, epsilon=_epsilon(d), atol=_tolerance(dtype))


def embed_layer(d: Draw) -> Node:
    """With and without segments, a mask, positions; the number of words and the sum are outputs."""
    dtype = d.dtype("T")
    batch, length, size = d.size(empty=0), d.size(1, 5, empty=0), d.size(3, 6, 0)
    words, places = d.integer(3, 8), d.integer(6, 9)
    segments = d.chance(0.6)

    def indices(shape: list[int], end: int, constant: float = 0.1) -> Port:
        return d.given(d.values.integers(0, end, shape).astype(np.int32), constant)

    tables = [d.data([rows, size], dtype, constant=0.7, computed=False) for rows in (words, places, 2)]
    ids, kinds = indices([batch, length], words), indices([batch, length], 2)
    gamma, beta = (d.data([size], dtype, constant=0.6, computed=False) for _ in range(2))
    mask, positions = indices([batch, length], 2), indices([d.pick(1, batch), length], places)
    return d.node(
        [ids, kinds if segments else None, tables[0], tables[1], tables[2] if segments else None, gamma, beta,
         d.optional(mask), d.optional(positions, 0.4)],
        outputs=d.pick(("y", "words"), ("y", "words", "sum"), ("y", "", "sum")), epsilon=_epsilon(d),
        mask_index_type=d.maybe(1, 0.3), atol=_tolerance(dtype),
    )


def quantised_embed_layer(d: Draw) -> Node:
    """The same with integers of 8 bits, each with a scale and a zero point; the schema has two outputs."""
    kind = d.dtype("T2")
    info = np.iinfo(kind)
    batch, length, size = d.size(empty=0), d.size(1, 5, empty=0), d.size(3, 6, 0)
    words, places, segments = d.integer(3, 8), d.integer(6, 9), d.chance(0.6)

    def indices(end: int) -> Port:
        return d.given(d.values.integers(0, end, [batch, length]).astype(np.int32), 0.1)

    def integers(shape: list[int]) -> Port:
        return d.given(d.values.integers(info.min, info.max + 1, shape).astype(kind), 0.7, fixed=True)

    ids, kinds, mask = indices(words), indices(2), indices(2)
    shape = [1] if d.chance(0.3) else []
    tables = [integers(dims) for dims in ([words, size], [places, size], [2, size], [size], [size])]
    scales = [d.given(d.values.uniform(0.01, 0.1, shape).astype(np.float32), 0.7, fixed=True) for _ in tables]
    zeros = [integers(shape) for _ in tables]
    if not segments:
        tables[2] = scales[2] = zeros[2] = None  # type: ignore[call-overload]
    return d.node([ids, kinds if segments else None, *tables, d.optional(mask), *scales, *zeros], outputs=2,
                  epsilon=_epsilon(d), atol=1e-4)


def branches(d: Draw) -> Node:
    """Rows of their own, or all branches in the last dimension."""
    dtype = d.dtype("T")
    before, count, size = d.shape(1, 2, empty=0.01), d.integer(1, 3), d.integer(2, 5)
    flat = d.chance(0.5)
    x = d.data([*before, count * size] if flat else [*before, count, size], dtype)
    scale = d.data(d.pick([count * size], [count, size], [size]), d.dtype("M"), constant=0.6, computed=False)
    return d.node([x, d.optional(scale, 0.8)], num_branches=count if flat else OMITTED, epsilon=_epsilon(d))


def gated(d: Draw) -> Node:
    """Rows of the length of the scale."""
    dtype, size = d.dtype("T"), d.integer(2, 5)
    shape = [*d.shape(1, 3, empty=0.01), size * d.integer(1, 3)]
    scale = d.data([size], dtype, constant=0.6, computed=False)
    return d.node([d.data(shape, dtype), scale, d.data(shape, dtype)], epsilon=_epsilon(d),
                  activation=d.maybe(d.pick("silu", "swish", "sigmoid")))


OPERATORS = {
    "com.microsoft::SkipLayerNormalization": skip_layer,
    "com.microsoft::SkipSimplifiedLayerNormalization": skip_layer,
    "com.microsoft::EmbedLayerNormalization": embed_layer,
    "com.microsoft::QEmbedLayerNormalization": quantised_embed_layer,
    "com.microsoft::BranchwiseRMSNorm": branches,
    "com.microsoft::GatedRMSNorm": gated,
}
