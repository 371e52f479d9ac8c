"""Constants that the runtime merges where their product or sum is not a number of the type, and wrong fusions of the
runtime into the operation before, such as constants along the wrong axis.
"""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from mo_loop.graph.shape import element_count
from mo_loop.graph.types import f16, f64
from mo_loop.target import NEVER, Processor, without_avx512
from mo_loop.transforms.pattern import wrap_type
from mo_loop.transforms.predicates import in_graph_with
from mo_loop.transforms.runtime.local.rule import (
    OF_WEIGHTS,
    both_orders,
    is_of_rows,
    is_one_element,
    is_weights,
    maximum_rule,
)
from mo_loop.transforms.vocabulary import Constant, Gap, Node, Use, Value, is_static, ops, source_of

FACTORS = (ops.Multiply, ops.Divide)
ADDENDS = (ops.Add, ops.Subtract)


def _is_after_constants(value: Value) -> bool:
    """Whether the operand that is not constant comes from another operation with a constant."""
    found = None
    for each in value.node.inputs:
        if each is not None and not isinstance(each.node, Constant):
            if found is not None:
                return False
            found = each.node
    return isinstance(found, (*FACTORS, *ADDENDS, ops.Negative))


@maximum_rule(wrap_type((*FACTORS, *ADDENDS), when=_is_after_constants), "`max(y, y)` between the two operations", Gap(
    "constants-merged-to-infinity",
    "the constants of `(x + c) * s` and `(x * s) * t` are multiplied with each other, also where the product is "
    "infinite or 0",
))
def MaximumBetweenConstants(node: Node) -> Use | None:
    """(x + c) * s  ->  max(x + c, x + c) * s, where c * s is beyond the largest number of the type

    The runtime computes x * s + c * s, x * (s * t) for (x * s) * t, and x + (c + d) for (x + c) + d. A product of
    constants may be infinite, or 0, where the result is an ordinary number: a zero point of 128 times the scale of a
    quantised attention mask, for example. No constant passes the maximum.
    """
    operand = _operand(node)
    return Use(node, operand[1]) if operand is not None and _leave_the_type(node) else None


class _Reach(NamedTuple):
    """The effect of the constants of a node and of those before it: the largest and the smallest factor, and the sum of
    the addends, each multiplied by the factors after it."""

    most: float
    least: float
    total: float


_NOTHING = _Reach(1.0, 1.0, 0.0)


def _leave_the_type(node: Node) -> bool:
    """Whether the constants of `node` and of the operations before it have a product or a sum that is infinite, or a
    product that is 0."""
    numbers = np.finfo(np.float16 if node.outputs[0].dtype is f16 else np.float32)
    sizes, before = _sizes(node), _before(node)
    if sizes is None or before is None:
        return False
    reach = _reach_after(node, sizes, _reach(before))
    return max(reach.most, reach.total) > float(numbers.max) or reach.least < float(numbers.tiny)


def _reach(node: Node) -> _Reach:
    """The reach of the chain that `node` ends. It is kept until the graph changes, for the next node of the chain."""
    known: dict[Node, _Reach] = node.graph.note("reach of constants", dict)
    chain: list[tuple[Node, tuple[float, float]]] = []
    current: Node | None = node
    while current is not None and current not in known and (sizes := _sizes(current)) is not None:
        chain.append((current, sizes))
        current = _before(current)
    reach = _NOTHING if current is None else known.get(current, _NOTHING)
    for each, sizes in reversed(chain):
        own = _reach_after(each, sizes, _NOTHING)
        both = _reach_after(each, sizes, reach)
        reach = known[each] = _Reach(max(own.most, both.most), min(own.least, both.least), both.total)
    return reach


def _reach_after(node: Node, sizes: tuple[float, float], reach: _Reach) -> _Reach:
    least, most = sizes if isinstance(node, FACTORS) else (1.0, 1.0)
    addend = sizes[1] if isinstance(node, ADDENDS) else 0.0
    return _Reach(most * reach.most, least * reach.least, addend + most * reach.total)


def _before(node: Node) -> Node | None:
    """The operation with a constant whose result only `node` reads."""
    operand = _operand(node)
    if operand is None or operand[0].only_use is None or _operand(operand[0].node) is None:
        return None
    return operand[0].node


def _operand(node: Node) -> tuple[Value, int] | None:
    """The one operand that is not constant, and its port."""
    if isinstance(node, ops.Negative):
        return node.operands[0], 0
    if not isinstance(node, FACTORS + ADDENDS) or not node.outputs[0].dtype.is_float:
        return None
    found = [(value, port) for port, value in enumerate(node.operands) if not isinstance(value.node, Constant)]
    return found[0] if len(found) == 1 else None


def _sizes(node: Node) -> tuple[float, float] | None:
    """The smallest and the largest number that the constant multiplies or adds, without signs; 1 for no constant, and
    None where one is not finite."""
    constants = [each.node for each in node.operands if isinstance(each.node, Constant)]
    if not constants:
        return 1.0, 1.0
    array = constants[0].array
    if array.size == 1:  # most of them
        least = most = abs(float(array.item()))
        if least == 0 and isinstance(node, FACTORS):
            return None
    else:
        sizes = np.abs(array.astype(np.float64)).ravel()
        sizes = sizes[sizes != 0] if isinstance(node, FACTORS) else sizes
        if not sizes.size:
            return None
        least, most = float(sizes.min()), float(sizes.max())
    if not math.isfinite(most):
        return None
    is_divisor = isinstance(node, ops.Divide) and constants[0].output is node.inputs[1]
    return (1 / most, 1 / least) if is_divisor else (least, most)


FUSED = (ops.Binary, ops.Unary, ops.PReLU, ops.Scaled, ops.Convert, ops.Swish, ops.FakeQuantize, ops.BatchNormInference)
"""Operations that the runtime fuses into the operation before, if their other inputs are constants."""
MOVES = ops.View, ops.Transpose, ops.Convert
"""Operations that may be between a FakeQuantize and a product."""

MOVED = (ops.View, ops.Broadcast, ops.DepthToSpace, ops.Gather, ops.ReverseSequence, ops.SpaceToDepth, ops.Transpose)
"""Operations that the runtime exchanges with a following one that has one number."""

WHOLE_VECTOR = 16
"""Elements: the kernels of AvgPool for 8 bits, without AVX-512, fuse nothing into fewer."""


_DIVIDES = in_graph_with(ops.Divide) & (lambda x: x.dtype.is_integer or x.graph.has(ops.Convert))


@maximum_rule(wrap_type((ops.Reduction, ops.MatMul), when=_DIVIDES), "`max(r, r)` after the reduction or `MatMul`", Gap(
    "constant-divided-by-sum",
    "a constant of integers that is divided by a reduction or a product of matrices divides it instead",
))
def MaximumOfDivisor(node: Node) -> Value | None:
    """c / ReduceSum(x)  ->  c / max(r, r), where r is the reduction or a MatMul, and c a constant of integers."""
    for reader, _ in _constants_after(node.outputs[0], moves=MOVED):
        is_integer = reader.outputs[0].type.dtype.is_integer
        if isinstance(reader, ops.Divide) and is_integer and is_weights(reader.operands[0]):
            return node.outputs[0]
    return None


@maximum_rule(
    wrap_type(ops.Reduction), "`max(r, r)` after the reduction",
    Gap(
        "channel-constant-of-reduction",
        "after a reduction of three dimensions along the last or the first, a constant for each channel is read at "
        "the index of the batch, also past its end",
    ),
    Gap(
        "channel-range-of-reduction",
        "a `FakeQuantize` with a range for each channel after a reduction that does not keep the dimensions takes the "
        "ranges of other channels",
    ),
    Gap(
        "number-after-reduction",
        "after a reduction of three dimensions that keeps the first, with more than one element, arithmetic of "
        "integers and a division of f64 read a constant of one number past its end",
    ),
)
def MaximumBehindReduction(node: ops.Reduction) -> Value | None:
    """ReduceMean(x : [N, C, T], 2) + c : [C, 1]  ->  max(r, r) + c, where r is the reduction, and so for axis 0

    and for every reduction without kept dimensions before a FakeQuantize with a range for each channel; and for every
    reduction of three dimensions that keeps the first, before arithmetic of integers, or a division of f64, by one
    number. The runtime fuses the following operation into the reduction, after it moved it before operations that only
    move elements. In f32 it keeps one number as such; else it makes a vector of the channels, which the kernel reads at
    the place of the batch.
    """
    data, gone = node.operands[0], node.along
    if gone is None:
        return None
    channel = 0 if not node.keep_dims and gone == (0,) else 1
    for reader, varying in _constants_after(node.output):
        if varying and isinstance(reader, ops.FakeQuantize) and not node.keep_dims:
            return node.output
    for reader, varying in _constants_after(node.output, moves=MOVED) if data.rank == 3 else ():
        is_vector = gone in ((0,), (2,)) and varying == [channel]
        if is_vector or (0 not in gone and _reads_number(reader, varying)):
            return node.output
    return None


def _may_join_constants(value: Value) -> bool:
    """Whether the columns are not known, there are four dimensions, or something is quantised."""
    shape = value.shape or ()
    return len(shape) > 3 or (len(shape) > 1 and not isinstance(shape[-1], int)) or value.graph.has(ops.FakeQuantize)


@maximum_rule(
    wrap_type(ops.MatMul, when=_may_join_constants), "`max(p, p)` after the `MatMul`",
    Gap(
        "factors-of-quantised-product",
        "factors after a `MatMul` of 8 bits are multiplied with other elements if they vary along another axis than "
        "the columns; after one without constant weights also if they vary along the columns", since="2025.4.1",
    ),
    Gap(
        "constant-of-unknown-columns",
        "a constant of several elements after a `MatMul` of an unknown number of columns is taken for other elements, "
        "or the model does not compile", since="2025.4.1",
    ),
    Gap(
        "channel-constant-of-matmul",
        "a constant along the second of four or more dimensions after a `MatMul` with constant weights is taken for "
        "one along the last, or the model does not compile",
    ),
    Gap(
        "channel-range-of-matmul",
        "a `FakeQuantize` with a range for each place along the second of three or more dimensions after a `MatMul` "
        "takes the ranges of the columns, or the model does not compile",
    ),
)
def MaximumBehindMatMul(node: ops.MatMul) -> Value | None:
    """MatMul(x : [B, C, S, K], w) + c : [C, 1, 1]  ->  max(p, p) + c, where p is the product with constant weights

    for four and more dimensions and constants that vary along the second, and for every product of three and more
    before a FakeQuantize with a range for each place along the second. The runtime fuses them into the product as those
    of the columns. The factors after a product of 8 bits join its scales: those of a product with constant weights may
    vary along the columns only, those of another one not at all.
    """
    rank, shape = node.output.rank or 0, node.output.shape
    if shape is None or rank < 2:
        return None
    is_quantised = any(map(_is_quantised, node.operands))
    reads_constants = rank > 3 and any(map(is_weights, node.operands))
    allowed = [[], [rank - 1]] if is_of_rows(node) else [[]]
    has_columns = isinstance(shape[-1], int)
    for reader, varying in _constants_after(node.output, follows_all=is_quantised):
        if is_quantised and isinstance(reader, ops.Multiply | ops.Divide) and varying not in allowed:
            return node.output
        if not has_columns and varying:
            return node.output
        if rank > 2 and varying == [1] and (reads_constants or isinstance(reader, ops.FakeQuantize)):
            return node.output
    return None


@maximum_rule(wrap_type(ops.AvgPool), "`max(p, p)` after the `AvgPool`", Gap(
    "small-average-of-quantised",
    "an `AvgPool` of a quantised tensor with fewer than 16 results before a `FakeQuantize` gives wrong numbers, or "
    "does not compile", on={Processor.AVX512_CORE: NEVER},
))
def MaximumBehindAverage(node: ops.AvgPool) -> Value | None:
    """FakeQuantize(AvgPool(x : [1, 8, 7, 7]))  ->  FakeQuantize(max(p, p)), where p is the average of each channel

    if p has, or may have, fewer than 16 elements. Where x is quantised the runtime fuses the FakeQuantize into the
    AvgPool, also after elementwise operations that it merges with it.
    """
    known = [each for each in node.output.shape or () if isinstance(each, int)]
    if math.prod(known) >= WHOLE_VECTOR:
        return None
    use = node.output.only_use
    while use is not None and isinstance(use.node, FUSED):
        if isinstance(use.node, ops.FakeQuantize):
            return node.output
        use = use.node.outputs[0].only_use
    return None


@maximum_rule(wrap_type(ops.MatMul, when=in_graph_with(ops.FakeQuantize)), "`max(q, q)` after the `FakeQuantize`", Gap(
    "scales-of-many-matrices",
    "`MatMul` of 8 bits with constant weights of more than one matrix and several scales reads past the scales",
    since="2026.4.1", on=without_avx512(NEVER),
))
def MaximumBeforeMatMul(node: ops.MatMul) -> Use | None:
    """MatMul(FakeQuantize(x), w : [B, K, N])  ->  MatMul(max(q, q), w), where q is the FakeQuantize

    and w are weights of 8 bits with several scales and more than one matrix. The runtime computes the product with the
    maximum in f32.
    """
    a, b = node.operands
    for port, data, weights in ((0, a, b), (1, b, a)):
        if _is_quantised(data) and _has_scales(weights) and not is_of_rows(node):
            return Use(node, port)
    return None


@maximum_rule(
    wrap_type(ops.FakeQuantize), "`max(p, p)` before the `FakeQuantize`",
    Gap(
        "fake-quantize-of-negative-factors",
        "a `FakeQuantize` of dynamic shape after a `Multiply` by constants of both signs along the channels gives "
        "wrong numbers",
    ),
    Gap(
        "fake-quantize-of-unknown-channels",
        "a `FakeQuantize` after an `Add` or `Multiply` of a constant for each channel takes the first one for all if "
        "the number of channels is not known",
    ),
)
def MaximumBeforeFakeQuantize(node: ops.FakeQuantize) -> Use | None:
    """FakeQuantize(x * c)  ->  FakeQuantize(max(p, p)), where p is the product with several constants, or a sum

    in dynamic shapes. The runtime moves the constants into the range: it takes the first one for all channels if it
    does not know their number in x, and computes other numbers where a negative one exchanges the ends.
    """
    data = node.operands[0]
    return Use(node, 0) if not is_static(data.shape) and _joins_range(data) else None


def _joins_range(value: Value) -> bool:
    """Whether `value` is a sum or product with constants that the runtime moves into a range wrongly."""
    node = value.node
    if not isinstance(node, ops.Multiply | ops.Divide | ops.Add | ops.Subtract):
        return False
    other, constant = both_orders(node)[is_weights(node.operands[0])]
    if not is_weights(constant):
        return False
    if element_count(constant.shape) != 1:
        is_product = isinstance(node, ops.Multiply | ops.Divide)
        may_be_negative = not isinstance(constant.node, Constant) or constant.node.array.min(initial=0) < 0
        if (is_product and may_be_negative) or other.shape is None or not is_static(other.shape[1:2]):
            return True
    return _joins_range(other)


def _is_quantised(value: Value) -> bool:
    """Whether `value` is the result of a FakeQuantize, also a rearranged one."""
    return isinstance(source_of(value, MOVES).node, ops.FakeQuantize)


def _has_scales(value: Value) -> bool:
    """Whether `value` is a Constant of at most 8 bits with several scales."""
    node, has_several = value.node, False
    while isinstance(node, OF_WEIGHTS):
        data, *others = node.operands
        if isinstance(node, ops.Multiply | ops.Dequantize):
            has_several = has_several or element_count(others[0].shape) != 1
        node = data.node
    return has_several and isinstance(node, Constant) and node.output.type.dtype.bits <= 8


def _reads_number(reader: Node, varying: list[int]) -> bool:
    """Whether the runtime fuses an operation with one number as one with a vector."""
    dtype = reader.outputs[0].type.dtype
    kinds = (ops.Divide,) if dtype is f64 else (ops.Add, ops.Subtract, ops.Multiply, ops.Divide)
    return not varying and isinstance(reader, kinds) and (dtype is f64 or dtype.is_integer)


def _constants_after(
    value: Value, *, follows_all: bool = False, moves: tuple[type[Node], ...] = ()
) -> Iterator[tuple[Node, list[int]]]:
    """The operations that the runtime may fuse into that of `value`, also after some that move elements, with the
    dimensions along which their constants vary. It fuses into an operation of one reader only, but copies one of 8 bits
    for each of its readers."""
    uses = value.uses
    for node, at in uses if follows_all or len(uses) == 1 else ():
        if not isinstance(node, FUSED) and not isinstance(node, moves):
            continue
        rank = node.outputs[0].rank
        others = [each for port, each in enumerate(node.inputs) if port != at and each is not None]
        is_moved = at == 0 and isinstance(node, moves)
        if rank is None or not (is_moved or all(isinstance(each.node, Constant) for each in others)):
            continue
        for each in () if is_moved else others:
            yield node, _varying(node, each, rank)
        yield from _constants_after(node.outputs[0], follows_all=follows_all, moves=moves)


def _varying(node: Node, constant: Value, rank: int) -> list[int]:
    """The dimensions of a tensor of `rank` dimensions along which `constant` varies."""
    dims = () if is_one_element(constant) else constant.type.dims
    if isinstance(node, ops.PReLU | ops.BatchNormInference) and len(dims) == 1 and rank > 1:
        return [1]
    return [axis for axis, size in enumerate(dims, rank - len(dims)) if size != 1]
