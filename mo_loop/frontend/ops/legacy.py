"""Operators that ONNX had as experiments or that Caffe2 and early PyTorch exported, as they were documented last.

ATen is the form in which PyTorch exports its own operators: embedding and embedding_bag. Each operator is read with a
warning (mo_loop/frontend/translators.py).
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mo_loop.frontend.ops.movement import slice_10
from mo_loop.frontend.ops.shared import full, number
from mo_loop.frontend.vocabulary import Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph import from_onnx, i64, require_sizes
from mo_loop.ops.lengths import vector
from mo_loop.ops.ranges import Ints


@translates("Affine", since=1)
def affine(x, *, alpha: float = 1.0, beta: float = 0.0):
    """alpha * x + beta."""
    return x * alpha + beta


@translates("Scale", since=1)
def scale(x, *, scale: float = 1.0):
    """scale * x."""
    return x * scale


def _scaled(op: str, make: Callable[[Value], Any]) -> None:
    """alpha * make(beta * x); a number that is not given is 1."""

    @translates(op, since=1)
    def scaled(x, *, alpha: float | None = None, beta: float | None = None):
        y = make(x if beta is None else x * beta)
        return y if alpha is None else y * alpha


_scaled("ScaledTanh", ops.Tanh)  # alpha * tanh(beta * x)
_scaled("ParametricSoftplus", ops.SoftPlus)  # alpha * log(exp(beta * x) + 1)


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
):
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
):
    """A constant; its shape as for ConstantFill."""
    sizes = _filled_shape(shape_input, shape, extra_shape, input_as_shape or 0)
    array = node.constant(np.array(values, np.float32))
    return ops.Reshape(array, sizes if isinstance(sizes, Value) else np.array(sizes, np.int64), special_zero=False)


def _filled_shape(given: Value | None, shape: Ints, extra: Ints, is_shape: int) -> Sequence[int] | Value:
    if given is None:
        if is_shape:
            raise ModelError("input_as_shape needs an input", code="ML227")
        return (*shape, *extra)
    sizes = given.astype(i64) if is_shape else given.sizes
    return ops.Concat(sizes, np.array(extra, np.int64), axis=0) if extra else sizes


SUM, MEAN, MAX = 0, 1, 2
"""The modes of embedding_bag."""


class Bags(NamedTuple):
    """The outputs of embedding_bag other than the sum of rows."""

    mode: int
    weights: Value | None
    ends_with_length: bool
    """Whether the offsets end with the number of indices."""
    padding: int
    """The index that is ignored; -1 for none."""


@translates("ATen", since=1)
@translates("ATen", since=1, domain="org.pytorch.aten", ignored="overload_name scale_grad_by_freq sparse")
def aten(
    table, *arguments: Value | None, operator: str, overload_name: str = "", include_last_offset: int = 0,
    mode: int = 0, padding_idx: int = -1, scale_grad_by_freq: int = 0, sparse: int = 0, node: Context,
):
    """The arguments after the tensors are attributes, or inputs as in the signature of the operator in PyTorch."""
    inputs = (table, *arguments)
    least = {"embedding": 2, "embedding_bag": 2}.get(operator, 0)
    if len(inputs) < least or None in inputs[:least]:
        raise ModelError(f"{operator} of PyTorch needs {least} inputs", code="ML227")
    if operator == "embedding":
        return ops.Gather(inputs[0], inputs[1], 0)
    if operator != "embedding_bag":
        raise UnsupportedError(f"the operator {operator!r} of PyTorch has no translation", code="ML302")
    if any(node.makes(place) for place in range(1, len(node.outputs))):
        raise UnsupportedError("the other outputs of embedding_bag are for training only", code="ML302")
    if len(inputs) > 4:
        mode, include_last_offset = _number(inputs, 4), _number(inputs, 7)
        given = Bags(mode, inputs[6] if len(inputs) > 6 else None, bool(include_last_offset), _number(inputs, 8, -1))
    else:
        weights = inputs[-1] if _has_weights(inputs) else None
        given = Bags(mode, weights, bool(include_last_offset), padding_idx)
    if given.mode not in (SUM, MEAN, MAX) or (given.mode != SUM and given.weights is not None):
        raise UnsupportedError(
            f"embedding_bag of mode {given.mode}{' with weights' if given.weights is not None else ''}", code="ML302",
            hint="the modes are 0 (sum), 1 (mean) and 2 (maximum); in PyTorch, only sums have weights",
        )
    packed = len(inputs) == 2 or (inputs[1].rank == 2 and _has_weights(inputs))
    if not packed and inputs[2] is None:
        raise ModelError("embedding_bag of PyTorch needs its offsets", code="ML227")
    starts = None if packed else (inputs[2][:-1] if given.ends_with_length else inputs[2])
    reduced = _largest if given.mode == MAX else _summed
    return reduced(inputs[0], inputs[1], starts, given)


def _has_weights(inputs: tuple[Any, ...]) -> bool:
    """Whether the last input holds weights: (table, indices, weights) or (table, indices, offsets, weights)."""
    return inputs[-1] is not None and len(inputs) > 2 and bool(inputs[-1].dtype.is_float)


def _number(inputs: tuple[Any, ...], place: int, default: int = 0) -> int:
    """The value of an argument that is an input."""
    if len(inputs) <= place or inputs[place] is None:
        return default
    array = inputs[place].constant
    if array is None or array.size != 1:
        raise ModelError(f"the argument {place} of embedding_bag is not a constant number", code="ML227")
    return int(array.item())


def _counted(indices: Value, bags: Bags, dtype: Any) -> Value | None:
    """1 for each index that counts, 0 for padding; None if all count."""
    if bags.padding < 0:
        return None
    return ops.NotEqual(indices, np.array(bags.padding, indices.dtype.numpy)).astype(dtype)


def _summed(table: Value, indices: Value, starts: Value | None, bags: Bags):
    weights, counts = bags.weights, _counted(indices, bags, table.dtype)
    if counts is not None:
        weights = counts if weights is None else weights * counts
    total = _bags(table, indices, starts, weights)
    return total if bags.mode == SUM else total / ops.Maximum(_sizes(table, indices, starts, bags), 1)


def _sizes(table: Value, indices: Value, starts: Value | None, bags: Bags) -> Value:
    """[bags, 1]: how many indices of each bag count."""
    ones = ops.Broadcast(
        np.ones((), table.dtype.numpy), ops.Concat(ops.Gather(table.sizes, [0], 0), np.array([1]), axis=0)
    )
    return _bags(ones, indices, starts, _counted(indices, bags, table.dtype))


def _largest(table: Value, indices: Value, starts: Value | None, bags: Bags):
    """The maxima of the rows of each bag; a bag without rows has zeros."""
    lowest = np.array(-np.inf, table.dtype.numpy)
    indices = indices if starts is None else vector(indices)
    rows = ops.Gather(table, indices, 0)
    if bags.padding >= 0:
        rows = ops.Select(ops.Equal(indices, np.array(bags.padding, indices.dtype.numpy))[..., None], lowest, rows)
    if starts is None:
        found = ops.ReduceMax(rows, [1])
    else:
        places = ops.Broadcast((_passed(starts, indices) - 1)[:, None], rows.sizes)
        none = ops.Broadcast(lowest, ops.Concat(starts.sizes, table.sizes[1:2], axis=0))
        found = ops.ScatterElementsUpdate12(none, places, rows, 0, reduction="max")
    return ops.Select(ops.Equal(_sizes(table, indices, starts, bags), 0), number(table, 0), found)


def _passed(starts: Value, indices: Value) -> Value:
    """For each place among the indices, how many bags start there or before."""
    places = ops.Range(0, ops.Gather(indices.sizes, 0, 0), 1, output_type=i64)[:, None]
    return ops.ReduceSum((starts.astype(i64) <= places).astype(i64), [1])


def _bags(table: Value, indices: Value, offsets: Value | None, weights: Value | None):
    if offsets is None:
        return ops.EmbeddingBagPackedSum(table, indices, weights)
    if weights is None:
        return ops.EmbeddingBagOffsetsSum(table, vector(indices), offsets)
    default = np.array(-1, indices.dtype.numpy)
    return ops.EmbeddingBagOffsetsSum(table, vector(indices), offsets, default, vector(weights))
