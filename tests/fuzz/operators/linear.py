"""Products of matrices and sums of products."""

from .draw import Draw, Node

EQUATIONS = ("ij,jk->ik", "ij,jk", "bij,bjk->bik", "...ij,...jk->...ik", "ij->ji", "ij", "ii->i", "ii", "ij->",
             "i,j->ij", "i,i->", "bhqd,bhkd->bhqk", "ij,ij->ij", "ijk,k->ij", "ij,kj->ik", "ab,bc,cd->ad", "...i->...",
             "bij->bji", "i,ij,j->", "bnid,jd->bnij", "ji,jk->ik", "ij,j", "abc,abd->abcd", "b...i,b...i->b...")


def product(d: Draw) -> Node:
    """Matrices or vectors, with leading dimensions that are broadcast."""
    dtype = d.dtype()
    rows, inner, columns = d.size(), d.size(empty=0.02), d.size()
    vectors = d.chance(0.2), d.chance(0.2)
    before = d.broadcast(2, 2)
    a = [inner] if vectors[0] else [*before[0], rows, inner]
    b = [inner] if vectors[1] else [*before[1], inner, columns]
    return d.node([d.data(a, dtype), d.data(b, dtype, constant=0.4)])


def gemm(d: Draw) -> Node:
    """C is broadcast to the product."""
    dtype = d.dtype()
    rows, inner, columns = d.size(), d.size(empty=0.02), d.size()
    trans_a, trans_b = d.pick(0, 0, 1), d.pick(0, 0, 1)
    a = d.data([inner, rows] if trans_a else [rows, inner], dtype)
    b = d.data([columns, inner] if trans_b else [inner, columns], dtype, constant=0.5)
    shape = d.pick([rows, columns], [columns], [1, columns], [rows, 1], [], [1])
    shape = shape if d.since >= 7 else [rows, columns]
    c, whole = d.data(shape, dtype, constant=0.5), dtype.kind != "f"
    scale = d.pick(1.0, 2.0, 0.0, -1.0) if whole else d.number(-2, 2)
    return d.node([a, b, c if d.since < 11 or d.chance(0.8) else None], alpha=d.maybe(scale),
                  beta=d.maybe(d.pick(1.0, 0.5, 0.0, 2.0)),
                  transA=d.maybe(trans_a) if not trans_a else 1, transB=trans_b)


def einsum(d: Draw) -> Node:
    """One of the usual equations, sometimes with other letters or spaces."""
    equation, dtype = d.pick(*EQUATIONS), d.dtype()
    sizes = {letter: d.size(empty=0.01) for letter in "abcdhijknq"}
    before, terms = d.shape(0, 2), equation.split("->")[0].split(",")
    ports = [
        d.data([size for letter in term.replace("...", ".") for size in (before if letter == "." else [sizes[letter]])],
               dtype)
        for term in terms
    ]
    if d.chance(0.3):
        equation = equation.replace(",", " , ").replace("->", " -> ")
    if d.chance(0.2):
        equation = equation.replace("i", "I")
    return d.node(ports, equation=equation)


OPERATORS = {"MatMul": product, "Gemm": gemm, "Einsum": einsum}
