"""Rearranges weights: constants at conversion, everything else by operations at run time."""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mo_loop import ops as operations
from mo_loop.frontend.vocabulary import Value, ops
from mo_loop.graph.tensor import BLOCK, ArrayTensor, DeferredTensor, Tensor
from mo_loop.graph.types import f16, f32
from mo_loop.ops.base import Constant, Identity


def array_of(value: Value | None) -> np.ndarray[Any, Any] | None:
    """The values of a constant, also of one in f16 that is converted to f32; None for anything else."""
    while value is not None and isinstance(value.node, Identity):
        value = value.node.inputs[0]
    if value is not None and value.dtype is f32 and isinstance(value.node, operations.Convert):
        source = value.node.inputs[0]
        narrow = array_of(source) if source is not None and source.dtype is f16 else None
        return None if narrow is None else narrow.astype(np.float32)
    return value.node.array if value is not None and isinstance(value.node, Constant) else None


def reshaped(value: Value, shape: Sequence[int]) -> Value:
    """`value` in another shape (one item may be -1); a constant shares its data."""
    if not isinstance(value.node, Constant):
        return ops.Reshape(value, list(shape))
    tensor: Tensor = value.node.tensor
    rest = math.prod(dim for dim in shape if dim >= 0)
    full = tuple(dim if dim >= 0 else tensor.size // max(rest, 1) for dim in shape)
    if full == tensor.shape:
        return value
    return ops.Constant(tensor.reshaped(full), graph=value.graph, name=value.node.name)


def rows_rearranged(value: Value, function: Callable[[Any], Any]) -> Value | None:
    """As `rearranged`, also of a Dequantize of constants, for a function that only moves or selects whole rows.

    The scale of such a Dequantize has all axes of the weights; only the last one may have the length 1, or that of
    the number of blocks.
    """
    node = value.node
    if not isinstance(node, operations.Dequantize):
        return rearranged(value, function)
    given = [each for each in node.inputs if each is not None]
    if any(each.type.dims[:-1] != value.type.dims[:-1] for each in given):
        return None
    made = [rearranged(each, function) for each in given]
    if any(each is None for each in made):
        return None
    in_rows = node.axis in (-1, len(value.type.dims) - 1)
    block_size = node.block_size if in_rows else min(node.block_size, 1)  # blocks of rows have one row each
    return ops.Dequantize(*made, to=node.to, axis=-1, block_size=block_size, expanded=node.expanded)


def rearranged(value: Value, function: Callable[[Any], Any]) -> Value | None:
    """`function` of the array of a constant, deferred until writing if it is large; None if it is not a constant."""
    if not isinstance(value.node, Constant):
        return None
    tensor: Tensor = value.node.tensor
    if tensor.nbytes <= BLOCK:
        made: Tensor = ArrayTensor(np.ascontiguousarray(function(tensor.array())), tensor.dtype)
    else:
        # The shape is computed with an array that has no memory.
        probe = function(np.broadcast_to(np.zeros((), tensor.dtype.numpy), tensor.shape))
        make = lambda: ArrayTensor(function(tensor.array()), tensor.dtype).blocks()  # noqa: E731
        made = DeferredTensor(tensor.dtype, tuple(probe.shape), make, tensor.files)
    return ops.Constant(made, graph=value.graph, name=value.node.name)
