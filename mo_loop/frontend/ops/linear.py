"""Matrix products (MatMul, Gemm and Einsum), determinants (Det), and weights in another layout: constants are
rearranged at conversion, everything else by operations at run time.
"""

import math
from collections.abc import Callable, Sequence
from functools import reduce
from string import ascii_letters
from typing import Any

import numpy as np

from mo_loop import ops as operations
from mo_loop.frontend.ops.shared import counted, number, ranked
from mo_loop.frontend.vocabulary import Graph, ModelError, Value, ops, translates
from mo_loop.graph import Dimension, TensorType, assume_fixed, element_count, f16, f32, i64, is_static
from mo_loop.graph.tensor import BLOCK, ArrayTensor, DeferredTensor, Tensor
from mo_loop.ops.base import Constant, Identity, Parameter, Result
from mo_loop.ops.lengths import joined
from mo_loop.ops.linear import subscripts
from mo_loop.ops.port_map import Final, Invariant, Merged, Sliced
from mo_loop.target import ERROR, Gap

AVOIDS = (
    Gap(
        "matmul-of-three-dimensions",
        "`MatMul` of an input of unknown sizes of rank 2 with a constant of three dimensions does not compile",
        "four dimensions", ERROR, since="2025.4.1", rule="translator of MatMul",
    ),
    Gap(
        "matmul-of-batch-one",
        "`MatMul` of a batch of 1 of unknown sizes with a constant of three dimensions has a size of 0",
        "four dimensions", since="2025.4.1", rule="translator of MatMul",
    ),
    Gap(
        "matmul-over-nothing", "`MatMul` with a constant of no rows does not write its result, which is zeros", "zeros",
        rule="translator of MatMul",
    ),
    Gap(
        "matmul-of-no-columns", "a transposed `MatMul` with a dimension of 0 does not compile", "the result itself",
        ERROR, rule="translator of Gemm",
    ),
    Gap(
        "einsum-of-scalars", "`Einsum` of scalars alone does not compile", "`Multiply`", ERROR, until="2025.1.0",
        rule="translator of Einsum",
    ),
    Gap(
        "einsum-of-diagonal", "`Einsum` of a subscript that is twice in one input does not compile",
        "`GatherND` of the diagonal", ERROR, until="2025.0.0", rule="translator of Einsum",
    ),
    Gap(
        "einsum-with-ellipsis", "`Einsum` with an ellipsis does not compile, or the model cannot be read",
        "letters for the dimensions, if their number is known", ERROR, until="2025.0.0", rule="translator of Einsum",
    ),
)
"""The errors of the runtime that these translators avoid."""


@translates("MatMul", since=1)
def matmul(a, b):
    """numpy's product, also of vectors and of stacks of matrices."""
    if b.rank == 3 and b.constant is not None and a.rank in (2, 3) and b.shape[0] != 1 and not is_static(a.shape):
        # The runtime treats a constant of three dimensions as one matrix for each of a, and does not broadcast.
        left, right = ops.Unsqueeze(a, list(range(4 - a.rank))), ops.Unsqueeze(b, 0)
        return ops.Squeeze(left @ right, [0])
    if b.rank == 2 and 0 in b.shape and (a.rank or 0) > 1:  # the runtime loses the sizes of the run, or writes nothing
        sizes = [*(a.size(axis) for axis in range(a.rank - 1)), b.size(1)]
        return ops.Broadcast(number(a, 0), joined(sizes, a))
    return a @ b


@translates("Gemm", since=1, required="c")
@translates("Gemm", since=7, required="c", without="broadcast")
@translates("Gemm", since=11, without="broadcast", ignored="broadcast")
def gemm(a, b, c=None, *, alpha: float = 1.0, beta: float = 1.0, broadcast: int = 0, transA: int = 0, transB: int = 0):
    """alpha * A * B + beta * C. C is broadcast to the product as in numpy, which includes the `broadcast` of opset 1.
    The product has no elements if C has none."""
    if c is not None and (beta == 0 or element_count(c.shape) == 0):
        c = None
    if 0 in (element_count(a.shape), element_count(b.shape)):
        # The runtime leaves what was in memory where there is nothing to add up, and does not compile all the others.
        sizes = [a.size(int(bool(transA))), b.size(int(not transB))]
        is_empty = any(isinstance(size, int) and size == 0 for size in sizes)
        filler = number(a, 0) if c is None or is_empty else scaled(c, beta)
        return ops.Broadcast(filler, joined(sizes, a))
    result = scaled(ops.MatMul(a, b, transpose_a=bool(transA), transpose_b=bool(transB)), alpha)
    return result if c is None else result + scaled(c, beta)


def scaled(x: Value, factor: float) -> Value:
    """`x` times a number; integers are computed in f32 if the number has a fraction."""
    if factor == 1:
        return x
    return x * factor if x.dtype.is_float or float(factor).is_integer() else (x.astype(f32) * factor).astype(x.dtype)


@translates("Einsum", since=12)
def einsum(first, *rest, equation: str):
    """Sums of products. The output subscripts are always explicit, as the runtime interprets "ii" differently."""
    terms, result = subscripts(equation)
    if not any((*terms, result)):
        return reduce(lambda a, b: a * b, rest, first)  # before 2025.2 the runtime does not compile it
    xs = [first, *rest]
    if len(terms) == len(xs) and all(x.rank is not None for x in xs):
        xs, terms, result = _with_letters(xs, terms, result)
        pairs = [_of_diagonals(x, term) for x, term in zip(xs, terms, strict=True)]
        xs, terms = [x for x, _ in pairs], [term for _, term in pairs]
    return ops.Einsum(*xs, equation=f"{','.join(terms)}->{result}")


def _with_letters(xs: list[Value], terms: list[str], result: str) -> tuple[list[Value], list[str], str]:
    """The inputs, the terms and the result with a letter for each dimension of an ellipsis.

    An input has no letter for a size of 1 that other inputs have larger.
    """
    counts = [x.type.rank - len(term.replace("...", "")) for x, term in zip(xs, terms, strict=True)]
    unused = [letter for letter in ascii_letters if letter not in "".join(terms)]
    longest = max(count if "..." in term else 0 for count, term in zip(counts, terms, strict=True))
    if min(counts) < 0 or longest > len(unused) or ("..." in "".join(terms)) != ("..." in result):
        return xs, terms, result  # wrong, or more than there are letters
    letters = unused[:longest]
    sizes: dict[str, list[Dimension]] = {letter: [] for letter in letters}
    places = []
    for x, term, count in zip(xs, terms, counts, strict=True):
        start = term.find("...")
        own = letters[longest - count :] if start >= 0 else []
        places.append({letter: start + place for place, letter in enumerate(own)})
        for letter, axis in places[-1].items():
            sizes[letter].append(x.type.dims[axis])
    found = []
    for x, term, axes in zip(xs, terms, places, strict=True):
        ones = [letter for letter, axis in axes.items() if x.type.dims[axis] == 1 and set(sizes[letter]) != {1}]
        x = ops.Squeeze(x, [axes[letter] for letter in ones]) if ones else x
        found.append((x, term.replace("...", "".join(letter for letter in axes if letter not in ones))))
    return [x for x, _ in found], [term for _, term in found], result.replace("...", "".join(letters))


def _of_diagonals(x: Value, term: str) -> tuple[Value, str]:
    """The input and the term without a letter that is in it twice or more, as far as each axis has one."""
    if len(term) != x.rank or "." in term:
        return x, term
    for letter in sorted({letter for letter in term if term.count(letter) > 1}):
        axes = [axis for axis, each in enumerate(term) if each == letter]
        others = [axis for axis in range(len(term)) if axis not in axes]
        places = ops.Unsqueeze(counted(x.size(axes[0]), x), 1)
        x = ops.GatherND(ops.Transpose(x, axes + others), ops.Concat(*[places] * len(axes), axis=1))
        term = letter + "".join(term[axis] for axis in others)
    return x, term


@translates("Det", since=11)
def det(x):
    """The determinants of the last two dimensions."""
    rank = ranked(x)
    if rank < 2:
        raise ModelError(f"the input has rank {rank}, and must have 2 or more", code="ML227")
    assume_fixed(x.type.dims[-2:])
    rows, columns = x.type.dims[-2:]
    if isinstance(rows, int) and isinstance(columns, int) and rows != columns:
        raise ModelError(f"matrices of {rows} rows and {columns} columns have no determinant", code="ML227")
    size = rows if isinstance(rows, int) else columns
    wide = x.astype(f32) if x.dtype.bits < 32 else x
    if size == 0:
        made: Any = ops.Broadcast(number(wide, 1), x.sizes[:-2])
    elif size == 2:
        (a, b), (c, d) = ([ops.Gather(ops.Gather(wide, i, -2), k, -1) for k in range(2)] for i in range(2))
        made = a * d - b * c
    else:
        made = _eliminated(wide)
    return made if wide is x else made.astype(x.dtype)


def _eliminated(x: Value) -> Value:
    """Gaussian elimination, one step for each row: the pivot is the element of the largest magnitude in column k, on or
    below the diagonal. Its row is swapped with row k, and multiples of it are subtracted from the rows below. The
    determinant is the product of the pivots, negated for each swap."""
    shape = x.sizes
    batch, side = (ops.Slice(shape, *bounds, [1], [0]) for bounds in (([0], [-2]), ([-2], [2**30])))
    whole = ops.Concat(ops.ReduceProd(batch, [0], keep_dims=True), side, axis=0)
    matrices = ops.Reshape(x, whole)
    rows = ops.Range(0, ops.Gather(side, 0, 0), 1, graph=x.graph, output_type=i64)
    ones = ops.Broadcast(np.ones((), x.dtype.numpy), whole[:1])
    body = Graph("elimination")
    now, places = (Parameter(graph=body, type=each) for each in (TensorType(i64, ()), TensorType(i64, rows.shape)))
    states = [Parameter(graph=body, type=TensorType(x.dtype, each.shape)) for each in (matrices, ones)]
    results = [Result(each) for each in _step(now.output, places.output, *(each.output for each in states))]
    scan = ops.Scan(
        matrices, ones, rows, rows, graph=x.graph, body=body,
        input_map=(*(Merged(p, r) for p, r in zip(states, results, strict=True)), Sliced(now, 0), Invariant(places)),
        output_map=(Final(results[1]),),
    )
    return ops.Reshape(scan[0], batch)


def _step(k: Value, rows: Value, a: Value, product: Value) -> list[Value]:
    """The matrices [batch, n, n] and products [batch] after column k."""
    column = ops.Gather(a, k, 2)
    sizes = ops.Select(rows >= k, ops.Abs(column), number(a, -1))
    _, best = ops.TopK(sizes, 1, axis=1, mode="max", index_element_type=i64)  # [batch, 1]
    order = ops.Select(ops.Equal(rows, k), best, ops.Select(ops.Equal(rows, best), k, rows))
    # Not Gather with batch_dims: for a batch of 1 the runtime mistakes the Gathers after it, or crashes.
    a = ops.GatherElements(a, ops.Broadcast(ops.Unsqueeze(order, 2), a.sizes), axis=1)
    row = ops.Gather(a, k, 1)
    pivot = ops.Gather(row, ops.Unsqueeze(k, 0), 1)  # [batch, 1]
    sign = ops.Select(ops.Equal(best, k), number(a, 1), number(a, -1))
    divisor = ops.Select(ops.Equal(pivot, 0), number(a, 1), pivot)
    factor = ops.Select(k < rows, ops.Gather(a, k, 2) / divisor, number(a, 0))
    return [a - ops.Unsqueeze(factor, 2) * ops.Unsqueeze(row, 1), product * ops.Squeeze(pivot * sign, 1)]


def array_of(value: Value | None) -> np.ndarray[Any, Any] | None:
    """The values of a constant, also of one in f16 that is converted to f32; None for anything else."""
    while value is not None and isinstance(value.node, Identity):
        value = value.node.inputs[0]
    if value is not None and value.dtype is f32 and isinstance(value.node, operations.Convert):
        source = value.node.inputs[0]
        narrow = array_of(source) if source is not None and source.dtype is f16 else None
        return None if narrow is None else narrow.astype(np.float32)
    return value.node.array if value is not None and isinstance(value.node, Constant) else None


def reshaped(value: Value, shape: Sequence[int]) -> Value:
    """`value` in another shape (one item may be -1); a constant shares its data."""
    if not isinstance(value.node, Constant):
        return ops.Reshape(value, list(shape))
    tensor: Tensor = value.node.tensor
    rest = math.prod(dim for dim in shape if dim >= 0)
    full = tuple(dim if dim >= 0 else tensor.size // max(rest, 1) for dim in shape)
    if full == tensor.shape:
        return value
    return ops.Constant(tensor.reshaped(full), graph=value.graph, name=value.node.name)


def rows_rearranged(value: Value, function: Callable[[Any], Any]) -> Value | None:
    """As `rearranged`, also of a Dequantize of constants, for a function that only moves or selects whole rows.

    The scale of such a Dequantize has all axes of the weights; only the last one may have the length 1, or that of
    the number of blocks.
    """
    node = value.node
    if not isinstance(node, operations.Dequantize):
        return rearranged(value, function)
    given = [each for each in node.inputs if each is not None]
    if any(each.type.dims[:-1] != value.type.dims[:-1] for each in given):
        return None
    made = [rearranged(each, function) for each in given]
    if any(each is None for each in made):
        return None
    in_rows = node.axis in (-1, len(value.type.dims) - 1)
    block_size = node.block_size if in_rows else min(node.block_size, 1)  # blocks of rows have one row each
    return ops.Dequantize(*made, to=node.to, axis=-1, block_size=block_size, expanded=node.expanded)


def rearranged(value: Value, function: Callable[[Any], Any]) -> Value | None:
    """`function` of the array of a constant, deferred until writing if it is large; None if it is not a constant."""
    if not isinstance(value.node, Constant):
        return None
    tensor: Tensor = value.node.tensor
    if tensor.nbytes <= BLOCK:
        made: Tensor = ArrayTensor(np.ascontiguousarray(function(tensor.array())), tensor.dtype)
    else:
        # The shape is computed with an array that has no memory.
        probe = function(np.broadcast_to(np.zeros((), tensor.dtype.numpy), tensor.shape))
        make = lambda: ArrayTensor(function(tensor.array()), tensor.dtype).blocks()  # noqa: E731
        made = DeferredTensor(tensor.dtype, tuple(probe.shape), make, tensor.files)
    return ops.Constant(made, graph=value.graph, name=value.node.name)
