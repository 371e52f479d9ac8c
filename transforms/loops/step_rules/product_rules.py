"""Products of matrices, and sums of products."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.ops.linear import subscripts
from mo_loop.transforms.loops.lifted import Lifted, Rule, Steps, again, squeezed, unsqueezed


def mat_mul(node: ops.MatMul, xs: Sequence[Lifted], steps: Steps) -> Value:
    """a b for each step; vectors that vary are the rows of one matrix, if the other matrix is the same in all steps"""
    a, b = xs
    if a.rank == 1 and not b.varies and b.rank <= 2:
        return again(node, a.value, b.value, transpose_a=False)
    if b.rank == 1 and not a.varies and a.rank == 2:  # A b  ->  b A^T
        made: Value = again(node, b.value, a.value, transpose_a=False, transpose_b=not node.transpose_a)
        return made
    rank = max(a.rank, b.rank, 2)
    left = _matrices(a, rank, 1, steps)
    right = _matrices(b, rank, 2, steps)
    product: Value = again(
        node, left, right, transpose_a=node.transpose_a and a.rank > 1, transpose_b=node.transpose_b and b.rank > 1
    )
    if b.rank == 1:
        product = squeezed(product, product.type.rank - 1)
    if a.rank == 1:
        product = squeezed(product, product.type.rank - 2 + (b.rank == 1))
    return product


def _matrices(x: Lifted, rank: int, place: int, steps: Steps) -> Value:
    """An operand as matrices: a vector on the left is a row, one on the right a column."""
    if x.rank > 1:
        return steps.wide(x, rank)
    if not x.varies:
        return unsqueezed(x.value, [place - 1])
    return steps.wide(Lifted(unsqueezed(x.value, [place]), True), rank)


def einsum(node: ops.Einsum, xs: Sequence[Lifted], steps: Steps) -> Value | None:
    """ij,jk->ik  ->  Tij,jk->Tik"""
    terms, result = subscripts(node.equation)
    letter = next((each for each in ascii_letters if each not in node.equation), None)
    if letter is None or "." in node.equation:
        return None
    left = ",".join(letter + term if x.varies else term for term, x in zip(terms, xs, strict=True))
    made: Value = again(node, *(x.value for x in xs), equation=f"{left}->{letter}{result}")
    return made


RULES: dict[type, Rule] = {ops.MatMul: mat_mul, ops.Einsum: einsum}
