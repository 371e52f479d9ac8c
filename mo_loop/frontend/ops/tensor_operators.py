"""Operators that ONNX has as well, in the form that ONNX Runtime had before, and small operators on tensors."""

from functools import reduce

import numpy as np

from mo_loop.frontend.arrays import counted_up, first_numbers
from mo_loop.frontend.ops.elementwise.arithmetic import number
from mo_loop.frontend.ops.filling import pad_11, range_11, trilu
from mo_loop.frontend.ops.images.detection import grid_sample_16
from mo_loop.frontend.ops.indexing import gather_nd
from mo_loop.frontend.ops.normalisation import ranked
from mo_loop.frontend.ops.shared import integers
from mo_loop.frontend.ops.tensors import identity
from mo_loop.frontend.ops.unique import unique_elements
from mo_loop.frontend.vocabulary import MICROSOFT, Context, ModelError, Value, ops, translates
from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.types import i64
from mo_loop.ops.lengths import as_i64, dimension, scalar, vector
from mo_loop.ops.ranges import AtLeast1, AtLeast2, AtLeast3, One, Positive


@translates("Trilu", since=1, domain=MICROSOFT)
def contrib_trilu(x: AtLeast2, k: One = None, *, upper: int = 1):
    """Trilu of ONNX."""
    return trilu(x, k, upper=upper)


@translates("GatherND", since=1, domain=MICROSOFT)
def contrib_gather_nd(data, indices):
    """GatherND of ONNX without batch dimensions."""
    return gather_nd(data, indices)


@translates("GridSample", since=1, domain=MICROSOFT)
def contrib_grid_sample(
    x: AtLeast3, grid: AtLeast3, *, align_corners: int = 0, mode: str = "bilinear", padding_mode: str = "zeros",
):  # fmt: skip
    """GridSample of ONNX's opset 16."""
    return grid_sample_16(x, grid, align_corners=align_corners, mode=mode, padding_mode=padding_mode)


@translates("Pad", since=1, domain=MICROSOFT)
def contrib_pad(data, pads, value=None, *, mode: str = "constant"):
    """Pad of ONNX; the pads may be a matrix of one row."""
    return pad_11(data, vector(pads), value, mode=mode)


@translates("Range", since=1, domain=MICROSOFT)
def contrib_range(start, limit, delta=None):
    """Range of ONNX; a step that is absent is 1."""
    step = ops.Constant(number(start, 1), graph=start.graph) if delta is None else delta
    return range_11(start, limit, step)


@translates("Unique", since=1, domain=MICROSOFT)
def contrib_unique(x):
    """Unique values in the order of their first occurrences, the inverse indices, and the counts."""
    values, _, back, times = unique_elements(x, in_order=False)
    return [values, back, times]


@translates("ExpandDims", since=1, domain=MICROSOFT)
def expand_dims(x, axis):
    """One more dimension of 1, at an axis of the result."""
    known = integers(axis)
    if known is not None:
        return ops.Unsqueeze(x, list(known))
    rank = ranked(x, "ExpandDims")
    place = vector(as_i64(scalar(axis)) % (rank + 1))
    shape = ops.ShapeOf(x)
    before, after = ops.Slice(shape, [0], place, [1], [0]), ops.Slice(shape, place, [rank], [1], [0])
    return ops.Reshape(x, ops.Concat(before, np.array([1]), after, axis=0))


@translates("UnfoldTensor", since=1, domain=MICROSOFT)
def unfold_tensor(x: AtLeast1, *, dim: int = -1, size: Positive, step: Positive = 1):
    """All windows of `size` elements along a dimension, as a new last dimension."""
    rank = ranked(x, "UnfoldTensor")
    at = normalise_axis(dim, rank)
    length = dimension(x, at)
    if size < 1 or step < 1 or (isinstance(length, int) and size > length):
        raise ModelError(f"windows of {size} elements and steps of {step} along {length} elements", code="ML227")
    starts = (
        counted_up(0, length - size + 1, step)
        if isinstance(length, int)
        else ops.Range(0, length + (1 - size), step, output_type=i64)
    )
    places = ops.Unsqueeze(_constant(x, starts), 1) + first_numbers(size)
    windows = ops.Gather(x, places, at)
    return ops.Transpose(windows, [*range(at + 1), *range(at + 2, rank + 1), at + 1])


def _constant(like: Value, made):
    return ops.Constant(made, graph=like.graph) if isinstance(made, np.ndarray) else made


@translates("TorchEmbedding", since=1, domain=MICROSOFT, ignored="padding_idx scale_grad_by_freq")
def torch_embedding(weight, indices, padding_idx=None, scale_grad_by_freq=None):
    """Rows of a table; the other inputs concern gradients."""
    return ops.Gather(weight, indices, 0)


@translates("IsAllFinite", since=1, domain=MICROSOFT)
def is_all_finite(*tensors, isinf_only: int = 0, isnan_only: int = 0):
    """Whether no element is infinite or NaN, or of one kind only."""
    if isinf_only and isnan_only:
        raise ModelError("isinf_only and isnan_only exclude each other", code="ML227")
    found = [each for x in tensors for each in _not_finite(vector(x), not isinf_only, not isnan_only)]
    return ~reduce(lambda a, b: a | b, found)


def _not_finite(x: Value, nan: bool, infinite: bool) -> list[Value]:
    """Scalars: whether an element is NaN, whether one is infinite."""
    kinds = ([ops.IsNaN(x)] if nan else []) + ([ops.IsInf(x)] if infinite else [])
    return [ops.ReduceLogicalOr(each, [0]) for each in kinds]


@translates("SampleOp", since=1, domain=MICROSOFT)
def sample_op(x, *, node: Context):
    """Identity of ONNX."""
    return identity(x, node=node)
