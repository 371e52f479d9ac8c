"""The operator Det: determinants of matrices."""

from typing import Any

import numpy as np

from mo_loop.frontend.ops.elementwise.arithmetic import number
from mo_loop.frontend.ops.normalisation import ranked
from mo_loop.frontend.vocabulary import Graph, ModelError, Value, ops, translates
from mo_loop.graph.shape import assume_fixed
from mo_loop.graph.types import TensorType, f32, i64
from mo_loop.ops.base import Parameter, Result
from mo_loop.ops.port_map import Final, Invariant, Merged, Sliced


@translates("Det", since=11)
def det(x):
    """The determinants of the last two dimensions."""
    rank = ranked(x, "Det")
    if rank < 2:
        raise ModelError(f"the determinant of a tensor of rank {rank}", code="ML227")
    assume_fixed(x.type.dims[-2:])
    rows, columns = x.type.dims[-2:]
    if isinstance(rows, int) and isinstance(columns, int) and rows != columns:
        raise ModelError(f"the determinant of a matrix of {rows} rows and {columns} columns", code="ML227")
    size = rows if isinstance(rows, int) else columns
    wide = ops.Convert(x, destination_type=f32) if x.dtype.bits < 32 else x
    if size == 0:
        made: Any = ops.Broadcast(number(wide, 1), ops.Slice(ops.ShapeOf(x), [0], [-2], [1], [0]))
    elif size == 2:
        (a, b), (c, d) = ([_element(wide, i, k) for k in range(2)] for i in range(2))
        made = a * d - b * c
    else:
        made = _eliminated(wide)
    return made if wide is x else ops.Convert(made, destination_type=x.dtype)


def _element(x: Value, row: int, column: int):
    return ops.Gather(ops.Gather(x, row, -2), column, -1)


def _eliminated(x: Value) -> Value:
    """Gaussian elimination, one step for each row: the pivot is the element of the largest magnitude in column k, on or
    below the diagonal. Its row is swapped with row k, and multiples of it are subtracted from the rows below. The
    determinant is the product of the pivots, negated for each swap."""
    shape = ops.ShapeOf(x)
    batch, side = (ops.Slice(shape, *bounds, [1], [0]) for bounds in (([0], [-2]), ([-2], [2**30])))
    whole = ops.Concat(ops.ReduceProd(batch, [0], keep_dims=True), side, axis=0)
    matrices = ops.Reshape(x, whole)
    rows = ops.Range(0, ops.Gather(side, 0, 0), 1, graph=x.graph, output_type=i64)
    ones = ops.Broadcast(np.ones((), x.dtype.numpy), ops.Slice(whole, [0], [1], [1], [0]))
    body = Graph("elimination")
    now, places = (Parameter(graph=body, type=each) for each in (TensorType(i64, ()), TensorType(i64, rows.shape)))
    states = [Parameter(graph=body, type=TensorType(x.dtype, each.shape)) for each in (matrices, ones)]
    results = [Result(each) for each in _step(now.output, places.output, *(each.output for each in states))]
    scan = ops.Scan(
        matrices, ones, rows, rows, graph=x.graph, body=body,
        input_map=(*(Merged(p, r) for p, r in zip(states, results, strict=True)), Sliced(now, 0), Invariant(places)),
        output_map=(Final(results[1]),),
    )  # fmt: skip
    return ops.Reshape(scan[0], batch)


def _step(k: Value, rows: Value, a: Value, product: Value) -> list[Value]:
    """The matrices [batch, n, n] and products [batch] after column k."""
    column = ops.Gather(a, k, 2)
    sizes = ops.Select(rows >= k, ops.Abs(column), number(a, -1))
    _, best = ops.TopK(sizes, 1, axis=1, mode="max", index_element_type=i64)  # [batch, 1]
    order = ops.Select(ops.Equal(rows, k), best, ops.Select(ops.Equal(rows, best), k, rows))
    # Not Gather with batch_dims: for a batch of 1 the runtime mistakes the Gathers after it, or crashes.
    a = ops.GatherElements(a, ops.Broadcast(ops.Unsqueeze(order, 2), ops.ShapeOf(a)), axis=1)
    row = ops.Gather(a, k, 1)
    pivot = ops.Gather(row, ops.Unsqueeze(k, 0), 1)  # [batch, 1]
    sign = ops.Select(ops.Equal(best, k), number(a, 1), number(a, -1))
    divisor = ops.Select(ops.Equal(pivot, 0), number(a, 1), pivot)
    factor = ops.Select(k < rows, ops.Gather(a, k, 2) / divisor, number(a, 0))
    rest = a - ops.Unsqueeze(factor, 2) * ops.Unsqueeze(row, 1)
    return [rest, product * ops.Squeeze(pivot * sign, 1)]
