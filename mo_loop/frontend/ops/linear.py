"""Products of matrices and sums of products."""

from __future__ import annotations

from typing import Any

from mo_loop import ops
from mo_loop.frontend.ops.arithmetic import as_type
from mo_loop.frontend.registry import one_to_one, translates
from mo_loop.graph import Value
from mo_loop.ops.linear import subscripts
from mo_loop.types import f32

one_to_one({"MatMul": ops.MatMul}, inputs=2)


@translates("Gemm", since=1)
def gemm_1(
    a: Any, b: Any, c: Any,
    *, alpha: float = 1.0, beta: float = 1.0, broadcast: int = 0, transA: int = 0, transB: int = 0,
) -> Any:  # fmt: skip
    """Opset 1 asks for broadcasting of C; what numpy's rules give without being asked is the same."""
    return general_product(a, b, c, alpha, beta, transA, transB)


@translates("Gemm", since=7)
def gemm_7(a: Any, b: Any, c: Any, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0, transB: int = 0) -> Any:
    """C is broadcast to the product."""
    return general_product(a, b, c, alpha, beta, transA, transB)


@translates("Gemm", since=11)
def gemm_11(
    a: Any, b: Any, c: Any = None, *, alpha: float = 1.0, beta: float = 1.0, transA: int = 0, transB: int = 0
) -> Any:
    """C may be absent."""
    return general_product(a, b, c, alpha, beta, transA, transB)


def general_product(
    a: Value, b: Value, c: Value | None, alpha: float, beta: float, transpose_a: int, transpose_b: int
) -> Any:
    """alpha * A * B + beta * C."""
    product = ops.MatMul(a, b, transpose_a=bool(transpose_a), transpose_b=bool(transpose_b)).output
    result = scaled(product, alpha)
    return result if c is None or beta == 0 else ops.Add(result, scaled(c, beta))


def scaled(x: Value, factor: float) -> Value:
    """`x` times a number; integers by way of f32 where the number has a fraction."""
    if factor == 1:
        return x
    if x.dtype.is_float or float(factor).is_integer():
        return ops.Multiply(x, factor).output
    return as_type(ops.Multiply(as_type(x, f32), factor).output, x.dtype)


@translates("Einsum", since=12)
def einsum(first: Any, *rest: Any, equation: str) -> Any:
    """Sums of products; the result is always spelled out, as the runtime takes "ii" for something else."""
    terms, result = subscripts(equation)
    return ops.Einsum(first, *rest, equation=f"{','.join(terms)}->{result}")
