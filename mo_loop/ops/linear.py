"""MatMul, Einsum and Inverse: products, sums of products, and inverses of matrices."""


import numpy as np

from mo_loop.graph.dimension import Dimension
from mo_loop.graph.shape import Shape, broadcast, broadcast_dim, merge_dim
from mo_loop.graph.types import TensorType
from mo_loop.ops.base import Op
from mo_loop.ops.element_kinds import FLOATS, NUMBERS
from mo_loop.ops.infer import same_dtype, wide


class MatMul(Op, opset=1):
    """Products of the last two dimensions, the others broadcast; a vector is a row or a column. Spec: MatMul-1."""

    transpose_a: bool = False
    transpose_b: bool = False

    def infer(self, a, b):
        dtype = same_dtype(a, b)
        if a.shape is None or b.shape is None:
            return TensorType(dtype, None)
        self.require(a.shape and b.shape, "a scalar has no rows and columns")
        return TensorType(dtype, product_shape(a.shape, b.shape, self.transpose_a, self.transpose_b))

    def evaluate(self, *inputs):
        a, b = (wide(each) for each in inputs)
        a = np.swapaxes(a, -1, -2) if self.transpose_a and a.ndim > 1 else a
        b = np.swapaxes(b, -1, -2) if self.transpose_b and b.ndim > 1 else b
        return np.asarray(np.matmul(a, b)).astype(inputs[0].dtype)

    def axis_map(self, port):
        """The rows of the first operand, the columns of the second one, and the batch dimensions of both."""
        places, rank, other = list(self._no_axes), self.operands[port].rank, self.operands[1 - port].rank
        if rank is None or other is None or rank < 2:
            return self._no_axes
        batches = len(places) - (2 if other > 1 else 1)
        places[batches - rank + 2 : batches] = range(rank - 2)
        is_last = self.transpose_a if port == 0 else not self.transpose_b
        places[batches + (port == 1 and other > 1)] = rank - 1 if is_last else rank - 2
        return tuple(places)


def product_shape(
    a: tuple[Dimension, ...], b: tuple[Dimension, ...], transpose_a: bool = False, transpose_b: bool = False
) -> Shape:
    """The shape of the product of matrices of these shapes; none of them is that of a scalar."""
    left, right = (1, *a) if len(a) == 1 else a, (*b, 1) if len(b) == 1 else b
    rows, inner = (left[-1], left[-2]) if transpose_a and len(a) > 1 else (left[-2], left[-1])
    other, columns = (right[-1], right[-2]) if transpose_b and len(b) > 1 else (right[-2], right[-1])
    merge_dim(inner, other)
    batch = broadcast(left[:-2], right[:-2])
    assert batch is not None
    return (*batch, *([rows] if len(a) > 1 else []), *([columns] if len(b) > 1 else []))


class Inverse(Op, opset=14, types={"x": FLOATS}):
    """The inverses of the last two dimensions, or with `adjoint` the adjugates. Spec: Inverse-14."""

    adjoint: bool = False

    def infer(self, x):
        if x.shape is None:
            return x
        self.require(len(x.shape) >= 2, f"a tensor of rank {len(x.shape)} holds no matrices")
        side = merge_dim(x.shape[-2], x.shape[-1])
        return TensorType(x.dtype, (*x.shape[:-2], side, side))

    def evaluate(self, *inputs):
        matrices = inputs[0].astype(np.float64)
        found = np.linalg.inv(matrices)
        if self.adjoint:
            found = found * np.linalg.det(matrices)[..., None, None]
        return found.astype(inputs[0].dtype)


class Einsum(Op, opset=7):
    """Sums of products over the subscripts that the result does not have. Spec: Einsum-7."""

    equation: str

    def axis_map(self, port):
        terms, result = subscripts(self.equation)
        return self._no_axes if "." in self.equation else tuple(
            terms[port].index(each) if each in terms[port] else None for each in result
        )  # fmt: skip

    def infer(self, *xs):
        dtype = same_dtype(*xs)
        self.require(dtype in NUMBERS.types, f"{dtype} is not of numbers")
        terms, result = subscripts(self.equation)
        self.require(len(terms) == len(xs), f"{len(xs)} inputs for {len(terms)} terms")
        dims: dict[str, Dimension] = {}
        dots: Shape = ()
        for term, x in zip(terms, xs, strict=True):
            if x.shape is None:
                return TensorType(dtype, None)
            letters = len(term.replace("...", ""))
            middle = len(x.shape) - letters
            self.require(middle == 0 or (middle > 0 and "..." in term), f"{term} for rank {len(x.shape)}")
            before = term.index("...") if "..." in term else letters
            dots = broadcast(dots, x.shape[before : before + middle])
            named = (*x.shape[:before], *x.shape[before + middle :])
            for letter, dim in zip(term.replace("...", ""), named, strict=True):
                dims[letter] = broadcast_dim(dims[letter], dim) if letter in dims else dim
        assert dots is not None
        missing = set(result.replace("...", "")) - dims.keys()
        self.require(not missing, f"{sorted(missing)} of the result are in no input")
        before = result.index("...") if "..." in result else len(result)
        tail = result[before + 3 :]
        return TensorType(dtype, (*(dims[x] for x in result[:before]), *(dots if before < len(result) else ()),
                                  *(dims[x] for x in tail)))  # fmt: skip

    def evaluate(self, *inputs):
        return np.asarray(np.einsum(self.equation, *(wide(each) for each in inputs))).astype(inputs[0].dtype)


def subscripts(equation: str) -> tuple[list[str], str]:
    """The terms of an equation and its result, which is derived if the equation has none."""
    equation = equation.replace(" ", "")
    left, arrow, result = equation.partition("->")
    terms = left.split(",")
    if not arrow:
        letters = left.replace(",", "").replace("...", "")
        once = sorted(letter for letter in set(letters) if letters.count(letter) == 1)
        result = ("..." if "..." in left else "") + "".join(once)
    return terms, result
