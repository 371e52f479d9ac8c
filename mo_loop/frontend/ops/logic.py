"""Comparison, logic, bits, selection."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.frontend.ops.arithmetic import legacy_binary
from mo_loop.frontend.registry import one_to_one, translates

for _op, _cls in {
    "Equal": ops.Equal, "Greater": ops.Greater, "Less": ops.Less, "And": ops.LogicalAnd, "Or": ops.LogicalOr,
    "Xor": ops.LogicalXor,
}.items():  # fmt: skip
    legacy_binary(_op, _cls)

one_to_one({"Not": ops.LogicalNot})
one_to_one({"GreaterOrEqual": ops.GreaterEqual, "LessOrEqual": ops.LessEqual}, inputs=2, since=12)
translates("Where", since=9)(lambda condition, x, y: ops.Select(condition, x, y))
