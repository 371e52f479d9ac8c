"""Operations without an effect.

    EliminateDivideOne = elimination("EliminateDivideOne", "x / 1  ->  x", pattern=wrap_type(ops.Divide, X, one))

A node is replaced only if the remaining value is proven to have the same element type and dimensions. A constant that
broadcasts the other operand therefore keeps its node.
"""

from functools import partial
from typing import ClassVar

import numpy as np

from mo_loop.graph import Dim, ElementType, bf16, boolean, f16, f32, f64
from mo_loop.transforms.function_pass import named_pass
from mo_loop.transforms.pattern import Match, Pattern, any_input, any_of, any_order, constant, wrap_type
from mo_loop.transforms.predicates import Predicate, has_static_rank, type_matches, value_equals
from mo_loop.transforms.replace import replace_output_update_name
from mo_loop.transforms.rewrite import GraphRewrite, MatcherPass, passes_in
from mo_loop.transforms.vocabulary import Constant, Identity, Parameter, Result, Value, is_static, ops, order_of

X = any_input()


class Elimination(MatcherPass):
    """A node whose result is an existing value  ->  that value

    Tensor names and rt_info move to the value. Before a model output, the node that makes the value takes the output's
    name. If it cannot (it is an input, a constant or another output), an Identity with that name is inserted.
    """

    keeps: ClassVar[Pattern] = X
    """The part of the pattern that is the value, if both are proven to have the same type and shape."""

    def matched(self, match: Match) -> bool:
        kept, made = match[self.keeps], match.root.output
        if is_alike(made, kept):
            return self.bypass(match, kept)
        return self.config.is_watched and self.refuse(  # the text takes longer than the rest
            match.root, f"{made.type} is not proven to equal {kept.type}", len(match.nodes)
        )

    def bypass(self, match: Match, value: Value) -> bool:
        """Readers of the root read `value`, which equals its output; False if the root has to stay."""
        root = match.root
        taken = isinstance(value.node, Parameter | Constant) or is_model_output(value)
        if not (taken and is_model_output(root.output)) and replace_output_update_name(root.output, value):
            return True
        return not isinstance(root, Identity) and self.replace(match, Identity(value))


elimination = partial(named_pass, Elimination)
"""The Elimination with a name and a docstring, of a `pattern` of which it `keeps` a part."""


def is_alike(a: Value, b: Value) -> bool:
    """Whether both are proven to have the same element type and the same dimensions, in order."""
    return a.shape is not None and a.dtype is b.dtype and a.shape == b.shape


def is_model_output(value: Value) -> bool:
    """Whether the model itself, not a body, returns the value."""
    return value.graph.owner is None and any(isinstance(use.node, Result) for use in value.uses)


DIGITS = {f16: 11, bf16: 8, f32: 24, f64: 53}
"""Float type -> the number of bits of the integers that it holds exactly."""

WITHIN = {f16: (f32, f64), bf16: (f32, f64), f32: (f64,)}
"""Float type -> the float types that hold all its values."""

UNMARKED = Predicate("no mark as decompression", lambda value: "decompression" not in value.node.rt_info)


class EliminateIdentity(Elimination):
    """Identity(x)  ->  x, unless the Identity has the name of a model output"""

    x = any_input()
    pattern = wrap_type(Identity, x, when=~Predicate("a model output", is_model_output))

    def matched(self, match: Match) -> bool:
        return self.bypass(match, match[self.x])


EliminateConvert = elimination(
    "EliminateConvert", "convert(x) to the type of x  ->  x", pattern=wrap_type(ops.Convert, X, when=UNMARKED)
)


class MergeConverts(Elimination):
    """convert(convert(x : a, b), c)  ->  convert(x, c), or x if c is a; b and c hold every value of a

    f32 -> f64 -> f32 disappears, u8 -> i32 -> i64 becomes one Convert. A Convert that may change a value stays.
    """

    x = any_input()
    inner = wrap_type(ops.Convert, x, when=UNMARKED)
    pattern = wrap_type(ops.Convert, inner, when=UNMARKED)

    def matched(self, match: Match) -> bool:
        x, middle, last = match[self.x], match[self.inner].dtype, match.root.output.dtype
        if not holds_all(middle, x.dtype):
            return False
        if last is x.dtype:
            return self.bypass(match, x)
        return holds_all(last, x.dtype) and self.replace(match, ops.Convert(x, destination_type=last))


def holds_all(wide: ElementType, narrow: ElementType) -> bool:
    """Whether every value of `narrow` is a value of `wide`, both of 8 bits or more."""
    if wide is narrow:
        return True
    if narrow.bits < 8 or wide.bits < 8:
        return False
    if narrow is boolean:
        return wide.is_integer or wide in DIGITS
    if narrow.is_float:
        return wide in WITHIN.get(narrow, ())
    if not narrow.is_integer:
        return False
    bits = narrow.bits - (narrow.kind == "int")
    if wide.is_integer:
        return wide.bits - (wide.kind == "int") >= bits and (wide.kind == "int" or narrow.kind == "uint")
    return DIGITS.get(wide, 0) >= bits


SMALL = 1 << 12
"""Constants of more bytes are not searched for zeros or ones; neutral constants are scalars and vectors."""

IDEMPOTENT = (ops.Maximum, ops.Minimum, ops.LogicalAnd, ops.LogicalOr, ops.BitwiseAnd, ops.BitwiseOr)
"""f(x, x) = x."""


class EliminateAddZero(Elimination):
    """x + 0  ->  x

    Also for floats, and for both zeros: -0.0 + 0.0 is 0.0, and this pass returns -0.0, which equals it. The runtime
    removes such an Add as well.
    """

    pattern = any_order(ops.Add, X, constant(value_equals(0, SMALL)))


EliminateSubtractZero = elimination(
    "EliminateSubtractZero", "x - 0  ->  x, for both zeros, as EliminateAddZero",
    pattern=wrap_type(ops.Subtract, X, constant(value_equals(0, SMALL))),
)
EliminateMultiplyOne = elimination(
    "EliminateMultiplyOne", "x * 1  ->  x", pattern=any_order(ops.Multiply, X, constant(value_equals(1, SMALL)))
)
EliminateDivideOne = elimination(
    "EliminateDivideOne", "x / 1  ->  x, x ^ 1  ->  x",
    pattern=wrap_type((ops.Divide, ops.Power), X, constant(value_equals(1, SMALL))),
)


class EliminateEqualOperands(Elimination):
    """max(x, x)  ->  x, and likewise for min, and, or

    It runs before IsolateParameters, which inserts such nodes on purpose.
    """

    pattern = wrap_type(IDEMPOTENT, X, X)


EliminateDoubleNot = elimination(
    "EliminateDoubleNot", "not not x  ->  x, for booleans and for bits of integers",
    pattern=any_of(*(wrap_type(kind, wrap_type(kind, X)) for kind in (ops.LogicalNot, ops.BitwiseNot))),
)
EliminateSelect = elimination(
    "EliminateSelect", "select(true, x, y)  ->  x, select(false, y, x)  ->  x, select(c, x, x)  ->  x",
    pattern=any_of(
        wrap_type(ops.Select, constant(value_equals(True, SMALL)), X, any_input()),
        wrap_type(ops.Select, constant(value_equals(False, SMALL)), any_input(), X),
        wrap_type(ops.Select, any_input(), X, X),
    ),
)
RELU = wrap_type(ops.ReLU)
EliminateReluOfRelu = elimination(
    "EliminateReluOfRelu", "relu(relu(x))  ->  relu(x)", pattern=wrap_type(ops.ReLU, RELU), keeps=RELU
)


class MergeClamps(MatcherPass):
    """clamp(clamp(x, a, b), c, d)  ->  clamp(x, min(max(a, c), d), min(max(b, c), d)), for floats

    For integers the two Clamps round their bounds in different directions, so they stay.
    """

    x = any_input(type_matches(f16, bf16, f32, f64))
    inner = wrap_type(ops.Clamp, x)
    pattern = wrap_type(ops.Clamp, inner)

    def matched(self, match: Match) -> bool:
        inner, outer = match.node(self.inner), match.root
        assert isinstance(outer, ops.Clamp)
        low, high = (min(max(bound, outer.min), outer.max) for bound in (inner.min, inner.max))
        return self.replace(match, ops.Clamp(match[self.x], min=low, max=high))


REDUCING = (
    ops.ReduceSum, ops.ReduceMean, ops.ReduceMax, ops.ReduceMin, ops.ReduceProd, ops.ReduceLogicalAnd,
    ops.ReduceLogicalOr,
)
"""Reductions that return a single element unchanged."""

LARGEST = 1 << 16
"""Indices of more bytes are not examined."""


def all_are(wanted: int) -> Predicate:
    """A predicate: every element is known to be `wanted`. True for a tensor without elements."""
    return Predicate(f"only {wanted}", lambda v: v.type.integers is not None and set(v.type.integers) <= {wanted})


def _counts_up(value: Value) -> bool:
    if value.rank != 1 or value.node.tensor.nbytes > LARGEST:  # type: ignore[attr-defined]  # a Constant
        return False
    indices = value.constant
    return bool(np.array_equal(indices, np.arange(len(indices))))


IN_ORDER = Predicate("axes in order", lambda v: v.type.integers and is_sorted(v.type.integers))
EliminateTranspose = elimination(
    "EliminateTranspose", "transpose(x, [0, 1, ...])  ->  x", pattern=wrap_type(ops.Transpose, X, any_input(IN_ORDER))
)


class MergeTransposes(Elimination):
    """transpose(transpose(x, p), q)  ->  transpose(x, p[q]), or x if p[q] is the identity"""

    x = any_input(has_static_rank())
    inner = wrap_type(ops.Transpose, x, any_input())
    pattern = wrap_type(ops.Transpose, inner, any_input())

    def matched(self, match: Match) -> bool:
        x, first, second = match[self.x], order_of(match.node(self.inner)), order_of(match.root)
        if first is None or second is None:
            return False
        order = tuple(first[axis] for axis in second)
        return self.bypass(match, x) if is_sorted(order) else self.replace(match, ops.Transpose(x, order))


def is_sorted(order: tuple[int, ...]) -> bool:
    return order == tuple(range(len(order)))


class EliminateReshape(Elimination):  # before MergeReshapes: a tensor that gets its old shape again needs no Reshape
    """reshape(... reshape(x)) to the shape of x  ->  x; likewise for Squeeze and Unsqueeze"""

    pattern = wrap_type(ops.View)

    def matched(self, match: Match) -> bool:
        node = match.root
        while isinstance(node, ops.View):
            value = node.operands[0]
            if is_alike(match.root.output, value):
                return self.bypass(match, value)
            node = value.node
        return False


class MergeReshapes(MatcherPass):
    """reshape(reshape(x, a), b)  ->  reshape(x, b); likewise for a Squeeze or Unsqueeze of x, and a Squeeze to a scalar

    Only if inference knows as much of the result as before, and no 0 in b copies a dimension that x has elsewhere. The
    GPU plugin compiles no branch of If with a Squeeze of another view to a scalar.
    """

    x = any_input()
    middle = wrap_type(ops.View, x, ...)
    pattern = wrap_type(ops.View, middle, ...)

    def matched(self, match: Match) -> bool:
        x, old = match[self.x], match.root
        if old.output.rank == 0 or (isinstance(old, ops.Reshape) and is_static(old.output.shape)):
            return self.replace(match, ops.Reshape(x, np.array(old.output.shape, np.int64)))
        if not isinstance(old, ops.Reshape):
            return False
        pattern = old.operands[1]
        if old.special_zero and not _copies_alike(x, match[self.middle], pattern):
            return False
        if old.infer(x.type, pattern.type).shape != old.output.shape:
            return False
        return self.replace(match, ops.Reshape(x, pattern, special_zero=old.special_zero))


def _copies_alike(x: Value, middle: Value, pattern: Value) -> bool:
    """Whether each element of `pattern` that is 0, or may be 0, copies the same dimension of both."""
    if pattern.known is None or x.shape is None or middle.shape is None:
        return False
    places = [i for i, item in enumerate(pattern.known.flat) if (item.lo < 1 if isinstance(item, Dim) else item == 0)]
    shortest = min(len(x.shape), len(middle.shape))
    return all(i < shortest and x.shape[i] == middle.shape[i] for i in places)


IS_WHOLE = Predicate("one piece", lambda v: len(v.node.outputs) == 1)
EliminateConcat = elimination("EliminateConcat", "concat(x)  ->  x", pattern=wrap_type(ops.Concat, X))
EliminateSplit = elimination(
    "EliminateSplit", "split(x) into one part  ->  x",
    pattern=wrap_type((ops.Split, ops.VariadicSplit), X, ..., when=IS_WHOLE),
)
EliminateSlice = elimination(
    "EliminateSlice", "slice(x) of all elements  ->  x: all steps are 1, and every dimension keeps its length",
    pattern=wrap_type(ops.Slice, X, any_input(), any_input(), any_input(all_are(1)), ...),
)
EliminatePad = elimination(
    "EliminatePad", "pad(x) with widths of 0  ->  x",
    pattern=wrap_type(ops.Pad, X, any_input(all_are(0)), any_input(all_are(0)), ...),
)
EliminateTile = elimination(
    "EliminateTile", "tile(x, [1, 1, ...])  ->  x", pattern=wrap_type(ops.Tile, X, any_input(all_are(1)))
)
EliminateBroadcast = elimination(
    "EliminateBroadcast", "broadcast(x) to the shape of x  ->  x",
    pattern=wrap_type(ops.Broadcast, X, any_input(), attributes={"mode": lambda mode: mode != "explicit"}),
)


class EliminateGather(Elimination):
    """gather(x, [0, 1, ..., n - 1])  ->  x, where the axis has n elements"""

    every = constant(Predicate("indices that count up from 0", _counts_up))
    counted = wrap_type(ops.Range, any_input(all_are(0)), any_input(), any_input(all_are(1)))
    pattern = wrap_type(ops.Gather, X, any_of(every, counted), any_input(), attributes={"batch_dims": 0})


class EliminateReduce(Elimination):
    """reduce(x) over no axes, or over dimensions of 1 that are kept  ->  x

    Not for norms: the norm of a single element is its absolute value.
    """

    pattern = wrap_type(REDUCING, X, any_input())


NO_OPS = passes_in(globals())
"""All passes above, in their order."""


class NopElimination(GraphRewrite):
    """f(x) = x  ->  x, and f(f(x))  ->  f'(x)

    Runs all passes of NO_OPS in one traversal, producers first, bodies included. Each can be disabled by its own name.
    A model output that would then be an input, a constant or another output keeps an Identity; an output of a body
    needs none.
    """

    def __init__(self) -> None:
        super().__init__(each() for each in NO_OPS)
