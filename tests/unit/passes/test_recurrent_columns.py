"""Columns of values in a body: their sources, and nodes that are not part of a cell."""

from typing import Any

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.graph import Graph
from mo_loop.transforms.front.recurrence.cells import _affine, _cell_gates
from mo_loop.transforms.front.recurrence.columns import (
    Active,
    Affine,
    Columns,
    Expression,
    NotACell,
    Product,
    Source,
    Sum,
    added,
    as_sum,
    scaled,
)
from tests.harness import raised
from tests.unit.graph.graphs import parameter

NONE = np.zeros(3, np.float32)


def columns(*leaves: Any) -> Columns:
    return Columns(leaves, {}, 2)


def source(graph: Graph, first: int = 0, last: int = 3, width: int = 3) -> Source:
    return Source(parameter(graph, 2, width), first, last)


def sums(*parts: Expression) -> Sum:
    return Sum(Affine((), NONE), tuple((1, each) for each in parts))


class TestPieces:
    def test_columns_of_a_slice(self, graph: Graph) -> None:
        x = parameter(graph, 2, 8)
        for start, stop, begin in ((1, 7, 1), (3, 8, 3), (-5, 100, 3), (-7, -1, 1), (0, 6, 0)):
            piece = ops.Slice(x, [start], [stop], [1], [1]).output
            width = piece.type.dims[1]
            found: Any = columns(x).of(piece, 1, width - 1)
            assert (found.value, found.first, found.last) == (x, begin + 1, begin + width - 1)

    def test_slices_that_are_not_columns(self, graph: Graph) -> None:
        x = parameter(graph, 2, 8)
        for slice_ in (([0], [8], [2], [1]), ([0], [2], [1], [0]), ([0], [8], [1])):
            raised(NotACell, columns(x).of, ops.Slice(x, *slice_).output, 0, 1)

    def test_columns_of_a_split(self, graph: Graph) -> None:
        x = parameter(graph, 2, 8)
        for axis in (1, -1):
            for node in (ops.Split(x, axis, num_splits=4), ops.VariadicSplit(x, axis, [1, 3, 4])):
                begin = 0
                for output in node.outputs:
                    width = output.type.dims[1]
                    found: Any = columns(x).of(output)
                    assert (found.value, found.first, found.last) == (x, begin, begin + width)
                    begin += width

    def test_a_split_of_rows(self, graph: Graph) -> None:
        x = parameter(graph, 2, 8)
        raised(NotACell, columns(x).of, ops.Split(x, 0, num_splits=2).outputs[0])

    def test_columns_of_a_concatenation(self, graph: Graph) -> None:
        x, y = parameter(graph, 2, 3), parameter(graph, 2, 5)
        whole = ops.Concat(x, y, axis=-1).output
        found = columns(x, y)
        for first, last, value, begin, end in ((0, 3, x, 0, 3), (1, 2, x, 1, 2), (3, 8, y, 0, 5), (4, 7, y, 1, 4)):
            each: Any = found.of(whole, first, last)
            assert (each.value, each.first, each.last) == (value, begin, end)
        raised(NotACell, found.of, whole, 2, 4, match="several values")

    def test_a_concatenation_of_rows(self, graph: Graph) -> None:
        x = parameter(graph, 1, 3)
        raised(NotACell, columns(x).of, ops.Concat(x, x, axis=0).output, match="does not concatenate columns")

    def test_another_batch(self, graph: Graph) -> None:
        raised(NotACell, columns().of, parameter(graph, 3, 3), match="another batch size")


class TestConstants:
    def test_moved_ones(self, graph: Graph) -> None:
        """Operations between the Constant and its consumer are applied in order."""
        array = np.arange(6, dtype=np.float32).reshape(2, 3)
        weights = ops.Constant(array, graph=graph).output
        moved = ops.Reshape(ops.Unsqueeze(ops.Transpose(weights, [1, 0]), [0]), [2, 3]).output
        found = columns().constant(moved)
        assert found is not None and found.tolist() == array.T.reshape(2, 3).tolist()

    def test_what_is_none(self, graph: Graph) -> None:
        x = parameter(graph, 2, 3)
        whole = ops.Constant(np.array([1, 2]), graph=graph).output
        weights = ops.Constant(np.ones((2, 3), np.float32), graph=graph).output
        order = ops.Parameter(graph=graph, dtype=ops.Constant([1, 0], graph=graph).output.dtype, shape=(2,)).output
        for each in (x, ops.Transpose(x, [1, 0]).output, whole, ops.Transpose(weights, order).output):
            assert columns().constant(each) is None

    def test_in_sums(self, graph: Graph) -> None:
        """One number for all columns, or one for each of them; not one for each row."""
        x = parameter(graph, 2, 3)
        for bias, expected in (([7.0], [7, 7]), ([1.0, 2.0, 3.0], [2, 3]), ([[1.0, 2.0, 3.0]], [2, 3])):
            given = ops.Constant(np.array(bias, np.float32), graph=graph)
            found: Any = columns(x).of(ops.Add(x, given).output, 1, 3)
            assert found.affine.bias.tolist() == expected
            found = columns(x).of(ops.Subtract(x, given).output, 1, 3)
            assert found.affine.bias.tolist() == [-each for each in expected]
        rows = ops.Constant(np.ones((2, 3), np.float32), graph=graph)
        raised(NotACell, columns(x).of, ops.Add(x, rows).output, match="between rows")


class TestProducts:
    def test_blocks_of_rows(self, graph: Graph) -> None:
        x, h = parameter(graph, 2, 3), parameter(graph, 2, 2)
        weights = np.arange(20, dtype=np.float32).reshape(5, 4)
        for transposed in (False, True):
            matrix = ops.Constant(weights.T if transposed else weights, graph=graph)
            product = ops.MatMul(ops.Concat(x, h, axis=1), matrix, transpose_b=transposed).output
            found: Any = columns(x, h).of(product, 1, 3)
            (a, first), (b, second) = found.terms
            assert (a.value, b.value) == (x, h)
            assert (first.tolist(), second.tolist()) == (weights[:3, 1:3].tolist(), weights[3:, 1:3].tolist())
            assert found.bias.tolist() == [0, 0]

    def test_products_of_rows_that_are_no_weights(self, graph: Graph) -> None:
        x = parameter(graph, 2, 3)
        raised(NotACell, columns(x).of, ops.MatMul(x, parameter(graph, 3, 4)).output, match="no constant weights")

    def test_weights_times_a_product(self, graph: Graph) -> None:
        x = parameter(graph, 2, 3)
        weights = ops.Constant(np.ones((3, 3), np.float32), graph=graph)
        with pytest.raises(NotACell, match="a product is multiplied by weights"):
            columns(x).of(ops.MatMul(ops.MatMul(x, weights), weights).output)


class TestSums:
    def test_scaled(self, graph: Graph) -> None:
        """Weights and bias are both multiplied; anything that is not a product can only change its sign."""
        x = source(graph)
        affine = Affine(((x, np.full((3, 3), 5, np.float32)),), np.array([7, 8, 9], np.float32))
        factor = np.array([2, 3, 4], np.float32)
        found = scaled(affine, factor)
        assert found.bias.tolist() == [14, 24, 36]
        assert found.terms[0][0] is x and found.terms[0][1].tolist() == [[10, 15, 20]] * 3
        assert scaled(affine, 1) is affine and scaled(x, np.ones(3)) is x
        assert scaled(factor, -1).tolist() == [-2, -3, -4]
        negative = scaled(x, -1)
        assert (negative.parts, negative.affine.terms) == (((-1, x),), ()) and negative.affine.bias.tolist() == [0] * 3
        assert scaled(negative, -1).parts == ((1, x),)
        raised(NotACell, scaled, x, 2, match="other than 1 and -1")

    def test_added(self, graph: Graph) -> None:
        x, y = source(graph), source(graph)
        matrix = np.eye(3, dtype=np.float32)
        a, b = Affine(((x, matrix),), NONE + 1), Affine(((y, matrix),), NONE + 2)
        found: Any = added(as_sum(a, 3), as_sum(b, 3))
        assert isinstance(found, Affine) and [each for each, _ in found.terms] == [x, y]
        assert found.bias.tolist() == [3, 3, 3]
        mixed: Any = added(as_sum(a, 3), as_sum(y, 3))
        assert mixed.parts == ((1, y),) and mixed.affine.bias.tolist() == [1, 1, 1]

    def test_sums_of_too_many_products(self, graph: Graph) -> None:
        x = source(graph)
        most = sums(*[x] * 63)
        assert isinstance(added(most, sums(x)), Sum)
        raised(NotACell, added, most, sums(x, x), match="too many")

    def test_a_source_that_is_added_has_the_columns_of_the_state(self, graph: Graph) -> None:
        state = parameter(graph, 2, 3)
        x = source(graph)
        found = _affine(Sum(Affine((), NONE), ((-1, x),)), state)
        assert found.terms[0][0] is x and found.terms[0][1].tolist() == (-np.eye(3)).tolist()
        strange = (
            source(graph, 0, 2), source(graph, 1, 3), source(graph, 0, 3, width=5), source(graph, 1, 4, width=5),
            Active("tanh", x),
        )
        for each in strange:
            raised(NotACell, _affine, sums(each), state)
        raised(NotACell, _affine, x, state)


class TestGates:
    """f * c + i * g"""

    def gates(self, graph: Graph) -> tuple[Any, Active, Active, Active, Source]:
        cell = parameter(graph, 2, 3)
        f, i, g = (Active(name, source(graph)) for name in ("sigmoid", "sigmoid", "tanh"))
        return cell, f, i, g, Source(cell, 0, 3)

    def test_in_any_order(self, graph: Graph) -> None:
        cell, f, i, g, c = self.gates(graph)
        for monomials in ([(1, (f, c)), (1, (i, g))], [(1, (g, i)), (1, (c, f))]):
            assert _cell_gates(monomials, cell) == (f, i, g)

    def test_other_sums(self, graph: Graph) -> None:
        cell, f, i, g, c = self.gates(graph)
        kept, new = (1, (f, c)), (1, (i, g))
        part = Source(cell, 0, 2)
        others: tuple[list[Any], ...] = (
            [kept], [new], [kept, new, new], [kept, kept], [new, new], [(-1, (f, c)), new], [kept, (-1, (i, g))],
            [(1, (f, part)), new], [kept, (1, (i, Active("relu", g.of)))], [kept, (1, (i, g, g))], [kept, (1, (g, g))],
            [kept, (1, (i, f))],
        )
        for each in others:
            raised(NotACell, _cell_gates, each, cell)


def test_products_and_activations(graph: Graph) -> None:
    x, y = parameter(graph, 2, 3), parameter(graph, 2, 3)
    found: Any = columns(x, y).of(ops.Multiply(ops.Sigmoid(x), y).output, 1, 2)
    assert isinstance(found, Product) and isinstance(found.a, Active) and found.a.name == "sigmoid"
    of: Any = found.a.of
    assert (of.value, of.first, of.last, found.b.value) == (x, 1, 2, y)
    raised(NotACell, columns(x).of, ops.Exp(x).output, match="reads a Exp")
    wide = ops.Add(parameter(graph, 2, 1), x).output
    raised(NotACell, columns(x).of, wide, match="broadcast")
