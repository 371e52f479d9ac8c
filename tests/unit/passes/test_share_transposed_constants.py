"""Matrices are compared bit by bit, transposed."""

from __future__ import annotations

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.graph import Graph
from mo_loop.graph.types import f32, i64
from mo_loop.ops.base import Constant, Parameter, Result
from mo_loop.transforms.common.transposed_weights import ShareTransposedConstants

ROWS, COLUMNS = 70, 40


def language_model(embedding: np.ndarray, weights: np.ndarray) -> tuple[Graph, ops.MatMul]:
    graph = Graph()
    tokens = Parameter(graph=graph, dtype=i64, shape=(4,))
    product = ops.MatMul(ops.Gather(Constant(embedding, graph=graph), tokens, 0), Constant(weights, graph=graph))
    Result(product)
    return graph, product


def test_the_product_reads_the_embedding() -> None:
    matrix = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    graph, product = language_model(matrix, np.ascontiguousarray(matrix.T))
    assert ShareTransposedConstants().run(graph)
    assert product.transpose_b and product.inputs[1].shape == (ROWS, COLUMNS)
    assert len([each for each in graph.of(Constant) if each.tensor.dtype is f32]) == 1
    assert not ShareTransposedConstants().run(graph)


@pytest.mark.parametrize("place", [(0, 0), (30, 7), (-1, -1)])
def test_one_other_bit_keeps_both(place: tuple[int, int]) -> None:
    matrix = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    other = np.ascontiguousarray(matrix.T)
    matrix[place] = 0.0
    other[place[::-1]] = -0.0
    graph, product = language_model(matrix, other)
    assert not ShareTransposedConstants().run(graph) and not product.transpose_b


def test_equal_first_and_last_elements_are_not_enough() -> None:
    matrix = np.zeros((ROWS, COLUMNS), np.float32)
    other = np.ascontiguousarray(matrix.T)
    other[1, 0] = 1
    graph, _ = language_model(matrix, other)
    assert not ShareTransposedConstants().run(graph)
