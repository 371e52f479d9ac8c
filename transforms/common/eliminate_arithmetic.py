"""Arithmetic and logic operations that return an operand unchanged."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph.types import bf16, f16, f32, f64
from transforms.elimination import Elimination
from transforms.pattern import Match, any_input, any_of, any_order, constant, wrap_type
from transforms.predicates import type_matches, value_equals
from transforms.rewrite import MatcherPass

SMALL = 1 << 12
"""Constants of more bytes are not searched for zeros or ones; neutral constants are scalars and vectors."""

IDEMPOTENT = (
    ops.Maximum, ops.Minimum, ops.LogicalAnd, ops.LogicalOr, ops.BitwiseAnd, ops.BitwiseOr,
)  # fmt: skip
"""f(x, x) = x."""


class EliminateAddZero(Elimination):
    """x + 0  ->  x

    Also for floats, and for both zeros: -0.0 + 0.0 is 0.0, and this pass returns -0.0, which equals it. The runtime
    removes such an Add as well.
    """

    def __init__(self) -> None:
        super().__init__()
        x = any_input()
        self.eliminate(any_order(ops.Add, x, constant(value_equals(0, SMALL))), keeping=x)


class EliminateSubtractZero(Elimination):
    """x - 0  ->  x, for both zeros, as EliminateAddZero"""

    def __init__(self) -> None:
        super().__init__()
        x = any_input()
        self.eliminate(wrap_type(ops.Subtract, x, constant(value_equals(0, SMALL))), keeping=x)


class EliminateMultiplyOne(Elimination):
    """x * 1  ->  x"""

    def __init__(self) -> None:
        super().__init__()
        x = any_input()
        self.eliminate(any_order(ops.Multiply, x, constant(value_equals(1, SMALL))), keeping=x)


class EliminateDivideOne(Elimination):
    """x / 1  ->  x, x ^ 1  ->  x"""

    def __init__(self) -> None:
        super().__init__()
        x = any_input()
        self.eliminate(wrap_type((ops.Divide, ops.Power), x, constant(value_equals(1, SMALL))), keeping=x)


class EliminateEqualOperands(Elimination):
    """max(x, x)  ->  x, and likewise for min, and, or

    It runs before IsolateParameters, which inserts such nodes on purpose.
    """

    def __init__(self) -> None:
        super().__init__()
        x = any_input()
        self.eliminate(wrap_type(IDEMPOTENT, x, x), keeping=x)


class EliminateDoubleNot(Elimination):
    """not not x  ->  x, for booleans and for bits of integers"""

    def __init__(self) -> None:
        super().__init__()
        x = any_input()
        logical = wrap_type(ops.LogicalNot, wrap_type(ops.LogicalNot, x))
        bitwise = wrap_type(ops.BitwiseNot, wrap_type(ops.BitwiseNot, x))
        self.eliminate(any_of(logical, bitwise), keeping=x)


class EliminateSelect(Elimination):
    """select(true, x, y)  ->  x, select(false, y, x)  ->  x"""

    def __init__(self) -> None:
        super().__init__()
        x = any_input()
        chosen = wrap_type(ops.Select, constant(value_equals(True, SMALL)), x, any_input())
        left = wrap_type(ops.Select, constant(value_equals(False, SMALL)), any_input(), x)
        self.eliminate(any_of(chosen, left), keeping=x)


class EliminateReluOfRelu(Elimination):
    """relu(relu(x))  ->  relu(x)"""

    def __init__(self) -> None:
        super().__init__()
        inner = wrap_type(ops.ReLU)
        self.eliminate(wrap_type(ops.ReLU, inner), keeping=inner)


class MergeClamps(MatcherPass):
    """clamp(clamp(x, a, b), c, d)  ->  clamp(x, min(max(a, c), d), min(max(b, c), d)), for floats

    For integers the two Clamps round their bounds in different directions, so they stay.
    """

    def __init__(self) -> None:
        super().__init__()
        self.x = any_input(type_matches(f16, bf16, f32, f64))
        self.inner = wrap_type(ops.Clamp, self.x)
        self.register_matcher(wrap_type(ops.Clamp, self.inner), self.merge)

    def merge(self, match: Match) -> bool:
        inner, outer = match.node(self.inner), match.root
        assert isinstance(outer, ops.Clamp)
        low, high = (min(max(bound, outer.min), outer.max) for bound in (inner.min, inner.max))
        return self.replace(match, ops.Clamp(match[self.x], min=low, max=high))
