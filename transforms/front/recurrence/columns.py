"""The expressions of the columns of a value in a body, followed back through products, splits and activations.

    gates = MatMul(Concat(x, h), W) + b         W: 3 + 2 rows, 8 columns
    i = Sigmoid(Split(gates)[1])                columns 2..4 of gates

    Columns(...).of(i)  ->  Active("sigmoid", Affine(x: W[0:3, 2:4], h: W[3:5, 2:4], bias b[2:4]))

A value counts as a matrix of rows (the batch) and columns (the last dimension); dimensions of 1 before the last do not
matter. Only the requested columns are followed, so the order of the gates does not matter either.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from mo_loop.graph import Dimension, normalise_axis, now
from mo_loop.transforms.vocabulary import Constant, Node, Value, integers, ops

Array = np.ndarray[Any, Any]

MOVES = (ops.SameElements, ops.Transpose, ops.Convert)
"""Operations that may be between a constant and the product that reads it."""

DEEPEST, MOST_TERMS = 100, 64
"""Limits: no cell needs more operations in a row, or more products in one sum."""


class NotACell(Exception):
    """Raised with the reason why a body does not compute a cell."""


class Expression:
    """The expression of some columns."""


@dataclass(frozen=True, eq=False)
class Source(Expression):
    """Columns `first` to `last` (exclusive) of a leaf: a state, or a slice of an input."""

    value: Value
    first: int
    last: int


@dataclass(frozen=True, eq=False)
class Active(Expression):
    """An activation of other columns."""

    name: str
    of: Expression


@dataclass(frozen=True, eq=False)
class Product(Expression):
    """An element-wise product."""

    a: Expression
    b: Expression


@dataclass(frozen=True, eq=False)
class Affine(Expression):
    """The sum of sources times matrices [rows, columns], and a bias [columns]."""

    terms: tuple[tuple[Expression, Array], ...]
    bias: Array


@dataclass(frozen=True, eq=False)
class Sum(Expression):
    """An affine part, and other expressions with their signs."""

    affine: Affine
    parts: tuple[tuple[int, Expression], ...]


def batch_of(value: Value) -> Dimension:
    """The number of rows; NotACell where the shape is not one of rows and columns."""
    width_of(value)
    rows = [dim for dim in value.type.dims[:-1] if dim != 1]
    if len(rows) > 1:
        raise NotACell("a value of the cell has more than two dimensions above 1")
    return rows[0] if rows else 1


def width_of(value: Value) -> int:
    """The number of columns, for the declared sizes if these may change; NotACell where it is not known."""
    width = now(value.shape[-1]) if value.shape else None
    if width is None:
        raise NotACell("the last dimension of a value of the cell is unknown")
    return width


class Columns:
    """The expressions of one body.

    `leaves` are values that are not followed further; `outer` maps invariant Parameters to their outer values.
    """

    ACTIVATIONS: ClassVar[dict[type[Node], str]] = {ops.Sigmoid: "sigmoid", ops.Tanh: "tanh", ops.ReLU: "relu"}

    def __init__(self, leaves: Sequence[Value], outer: Mapping[Value, Value], batch: Dimension) -> None:
        self._outer = outer
        self._leaves = set(leaves)
        self._batch = batch
        self._known: dict[tuple[Value, int, int], Expression] = {}
        self._arrays: dict[Value, Array | None] = {}
        self._depth = 0
        self._rules: dict[type[Node], Callable[[Any, int, int], Expression]] = {
            ops.MatMul: self._product,
            ops.Add: lambda node, first, last: self._sum(node, 1, first, last),
            ops.Subtract: lambda node, first, last: self._sum(node, -1, first, last),
            ops.Negative: lambda node, first, last: scaled(self._input(node, 0, first, last), -1),
            ops.Multiply: self._times,
            ops.Concat: self._joined,
        }

    def of(self, value: Value, first: int = 0, last: int | None = None) -> Expression:
        """The expression of columns `first` to before `last`; the same object for the same columns."""
        value = self.plain(value)
        last = width_of(value) if last is None else last
        key = (value, first, last)
        if key not in self._known:
            if self._depth > DEEPEST:
                raise NotACell("the next state is computed by more than 100 operations in a row")
            self._depth += 1
            self._known[key] = self._made(value, first, last)
            self._depth -= 1
        return self._known[key]

    def found(self, value: Value) -> Expression | None:
        """The expression of all columns, if `of` has made it before."""
        value = self.plain(value)
        return self._known.get((value, 0, width_of(value)))

    def plain(self, value: Value) -> Value:
        """The value before changes of shape that keep rows and columns."""
        while value not in self._leaves:
            node = value.node
            if not isinstance(node, ops.SameElements | ops.Transpose):
                break
            source = node.operands[0]
            if not self._has_same_rows(node, source, value):
                break
            value = source
        return value

    def _has_same_rows(self, node: Node, source: Value, value: Value) -> bool:
        if not source.shape or not value.shape or source.shape[-1] != value.shape[-1]:
            return False
        if isinstance(node, ops.Transpose):
            order = integers(node, 1)
            if not order or normalise_axis(order[-1], len(order)) != len(order) - 1:
                return False
        try:
            return batch_of(source) == batch_of(value)
        except NotACell:
            return False

    def _made(self, value: Value, first: int, last: int) -> Expression:
        if batch_of(value) != self._batch:
            raise NotACell("a value of the cell has another batch size than the state")
        if value in self._leaves:
            return Source(value, first, last)
        node = value.node
        name = self.ACTIVATIONS.get(type(node))
        if name is not None:
            return Active(name, self._input(node, 0, first, last))
        if isinstance(node, ops.Split | ops.VariadicSplit | ops.Slice):
            return self._piece(node, value, first, last)
        rule = self._rules.get(type(node))
        if rule is None:
            raise NotACell(f"the cell reads a {type(node).__name__}")
        return rule(node, first, last)

    def _input(self, node: Node, port: int, first: int, last: int) -> Expression:
        value = node.operands[port]
        if width_of(value) != width_of(node.outputs[0]):
            raise NotACell("a value of the cell is broadcast along its columns")
        return self.of(value, first, last)

    # -- products with constants

    def _product(self, node: ops.MatMul, first: int, last: int) -> Expression:
        rows, weights = self._factors(node)
        if weights.shape[1] != width_of(node.output):
            raise NotACell("a product does not multiply rows by a matrix")
        terms: list[tuple[Expression, Array]] = []
        start = 0
        for block, width in self._blocks(rows):
            terms.append((block, weights[start : start + width, first:last]))
            start += width
        if start != weights.shape[0]:
            raise NotACell("a product does not multiply rows by a matrix")
        return Affine(tuple(terms), np.zeros(last - first, weights.dtype))

    def _factors(self, node: ops.MatMul) -> tuple[Value, Array]:
        """The rows, and the constant matrix [in, out] that they are multiplied by."""
        a, b = node.operands
        right, left = self.constant(b), self.constant(a)
        if right is not None and (not node.transpose_a or a.rank == 1):
            matrix = _matrix(right)
            return a, matrix.T if node.transpose_b else matrix
        if left is not None and b.rank == 1:
            matrix = _matrix(left)
            return b, matrix if node.transpose_a else matrix.T
        raise NotACell("a product has no constant weights")

    def _blocks(self, value: Value) -> list[tuple[Expression, int]]:
        """The expressions whose columns make up the rows, with their numbers of columns."""
        value = self.plain(value)
        node = value.node
        width = width_of(value)
        if value not in self._leaves and isinstance(node, ops.Concat) and _is_last(node.axis, value):
            return [block for each in node.operands for block in self._blocks(each)]
        expression = self.of(value)
        if isinstance(expression, Affine | Sum):
            raise NotACell("a product is multiplied by weights")
        return [(expression, width)]

    # -- element by element

    def _sum(self, node, sign: int, first: int, last: int) -> Expression:
        a, b = (self._operand(node, port, first, last) for port in (0, 1))
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            raise NotACell("a sum of constants")
        return added(as_sum(a, last - first), as_sum(scaled(b, sign), last - first))

    def _times(self, node, first: int, last: int) -> Expression:
        a, b = (self._operand(node, port, first, last) for port in (0, 1))
        if isinstance(a, np.ndarray):
            a, b = b, a
        if isinstance(a, np.ndarray):
            raise NotACell("a product of constants")
        return scaled(a, b) if isinstance(b, np.ndarray) else Product(a, b)

    def _operand(self, node: Node, port: int, first: int, last: int):
        """An expression, or an array [columns]."""
        array = self.constant(node.operands[port])
        if array is None:
            return self._input(node, port, first, last)
        if array.size == 1:
            return np.full(last - first, array.reshape(()), array.dtype)
        if array.size != array.shape[-1]:
            raise NotACell("a constant of the cell differs between rows")
        return array.reshape(-1)[first:last]

    # -- pieces

    def _piece(self, node, value: Value, first: int, last: int) -> Expression:
        source = node.inputs[0]
        if isinstance(node, ops.Slice):
            return self.of(source, *self._sliced_range(node, first, last))
        axis = node.inputs[1].type.integers
        if axis is None or not _is_last(axis[0], source):
            raise NotACell("a Split does not split columns")
        before = sum(width_of(output) for output in node.outputs[: value.index])
        return self.of(source, before + first, before + last)

    def _sliced_range(self, node: ops.Slice, first: int, last: int) -> tuple[int, int]:
        source = node.operands[0]
        start, stop, step, *axes = (None if each is None else each.type.integers for each in node.inputs[1:])
        if start is None or stop is None or step != (1,) or not axes or axes[0] is None:
            raise NotACell("a Slice does not select columns")
        if not _is_last(axes[0][0], source):
            raise NotACell("a Slice does not select columns")
        begin, _, _ = slice(start[0], stop[0]).indices(width_of(source))
        return begin + first, begin + last

    def _joined(self, node: ops.Concat, first: int, last: int) -> Expression:
        if not _is_last(node.axis, node.output):
            raise NotACell("a Concat does not concatenate columns")
        start = 0
        for value in node.operands:
            width = width_of(value)
            if start <= first and last <= start + width:
                return self.of(value, first - start, last - start)
            start += width
        raise NotACell("a gate is concatenated from several values")

    # -- constants

    def constant(self, value: Value) -> Array | None:
        """The data of a value that depends only on constants, else None."""
        if value not in self._arrays:
            self._arrays[value] = self._evaluated(value)
        return self._arrays[value]

    def _evaluated(self, value: Value) -> Array | None:
        chain: list[Any] = []
        value = self._outer.get(value, value)
        while isinstance(value.node, MOVES):
            if not all(isinstance(each.node, Constant) for each in value.node.inputs[1:] if each is not None):
                return None
            chain.append(value.node)
            value = self._outer.get(value.node.inputs[0], value.node.inputs[0])
        array: Any = value.node.array if isinstance(value.node, Constant) and value.dtype.is_float else None
        for node in reversed(chain):
            if array is not None:
                array = node.evaluate(array, *(None if each is None else each.node.array for each in node.inputs[1:]))
            array = None if array is NotImplemented else array
        return array


def _matrix(array: Array) -> Array:
    if array.ndim < 2 or array.size != array.shape[-1] * array.shape[-2]:
        raise NotACell("weights are not a matrix")
    return array.reshape(array.shape[-2:])


def _is_last(axis: int, value: Value) -> bool:
    return value.rank is not None and normalise_axis(axis, value.rank) == value.rank - 1


# -- sums


def as_sum(given, width: int) -> Sum:
    """An expression or an array as a Sum."""
    if isinstance(given, Sum):
        return given
    if isinstance(given, Affine):
        return Sum(given, ())
    if isinstance(given, np.ndarray):
        return Sum(Affine((), given), ())
    return Sum(Affine((), np.zeros(width, np.float32)), ((1, given),))


def added(a: Sum, b: Sum) -> Expression:
    """a + b; an Affine if nothing else is in it."""
    affine = Affine((*a.affine.terms, *b.affine.terms), a.affine.bias + b.affine.bias)
    parts = (*a.parts, *b.parts)
    if len(affine.terms) + len(parts) > MOST_TERMS:
        raise NotACell("a sum of too many products")
    return Sum(affine, parts) if parts else affine


def scaled(given, factor):
    """An expression or array times a number or array [columns]; NotACell if the product is not supported."""
    if isinstance(given, np.ndarray):
        return given * factor
    if np.all(np.asarray(factor) == 1):
        return given
    if isinstance(given, Affine):
        return Affine(tuple((each, matrix * factor) for each, matrix in given.terms), given.bias * factor)
    if not np.all(np.asarray(factor) == -1):
        raise NotACell("a value of the cell is multiplied by a constant other than 1 and -1")
    if isinstance(given, Sum):
        return Sum(scaled(given.affine, -1), tuple((-sign, each) for sign, each in given.parts))
    width = given.last - given.first if isinstance(given, Source) else None
    return Sum(Affine((), np.zeros(width or 1, np.float32)), ((-1, given),))
