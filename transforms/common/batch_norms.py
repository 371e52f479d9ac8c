"""Batch normalisations with constant statistics: a factor and a summand for each channel."""

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from mo_loop.graph.tensor import SAMPLE, ArrayTensor, DeferredTensor, Tensor
from mo_loop.graph.types import f32
from mo_loop.transforms.replace import drop_dead, replace_node
from mo_loop.transforms.vocabulary import Constant, Node, Value, node_pass, ops

CHANNELS: dict[type[Node], int] = {ops.Convolution: 0, ops.GroupConvolution: 0, ops.ConvolutionBackpropData: 1}
"""Convolutions -> the axis of their filters, without that of groups, which has the channels of the result."""


@node_pass((ops.BatchNormInference,))
def FuseBatchNorms(node: ops.BatchNormInference) -> str:
    """BatchNormInference(Convolution(x, w))  ->  Add(Convolution(x, w * factor), summand)

    The factor of a channel is gamma / sqrt(variance + epsilon). Filters that nothing else reads are multiplied while
    the .bin is written; a constant added after the convolution becomes a part of the summand. Without such filters the
    result is x * factor + summand. The runtime does the same while it compiles a model, which takes half as long again.
    """
    x, *statistics = node.operands
    if x.dtype is not f32 or x.rank is None or not all(isinstance(each.node, Constant) for each in statistics):
        return "it is not of f32, or its statistics are not constant"
    gamma, beta, mean, variance = (each.node.array.astype(np.float64) for each in statistics)
    with np.errstate(all="ignore"):
        factor = gamma / np.sqrt(variance + node.epsilon)
        summand = beta - mean * factor
    sizes = np.abs(np.concatenate([factor, summand]))
    if not sizes.size or not sizes.max() <= np.finfo(np.float32).max:
        return "a factor or summand is not finite"
    convolution, bias = _biased(x, len(factor))
    if convolution is not None:
        product = _multiplied(convolution, factor)
        summand = summand + factor * bias
    else:
        product = x * _by_channel(factor, x.rank)
    replace_node(node, ops.Add(product, _by_channel(summand, x.rank)))
    drop_dead([x.node])
    return ""


def _biased(x: Value, channels: int) -> tuple[Any, Any]:
    """The convolution whose filters can be multiplied, and what is added to it; None if x is not of such a form."""
    node, bias = x.node, np.zeros(channels)
    if isinstance(node, ops.Add) and len(x.uses) == 1:
        x, added = node.operands
        shape = (1, channels, *[1] * ((x.rank or 2) - 2))
        if not isinstance(added.node, Constant) or added.shape != shape or added.dtype is not f32:
            return None, bias
        node, bias = x.node, added.node.array.reshape(-1).astype(np.float64)
    if type(node) not in CHANNELS or len(x.uses) != 1:
        return None, bias
    filters = node.operands[1]
    is_own = isinstance(filters.node, Constant) and filters.dtype is f32 and len(filters.uses) == 1
    return (node if is_own else None), bias


def _multiplied(node: Any, factor: np.ndarray) -> Value:
    """The convolution with filters multiplied by the factor of their channel, and without the names it had."""
    old: Constant = node.operands[1].node
    tensor = _scaled(old.tensor, factor.astype(np.float32), CHANNELS[type(node)])
    new = Constant(tensor, graph=node.graph, name=old.name)
    new.origins = old.origins
    node.graph.set_input(node, 1, new.output)
    drop_dead([old])
    node.name, node.output.names, node.output.origins = "", (), ()
    return node.output


def _scaled(tensor: Tensor, factor: np.ndarray, axis: int) -> Tensor:
    """Filters of f32 multiplied by a factor for each channel: those of `axis`, of 0 with the axis of groups before it.

    Large ones are multiplied block by block while the .bin is written.
    """
    inner = max(1, tensor.size // len(factor) if axis == 0 else math.prod(tensor.shape[axis + 1 :]))

    def blocks() -> Iterator[bytes | memoryview]:
        start = 0
        for block in tensor.blocks():
            values = np.frombuffer(block, np.float32)
            first, last = start // inner, -(-(start + values.size) // inner)
            factors = np.repeat(factor[np.arange(first, last) % len(factor)], inner)
            yield (values * factors[start - first * inner :][: values.size]).tobytes()
            start += values.size

    made = DeferredTensor(f32, tensor.shape, blocks, tensor.files)
    return made if tensor.nbytes > SAMPLE else ArrayTensor(made.array())


def _by_channel(values: np.ndarray, rank: int) -> Any:
    return values.astype(np.float32).reshape(1, -1, *[1] * (rank - 2))
