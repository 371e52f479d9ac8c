"""Tensors that are extended, cut to a size, or created."""

import numpy as np

from .draw import OMITTED, Draw, Node, Port


def expand(d: Draw) -> Node:
    a, b = d.broadcast(2)
    return d.node([d.data(a, d.dtype()), d.parameter(b)])


def tile(d: Draw) -> Node:
    x = d.data(d.shape(0, 4), d.dtype("T"))
    return d.node([x, d.parameter([d.pick(1, 1, 2, 3, 0) for _ in range(x.rank)])])


def pad(d: Draw) -> Node:
    """Widths on either side, negative ones too; some axes only from opset 18 on."""
    mode = d.pick("constant", "constant", "edge", "reflect", "wrap" if d.since >= 19 else "constant")
    shape = d.shape(1, 4, low=1 if mode == "constant" else 3, empty=0.02 if mode == "constant" else 0)
    dtype = d.dtype()
    x = d.data(shape, dtype)
    some = d.since >= 18 and d.chance(0.4)
    axes = d.axes(x.rank, 1) if some else list(range(x.rank))
    negative = d.chance(0.2)
    widths = [-1 if negative and d.chance(0.3) and mode == "constant" else d.integer(0, 2) for _ in (*axes, *axes)]
    value = d.number(-3, 3) if dtype.kind == "f" else d.integer(0, 3)
    if d.since < 11:
        return d.node([x], mode=d.maybe(mode) if mode == "constant" else mode, pads=widths, value=d.maybe(float(value)))
    fill: Port | None = d.optional(d.parameter(np.array(value), dtype))
    ports = [x, d.parameter(widths), fill if mode == "constant" or d.chance(0.2) else None]
    if some:
        ports.append(d.parameter(axes, constant=0.7))
    return d.node(ports, mode=d.maybe(mode) if mode == "constant" else mode)


def centred(d: Draw) -> Node:
    """CenterCropPad."""
    x = d.data(d.shape(1, 4), d.dtype("T", "float float16 int32 int64 uint8 double bool"))
    some = d.chance(0.5)
    axes = d.axes(x.rank, 1) if some else list(range(x.rank))
    return d.node([x, d.parameter([d.integer(1, 7) for _ in axes])], axes=axes if some else OMITTED)


def steps(d: Draw) -> Node:
    """Range: ascending, descending, or empty."""
    dtype = d.dtype("T")
    delta = d.pick(1, 2, 3, -1, -2) if dtype.kind != "u" else d.integer(1, 3)
    delta = delta * 0.5 if dtype.kind == "f" and d.chance(0.4) else delta
    start = int(d.values.integers(0, 5))
    limit = start + int(d.values.integers(-1, 8)) * (1 if delta > 0 else -1)
    return d.node(
        [d.parameter(np.array(each), dtype) for each in (start, max(limit, 0) if dtype.kind == "u" else limit, delta)]
    )


def eye(d: Draw) -> Node:
    x = d.data(d.shape(2, 2), d.dtype("T1"))
    kind = d.pick(OMITTED, OMITTED, 1, 6, 7, 11)
    if kind != OMITTED:
        return d.node([x], dtype=kind, k=d.maybe(d.integer(-3, 3)))
    return d.node([x], k=d.maybe(d.integer(-3, 3)))


def triangle(d: Draw) -> Node:
    x = d.data(d.shape(2, 4), d.dtype())
    return d.node([x, d.optional(d.parameter(np.array(d.integer(-4, 4))))], upper=d.maybe(d.pick(0, 1)))


OPERATORS = {"Expand": expand, "Tile": tile, "Pad": pad, "CenterCropPad": centred, "Range": steps, "EyeLike": eye,
             "Trilu": triangle}
