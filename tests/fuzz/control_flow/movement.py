"""Pieces that move, select and reshape elements."""

import numpy as np

from .pieces import any_size, axis_of, cut, is_float, is_number, non_empty, piece, remainder, squeeze, unsqueeze
from .scope import Scope, dims
from .values import FLOAT, INT64, Dim, Shape, Val


@piece(3, of=lambda v: v.rank > 0)
def reshape(s: Scope, val: Val) -> Val | None:
    if val.is_static:
        size = any_size(val.shape)
        first = s.rng.choice([d for d in range(1, size + 1) if size % d == 0] or [0])
        target = [first, size // first] if first and s.context.chance(0.7) else [size]
        return s.emit("Reshape", [val, s.ints(*target)], val.dtype, tuple(target), val.mag)
    if not non_empty(s, val):
        return None
    if val.rank > 1 and s.context.chance(0.5):
        rest = s.context.dim(1) if not all(isinstance(d, int) for d in val.shape[1:]) else any_size(val.shape[1:])
        return s.emit("Reshape", [val, s.ints(0, -1)], val.dtype, (val.shape[0], rest), val.mag)
    return s.emit("Reshape", [val, s.ints(-1)], val.dtype, (s.context.dim(1),), val.mag)


@piece(3, of=lambda v: v.rank > 1)
def transpose(s: Scope, val: Val) -> Val | None:
    order = s.rng.sample(range(val.rank), val.rank)
    return s.emit("Transpose", [val], val.dtype, tuple(val.shape[i] for i in order), val.mag, perm=order)


@piece(4, of=lambda v: 1 in v.shape or v.rank < 4)
def change_rank(s: Scope, val: Val) -> Val | None:
    ones = [i for i, d in enumerate(val.shape) if d == 1]
    if ones and (val.rank >= 4 or s.context.chance(0.6)):
        return squeeze(s, val, sorted(s.rng.sample(ones, s.rng.randint(1, len(ones)))))
    return unsqueeze(s, val, s.rng.randint(0, val.rank))


@piece(3, of=lambda v: v.rank > 0)
def concat(s: Scope, a: Val) -> Val | None:
    axis = s.rng.randrange(a.rank)

    def fits(v: Val) -> bool:
        same = all(i == axis or x == y for i, (x, y) in enumerate(zip(v.shape, a.shape, strict=False)))
        return v.dtype == a.dtype and v.rank == a.rank and same

    b = s.pick(fits)
    if b is None:
        return None
    x, y = a.shape[axis], b.shape[axis]
    minimum = sum(d if isinstance(d, int) else s.context.minimum[d] for d in (x, y))
    length: Dim = x + y if isinstance(x, int) and isinstance(y, int) else s.context.dim(minimum)
    shape = (*a.shape[:axis], length, *a.shape[axis + 1 :])
    return s.emit("Concat", [a, b], a.dtype, shape, max(a.mag, b.mag), axis=axis_of(s, a, axis))


@piece(4, of=lambda v: v.rank > 0)
def slice_(s: Scope, val: Val) -> Val | None:
    axis = s.rng.randrange(val.rank)
    size = val.shape[axis]
    if not isinstance(size, int):
        end = s.rng.choice((1, 2, 2**31 - 1, 2**63 - 1))
        return cut(s, val, axis, 0 if end < 3 else 1, end, s.context.dim(0))
    if size == 0:
        return None
    start, step = s.rng.randrange(size), s.rng.choice((1, 1, 2, -1)) if s.context.opset >= 10 else 1
    end = s.rng.randint(start + 1, size) if step > 0 else -size - 1
    length = len(range(size)[start : end if step > 0 else None : step])
    if step == 1:
        return cut(s, val, axis, start, end, length)
    parts = [s.ints(start), s.ints(end), s.ints(axis_of(s, val, axis)), s.ints(step)]
    return s.emit("Slice", [val, *parts], val.dtype, _with(val.shape, axis, length), val.mag)


@piece(4, of=lambda v: any(True for _, d in dims(v.shape) if d > 0))
def gather(s: Scope, val: Val) -> Val | None:
    """By a constant index, several indices, or the iteration number."""
    axis, size = s.rng.choice([(i, d) for i, d in dims(val.shape) if d > 0])
    kind = s.rng.choice(("one", "several", "iteration"))
    if kind == "iteration" and s.iteration is not None:
        index = remainder(s, s.iteration, size)
        s.context.features["gather by iteration"] += 1
    else:
        shape = () if kind == "one" else (s.rng.randint(1, 3),)
        least = -size if s.context.opset >= 11 else 0
        index = s.constant(np.asarray(s.context.numbers.integers(least, size, shape), np.int64))
    result = (*val.shape[:axis], *index.shape, *val.shape[axis + 1 :])
    return s.emit("Gather", [val, index], val.dtype, result, val.mag, axis=axis_of(s, val, axis))


@piece(3, since=11, of=lambda v: is_number(v) and v.rank > 0 and v.is_static and 0 not in v.shape)
def scatter(s: Scope, val: Val) -> Val | None:
    """ScatterElements or ScatterND of constants or computed updates into a value."""
    shape = tuple(int(d) for d in val.shape)
    if s.context.chance(0.5):
        picked = s.constant(np.array([[s.rng.randrange(shape[0])]], np.int64))
        updates = _filled(s, val.dtype, (1, *shape[1:]))
        return s.emit("ScatterND", [val, picked, updates], val.dtype, shape, max(val.mag, updates.mag))
    axis = s.rng.randrange(len(shape))
    rows = _with(shape, axis, 1)
    index = s.constant(np.asarray(s.context.numbers.integers(0, shape[axis], rows), np.int64))
    updates = _filled(s, val.dtype, rows)
    return s.emit("ScatterElements", [val, index, updates], val.dtype, shape, max(val.mag, updates.mag), axis=axis)


@piece(3, of=lambda v: any(d > 1 for _, d in dims(v.shape)))
def split(s: Scope, val: Val) -> Val | None:
    axis, size = s.rng.choice([(i, d) for i, d in dims(val.shape) if d > 1])
    first = s.rng.randint(1, size - 1)
    names = [s.context.fresh(), s.context.fresh()]
    if s.context.opset >= 13:
        s.node("Split", [val, s.ints(first, size - first)], names, axis=axis_of(s, val, axis))
    else:
        s.node("Split", [val], names, axis=axis_of(s, val, axis), split=[first, size - first])
    halves = [s.add(val.dtype, _with(val.shape, axis, length), val.mag, name)
              for name, length in zip(names, (first, size - first), strict=True)]
    return s.rng.choice(halves)


@piece(2, of=lambda v: v.rank < 4)
def expand(s: Scope, val: Val) -> Val | None:
    target: list[Dim] = [d if d != 1 else s.rng.randint(1, 3) for d in val.shape]
    sizes = [d if isinstance(d, int) else 1 for d in target]
    if s.context.chance(0.5) and val.rank < 3:
        target, sizes = [2, *target], [2, *sizes]
    return s.emit("Expand", [val, s.ints(*sizes)], val.dtype, tuple(target), val.mag)


@piece(2)
def shape_of(s: Scope) -> Val | None:
    val = s.pick(lambda v: v.rank > 0)
    return val and s.emit("Shape", [val], INT64, (val.rank,), 12.0)


@piece(1, since=9, of=lambda v: is_float(v) and v.rank > 0)
def filled_like(s: Scope, val: Val) -> Val | None:
    """ConstantOfShape(Shape(x)) or Tile."""
    if s.context.chance(0.5):
        return s.emit("ConstantOfShape", [s.emit("Shape", [val], INT64, (val.rank,), 12.0)], FLOAT, val.shape, 0.0)
    repeats = [s.rng.randint(1, 2) if isinstance(d, int) else 1 for d in val.shape]
    tiled = tuple(d * r if isinstance(d, int) else d for d, r in zip(val.shape, repeats, strict=True))
    return s.emit("Tile", [val, s.ints(*repeats)], FLOAT, tiled, val.mag)


@piece(1, since=11, of=lambda v: is_float(v) and any(d > 0 for _, d in dims(v.shape)))
def top_k(s: Scope, val: Val) -> Val | None:
    axis, size = s.rng.choice([(i, d) for i, d in dims(val.shape) if d > 0])
    k = s.rng.randint(1, size)
    names = [s.context.fresh(), s.context.fresh("i")]
    s.node("TopK", [val, s.ints(k)], names, axis=axis_of(s, val, axis), largest=s.rng.randint(0, 1))
    return s.add(FLOAT, _with(val.shape, axis, k), val.mag, names[0])


def _filled(s: Scope, dtype: int, shape: tuple[int, ...]) -> Val:
    found = s.pick(lambda v: v.dtype == dtype and v.shape == shape)
    return found if found is not None and s.context.chance(0.7) else s.random_constant(dtype, shape)


def _with(shape: Shape, axis: int, size: Dim) -> tuple:
    return (*shape[:axis], size, *shape[axis + 1 :])
