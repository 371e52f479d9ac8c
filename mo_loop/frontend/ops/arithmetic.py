"""Arithmetic. Until opset 6 broadcasting was asked for by `broadcast` and placed by `axis`."""

from __future__ import annotations

from typing import Any

from mo_loop import ops
from mo_loop.frontend.registry import one_to_one, translates
from mo_loop.graph import Value
from mo_loop.shape import normalise_axis


def aligned(a: Value, b: Value, axis: int | None) -> Value:
    """`b` with dimensions of 1 appended, so that its first one meets dimension `axis` of `a` (opsets before 7)."""
    if axis is None or a.rank is None or b.rank is None or b.rank == 0:
        return b
    missing = a.rank - b.rank - normalise_axis(axis, a.rank)
    if missing <= 0:
        return b
    return ops.Unsqueeze(b, list(range(b.rank, b.rank + missing))).output


def legacy_binary(op: str, cls: type) -> None:
    """Both forms of a binary operator: opset 1 with `axis` and `broadcast`, opset 7 with numpy's rules."""

    def before_7(a: Any, b: Any, *, axis: int | None = None, broadcast: int = 0) -> Any:
        return cls(a, aligned(a, b, axis if broadcast else None))

    translates(op, since=1)(before_7)
    translates(op, since=7)(lambda a, b: cls(a, b))


def _division(a: Any, b: Any) -> Any:
    """Integers divide towards zero in ONNX."""
    return ops.Divide(a, b, m_pythondiv=a.dtype.is_float)


for _op, _cls in {"Add": ops.Add, "Sub": ops.Subtract, "Mul": ops.Multiply, "Div": _division}.items():
    legacy_binary(_op, _cls)

one_to_one({
    "Abs": ops.Abs, "Ceil": ops.Ceiling, "Floor": ops.Floor, "Neg": ops.Negative, "Sqrt": ops.Sqrt, "Exp": ops.Exp,
    "Log": ops.Log, "Tanh": ops.Tanh,
})  # fmt: skip
one_to_one({"Sin": ops.Sin, "Cos": ops.Cos, "Tan": ops.Tan, "Asin": ops.Asin, "Acos": ops.Acos, "Atan": ops.Atan}, since=7)
one_to_one({
    "Sinh": ops.Sinh, "Cosh": ops.Cosh, "Asinh": ops.Asinh, "Acosh": ops.Acosh, "Atanh": ops.Atanh,
    "Sign": ops.Sign, "Erf": ops.Erf,
}, since=9)  # fmt: skip
