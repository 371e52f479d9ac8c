"""Elementwise operations that the runtime computes wrongly, or does not compile."""

from functools import cached_property

from mo_loop.graph.dimension import now
from mo_loop.graph.shape import element_count
from mo_loop.graph.types import ElementType, boolean, i32, i64
from mo_loop.target import CRASH, ERROR, GPU, NEVER, Processor, ReleaseRange
from mo_loop.transforms.pattern import any_input, any_of, wrap_type
from mo_loop.transforms.predicates import is_constant, type_matches
from mo_loop.transforms.runtime.inference import is_computable
from mo_loop.transforms.runtime.local.rule import (
    LocalRule,
    both_orders,
    is_one_element,
    is_weights,
    maximum_rule,
    rule,
)
from mo_loop.transforms.vocabulary import Constant, F, Gap, Identity, Node, Parameter, Use, Value, ops, source_of


@rule(wrap_type(Identity, any_input(type_matches(boolean))), "`LogicalOr(x, x)`", Gap(
    "boolean-copy",
    "a copy (`Convert` to the same type) of a boolean that is not the first output of its node becomes the first",
))
def IdentityToLogicalOr(node: Identity) -> Node | None:
    """Identity(x), where x is boolean and not the first output of its node  ->  LogicalOr(x, x)

    An Identity is written as a Convert to the same type, which the runtime removes.
    """
    (x,) = node.operands
    return ops.LogicalOr(x, x) if x.index else None


CONDITION = any_input()


@rule(
    any_of(
        wrap_type(ops.Select, CONDITION, CONDITION, any_input(), when=type_matches(boolean)),
        wrap_type(ops.Select, CONDITION, any_input(), CONDITION, when=type_matches(boolean)),
    ),
    "`LogicalOr` or `LogicalAnd`",
    Gap(
        "select-of-its-condition", "`Select` of booleans does not compile if the condition is also one of the values",
        severity=ERROR,
    ),
)
def SelectToLogical(node: ops.Select) -> Node:
    """Select(c, c, x)  ->  LogicalOr(c, x), and Select(c, x, c)  ->  LogicalAnd(c, x)

    The runtime converts the condition to another type than the values.
    """
    condition, then, other = node.operands
    cls, value = (ops.LogicalOr, other) if then is condition else (ops.LogicalAnd, then)
    equal = (each.node for each in condition.uses if type(each.node) is cls and value in each.node.operands)
    # The runtime merges equal nodes: a Select may choose by one of them and read the other.
    return next((each for each in equal if set(each.operands) == {condition, value}), None) or cls(condition, value)


CONSTANT = any_input(is_constant())


@rule(wrap_type(ops.Select, any_input(), CONSTANT, CONSTANT), "a copy of the constant", Gap(
    "select-of-one-constant", "`Select` of a constant of one element and itself does not compile", severity=ERROR,
    until="2025.1.0", on={Processor.SSE41: NEVER},
))
def CopySelectedConstant(node: ops.Select) -> Node | None:
    """Select(x, c, c), where c is a Constant of one element  ->  Select(x, c, a copy of c)"""
    _, c, _ = node.operands
    if not is_one_element(c):
        return None
    assert isinstance(c.node, Constant)
    node.graph.set_input(node, 2, F.Constant(c.node.tensor, graph=node.graph))
    return node


def _reads_empty_constant(value: Value) -> bool:
    for each in value.node.inputs:  # `any` takes twice as long
        if each is not None and isinstance(each.node, Constant) and 0 in each.type.dims:
            return True
    return False


@rule(
    wrap_type((ops.Add, ops.Subtract, ops.Multiply, ops.Divide), when=_reads_empty_constant),
    "`Maximum`, whose result has no elements either",
    Gap(
        "empty-constant-operand",
        "a sum, difference, product or quotient with a constant without elements crashes the process", severity=CRASH,
    ),
)
def EmptyConstantsToMaximum(node: ops.Binary) -> Node:
    """x + c, where c is a Constant without elements  ->  max(x, c), and -, *, / likewise"""
    a, b = node.operands
    return ops.Maximum(a, b, auto_broadcast=node.auto_broadcast)


@rule(wrap_type(ops.SoftSign), "`x / (1 + |x|)`", Gap(
    "soft-sign-of-elementwise", "`SoftSign` of the result of an elementwise operation of dynamic shape is wrong",
    until="2025.3.0", on={Processor.SSE41: ReleaseRange()},
))
def SoftSignToQuotient(node: ops.SoftSign) -> Node:
    """SoftSign(x)  ->  x / (1 + |x|)

    The runtime moves elementwise operations before views, so each SoftSign is replaced.
    """
    (x,) = node.operands
    return ops.Divide(x, F.Abs(x) + 1.0)  # AbsToMaximum, after this rule, takes the Abs of a Concat


class AbsToMaximum(LocalRule):
    """Abs(x)  ->  max(-x, x), where x is a Concat, of integers of 32 or 64 bits, or computed from constants

    Later passes add readers of a Concat, and remove Barriers and operations that declare sizes.
    """

    instead = "`max(-x, x)`"
    avoids = (
        Gap("abs-of-concat", "`Abs` overwrites a `Concat` that other nodes still read"),
        Gap("abs-of-large-integers", "`Abs` of integers above 2^24 is computed in f32", until="2025.3.0"),
        Gap(
            "abs-of-fractions", "`Abs` of numbers above -1 that can be computed while the model is read is removed",
            since="2025.4.1",
        ),
    )

    pattern = wrap_type(ops.Abs)

    @cached_property
    def _known(self) -> dict[Value, bool]:
        """Whether values are computed from constants, found once: a search for each Abs of a chain would need quadratic
        time."""
        return {}

    def form(self, node: ops.Abs) -> Node | None:
        (x,) = node.operands
        is_joined = isinstance(source_of(x, (ops.Barrier, ops.AtLeast)).node, ops.Concat)
        is_large = x.dtype in (i32, i64)
        return ops.Maximum(-x, x) if is_joined or is_large or is_computable(x, self._known) else None


@rule(wrap_type(ops.Convert), "`x & 255`, or `((x + 128) & 255) - 128`", Gap(
    "narrowing-conversion", "`Convert` of integers to 8 or 16 bits saturates instead of wrapping around",
    until="2025.3.0",
))
def DropBitsBeforeConvert(node: ops.Convert) -> Node | None:
    """Convert(x, u8)  ->  Convert(x & 255, u8)    Convert(x, i8)  ->  Convert(((x + 128) & 255) - 128, i8)"""
    (x,) = node.operands
    to = node.destination_type
    if not (x.dtype.is_integer and to.is_integer and to.bits in (8, 16)) or _fits(x.dtype, to):
        return None
    mask, half = 2**to.bits - 1, 2 ** (to.bits - 1) if to.kind == "int" else 0
    if _has_only_bits(x, mask, half):
        return None
    wide = x if x.dtype.bits >= 32 else F.Convert(x, destination_type=i32)
    kept = F.BitwiseAnd(wide + half if half else wide, mask)
    node.graph.set_input(node, 0, kept - half if half else kept)
    return node


def _fits(source: ElementType, to: ElementType) -> bool:
    if source.kind == to.kind:
        return source.bits <= to.bits
    return source.kind == "uint" and source.bits < to.bits


def _has_only_bits(value: Value, mask: int, half: int) -> bool:
    """Whether `value` is (... & mask) - half."""
    if half:
        value, subtracted = value.node.operands if isinstance(value.node, ops.Subtract) else (value, value)
        if subtracted.type.integers != (half,):
            return False
    return isinstance(value.node, ops.BitwiseAnd) and value.node.operands[1].type.integers == (mask,)


def _reads_one_element(value: Value) -> bool:
    """Whether an input of the node is a Constant of one element and at least one dimension."""
    for each in value.node.inputs:  # noqa: SIM110  # `any` takes twice as long
        if each is not None and each.rank and is_one_element(each):
            return True
    return False


@rule(wrap_type(ops.Binary, when=_reads_one_element), "`Unsqueeze` of the other input", Gap(
    "constant-rank",
    "an operation after `Gather`, `Squeeze` or `Reshape` with a constant of one element and more dimensions than the "
    "other input loses the new dimensions",
))
def UnsqueezeToConstantRank(node: ops.Binary) -> Node | None:
    """x : [N] + c : [1,1,1]  ->  Unsqueeze(x, [0, 1]) + c"""
    for port, (value, constant) in enumerate(both_orders(node)):
        if is_one_element(constant) and not isinstance(value.node, Constant) and value.rank is not None:
            missing = constant.type.rank - value.type.rank
            if missing > 0:
                node.graph.set_input(node, port, F.Unsqueeze(value, list(range(missing))))
                return node
    return None


@rule(
    wrap_type((ops.Binary, ops.PReLU), when=_reads_one_element), "a scalar constant of its own",
    Gap(
        "shared-constant",
        "an elementwise operation after a Reshape or Unsqueeze makes its constant of one element a scalar for all "
        "readers, and the model does not compile", severity=ERROR, until="2026.2.1",
    ),
    Gap(
        "scalar-prelu", "PReLU of a scalar with a slope of one dimension does not compile", "a scalar slope", ERROR,
        until="2026.0.0",
    ),
)
def MakeConstantsScalar(node: ops.Binary | ops.PReLU) -> Node | None:
    """x + [c]  ->  x + c, if [c] has other readers    PReLU(scalar, [c])  ->  PReLU(scalar, c)

    The runtime moves such an elementwise operation before a Reshape, Squeeze or Unsqueeze and makes the constant a
    scalar there: the bounds of a Slice or a part of a shape lose their dimension.
    """
    changed = False
    for port, (constant, other) in enumerate(both_orders(node)):
        if is_one_element(constant) and constant.rank and _may_be_scalar(node, port, constant, other):
            assert isinstance(constant.node, Constant)
            array = constant.node.tensor.array().reshape(())
            node.graph.set_input(node, port, F.Constant(array, graph=node.graph, dtype=constant.dtype))
            changed = True
    return node if changed else None


def _may_be_scalar(node: ops.Binary | ops.PReLU, port: int, constant: Value, other: Value) -> bool:
    if isinstance(node, ops.PReLU):
        return port == 1 and other.rank == 0
    return node.auto_broadcast == "numpy" and constant.only_use is None and (other.rank or 0) >= constant.type.rank


_EXCHANGED: dict[type[Node], type[ops.Binary]] = {
    **{each: each for each in (
        ops.Add, ops.Multiply, ops.Maximum, ops.Minimum, ops.Equal, ops.NotEqual, ops.SquaredDifference,
    )},
    ops.Less: ops.Greater, ops.Greater: ops.Less, ops.LessEqual: ops.GreaterEqual, ops.GreaterEqual: ops.LessEqual,
}
"""The operation that has the same result with exchanged inputs."""


def _is_widened(value: Value) -> bool:
    """Whether `value` is a Convert for one reader from integers or booleans, to a type with other numbers as well."""
    node = value.node
    if not isinstance(node, ops.Convert) or value.only_use is None:
        return False
    source, to = node.operands[0].dtype, node.destination_type
    return not source.is_float and (to.is_float or source.bits < min(to.bits, 32))


def _is_view_of_input(value: Value) -> bool:
    source = source_of(value, ops.View)
    return source is not value and isinstance(source.node, Parameter) and source.dtype is i64


@rule(
    wrap_type(
        (ops.Less, ops.LessEqual, ops.Greater, ops.GreaterEqual, ops.Divide),
        any_input(is_one_element), any_input(_is_view_of_input),
    ),
    "the inputs in the other order, or `max(x, x)`",
    Gap(
        "constant-before-view-of-input",
        "a comparison or quotient of a constant of one element and a view of an input of i64 has its inputs exchanged",
        device=GPU,
    ),
)
def ConstantBehindView(node: ops.Binary) -> Node:
    """c < Reshape(x)  ->  Reshape(x) > c    c / Reshape(x)  ->  c / max(Reshape(x), Reshape(x))

    The device converts x to i32, and makes the operation a part of this conversion.
    """
    constant, view = node.operands
    if type(node) in _EXCHANGED:
        return _EXCHANGED[type(node)](view, constant, auto_broadcast=node.auto_broadcast)
    node.graph.set_input(node, 1, F.Maximum(view, view))
    return node


@maximum_rule(wrap_type(ops.Convert, any_input(lambda x: x.dtype.is_float)), "`max(x, x)` of the integers")
def ReadTruncatedTwice(node: ops.Convert) -> Use | None:
    """Convert(x) + n  ->  max(Convert(x), Convert(x)) + n    where x is of floating-point numbers, n of integers

    On ARM an elementwise operation reads x in place of Convert(x), and rounds its result: 0.9 + 5 is 6. A Convert with
    two readers stays.
    """
    use, to = node.output.only_use, node.destination_type
    is_read = use is not None and isinstance(use.node, ops.Binary | ops.Unary | ops.Select)
    return use if is_read and not to.is_float and to is not boolean else None


@rule(wrap_type((*_EXCHANGED, ops.FloorMod, ops.Mod, ops.Power), when=lambda y: _is_widened(y.node.operands[1])))
def ConvertFirst(node: ops.Binary) -> Node | None:
    """x * Convert(c)  ->  Convert(c) * x    x < Convert(c)  ->  Convert(c) > x    where c has integers or booleans
    x ** Convert(c)  ->  x ** max(Convert(c), Convert(c)), and other operations whose inputs cannot be exchanged

    On ARM the runtime reads c in place of Convert(c) if one elementwise operation reads that, and gives the type of c
    to its first input, also where Convert(c) is the second: x is truncated to an integer.
    """
    x, converted = node.operands
    if is_weights(converted):
        return None
    if _is_widened(x):
        if x.node.operands[0].dtype is converted.node.operands[0].dtype:
            return None
    elif type(node) in _EXCHANGED:
        return _EXCHANGED[type(node)](converted, x, auto_broadcast=node.auto_broadcast)
    node.graph.set_input(node, 1, F.Maximum(converted, converted))
    return node


@rule(wrap_type(ops.Binary, when=lambda y: (y.rank or 0) >= 5), "the inputs in the other order, or `Unsqueeze`", Gap(
    "first-input-of-lower-rank",
    "an elementwise operation of rank 5 or more whose first input has fewer dimensions gives wrong values, or does not "
    "run, in a model with dynamic shapes", device=GPU,
))
def RaiseRankOfFirst(node: ops.Binary) -> Node | None:
    """x : [?,?] + y : [?,?,?,?,?]  ->  y + x, and with comparisons of the other direction
    x : [?,?] ** y : [?,?,?,?,?]  ->  Unsqueeze(x, [0, 1, 2]) ** y

    The kernel takes the order of the dimensions of the result from the first input.
    """
    x, y = node.operands
    if x.rank is None or y.rank is None or x.rank >= y.rank or y.rank < 5 or isinstance(x.node, Constant):
        return None
    if type(node) in _EXCHANGED and not _is_widened(x):
        return _EXCHANGED[type(node)](y, x, auto_broadcast=node.auto_broadcast)
    node.graph.set_input(node, 0, F.Unsqueeze(x, list(range(y.rank - x.rank))))
    return node


def _is_fused(value: Value) -> bool:
    """Whether the device takes one input, of another rank, for a tensor that broadcasts to the other, and it does not.

    Missing dimensions count there as the last, or with 4 and more as those behind the second.
    """
    x, y = value.node.inputs[:2]  # faster than `operands`: each sum asks
    if x is None or y is None or x.rank == y.rank or x.rank is None or y.rank is None:
        return False
    low, high = ([now(size) for size in each.shape or ()] for each in sorted((x, y), key=lambda each: each.type.rank))
    if None in low or None in high:
        return False
    padded = [*low, *[1] * (len(high) - len(low))]
    if all(n in (1, m) for n, m in zip(high, padded, strict=True)):
        return True
    if all(n in (1, m) for n, m in zip(padded, high, strict=True)):
        return any(n != 1 and m == 1 for n, m in zip(reversed(low), reversed(high), strict=False))
    return len(low) >= 4 and element_count(x.shape) == element_count(y.shape)


@rule(
    wrap_type((ops.Add, ops.Subtract, ops.Multiply, ops.Divide), when=_is_fused),
    "`Unsqueeze` of the input of lower rank",
    Gap(
        "fused-input-of-higher-rank",
        "a sum, difference, product or quotient of inputs of other ranks, of which one is the result of another such "
        "operation, loses dimensions (`[2,3,1] + [1,3]`), or does not compile (\"Unfoldable higher-rank fused eltwise "
        "peer\", `[3] + [3,1]`), in a model with dynamic shapes",
        device=GPU,
    ),
)
def RaiseRankOfFused(node: ops.Binary) -> Node | None:
    """x : [] + y : [1]  ->  Unsqueeze(x, 0) + y    x : [2,1,3] + y : [2,1]  ->  x + Unsqueeze(y, 0)

    The device makes the operation a part of the one that computes x if y broadcasts to the shape of x when missing
    dimensions are the last. The result then has the shape of x: [2,1,3], not [2,2,3]. Sizes [3] and [1,3] do not agree.
    """
    port, (low, high) = min(enumerate(both_orders(node)), key=lambda each: each[1][0].type.rank)
    if isinstance(low.node, Constant) or isinstance(high.node, Constant):  # see UnsqueezeToConstantRank
        return None
    node.graph.set_input(node, port, F.Unsqueeze(low, list(range(high.type.rank - low.type.rank))))
    return node
