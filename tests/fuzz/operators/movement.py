"""Shapes, and operators that move elements."""

import numpy as np

from .draw import OMITTED, Draw, Node


def reshape(d: Draw) -> Node:
    """A pattern with -1 and 0; sometimes dimensions that are merged or split."""
    shape = d.shape(0, 4)
    x = d.data(shape, d.dtype(d.schema.inputs[0].type_str))
    pattern: list[int] = list(shape)
    way = d.pick("merge", "split", "flat", "same", "spread")
    at = d.integer(0, max(len(shape) - 2, 0))
    if way == "merge" and len(shape) > 1:
        pattern = [*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :]]
    elif way == "split" and shape:
        pattern = [*shape[:at], 1, *shape[at:]]
    elif way == "flat":
        pattern = [int(np.prod(shape))]
    elif way == "spread":
        pattern = [1, *shape, 1]
    zero = d.maybe(d.pick(0, 1), 0.3)
    guessed, copied = d.chance(0.5), d.chance(0.3)
    place = d.integer(0, max(len(pattern) - 1, 0))
    if guessed and pattern and 0 not in pattern:
        pattern[place] = -1
    if copied and way in ("same", "spread") and zero != 1 and pattern and shape:
        pattern = [0 if i == 0 and pattern[0] == shape[0] else dim for i, dim in enumerate(pattern)]
    if d.since < 5:
        return d.node([x], shape=pattern)
    return d.node([x, d.parameter(pattern, constant=0.5)], allowzero=zero)


def flatten(d: Draw) -> Node:
    x = d.data(d.shape(0, 5), d.dtype())
    axis = d.integer(0, x.rank)
    if d.since >= 11 and x.rank and axis < x.rank and d.chance(0.4):
        axis -= x.rank
    return d.node([x], axis=d.maybe(axis) if x.rank else axis)


def squeeze(d: Draw) -> Node:
    """Axes as an attribute, or as an input in later opsets; or all dimensions of 1."""
    shape = d.shape(0, 4)
    ones = [d.chance(0.5) for _ in shape]
    shape = [1 if one else dim for one, dim in zip(ones, shape, strict=True)]
    places = [axis for axis, one in enumerate(ones) if one]
    axes = [d.signed(places[i], len(shape)) for i in d.some(len(places), 1)] if places else []
    x = d.data(shape, d.dtype(d.schema.inputs[0].type_str))
    given = d.chance(0.7) and axes
    if d.since < 13:
        return d.node([x], axes=axes if given else OMITTED)
    return d.node([x, d.parameter(axes, constant=0.7)] if given else [x])


def unsqueeze(d: Draw) -> Node:
    x = d.data(d.shape(0, 3), d.dtype(d.schema.inputs[0].type_str))
    count = d.integer(1, 2)
    axes = [d.signed(axis, x.rank + count) for axis in d.order(x.rank + count)[:count]]
    return d.node([x], axes=axes) if d.since < 13 else d.node([x, d.parameter(axes, constant=0.7)])


def transpose(d: Draw) -> Node:
    x = d.data(d.shape(0, 5), d.dtype())
    return d.node([x], perm=d.maybe(d.order(x.rank), 0.8) if x.rank else OMITTED)


def concat(d: Draw) -> Node:
    dtype, shape = d.dtype(), d.shape(1, 4)
    at, count = d.integer(0, len(shape) - 1), d.integer(1, 4)
    ports = [d.data([d.size(empty=0.1) if i == at else dim for i, dim in enumerate(shape)], dtype, constant=0.25)
             for _ in range(count)]
    return d.node(ports, axis=d.signed(at, len(shape)))


def split(d: Draw) -> Node:
    """Equal pieces, or sizes as an attribute or an input."""
    shape = d.shape(1, 4)
    at, count = d.integer(0, len(shape) - 1), d.integer(1, 4)
    way = d.pick("equal", "sizes", "sizes", "count")
    sizes = [d.integer(0 if d.chance(0.1) else 1, 3) for _ in range(count)]
    size = d.size(1, 3)
    if way == "count" and d.since >= 18:
        # The last piece is smaller; all pieces but the last are of ceil(length / count).
        shape[at] = size * count
        uneven = d.chance(0.4) and count > 1 and size > 1
        shape[at] -= 1 if uneven and size * count > count else 0
    else:
        shape[at] = size * count if way == "equal" or way == "count" else sum(sizes)
    x, axis = d.data(shape, d.dtype()), d.signed(at, len(shape))
    axis = d.maybe(axis) if axis == 0 else axis
    by_sizes = way == "sizes"
    if d.since < 13:
        return d.node([x], outputs=count, axis=axis, split=sizes if by_sizes else OMITTED)
    ports = [x, d.parameter(sizes, constant=0.6)] if by_sizes else [x]
    return d.node(ports, outputs=count, axis=axis, num_outputs=OMITTED if by_sizes else count)


def section(d: Draw) -> Node:
    """Slice: bounds before, within and after the dimension, any step, some axes in any order."""
    x = d.data(d.shape(1, 4), d.dtype("T"))
    axes, named = d.axes(x.rank, 1), d.chance(0.7)
    count = len(axes)
    if not named:
        axes = list(range(count))
    far, stepped = d.pick(2**31 - 1, 2**63 - 1, 100), d.chance(0.6)
    steps = [d.pick(1, 1, 2, 3, -1, -2) if stepped and d.since >= 10 else 1 for _ in axes]
    starts = [d.pick(0, 1, -1, 2, -3, -far if step > 0 else far) for step in steps]
    ends = [d.pick(far, 3, -1, 4, 2) if step > 0 else d.pick(-far, 0, -2, -5, 1) for step in steps]
    if d.since < 10:
        return d.node([x], starts=starts, ends=ends, axes=axes if named else OMITTED)
    kind = np.dtype(d.pick(np.int64, np.int64, np.int32))
    ports = [d.parameter(np.clip(each, np.iinfo(kind).min, np.iinfo(kind).max), kind, constant=0.6)
             for each in (starts, ends, axes, steps)]
    if not named:
        return d.node([x, *ports[:2], None, ports[3]] if stepped else [x, *ports[:2]])
    return d.node([x, *ports] if stepped else [x, *ports[:3]])


def blocks(d: Draw) -> Node:
    """DepthToSpace and SpaceToDepth."""
    block = d.integer(1, 3)
    batch, channels, rows, columns = d.size(empty=0.02), d.size(1, 2, 0), d.size(1, 3, 0), d.size(1, 3, 0)
    if d.op == "DepthToSpace":
        shape = [batch, channels * block * block, rows, columns]
    else:
        shape = [batch, channels, rows * block, columns * block]
    return d.node([d.data(shape, d.dtype())], blocksize=block, mode=d.maybe(d.pick("DCR", "CRD")))


def reverse(d: Draw) -> Node:
    """The axes of time and batch are the first two, in either order."""
    shape, time = d.shape(2, 4, empty=0.01), d.pick(0, 1)
    lengths = d.values.integers(1, max(shape[time], 1) + 1, shape[1 - time])
    axes = {"time_axis": time, "batch_axis": 1 - time}
    if time == 0 and d.chance(0.5):
        axes = {}
    return d.node([d.data(shape, d.dtype()), d.given(lengths, 0.3)], **axes)


OPERATORS = {"Reshape": reshape, "Flatten": flatten, "Squeeze": squeeze, "Unsqueeze": unsqueeze, "Transpose": transpose,
             "Concat": concat, "Split": split, "Slice": section, "DepthToSpace": blocks, "SpaceToDepth": blocks,
             "ReverseSequence": reverse}
