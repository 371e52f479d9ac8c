"""Movements of elements: shapes, order, parts and copies."""

import numpy as np

from tests.fuzz.graphs.graph import FLOAT, Graph, Value, broadcast, may_grow_to


def transpose(g: Graph, x: Value) -> None:
    if x.rank > 1:
        order = g.choices.sample(range(x.rank), x.rank)
        g.add("Transpose", x, shape=[x.shape[axis] for axis in order], kind=x.kind, perm=order)


def unsqueeze(g: Graph, x: Value) -> None:
    if x.rank < g.most_rank:
        axis = g.choices.randrange(x.rank + 1)
        given = g.constant([axis - x.rank - 1 if g.chance(0.3) else axis])
        g.add("Unsqueeze", x, given, shape=(*x.shape[:axis], 1, *x.shape[axis:]), kind=x.kind)


def squeeze(g: Graph, x: Value) -> None:
    ones = [axis for axis, size in enumerate(x.shape) if size == 1]
    if ones:
        axis = g.choices.choice(ones)
        given = g.constant([axis - x.rank if g.chance(0.3) else axis])
        g.add("Squeeze", x, given, shape=x.shape[:axis] + x.shape[axis + 1 :], kind=x.kind)


def joined_axes(g: Graph, x: Value) -> None:
    """A Reshape that makes one axis of two neighbours."""
    if x.rank < 2:
        return
    axis = g.choices.randrange(x.rank - 1)
    first, second, rest = x.shape[axis], x.shape[axis + 1], x.shape[axis + 2 :]
    if any(isinstance(each, str) for each in rest):
        return
    if isinstance(first, int) and isinstance(second, int):
        size = first * second
    elif first == 1 or second == 1:
        size = second if first == 1 else first
    else:
        return
    shape = (*x.shape[:axis], size, *rest)
    g.add("Reshape", x, g.constant([*[0] * axis, -1, *rest]), shape=shape, kind=x.kind)


def split_axis(g: Graph, x: Value) -> None:
    """A Reshape that makes two axes of one."""
    axes = [each for each in x.known if x.rank < g.most_rank and all(later in x.known for later in range(each, x.rank))]
    pairs = [(axis, factor) for axis in axes for factor in (2, 3, 4) if x.size(axis) % factor == 0]
    if pairs:
        axis, factor = g.choices.choice(pairs)
        behind = (factor, x.size(axis) // factor, *x.shape[axis + 1 :])
        g.add("Reshape", x, g.constant([*[0] * axis, *behind]), shape=(*x.shape[:axis], *behind), kind=x.kind)


def flatten(g: Graph, x: Value) -> None:
    if len(x.known) == x.rank:
        axis = g.choices.randrange(x.rank + 1)
        sizes = [int(np.prod(part, dtype=np.int64)) for part in (x.shape[:axis], x.shape[axis:])]
        if g.chance(0.5):
            g.add("Flatten", x, shape=sizes, axis=axis)
        else:
            g.add("Reshape", x, g.constant([-1]), shape=[sizes[0] * sizes[1]])


def concat(g: Graph, x: Value) -> None:
    if not x.known:
        return
    axis = g.choices.choice(x.known)
    fitting = [each for each in g.values if each.kind == FLOAT and each.rank == x.rank and axis in each.known
               and each.with_size(axis, 1) == x.with_size(axis, 1)]
    parts = [x, *g.choices.choices(fitting, k=g.choices.randint(1, 2))]
    shape = x.with_size(axis, sum(each.size(axis) for each in parts))
    if may_grow_to(shape):
        g.add("Concat", *parts, shape=shape, axis=axis - x.rank if g.chance(0.3) else axis)


def split(g: Graph, x: Value) -> None:
    axes = [axis for axis in x.known if x.size(axis) > 1]
    if axes:
        axis = g.choices.choice(axes)
        first = g.choices.randint(1, x.size(axis) - 1)
        sizes = (first, x.size(axis) - first)
        names = g.node("Split", x, g.constant(sizes), outputs=2, axis=axis - x.rank if g.chance(0.3) else axis)
        g.values += [Value(name, x.with_size(axis, size)) for name, size in zip(names, sizes, strict=True)]


def slice_(g: Graph, x: Value) -> None:
    """Bounds from the front, from the end, beyond the end, and steps of 2 and -1."""
    rows, shape = [], list(x.shape)
    for axis in g.choices.sample(x.known, min(len(x.known), g.choices.randint(1, 2))):
        size = x.size(axis)
        start, end, step = g.choice_of((0, size, 2), (1, size, 1), (0, -1, 1), (-1, -size - 5, -1), (0, 2**31 - 1, 1),
                                       (-2, 2**62, 1), (0, max(1, size // 2), 1), (size // 2, 10**9, 1))
        count = len(range(size)[slice(start, None if step < 0 else end, step)])
        if count:
            rows.append((start, end, axis, step))
            shape[axis] = count
    if rows:
        g.add("Slice", x, *(g.constant(each) for each in zip(*rows, strict=True)), shape=shape)


def gather(g: Graph, x: Value) -> None:
    """Indices of any rank, from both ends, repeated, or all in reverse."""
    if not x.known:
        return
    axis = g.choices.choice(x.known)
    size = x.size(axis)
    shape = g.choice_of((), (1,), (2,), (size,), (2, 2))
    reverse = (np.arange(int(np.prod(shape, dtype=np.int64)))[::-1] % size).reshape(shape)
    indices = g.numbers.integers(-size, size, shape) if g.chance(0.6) else reverse
    result = (*x.shape[:axis], *shape, *x.shape[axis + 1 :])
    if may_grow_to(result):
        g.add("Gather", x, g.constant(indices, np.int64), shape=result, axis=axis)


def gather_elements(g: Graph, x: Value) -> None:
    if x.rank and len(x.known) == x.rank:
        axis = g.choices.randrange(x.rank)
        shape = x.with_size(axis, g.choices.randint(1, 3))
        size = x.size(axis)
        g.add("GatherElements", x, g.constant(g.numbers.integers(-size, size, shape)), shape=shape, axis=axis)


def scatter(g: Graph, x: Value) -> None:
    """Rows along an axis, replaced or added to."""
    if x.rank and len(x.known) == x.rank:
        axis = g.choices.randrange(x.rank)
        rows = g.choices.randint(1, x.size(axis))
        shape = x.with_size(axis, rows)
        places = np.moveaxis(np.zeros(shape, np.int64), axis, -1) + g.numbers.permutation(x.size(axis))[:rows]
        given = g.constant(np.moveaxis(places, -1, axis)), g.normal(*shape)  # type: ignore[arg-type]
        g.add("ScatterElements", x, *given, shape=x.shape, axis=axis, reduction=g.choice_of("none", "add"))


def tile(g: Graph, x: Value) -> None:
    repeats = [g.choice_of(1, 1, 2) if isinstance(size, int) else 1 for size in x.shape]
    shape = [size * count if isinstance(size, int) else size for size, count in zip(x.shape, repeats, strict=True)]
    if x.rank and may_grow_to(shape):
        g.add("Tile", x, g.constant(repeats), shape=shape)


def pad(g: Graph, x: Value) -> None:
    if not x.rank:
        return
    begins = [g.choice_of(0, 0, 1) if isinstance(size, int) else 0 for size in x.shape]
    ends = [g.choice_of(0, 0, 1, 2, -1 if size != 1 else 0) if isinstance(size, int) else 0 for size in x.shape]
    sizes = zip(x.shape, begins, ends, strict=True)
    shape = [size + begin + end if isinstance(size, int) else size for size, begin, end in sizes]
    g.add("Pad", x, g.constant(begins + ends), g.constant(g.choice_of(0.0, 0.0, 0.5)), shape=shape)


def expand(g: Graph, x: Value) -> None:
    sizes = [1] * g.choices.randint(0, 1) + [size if isinstance(size, int) else 1 for size in x.shape]
    if g.chance(0.5) and len(sizes) > x.rank:
        sizes[0] = 2
    shape = broadcast(x.shape, sizes)
    if shape is not None and may_grow_to(shape):
        g.add("Expand", x, g.constant(sizes, np.int64), shape=shape)


def triangle(g: Graph, x: Value) -> None:
    if x.rank >= 2:
        diagonal = [g.constant(g.choice_of(-1, 0, 1))] if g.chance(0.7) else []
        g.add("Trilu", x, *diagonal, shape=x.shape, upper=g.choices.randint(0, 1))


LAYERS = ((2, transpose), (2, unsqueeze), (2, squeeze), (1, joined_axes), (1, split_axis), (1, flatten), (2, concat),
          (1, split), (2, slice_), (2, gather), (1, gather_elements), (1, scatter), (1, tile), (1, pad), (1, expand),
          (1, triangle))
