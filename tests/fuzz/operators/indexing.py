"""Reading and writing at indices that are inputs."""

from typing import Any

import numpy as np

from .draw import OMITTED, Draw, Node


def _places(d: Draw, shape: list[int], size: int, kind: Any = np.int64) -> Any:
    """Indices along a dimension, counted from either end if the opset allows it."""
    low = -size if d.has_negative_axes and d.chance(0.5) else 0
    return d.values.integers(low, max(size, low + 1), shape).astype(kind)


def _counted(d: Draw, shape: list[int], size: int, along: int) -> Any:
    """The numbers 0, 1, .. along an axis, or other indices; and the share of them that are constants."""
    if d.chance(0.2) and shape:
        return np.indices(shape)[along] % max(size, 1), 1.0
    return _places(d, shape, size), 0.3


def _kind(d: Draw) -> Any:
    return np.dtype(d.pick(np.int64, np.int64, np.int32))


def gather(d: Draw) -> Node:
    x = d.data(d.shape(1, 4), d.dtype("T"))
    axis = d.axis(x.rank)
    shape = [x.shape[axis]] if d.chance(0.2) else d.shape(0, 3)
    indices, share = _counted(d, shape, x.shape[axis], -1)
    return d.node([x, d.given(indices.astype(_kind(d)), share, True)], axis=d.maybe(axis) if axis == 0 else axis)


def gather_elements(d: Draw) -> Node:
    x = d.data(d.shape(1, 4), d.dtype("T"))
    axis = d.axis(x.rank)
    at = axis % x.rank
    shape = [d.size() if i == at else min(dim, d.size(empty=0)) for i, dim in enumerate(x.shape)]
    indices, share = _counted(d, shape, x.shape[axis], at)
    return d.node([x, d.given(indices.astype(_kind(d)), share, True)], axis=d.maybe(axis) if axis == 0 else axis)


def _coordinates(d: Draw, before: list[int], shape: tuple[int, ...], count: int, first: int = 0) -> Any:
    found = [_places(d, before, shape[first + i]) for i in range(count)]
    return np.stack(found, -1) if found else np.zeros((*before, 0), np.int64)


def gather_nd(d: Draw) -> Node:
    x = d.data(d.shape(1, 4), d.dtype("T"))
    batch = d.integer(0, min(x.rank - 1, 2)) if d.since >= 12 and d.chance(0.4) else 0
    count = d.integer(1, x.rank - batch)
    before = [*x.shape[:batch], *d.shape(0 if batch else 1, 2)]
    before = before or [d.size()]
    indices = _coordinates(d, before, x.shape, count, batch)
    if in_order := d.chance(0.2):
        indices = np.stack([np.indices(before)[0] % max(x.shape[batch + i], 1) for i in range(count)], -1)
    share = 1.0 if in_order else 0.3
    return d.node([x, d.given(indices, share, d.chance(0.1), d.chance(0.9))], batch_dims=batch if batch else d.maybe(0))


def scatter_elements(d: Draw) -> Node:
    """Repeated indices only with a reduction that defines the result."""
    dtype = d.dtype("T")
    x = d.data(d.shape(1, 4), dtype)
    axis = d.axis(x.rank)
    at = axis % x.rank
    reductions = (
        () if d.op == "Scatter" or d.since < 16 else ("add", "mul") if d.since < 18 else ("add", "mul", "max", "min")
    )
    reduction = d.pick("none", *reductions)
    if dtype.kind not in "fiu":
        reduction = "none"
    shape = [min(dim, d.size(empty=0.02)) for dim in x.shape]
    if reduction == "none":
        order = d.values.permuted(
            np.broadcast_to(np.arange(x.shape[at]), [*x.shape[:at], *x.shape[at + 1 :], x.shape[at]]), axis=-1
        )
        indices = np.moveaxis(order, -1, at)[tuple(slice(0, dim) for dim in shape)].copy()
        if d.has_negative_axes and d.chance(0.4):
            indices = np.where(d.values.random(shape) < 0.5, indices - x.shape[at], indices)
    else:
        indices = _places(d, shape, x.shape[at])
    return d.node(
        [x, d.given(indices.astype(_kind(d)), 0.3), d.data(shape, dtype, "small", constant=0.2)],
        axis=d.maybe(axis) if axis == 0 else axis, reduction=reduction if reduction != "none" else d.maybe("none", 0.3),
    )


def scatter_nd(d: Draw) -> Node:
    dtype = d.dtype("T")
    x = d.data(d.shape(1, 4), dtype)
    count = d.integer(1, x.rank)
    reductions = () if d.since < 16 else ("add", "mul") if d.since < 18 else ("add", "mul", "max", "min")
    reduction = d.pick("none", *reductions) if dtype.kind in "fiu" else "none"
    number = d.size(1, 4)
    if reduction == "none":
        total = int(np.prod(x.shape[:count]))
        flat = d.values.permutation(total)[:number]
        indices = np.stack(np.unravel_index(flat, x.shape[:count]), -1) if total else np.zeros((0, count), np.int64)
    else:
        indices = _coordinates(d, [number], x.shape, count)
    if d.has_negative_axes and d.chance(0.3):
        indices = np.where(indices > 0, indices - np.array(x.shape[:count]), indices)
    updates = d.data([len(indices), *x.shape[count:]], dtype, "small", constant=0.2)
    return d.node([x, d.given(indices.astype(np.int64), 0.3), updates],
                  reduction=reduction if reduction != "none" else d.maybe("none", 0.3))


def nonzero(d: Draw) -> Node:
    return d.node([d.data(d.shape(1, 4), d.dtype(), "unit")])


def compress(d: Draw) -> Node:
    x = d.data(d.shape(1, 4), d.dtype("T"))
    axis, flat = d.axis(x.rank), d.chance(0.3)
    length = int(np.prod(x.shape)) if flat else x.shape[axis]
    shorter = d.chance(0.3)
    mask = d.values.random(max(length - 1, 0) if shorter else length) < 0.6
    return d.node([x, d.given(mask, 0.3)], axis=OMITTED if flat else axis)


def one_hot(d: Draw) -> Node:
    kinds = d.dtype("T1"), d.dtype("T2"), d.dtype("T3")
    depth, shape = d.integer(1, 5), d.shape(1, 3)
    if kinds[0].kind == "u":
        indices = d.values.integers(0, depth + 2, shape)
    else:
        indices = d.values.integers(-depth, depth + 1, shape)
    axis = d.axis(len(shape) + 1)
    values = d.parameter([0, 1] if d.chance(0.5) or kinds[2].kind == "b" else [1, 4], kinds[2])
    size = d.parameter(np.array(depth) if d.chance(0.5) else [depth], kinds[1])
    return d.node([d.given(indices.astype(kinds[0]), 0.1, True), size, values], axis=d.maybe(axis))


def top_k(d: Draw) -> Node:
    """Equal values are frequent; k may be 0."""
    x = d.data(d.shape(1, 4, empty=0.02), d.dtype("T"), "masked" if d.chance(0.4) else "any")
    axis = d.axis(x.rank)
    k = int(d.integer(0, 6) / 6 * x.shape[axis])
    written = d.maybe(axis) if axis in (-1, x.rank - 1) else axis
    if d.since < 10:
        return d.node([x], outputs=2, k=max(k, 1), axis=written)
    # Without sorting the order of the results is not defined.
    return d.node([x, d.parameter([k])], outputs=2, axis=written, largest=d.maybe(d.pick(0, 1)), sorted=d.maybe(1))


def unique(d: Draw) -> Node:
    x = d.data(d.shape(1, 3), d.dtype("T"), "unit" if d.chance(0.5) else "any")
    wanted = [name if d.chance(0.7) else "" for name in ("values", "first", "back", "counts")]
    wanted[0] = wanted[0] or "values"
    while not wanted[-1]:
        wanted.pop()
    return d.node([x], outputs=wanted, axis=d.maybe(d.axis(x.rank), 0.5), sorted=d.maybe(d.pick(0, 1)))


def cache(d: Draw) -> Node:
    """TensorScatter: rows put into a cache, at an index for each batch entry."""
    dtype = d.dtype("T")
    batch, heads, length, width = d.size(1, 3, 0), d.size(1, 2, 0), d.size(3, 6, 0), d.size(1, 3, 0)
    new, circular = min(d.size(1, 3, 0), length), d.chance(0.4)
    at = d.values.integers(0, length if circular else length - new + 1, batch)
    ports = [d.data([batch, heads, length, width], dtype), d.data([batch, heads, new, width], dtype), d.given(at, 0.2)]
    return d.node(
        ports if d.chance(0.8) else ports[:2], mode="circular" if circular else d.maybe("linear"), axis=d.maybe(-2)
    )


OPERATORS = {"Gather": gather, "GatherElements": gather_elements, "GatherND": gather_nd, "Scatter": scatter_elements,
             "ScatterElements": scatter_elements, "ScatterND": scatter_nd, "NonZero": nonzero, "Compress": compress,
             "OneHot": one_hot, "TopK": top_k, "Unique": unique, "TensorScatter": cache}
