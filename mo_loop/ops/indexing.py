"""Operations that read, write and find elements by index, and sums of rows of a table: bags of embeddings."""

from typing import Any, Literal

import numpy as np

from mo_loop.errors import TypeError_
from mo_loop.graph.dimension import Dimension, fresh, high, low
from mo_loop.graph.shape import element_count, merge, merge_dim, normalise_axis
from mo_loop.graph.types import KNOWN_LIMIT, ElementType, TensorType, i64, known_array
from mo_loop.ops.base import Movement, Op
from mo_loop.ops.infer import capped, dims_of, same_dtype
from mo_loop.ops.ranges import WIDE_INTEGERS

Reduction = Literal["none", "sum", "prod", "min", "max", "mean"]


class Gather(Movement, opset=8, index=("indices", "axis"), single=("axis",), along="axis"):
    """Slices selected by index along an axis; negative indices count from the end. Spec: Gather-8."""

    batch_dims: int = 0

    def infer(self, data, indices, axis):
        if data.shape is None or indices.shape is None:
            return TensorType(data.dtype, None)
        batch = self.batches(len(indices.shape))
        self.require(0 <= batch <= len(indices.shape), f"batch_dims {self.batch_dims} does not fit {indices}")
        if axis.integers is None:
            rank = len(data.shape) + len(indices.shape) - 1 - batch
            return TensorType(data.dtype, tuple(fresh() for _ in range(rank)))
        at = normalise_axis(axis.integers[0], len(data.shape))
        self.require(batch <= at, f"there are {batch} batch dimensions, and axis {at} is one of them")
        same = [merge_dim(a, b) for a, b in zip(data.shape[:batch], indices.shape[:batch], strict=True)]
        shape = (*same, *data.shape[batch:at], *indices.shape[batch:], *data.shape[at + 1 :])
        known = None
        if data.known is not None and indices.integers is not None and batch == 0:
            size = data.known.shape[at]
            count = indices.known.size * data.known.size // max(size, 1)
            if count <= KNOWN_LIMIT and all(-size <= i < size for i in indices.integers):
                places = np.array(indices.integers, np.int64).reshape(indices.known.shape)
                known = np.array(np.take(data.known, places, axis=at), object).reshape(shape)
        return TensorType(data.dtype, shape, known)

    def evaluate(self, *inputs):
        data, indices, axis = inputs
        size = data.shape[int(axis)]
        batches = self.batches(indices.ndim)
        if np.any(indices < -size) or np.any(indices >= size) or (batches and 0 in (*data.shape, *indices.shape)):
            return NotImplemented
        return _taken(data, indices, normalise_axis(int(axis), data.ndim), batches)

    def batches(self, rank: int) -> int:
        """The number of batch dimensions, for indices of this rank."""
        return self.batch_dims + (rank if self.batch_dims < 0 else 0)

    def axis_map(self, port):
        data, indices = self.operands[:2]
        if port or not self.along or self.batch_dims or indices.rank is None:
            return self._no_axes
        (at,) = self.along
        taken = (at,) if indices.rank == 1 else (None,) * indices.rank
        return (*range(at), *taken, *range(at + 1, data.type.known_rank))


def _taken(data, indices, axis: int, batches: int):
    """The elements along an axis, for each of the leading `batches` dimensions apart."""
    if not batches:
        return np.take(data, indices, axis=axis)
    pairs = zip(data, indices, strict=True)
    return np.stack([_taken(each, places, axis - 1, batches - 1) for each, places in pairs])


class GatherElements(
    Movement, opset=6, index=("indices",), types={"indices": WIDE_INTEGERS}, along="axis", keeps_axes=True
):
    """out[i, j] = data[indices[i, j], j] for axis 0, likewise for other axes. Spec: GatherElements-6."""

    axis: int

    def infer(self, data, indices):
        if data.shape is None or indices.shape is None:
            return TensorType(data.dtype, indices.shape)
        self.require(len(data.shape) == len(indices.shape), f"the ranks of {data} and {indices} differ")
        at = normalise_axis(self.axis, len(data.shape))
        for place, (size, number) in enumerate(zip(data.shape, indices.shape, strict=True)):
            if place != at:
                merge_dim(size, number)  # raises if the shapes do not fit
        return TensorType(data.dtype, indices.shape)

    def evaluate(self, *inputs):
        data, indices = inputs
        size = data.shape[self.axis]
        if np.any(indices < -size) or np.any(indices >= size):
            return NotImplemented
        places: list[Any] = list(np.indices(indices.shape, sparse=True))
        places[self.axis] = indices
        return data[tuple(places)]


class GatherND(Movement, opset=8, index=("indices",)):
    """Slices of data; the last dimension of the indices is their position. Spec: GatherND-8."""

    batch_dims: int = 0

    def infer(self, data, indices):
        if data.shape is None or indices.shape is None:
            return TensorType(data.dtype, None)
        self.require(0 <= self.batch_dims < len(indices.shape), f"batch_dims {self.batch_dims} does not fit {indices}")
        depth = indices.shape[-1]
        if not isinstance(depth, int):
            return TensorType(data.dtype, None)
        gone = self.batch_dims + depth
        self.require(gone <= len(data.shape), f"{gone} indices do not fit rank {len(data.shape)}")
        batch = [merge_dim(a, b) for a, b in zip(data.shape, indices.shape[: self.batch_dims], strict=False)]
        return TensorType(data.dtype, (*batch, *indices.shape[self.batch_dims : -1], *data.shape[gone:]))

    def evaluate(self, *inputs):
        data, indices = inputs
        if self.batch_dims:
            return NotImplemented
        sizes = np.array(data.shape[: indices.shape[-1]])
        if np.any(indices < -sizes) or np.any(indices >= sizes):
            return NotImplemented
        return data[tuple(np.moveaxis(indices, -1, 0))]


class ScatterUpdate(Op, opset=3, index=("indices", "axis"), single=("axis",), along="axis", keeps_axes=True):
    """Whole slices of data replaced along an axis. Spec: ScatterUpdate-3."""

    def infer(self, data, indices, updates, axis):
        same_dtype(data, updates)
        at = _axis_of(data, axis)
        if None not in (data.shape, indices.shape, updates.shape):
            rank = len(data.shape) + len(indices.shape) - 1
            self.require(len(updates.shape) == rank, f"the updates have rank {len(updates.shape)}, and need {rank}")
            if at is not None:
                merge((*data.shape[:at], *indices.shape, *data.shape[at + 1 :]), updates.shape)
        return TensorType(data.dtype, data.shape, _put(data, indices, updates))

    def evaluate(self, *inputs):
        data, indices, updates, axis = inputs
        if np.any(indices < -data.shape[int(axis)]) or np.any(indices >= data.shape[int(axis)]):
            return NotImplemented
        result = data.copy()
        result[(slice(None),) * (int(axis) % data.ndim) + (indices,)] = updates
        return result


class ScatterElementsUpdate(Op, opset=3, index=("indices", "axis"), single=("axis",), along="axis", keeps_axes=True):
    """data[indices[i, j], j] = updates[i, j] for axis 0, likewise for other axes. Spec: ScatterElementsUpdate-3."""

    def infer(self, data, indices, updates, axis):
        same_dtype(data, updates)
        _axis_of(data, axis)
        merge(indices.shape, updates.shape)
        if data.shape is not None and indices.shape is not None:
            self.require(len(data.shape) == len(indices.shape), f"the ranks of {data} and {indices} differ")
        return TensorType(data.dtype, data.shape, _put(data, indices, updates))

    def evaluate(self, *inputs):
        data, indices, updates, axis = inputs
        size = data.shape[int(axis)]
        if np.any(indices < -size) or np.any(indices >= size):
            return NotImplemented
        places: list[Any] = list(np.indices(indices.shape, sparse=True))
        places[int(axis)] = indices
        return self._written(data.copy(), tuple(places), updates)

    def _written(self, result, places, updates):
        result[places] = updates
        return result


class ScatterElementsUpdate12(ScatterElementsUpdate, opset=12, type="ScatterElementsUpdate"):
    """As ScatterElementsUpdate; a reduction combines old and new values. Spec: ScatterElementsUpdate-12."""

    reduction: Reduction = "none"
    use_init_val: bool = True

    def infer(self, data, indices, updates, axis):
        return super().infer(data, indices, updates, axis).without_known()

    def evaluate(self, *inputs):
        is_sum = self.reduction == "sum" and self.use_init_val and inputs[0].dtype.kind in "iu"
        return super().evaluate(*inputs) if self.reduction == "none" or is_sum else NotImplemented

    def _written(self, result, places, updates):
        if self.reduction == "none":
            return super()._written(result, places, updates)
        np.add.at(result, places, updates)
        return result


class ScatterNDUpdate(Op, opset=4, index=("indices",), keeps_axes=True):
    """Slices of data replaced; the last dimension of the indices is their position. Spec: ScatterNDUpdate-4."""

    def infer(self, data, indices, updates):
        same_dtype(data, updates)
        self.require(indices.shape != (), "the indices are a scalar")
        if indices.shape is not None and data.shape is not None and isinstance(indices.shape[-1], int):
            depth = indices.shape[-1]
            self.require(depth <= len(data.shape), f"{depth} indices do not fit rank {len(data.shape)}")
            if updates.shape is not None:
                rank = len(indices.shape) - 1 + len(data.shape) - depth
                self.require(len(updates.shape) == rank, f"the updates have rank {len(updates.shape)}, and need {rank}")
                merge((*indices.shape[:-1], *data.shape[depth:]), updates.shape)
        return TensorType(data.dtype, data.shape, _put(data, indices, updates))

    def evaluate(self, *inputs):
        data, indices, updates = inputs
        sizes = np.array(data.shape[: indices.shape[-1]])
        if np.any(indices < -sizes) or np.any(indices >= sizes):
            return NotImplemented
        result = data.copy()
        result[tuple(np.moveaxis(indices, -1, 0))] = updates
        return result


class ScatterNDUpdate15(ScatterNDUpdate, opset=15, type="ScatterNDUpdate", types={"indices": WIDE_INTEGERS}):
    """As ScatterNDUpdate; a reduction combines the old and new values of a position. Spec: ScatterNDUpdate-15."""

    reduction: Literal["none", "sum", "sub", "prod", "min", "max"] = "none"

    def infer(self, data, indices, updates):
        return TensorType(data.dtype, super().infer(data, indices, updates).shape)

    def evaluate(self, *inputs):
        return super().evaluate(*inputs) if self.reduction == "none" else NotImplemented


def _axis_of(data, axis) -> int | None:
    """The axis counted from the front; None if it is not known."""
    return None if axis.integers is None or data.shape is None else normalise_axis(axis.integers[0], len(data.shape))


def _put(data, indices, updates):
    """The known values of a vector after some were replaced, as in computed shapes."""
    if data.known is None or data.known.ndim != 1 or indices.integers is None or updates.known is None:
        return None
    size = len(data.known)
    if indices.known.size != updates.known.size or not all(-size <= i < size for i in indices.integers):
        return None
    known = data.known.copy()
    for i, item in zip(indices.integers, updates.known.flat, strict=True):
        known[i] = item
    return known


class NonZero(Op, opset=3):
    """The indices of the elements that are not 0, a column for each. Spec: NonZero-3."""

    output_type: ElementType = i64

    def infer(self, x):
        if x.shape is None:
            return TensorType(self.output_type, (fresh(), fresh()))
        if x.integers is not None and len(x.shape) == 1:
            places = [i for i, item in enumerate(x.integers) if item]
            return TensorType(self.output_type, (1, len(places)), known_array(places, (1, len(places))))
        count = element_count(x.shape)
        return TensorType(self.output_type, (max(len(x.shape), 1), fresh(0, None if count is None else high(count))))

    def evaluate(self, *inputs):
        if inputs[0].ndim == 0:
            return NotImplemented
        return np.array(np.nonzero(inputs[0])).astype(self.output_type.numpy)


class OneHot(Op, opset=1, index=("indices", "depth"), ranks={"depth": 0, "on": 0, "off": 0}):
    """A new dimension of `depth`, with `on` at the index and `off` elsewhere. Spec: OneHot-1."""

    axis: int = -1

    def infer(self, indices, depth, on, off):
        dtype = same_dtype(on, off)
        if indices.shape is None:
            return TensorType(dtype, None)
        at = normalise_axis(self.axis, len(indices.shape) + 1)
        size: Dimension = fresh() if depth.known is None else dims_of(depth.known)[0]
        return TensorType(dtype, (*indices.shape[:at], size, *indices.shape[at:]))

    def evaluate(self, *inputs):
        indices, depth, on, off = inputs
        at = self.axis if self.axis >= 0 else indices.ndim + 1 + self.axis
        steps = np.arange(int(depth)).reshape((-1,) + (1,) * (indices.ndim - at))
        return np.where(np.expand_dims(indices, at) == steps, on, off)


class TopK(Op, opset=3, index=("k",), ranks={"k": 0}, along="axis", keeps_axes=True):
    """The k largest or smallest along an axis, and their indices; equal ones in any order. Spec: TopK-3."""

    axis: int
    mode: Literal["max", "min"]
    sort: Literal["value", "index", "none"] = "value"
    index_element_type: ElementType = i64

    def infer(self, x, k):
        if x.shape is None:
            return TensorType(x.dtype, None), TensorType(self.index_element_type, None)
        at = normalise_axis(self.axis, len(x.shape))
        size = capped(fresh() if k.known is None else dims_of(k.known)[0], x.shape[at])
        self.require(
            not isinstance(size, int) or not isinstance(x.shape[at], int) or size <= x.shape[at],
            f"k is {size}, and the axis has {x.shape[at]} elements",
        )
        shape = (*x.shape[:at], size, *x.shape[at + 1 :])
        return TensorType(x.dtype, shape), TensorType(self.index_element_type, shape)


class TopK11(TopK, opset=11, type="TopK"):
    """As TopK; with `stable` equal elements keep their order. Spec: TopK-11."""

    stable: bool = False


class Unique(Op, opset=10, index=("axis",), single=("axis",)):
    """Distinct values, their first positions, the inverse indices, and their counts. Spec: Unique-10."""

    sorted: bool = True
    index_element_type: ElementType = i64
    count_element_type: ElementType = i64

    def infer(self, x, axis=None):
        total = element_count(x.shape)
        if axis is None:
            count = fresh(*_distinct(total))
            shape: Any = (count,)
        elif x.shape is None or axis.integers is None:
            total = count = fresh()
            shape = None
        else:
            at = normalise_axis(axis.integers[0], len(x.shape))
            total = x.shape[at]
            count = fresh(*_distinct(total))
            shape = (*x.shape[:at], count, *x.shape[at + 1 :])
        index, times = self.index_element_type, self.count_element_type
        whole = fresh() if total is None else total
        return (
            TensorType(x.dtype, shape), TensorType(index, (count,)), TensorType(index, (whole,)),
            TensorType(times, (count,)),
        )


def _distinct(total: Dimension | None) -> tuple[int, int | None]:
    """The least and the largest number of distinct values among `total`."""
    return (0, None) if total is None else (min(low(total), 1), high(total))


class EmbeddingBagOffsetsSum(
    Op, opset=3, ranks={"indices": 1, "offsets": 1, "default": 0, "weights": 1}, types={"indices": WIDE_INTEGERS}
):
    """Sums of the rows of table [N, ...] at indices [K], one for each bag; bag i begins at offsets[i] [B]. An empty
    bag has the row `default`, zeros for -1. The rows are multiplied by weights [K]. Spec: EmbeddingBagOffsetsSum-3."""

    def infer(self, table, indices, offsets, default=None, weights=None):
        same_dtype(*(each for each in (indices, offsets, default) if each is not None))
        _require_rows(table, indices, weights)
        return _rows(table, offsets)


class EmbeddingBagPackedSum(Op, opset=3, ranks={"indices": 2, "weights": 2}, types={"indices": WIDE_INTEGERS}):
    """Sums of the rows of table [N, ...] at indices [B, K], multiplied by weights [B, K]; one for each of B bags.
    Spec: EmbeddingBagPackedSum-3."""

    def infer(self, table, indices, weights=None):
        _require_rows(table, indices, weights)
        return _rows(table, indices)


def _require_rows(table, indices, weights) -> None:
    if table.shape == ():
        raise TypeError_("a table of one number has no rows", code="ML235")
    if weights is not None:
        same_dtype(table, weights)
        merge(indices.shape, weights.shape)  # raises if the shapes do not fit


def _rows(table, bags):
    if table.shape is None or bags.shape is None:
        return TensorType(table.dtype, None)
    return TensorType(table.dtype, (bags.shape[0], *table.shape[1:]))
