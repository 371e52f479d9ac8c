"""Operators that ONNX had as experiments or that Caffe2 and early PyTorch exported, as they were documented last.

Each of them is read with a warning (mo_loop/frontend/tolerated_nodes.py).
"""

from collections.abc import Sequence

import numpy as np

from mo_loop.frontend.arrays import full
from mo_loop.frontend.ops.movement import slice_10
from mo_loop.frontend.vocabulary import Context, ModelError, Value, ops, translates
from mo_loop.graph.shape import require_sizes
from mo_loop.graph.types import from_onnx, i64

Ints = tuple[int, ...]


@translates("Affine", since=1)
def affine(x, *, alpha: float = 1.0, beta: float = 0.0):
    """alpha * x + beta."""
    return x * alpha + beta


@translates("Scale", since=1)
def scale(x, *, scale: float = 1.0):
    """scale * x."""
    return x * scale


@translates("ScaledTanh", since=1)
def scaled_tanh(x, *, alpha: float | None = None, beta: float | None = None):
    """alpha * tanh(beta * x)."""
    inner = x if beta is None else x * beta
    return ops.Tanh(inner) if alpha is None else ops.Tanh(inner) * alpha


@translates("ParametricSoftplus", since=1)
def parametric_softplus(x, *, alpha: float | None = None, beta: float | None = None):
    """alpha * log(exp(beta * x) + 1)."""
    inner = x if beta is None else x * beta
    return ops.SoftPlus(inner) if alpha is None else ops.SoftPlus(inner) * alpha


@translates("ImageScaler", since=1)
def image_scaler(x, *, bias: tuple[float, ...] = (), scale: float = 1.0):
    """scale * x + bias of the channel; x is [N, C, H, W]."""
    scaled = x * scale
    return scaled + np.array(bias, x.dtype.numpy).reshape(1, -1, 1, 1) if bias else scaled


@translates("Crop", since=1)
def crop(x, *, border: Ints = (), scale: Ints = ()):
    """Images [N, C, H, W] without the borders (left, top, right, bottom); `scale` is the height and width to keep."""
    if len(border) != 4 or len(scale) not in (0, 2):
        raise ModelError("Crop takes four borders, and a height and a width as scale", code="ML227")
    left, top, right, bottom = border
    if scale:
        return ops.Slice(x, [top, left], [top + scale[0], left + scale[1]], [1, 1], [2, 3])
    ends = [-bottom or np.iinfo(np.int32).max, -right or np.iinfo(np.int32).max]
    return ops.Slice(x, [top, left], ends, [1, 1], [2, 3])


translates("DynamicSlice", since=1)(lambda data, starts, ends, axes=None: slice_10(data, starts, ends, axes))


@translates("ConstantFill", since=1)
def constant_fill(
    input=None, *, dtype: int = 1, extra_shape: Ints = (), input_as_shape: int = 0, shape: Ints = (),
    value: float = 0.0, node: Context,
):  # fmt: skip
    """A tensor of one value. Its shape is that of the input, or its contents, followed by `extra_shape`; or `shape`."""
    array = np.array(value).astype(from_onnx(dtype).numpy)
    sizes = _filled_shape(input, shape, extra_shape, input_as_shape)
    if isinstance(sizes, Value):
        return ops.Broadcast(ops.Constant(array, graph=node.graph), sizes)
    require_sizes(sizes)
    return node.constant(full(sizes, array, array.dtype))


@translates("GivenTensorFill", since=1)
def given_tensor_fill(
    shape_input=None, *, extra_shape: Ints = (), input_as_shape: int | None = None, shape: Ints = (),
    values: tuple[float, ...] = (), node: Context,
):  # fmt: skip
    """A constant; its shape as for ConstantFill."""
    sizes = _filled_shape(shape_input, shape, extra_shape, input_as_shape or 0)
    array = node.constant(np.array(values, np.float32))
    return ops.Reshape(array, sizes if isinstance(sizes, Value) else np.array(sizes, np.int64), special_zero=False)


def _filled_shape(given: Value | None, shape: Ints, extra: Ints, is_shape: int) -> Sequence[int] | Value:
    if given is None:
        if is_shape:
            raise ModelError("input_as_shape needs an input", code="ML227")
        return (*shape, *extra)
    sizes = ops.Convert(given, destination_type=i64) if is_shape else ops.ShapeOf(given)
    return ops.Concat(sizes, np.array(extra, np.int64), axis=0) if extra else sizes
