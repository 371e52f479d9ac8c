"""Products of matrices, sums of products, inverses, attention, and discrete Fourier transforms.

A complex tensor has its real and imaginary parts in a last dimension of 2.

DFT    X[k] = sum of x[t] e^(-2 pi i k t / n)
"""

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from mo_loop.graph import Dimension, TensorType, Value, bf16, boolean, f16, f32, fresh, low
from mo_loop.graph.shape import Shape, broadcast, broadcast_dim, merge_dim, normalise_axis
from mo_loop.ops.base import Op
from mo_loop.ops.infer import same_dtype, wide
from mo_loop.ops.ranges import FLOATS, NUMBERS


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
        self.require(len(x.shape) >= 2, f"the input has rank {len(x.shape)}, and must have 2 or more")
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
        )

    def infer(self, *xs):
        dtype = same_dtype(*xs)
        self.require(dtype in NUMBERS.types, f"the inputs are {dtype}, and must be numbers")
        terms, result = subscripts(self.equation)
        self.require(len(terms) == len(xs), f"the equation has {len(terms)} terms for {len(xs)} inputs")
        dims: dict[str, Dimension] = {}
        dots: Shape = ()
        for term, x in zip(terms, xs, strict=True):
            if x.shape is None:
                return TensorType(dtype, None)
            letters = len(term.replace("...", ""))
            middle = len(x.shape) - letters
            self.require(middle == 0 or (middle > 0 and "..." in term), f"{term!r} does not fit rank {len(x.shape)}")
            before = term.index("...") if "..." in term else letters
            dots = broadcast(dots, x.shape[before : before + middle])
            named = (*x.shape[:before], *x.shape[before + middle :])
            for letter, dim in zip(term.replace("...", ""), named, strict=True):
                dims[letter] = broadcast_dim(dims[letter], dim) if letter in dims else dim
        assert dots is not None
        missing = set(result.replace("...", "")) - dims.keys()
        self.require(not missing, f"the subscripts {sorted(missing)} of the result are in no input")
        before = result.index("...") if "..." in result else len(result)
        tail = result[before + 3 :]
        return TensorType(dtype, (*(dims[x] for x in result[:before]), *(dots if before < len(result) else ()),
                                  *(dims[x] for x in tail)))

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


class ScaledDotProductAttention(Op, opset=13, single=("scale",), types={"query": FLOATS}, keeps_axes=True):
    """softmax(scale * Q K^T + mask) V over the last two dimensions.

    The other dimensions broadcast. Q is [.., L, size], K is [.., S, size] and V is [.., S, width]; the result is
    [.., L, width]. A mask is boolean (true where a key is read) or of the type of Q, and broadcast to [.., L, S]; a
    scalar masks nothing. Without `scale` the scale is 1 / sqrt(size). With `causal` a query reads only the keys up to
    its own position, and a mask is ignored. Spec: ScaledDotProductAttention-13.
    """

    causal: bool = False

    def infer(self, query, key, value, attention_mask=None, scale=None):
        dtype = same_dtype(query, key, value)
        masked = attention_mask is not None and attention_mask.dtype is not boolean
        same_dtype(query, *([attention_mask] if masked else []), *([scale] if scale is not None else []))
        if query.shape is None or key.shape is None or value.shape is None:
            return TensorType(dtype, None)
        for each, what in ((query, "queries"), (key, "keys"), (value, "values")):
            self.require(len(each.shape) >= 3, f"the {what} have rank {len(each.shape)}, and need 3 or more")
        merge_dim(query.shape[-1], key.shape[-1])
        keys = merge_dim(key.shape[-2], value.shape[-2])
        batch = broadcast(query.shape[:-2], key.shape[:-2], value.shape[:-2])
        assert batch is not None
        if attention_mask is not None and attention_mask.shape:
            seen = broadcast((*batch, query.shape[-2], keys), attention_mask.shape)
            assert seen is not None
            batch = seen[:-2]
        return TensorType(dtype, (*batch, query.shape[-2], value.shape[-1]))

    def evaluate(self, *inputs):
        query, key, value = (wide(each) for each in inputs[:3])
        mask, scale = (None if each is None else wide(each) for each in (*inputs[3:], None, None)[:2])
        scores = (1 / np.sqrt(query.shape[-1]) if scale is None else scale) * np.matmul(query, np.swapaxes(key, -1, -2))
        if self.causal:
            mask = np.tri(*scores.shape[-2:], dtype=bool)
        if mask is not None and mask.dtype == bool:
            scores = np.where(mask, scores, -np.inf)
        elif mask is not None:
            scores = scores + mask
        weights = np.exp(scores - scores.max(axis=-1, keepdims=True, initial=-np.inf))
        weights = weights / weights.sum(axis=-1, keepdims=True)
        return np.asarray(np.matmul(weights, value)).astype(inputs[0].dtype)


class Fourier(Op, abstract=True, index=("axes", "signal_size"), ranks={"axes": 1, "signal_size": 1}, along="axes"):
    """Base of the transforms. `signal_size` has for each axis the length to which the signal is sliced or padded with
    zeros; -1 keeps the length."""

    reads_complex = True
    """Whether the last dimension of the input holds the real and the imaginary part."""

    def infer(self, x, axes, signal_size=None):
        self.require(x.dtype in (f32, f16, bf16), f"{x.dtype}, not one of f32, f16, bf16")
        if x.shape is None:
            return TensorType(x.dtype, None)
        dims = x.shape
        if self.reads_complex:
            self.require(len(dims) >= 2, f"the input has rank {len(dims)}, and must have 2 or more")
            *dims, last = dims
            self.require(not isinstance(last, int) or last == 2, f"the last dimension is {last}, and must be 2")
        places = self._places(axes, len(dims), signal_size)
        return TensorType(x.dtype, self._result(x.shape, places, self._resized(dims, places, signal_size), signal_size))

    def _result(
        self, shape: Sequence[Dimension], places: list[int] | None, dims: list[Dimension], signal_size
    ) -> tuple[Dimension, ...]:
        """The shape of the result. `places` are the axes, None if they are not known; `dims` has the signal sizes."""
        raise NotImplementedError

    def _places(self, axes, rank: int, signal_size) -> list[int] | None:
        """The axes of a tensor of that rank without the complex dimension; None if they are not known."""
        given = [each.shape[0] for each in (axes, signal_size) if each is not None and each.shape is not None]
        count = functools.reduce(merge_dim, given) if given else fresh()
        self.require(low(count) <= rank, f"there are {count} axes, and the rank is {rank}")
        if axes.integers is None:
            return None
        places = [normalise_axis(axis, rank) for axis in axes.integers]
        self.require(len(set(places)) == len(places), f"the axes {axes.integers} have one of them twice")
        return places

    def _resized(self, dims: Sequence[Dimension], places: Sequence[int] | None, signal_size) -> list[Dimension]:
        """The dimensions, those of the axes replaced by the signal sizes."""
        if places is None:
            return [fresh() for _ in dims]
        result = list(dims)
        if signal_size is None:
            return result
        sizes = [fresh() for _ in places] if signal_size.known is None else list(signal_size.known.reshape(-1))
        self.require(len(sizes) == len(places), f"there are {len(sizes)} signal sizes for {len(places)} axes")
        for place, size in zip(places, sizes, strict=True):
            if not isinstance(size, int) or size != -1:
                result[place] = size
        return result


class DFT(Fourier, opset=7, keeps_axes=True):
    """Complex to complex. Spec: DFT-7."""

    def _result(self, shape, places, dims, signal_size):
        return (*dims, shape[-1])


class IDFT(DFT, opset=7):
    """The inverse of DFT. Spec: IDFT-7."""


class RDFT(Fourier, opset=9):
    """Real to complex; the last axis has only the first half, which determines the other half. Spec: RDFT-9."""

    reads_complex = False

    def _result(self, shape, places, dims, signal_size):
        if places is not None:
            dims[places[-1]] = dims[places[-1]] // 2 + 1
        return (*dims, 2)


class IRDFT(Fourier, opset=9):
    """Complex to real: the inverse of RDFT. Spec: IRDFT-9."""

    def _result(self, shape, places, dims, signal_size):
        given = signal_size is not None and signal_size.known is not None
        if places is not None and (signal_size is None or (given and signal_size.known.reshape(-1)[-1] == -1)):
            half = shape[places[-1]]
            dims[places[-1]] = (half - 1) * 2 if isinstance(half, int) or half.lo >= 1 else fresh()
        return tuple(dims)


def inverse_of_lower(square: Value, size: int, constant: Callable[[np.ndarray[Any, Any]], Value]) -> Value:
    """The inverse of I + L, where L is the part of `square` [.., N, N] below the diagonal and N is at most `size`.

    Blocks [[A, 0], [M, B]] have the inverse [[A', 0], [-B' M A', B']]; each step doubles their size. `constant` makes a
    tensor of the type and size of `square` of an array [size, size].
    """
    inverse, width = constant(np.eye(size)), 1
    while width < size:
        block = np.arange(size) // width
        below = (block[:, None] % 2 == 1) & (block[None] == block[:, None] - 1)
        part = square * constant(below)
        inverse = inverse - (part if width == 1 else inverse @ part @ inverse)
        width *= 2
    return inverse
