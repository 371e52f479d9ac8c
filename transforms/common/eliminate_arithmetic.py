"""Arithmetic and logic operations that return an operand unchanged."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph.types import bf16, f16, f32, f64
from mo_loop.transforms.elimination import Elimination
from mo_loop.transforms.pattern import Match, any_input, any_of, any_order, constant, wrap_type
from mo_loop.transforms.predicates import type_matches, value_equals
from mo_loop.transforms.rewrite import MatcherPass

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

    keeps = x = any_input()
    pattern = any_order(ops.Add, x, constant(value_equals(0, SMALL)))


class EliminateSubtractZero(Elimination):
    """x - 0  ->  x, for both zeros, as EliminateAddZero"""

    keeps = x = any_input()
    pattern = wrap_type(ops.Subtract, x, constant(value_equals(0, SMALL)))


class EliminateMultiplyOne(Elimination):
    """x * 1  ->  x"""

    keeps = x = any_input()
    pattern = any_order(ops.Multiply, x, constant(value_equals(1, SMALL)))


class EliminateDivideOne(Elimination):
    """x / 1  ->  x, x ^ 1  ->  x"""

    keeps = x = any_input()
    pattern = wrap_type((ops.Divide, ops.Power), x, constant(value_equals(1, SMALL)))


class EliminateEqualOperands(Elimination):
    """max(x, x)  ->  x, and likewise for min, and, or

    It runs before IsolateParameters, which inserts such nodes on purpose.
    """

    keeps = x = any_input()
    pattern = wrap_type(IDEMPOTENT, x, x)


class EliminateDoubleNot(Elimination):
    """not not x  ->  x, for booleans and for bits of integers"""

    keeps = x = any_input()
    logical = wrap_type(ops.LogicalNot, wrap_type(ops.LogicalNot, x))
    bitwise = wrap_type(ops.BitwiseNot, wrap_type(ops.BitwiseNot, x))
    pattern = any_of(logical, bitwise)


class EliminateSelect(Elimination):
    """select(true, x, y)  ->  x, select(false, y, x)  ->  x, select(c, x, x)  ->  x"""

    keeps = x = any_input()
    chosen = wrap_type(ops.Select, constant(value_equals(True, SMALL)), x, any_input())
    left = wrap_type(ops.Select, constant(value_equals(False, SMALL)), any_input(), x)
    both = wrap_type(ops.Select, any_input(), x, x)
    pattern = any_of(chosen, left, both)


class EliminateReluOfRelu(Elimination):
    """relu(relu(x))  ->  relu(x)"""

    keeps = wrap_type(ops.ReLU)
    pattern = wrap_type(ops.ReLU, keeps)


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
