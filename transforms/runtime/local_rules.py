"""Errors of the runtime that show in one node and its neighbours: the pattern, and what is written instead."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from mo_loop import ops
from mo_loop.graph import Node, Value
from mo_loop.graph.shape import Dimension, element_count, is_static, low, normalise_axis
from mo_loop.graph.tensor import ArrayTensor
from mo_loop.graph.types import ElementType, boolean, i32, i64, string, u2, u4
from mo_loop.ops.activation import PReLU
from mo_loop.ops.arithmetic import Binary
from mo_loop.ops.base import Constant, Identity, Result
from mo_loop.ops.reduction import Reduction
from transforms.pattern import Match, Pattern, any_input, any_of, wrap_type
from transforms.predicates import is_constant, rank_equals, type_matches
from transforms.replace import drop_dead, move_readers, replace_node
from transforms.rewrite import GraphRewrite, MatcherPass


class LocalRule(MatcherPass):
    """`pattern`  ->  what `form` makes for its root"""

    pattern: ClassVar[Pattern]

    def __init__(self) -> None:
        super().__init__()
        self.register_matcher(self.pattern, self._rewrite)

    def form(self, node: Any) -> Node | None:
        """What is written instead of `node`, or `node` itself after a change; None if the runtime computes it
        correctly."""
        raise NotImplementedError

    def _rewrite(self, match: Match) -> bool:
        new = self.form(match.root)
        if new is None:
            return False
        if new is not match.root:
            replace_node(match.root, new)
        self.register_new_node(new)  # another rule may apply to it
        return True


# -- elementwise operations


class IdentityToLogicalOr(LocalRule):
    """Identity(x), where x is boolean and not the first output of its node  ->  LogicalOr(x, x)

    An Identity is written as a Convert to the same type. The runtime removes such a Convert of a boolean, and then
    reads the first output of the node, whichever output it was.
    """

    pattern = wrap_type(Identity, any_input(type_matches(boolean)))

    def form(self, node: Identity) -> Node | None:
        (x,) = _inputs(node)
        return ops.LogicalOr(x, x) if x.index else None


class SelectToLogical(LocalRule):
    """Select(c, c, x)  ->  LogicalOr(c, x), and Select(c, x, c)  ->  LogicalAnd(c, x)

    The runtime converts the condition to another type than the values and then does not compile the Select.
    """

    condition = any_input()
    pattern = any_of(
        wrap_type(ops.Select, condition, condition, any_input(), when=type_matches(boolean)),
        wrap_type(ops.Select, condition, any_input(), condition, when=type_matches(boolean)),
    )

    def form(self, node: ops.Select) -> Node:
        condition, then, other = _inputs(node)
        return ops.LogicalOr(condition, other) if then is condition else ops.LogicalAnd(condition, then)


class CopySelectedConstant(LocalRule):
    """Select(x, c, c), where c is a Constant of one element  ->  Select(x, c, a copy of c)

    The runtime does not compile it. Constants that are equal are one at the end.
    """

    constant = any_input(is_constant())
    pattern = wrap_type(ops.Select, any_input(), constant, constant)

    def form(self, node: ops.Select) -> Node | None:
        _, c, _ = _inputs(node)
        if not _is_one_element(c):
            return None
        assert isinstance(c.node, Constant)
        node.graph.set_input(node, 2, Constant(c.node.tensor, graph=node.graph).output)
        return node


class AbsToMaximum(LocalRule):
    """Abs(c)  ->  max(-c, c), where c is a Concat

    The runtime writes the absolute values into the memory of the Concat while other nodes still read it. Later passes
    add readers, and Barriers and what says sizes are removed.
    """

    pattern = wrap_type(ops.Abs)

    def form(self, node: ops.Abs) -> Node | None:
        (c,) = source = _inputs(node)
        while isinstance(source[0].node, ops.Barrier | ops.AtLeast):
            source = _inputs(source[0].node)
        return ops.Maximum(ops.Negative(c), c) if isinstance(source[0].node, ops.Concat) else None


class EmptyConstantsToMaximum(LocalRule):
    """x + c, where c is a Constant without elements  ->  max(x, c), and -, *, / likewise

    The result has no elements either. The runtime crashes when it compiles one of the four operations.
    """

    pattern = wrap_type((ops.Add, ops.Subtract, ops.Multiply, ops.Divide))

    def form(self, node: Binary) -> Node | None:
        a, b = _inputs(node)
        if not any(isinstance(each.node, Constant) and 0 in each.type.dims for each in (a, b)):
            return None
        return ops.Maximum(a, b, auto_broadcast=node.auto_broadcast)


class SoftSignToQuotient(LocalRule):
    """SoftSign(x)  ->  x / (1 + |x|)

    Before 2025.4 the runtime computes other numbers if x is the result of an elementwise operation of dynamic shape. It
    also moves elementwise operations before views, so each SoftSign is replaced.
    """

    pattern = wrap_type(ops.SoftSign)

    def form(self, node: ops.SoftSign) -> Node:
        (x,) = _inputs(node)
        magnitude = self.register_new_node(ops.Abs(x))  # AbsToMaximum takes that of a Concat
        return ops.Divide(x, ops.Add(magnitude, 1.0))


class DropBitsBeforeConvert(LocalRule):
    """Convert(x, u8)  ->  Convert(x & 255, u8)    Convert(x, i8)  ->  Convert(((x + 128) & 255) - 128, i8)

    The runtime replaces integers outside the range of 8 or 16 bits by the nearest in it, where ONNX drops bits.
    """

    pattern = wrap_type(ops.Convert)

    def form(self, node: ops.Convert) -> Node | None:
        (x,) = _inputs(node)
        to = node.destination_type
        if not (x.dtype.is_integer and to.is_integer and to.bits in (8, 16)) or _fits(x.dtype, to):
            return None
        mask, half = 2**to.bits - 1, 2 ** (to.bits - 1) if to.kind == "int" else 0
        if _has_only_bits(x, mask, half):
            return None
        wide = x if x.dtype.bits >= 32 else ops.Convert(x, destination_type=i32).output
        kept = ops.BitwiseAnd(ops.Add(wide, half) if half else wide, mask)
        node.graph.set_input(node, 0, (ops.Subtract(kept, half) if half else kept).output)
        return node


def _fits(source: ElementType, to: ElementType) -> bool:
    if source.kind == to.kind:
        return source.bits <= to.bits
    return source.kind == "uint" and source.bits < to.bits


def _has_only_bits(value: Value, mask: int, half: int) -> bool:
    """Whether `value` is (... & mask) - half."""
    if half:
        value, subtracted = _inputs(value.node) if isinstance(value.node, ops.Subtract) else (value, value)
        if subtracted.type.integers != (half,):
            return False
    return isinstance(value.node, ops.BitwiseAnd) and _inputs(value.node)[1].type.integers == (mask,)


class UnsqueezeToConstantRank(LocalRule):
    """x : [N] + c : [1,1,1]  ->  Unsqueeze(x, [0, 1]) + c

    The runtime moves an operation with a constant of one element past a Gather, Squeeze or Reshape, and then loses the
    dimensions that the constant adds.
    """

    pattern = wrap_type(Binary)

    def form(self, node: Binary) -> Node | None:
        for port, (value, constant) in enumerate(_orders(node)):
            if _is_one_element(constant) and not isinstance(value.node, Constant) and value.rank is not None:
                missing = constant.type.rank - value.type.rank
                if missing > 0:
                    node.graph.set_input(node, port, ops.Unsqueeze(value, list(range(missing))).output)
                    return node
        return None


class MakeConstantsScalar(LocalRule):
    """x + [c]  ->  x + c, if [c] has other readers    PReLU(scalar, [c])  ->  PReLU(scalar, c)

    The runtime moves an elementwise operation with a constant of one element before a Reshape, Squeeze or Unsqueeze and
    makes the constant a scalar there. Before 2026.3 it replaces the constant for all its readers: the bounds of a Slice
    or a part of a shape lose their dimension, and the model does not compile. It does not compile a PReLU of a scalar
    with a slope of one dimension either.
    """

    pattern = any_of(wrap_type(Binary, attributes={"auto_broadcast": "numpy"}), wrap_type(PReLU))

    def form(self, node: Binary | PReLU) -> Node | None:
        changed = False
        for port, (constant, other) in enumerate(_orders(node)):
            if _is_one_element(constant) and constant.rank and _may_be_scalar(node, port, constant, other):
                assert isinstance(constant.node, Constant)
                array = constant.node.tensor.array().reshape(())
                node.graph.set_input(node, port, Constant(array, graph=node.graph, dtype=constant.dtype).output)
                changed = True
        return node if changed else None


def _may_be_scalar(node: Node, port: int, constant: Value, other: Value) -> bool:
    if isinstance(node, PReLU):
        return port == 1 and other.rank == 0
    return constant.only_use is None and (other.rank or 0) >= constant.type.rank


# -- movement of data


class CountAxesFromEnd(LocalRule):
    """Gather(x, [2, 0, 1], 1)  ->  Gather(x, [2, 0, 1], 1 - rank), and Concat of a Split in this order likewise
    ReduceMax(Concat(x, y) along 0)  ->  ReduceMax(Concat(x, y) along -rank), and ReduceMin

    The runtime moves the order of channels into the weights of the Convolutions behind, but takes the inverse order.
    The slopes of a PReLU between them stay in the old order. An order that is its own inverse, as that of reversed
    channels, is correct without PReLU, and faster. Of the maximum of two joined tensors the runtime makes max(x, y),
    although they may be longer than 1. It does not recognise an axis below 0.
    """

    pattern = wrap_type((ops.Gather, ops.Concat))

    def form(self, node: ops.Gather | ops.Concat) -> Node | None:
        return self._gather(node) if isinstance(node, ops.Gather) else self._concat(node)

    def _gather(self, node: ops.Gather) -> Node | None:
        x, indices, axis = _inputs(node)
        at, order = axis.type.integers, indices.type.integers
        if x.rank is None or at is None or at[0] < 0 or order is None or indices.rank != 1 or node.batch_dims:
            return None
        size = x.type.dims[at[0]]
        places = [each % len(order) for each in order]
        if (isinstance(size, int) and size != len(order)) or not _is_inverted(node, places):
            return None
        node.graph.set_input(node, 2, Constant(np.int64(at[0] - x.rank), graph=node.graph).output)
        drop_dead([axis.node])
        return node

    def _concat(self, node: ops.Concat) -> Node | None:
        rank = node.output.rank
        if node.axis < 0 or rank is None or not (_is_reduced(node) or _is_inverted(node, _split_places(node))):
            return None
        node.axis -= rank
        return node


def _is_reduced(node: Node) -> bool:
    return any(isinstance(use.node, ops.ReduceMax | ops.ReduceMin) for use in node.output.uses)


def _split_places(node: Node) -> list[int]:
    """Which outputs of one Split the inputs of a Concat are; empty if they are others."""
    values = _inputs(node)
    sources = {each.node for each in values}
    return [each.index for each in values] if len(sources) == 1 and isinstance(values[0].node, ops.Split) else []


def _is_inverted(node: Node, order: Sequence[int]) -> bool:
    """Whether `order` is a permutation that the runtime would apply wrongly to what reads `node`."""
    if sorted(order) != list(range(len(order))) or list(order) == sorted(order):
        return False
    if any(order[each] != place for place, each in enumerate(order)):
        return True
    return any(isinstance(each, PReLU) for each in node.graph.descendants([node]))


class CountIndicesFromStart(LocalRule):
    """GatherElements(x, i)  ->  GatherElements(x, i < 0 ? i + n : i), where n is the size of x along the axis

    The runtime reads outside the tensor for an index below 0. Indices that a Broadcast repeats are counted before it:
    the runtime would move the Broadcast past the operations (see PreserveEmptyBroadcasts).
    """

    pattern = wrap_type(ops.GatherElements)

    def form(self, node: ops.GatherElements) -> Node | None:
        x, indices = _inputs(node)
        repeated = indices.node if isinstance(indices.node, ops.Broadcast) else None
        given = indices if repeated is None else _inputs(repeated)[0]
        if x.rank is None or _is_from_start(given):
            return None
        size = ops.Gather(ops.ShapeOf(x), normalise_axis(node.axis, x.rank), 0)
        count = size if given.dtype is i64 else ops.Convert(size, destination_type=given.dtype)
        counted = ops.Select(ops.Less(given, 0), ops.Add(given, count), given).output
        if repeated is not None:
            counted = ops.Broadcast(counted, *repeated.inputs[1:], **repeated.attribute_values()).output
        node.graph.set_input(node, 1, counted)
        return node


def _is_from_start(indices: Value) -> bool:
    node = indices.node
    if isinstance(node, Constant):
        return bool((node.array >= 0).all())
    return isinstance(node, ops.Select) and _is_below_zero(node)


def _is_below_zero(node: ops.Select) -> bool:
    """Whether its condition is that its last input is below 0."""
    condition, _, indices = _inputs(node)
    if not isinstance(condition.node, ops.Less):
        return False
    compared, zero = _inputs(condition.node)
    return compared is indices and zero.type.integers == (0,)


class TransposeToSqueezeUnsqueeze(LocalRule):
    """Transpose(x : [1,N,2], [1, 2, 0])  ->  Unsqueeze(Squeeze(x, 0), 2), where N may be 0

    If only dimensions of 1 move, the runtime replaces the Transpose by a Reshape to the sizes at run time, in which a 0
    means "copy this dimension". An inference with N = 0 fails or returns old results.
    """

    pattern = wrap_type(ops.Transpose)

    def form(self, node: ops.Transpose) -> Node | None:
        x, order = _inputs(node)
        if x.shape is None or order.type.integers is None:
            return None
        places = order.type.integers or tuple(reversed(range(len(x.shape))))
        ones = [axis for axis, dim in enumerate(x.shape) if dim == 1]
        others = [axis for axis in places if axis not in ones]
        if not ones or others != sorted(others) or not any(_may_be_empty(x.shape[axis]) for axis in others):
            return None
        return ops.Unsqueeze(ops.Squeeze(x, ones), [place for place, axis in enumerate(places) if axis in ones])


def _may_be_empty(dim: Dimension) -> bool:
    return not isinstance(dim, int) and low(dim) == 0


class ReduceBeforeTranspose(LocalRule):
    """Reduce(Transpose(x, order), axes)  ->  Transpose of what is left of Reduce(x, order[axes]), if its order changes

    Before 2025.3 the runtime does this itself if the reduced dimensions are not kept. If at most one dimension is left,
    its Transpose reads and writes memory that does not belong to the tensors. It moves a Convert between the two, too.
    """

    pattern = wrap_type(Reduction, attributes={"keep_dims": False})

    def form(self, node: Reduction) -> Node | None:
        data, axes = _inputs(node)
        convert = data.node if isinstance(data.node, ops.Convert) else None
        transpose = (_inputs(convert)[0] if convert else data).node
        if not isinstance(transpose, ops.Transpose) or axes.type.integers is None:
            return None
        x, places = _inputs(transpose)
        if x.rank is None or places.type.integers is None:
            return None
        order = places.type.integers or tuple(reversed(range(x.rank)))
        gone = {normalise_axis(axis, len(order)) for axis in axes.type.integers}
        left = [axis for place, axis in enumerate(order) if place not in gone]
        if convert:
            x = ops.Convert(x, destination_type=convert.destination_type).output
        reduced = type(node)(x, sorted(order[place] for place in gone), keep_dims=False)
        return reduced if left == sorted(left) else ops.Transpose(reduced, [sorted(left).index(axis) for axis in left])


class EmptyConcatToBroadcast(LocalRule):
    """Concat(a : [0,?], b : [0,2], axis 1)  ->  Broadcast(0, [0, n + 2]), where n is the size of a along the axis

    The runtime ignores every input of a Concat that has a dimension of 0, also if that is not the axis. The result then
    lacks the size of this input along the axis.
    """

    pattern = wrap_type(ops.Concat)

    def form(self, node: ops.Concat) -> Node | None:
        output = node.output
        if output.rank is None or output.dtype is string:
            return None
        axis = normalise_axis(node.axis, output.rank)
        if 0 not in (*output.type.dims[:axis], *output.type.dims[axis + 1 :]):
            return None
        values = _inputs(node)
        sizes = [_size(values if at == axis else values[:1], at) for at in range(output.rank)]
        zero = Constant(np.zeros(()), graph=node.graph, dtype=output.dtype)
        return ops.Broadcast(zero, ops.Concat(*sizes, axis=0))


def _size(values: Sequence[Value], at: int) -> Value:
    """The sum [1] of the sizes along the dimension `at`."""
    dims = [value.type.dims[at] for value in values]
    total = sum(dim for dim in dims if isinstance(dim, int))
    size: Value = Constant([total], graph=values[0].graph, dtype=i64).output
    for value, dim in zip(values, dims, strict=True):
        if not isinstance(dim, int):
            size = ops.Add(size, ops.Gather(ops.ShapeOf(value), [at], np.array(0))).output
    return size


class EmptyOutputsToBroadcast(LocalRule):
    """a model output that is an i64 Constant without elements  ->  Broadcast(0, its shape), where zeros are computed

    The runtime converts the constant from i32 and crashes when it compiles that.
    """

    bodies = "never"
    pattern = wrap_type((Constant, Identity), when=type_matches(i64))

    def form(self, node: Constant | Identity) -> Node | None:
        value = node.output
        results = [use for use in value.uses if isinstance(use.node, Result)]
        if not results or not _is_empty_constant(value):
            return None
        zero, shape = (Constant(each, graph=node.graph, dtype=i64) for each in (0, value.type.dims))
        move_readers(value, ops.Broadcast(zero, ops.Barrier(shape, hides="value")).output, results)
        drop_dead([node])
        return node


def _is_empty_constant(value: Value) -> bool:
    while isinstance(value.node, Identity):
        (value,) = _inputs(value.node)
    return isinstance(value.node, Constant) and 0 in value.type.dims


class WidenTwoBitConstants(LocalRule):
    """Convert(Constant : u2)  ->  Convert(Constant : u4)

    Before 2025.3 the runtime reads the elements of each byte in reverse order.
    """

    pattern = wrap_type(ops.Convert, any_input(is_constant() & type_matches(u2)))

    def form(self, node: ops.Convert) -> Node:
        constant: Any = _inputs(node)[0].node
        wide = Constant(ArrayTensor(constant.array.astype(u4.numpy), u4), graph=node.graph)
        return ops.Convert(wide, destination_type=node.destination_type)


# -- products and convolutions


class MatMulToMultiply(LocalRule):
    """MatMul(x : [..., N, 1], w : [1, M])  ->  x * w, where w is a Constant

    Each element is one product. The runtime merges consecutive products of this kind, also with elementwise operations
    between them, and fails to compile the result on one thread.
    """

    pattern = wrap_type(
        ops.MatMul, any_input(), any_input(is_constant() & rank_equals(2)), attributes={"transpose_a": False}
    )

    def form(self, node: ops.MatMul) -> Node | None:
        x, weights = _inputs(node)
        if x.rank is None or x.rank < 2 or x.type.dims[-1] != 1:
            return None
        source: Any = weights.node
        row = weights
        if node.transpose_b:
            array = source.array.reshape(1, -1)
            row = Constant(ArrayTensor(array, weights.dtype), graph=node.graph, name=source.name).output
        return ops.Multiply(x, row)


class AddOutputChannel(LocalRule):
    """Convolution(x : [N, 1, H, W], w : [1, 1, ...])  ->  Slice(Convolution(x, [w, w]), the first channel)

    For one input and one output channel the runtime returns memory that was never written: in two and three dimensions
    where the filter lies completely in the padding, and in three padded dimensions of dynamic shape elsewhere, too.
    With a second output channel it does not.
    """

    pattern = wrap_type(ops.Convolution)

    def form(self, node: ops.Convolution) -> Node | None:
        x, filters = _inputs(node)
        if not _has_one_channel(node, filters) or not (_is_padded_volume(node, filters) or _is_beyond(node, filters)):
            return None
        made = ops.Convolution(
            x, ops.Concat(filters, filters, axis=0), strides=node.strides, dilations=node.dilations,
            pads_begin=node.pads_begin, pads_end=node.pads_end, auto_pad=node.auto_pad,
        )  # fmt: skip
        return ops.Slice(made, [0], [1], [1], [1])


def _has_one_channel(node: ops.Convolution, filters: Value) -> bool:
    """Whether there are no groups, one input and one output channel, and two or more dimensions."""
    return type(node) is ops.Convolution and (filters.rank or 0) >= 4 and filters.type.dims[:2] == (1, 1)


def _is_padded_volume(node: ops.Convolution, filters: Value) -> bool:
    is_padded = node.auto_pad.startswith("same") or any((*node.pads_begin, *node.pads_end))
    return filters.rank == 5 and is_padded and not is_static(node.output.shape)


def _is_beyond(node: ops.Convolution, filters: Value) -> bool:
    """Whether the filter may lie completely in the padding."""
    if node.auto_pad != "explicit":
        return False
    reaches = [
        dilation * (length - 1) if isinstance(length, int) else 0
        for length, dilation in zip(filters.type.dims[2:], node.dilations, strict=True)
    ]
    pads = zip(node.pads_begin, node.pads_end, strict=True)
    return any(max(pair) > reach for pair, reach in zip(pads, reaches, strict=True))


# -- what the rules share


def _inputs(node: Node) -> tuple[Value, ...]:
    return tuple(value for value in node.inputs if value is not None)


def _orders(node: Node) -> tuple[tuple[Value, Value], tuple[Value, Value]]:
    a, b = _inputs(node)
    return (a, b), (b, a)


def _is_one_element(value: Value) -> bool:
    return isinstance(value.node, Constant) and element_count(value.shape) == 1


RULES: tuple[type[LocalRule], ...] = (
    IdentityToLogicalOr,
    SelectToLogical,
    CopySelectedConstant,
    AbsToMaximum,
    EmptyConstantsToMaximum,
    SoftSignToQuotient,
    DropBitsBeforeConvert,
    UnsqueezeToConstantRank,
    MakeConstantsScalar,
    ReduceBeforeTranspose,
    TransposeToSqueezeUnsqueeze,
    EmptyConcatToBroadcast,
    EmptyOutputsToBroadcast,
    CountAxesFromEnd,
    CountIndicesFromStart,
    WidenTwoBitConstants,
    MatMulToMultiply,
    AddOutputChannel,
)


class LocalRules(GraphRewrite):
    """a form that the runtime computes wrongly, or does not compile  ->  another form of the same result

    Runs all passes of RULES in one traversal, producers first, bodies included. Each can be disabled by its own name.
    The table of `gaps.py` says which error each avoids, and in which releases.
    """

    def __init__(self) -> None:
        super().__init__(each() for each in RULES)
