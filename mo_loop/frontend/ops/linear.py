"""Matrix products: MatMul, Gemm and Einsum."""

from functools import reduce
from string import ascii_letters

from mo_loop.frontend.ops.elementwise.arithmetic import as_type, number
from mo_loop.frontend.ops.shared import counted
from mo_loop.frontend.vocabulary import Value, ops, translates
from mo_loop.graph.dimension import Dimension
from mo_loop.graph.shape import element_count, is_static
from mo_loop.graph.types import f32
from mo_loop.ops.lengths import dimension, joined
from mo_loop.ops.linear import subscripts
from mo_loop.target import ERROR, Gap

AVOIDS = {
    "MatMul": (
        Gap(
            "matmul-of-three-dimensions",
            "`MatMul` of an input of unknown sizes of rank 2 with a constant of three dimensions does not compile",
            "four dimensions", ERROR, since="2025.4.1",
        ),
        Gap(
            "matmul-of-batch-one",
            "`MatMul` of a batch of 1 of unknown sizes with a constant of three dimensions has a size of 0",
            "four dimensions", since="2025.4.1",
        ),
        Gap(
            "matmul-over-nothing", "`MatMul` with a constant of no rows does not write its result, which is zeros",
            "zeros",
        ),
    ),
    "Gemm": (
        Gap(
            "matmul-of-no-columns", "a transposed `MatMul` with a dimension of 0 does not compile",
            "the result itself", ERROR,
        ),
    ),
    "Einsum": (
        Gap("einsum-of-scalars", "`Einsum` of scalars alone does not compile", "`Multiply`", ERROR, until="2025.1.0"),
        Gap(
            "einsum-of-diagonal", "`Einsum` of a subscript that is twice in one input does not compile",
            "`GatherND` of the diagonal", ERROR, until="2025.0.0",
        ),
        Gap(
            "einsum-with-ellipsis", "`Einsum` with an ellipsis does not compile, or the model cannot be read",
            "letters for the dimensions, if their number is known", ERROR, until="2025.0.0",
        ),
    ),
}  # fmt: skip
"""Operator -> the errors of the runtime that its translator avoids."""


@translates("MatMul", since=1)
def matmul(a, b):
    """numpy's product, also of vectors and of stacks of matrices."""
    if b.rank == 3 and b.constant is not None and a.rank in (2, 3) and b.shape[0] != 1 and not is_static(a.shape):
        # The runtime treats a constant of three dimensions as one matrix for each of a, and does not broadcast.
        left, right = ops.Unsqueeze(a, list(range(4 - a.rank))), ops.Unsqueeze(b, 0)
        return ops.Squeeze(left @ right, [0])
    if b.rank == 2 and 0 in b.shape and (a.rank or 0) > 1:  # the runtime loses the sizes of the run, or writes nothing
        sizes = [*(dimension(a, axis) for axis in range(a.rank - 1)), dimension(b, 1)]
        return ops.Broadcast(number(a, 0), joined(sizes, a))
    return a @ b


@translates("Gemm", since=1, required="c")
@translates("Gemm", since=7, required="c", without="broadcast")
@translates("Gemm", since=11, without="broadcast", ignored="broadcast")
def gemm(a, b, c=None, *, alpha: float = 1.0, beta: float = 1.0, broadcast: int = 0, transA: int = 0, transB: int = 0):
    """C is broadcast to the product as in numpy, which includes the `broadcast` of opset 1."""
    return general_product(a, b, c, alpha, beta, transA, transB)


def general_product(a: Value, b: Value, c: Value | None, alpha: float, beta: float, transpose_a: int, transpose_b: int):
    """alpha * A * B + beta * C. C is broadcast to the product, which has no elements if C has none."""
    if c is not None and (beta == 0 or element_count(c.shape) == 0):
        c = None
    if 0 in (element_count(a.shape), element_count(b.shape)):
        # The runtime leaves what was in memory where there is nothing to add up, and does not compile all the others.
        sizes = [dimension(a, int(bool(transpose_a))), dimension(b, int(not transpose_b))]
        is_empty = any(isinstance(size, int) and size == 0 for size in sizes)
        filler = number(a, 0) if c is None or is_empty else scaled(c, beta)
        return ops.Broadcast(filler, joined(sizes, a))
    product = ops.MatMul(a, b, transpose_a=bool(transpose_a), transpose_b=bool(transpose_b))
    result = scaled(product, alpha)
    return result if c is None else result + scaled(c, beta)


def scaled(x: Value, factor: float) -> Value:
    """`x` times a number; integers are computed in f32 if the number has a fraction."""
    if factor == 1:
        return x
    if x.dtype.is_float or float(factor).is_integer():
        return x * factor
    return as_type(as_type(x, f32) * factor, x.dtype)


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
        places = ops.Unsqueeze(counted(dimension(x, axes[0]), x), 1)
        x = ops.GatherND(ops.Transpose(x, axes + others), ops.Concat(*[places] * len(axes), axis=1))
        term = letter + "".join(term[axis] for axis in others)
    return x, term
