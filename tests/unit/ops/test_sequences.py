"""The lengths and elements of sequences made by splitting tensors."""

from typing import Any

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.graph import Graph
from mo_loop.graph.dimension import Dimension, fresh, high, low
from mo_loop.graph.types import f32, i64


def split(dim: Dimension, sizes: Any, **attributes: Any) -> Any:
    """The type of a tensor of f32[2, dim] split along its last axis."""
    graph = Graph()
    x = ops.Parameter(graph=graph, dtype=f32, shape=(2, dim))
    inputs = (x,) if sizes is None else (x, np.array(sizes))
    return ops.SplitToSequence(*inputs, **{"axis": -1, **attributes}).output.type


@pytest.mark.parametrize(("dim", "size"), [(6, 1), (6, 2), (6, 3), (6, 6)])
def test_pieces_of_equal_size(dim: int, size: int) -> None:
    found = split(dim, size)
    assert (found.length, found.element.shape) == (dim // size, (2, size))


@pytest.mark.parametrize(("dim", "size", "count"), [(7, 2, 4), (7, 3, 3), (7, 6, 2), (7, 8, 1)])
def test_pieces_of_which_the_last_is_shorter(dim: int, size: int, count: int) -> None:
    found = split(dim, size)
    assert found.length == count
    rows, columns = found.element.shape
    assert (rows, low(columns), high(columns)) == (2, 0, size)


def test_pieces_of_a_dimension_known_at_run_time() -> None:
    dim = fresh(5, 9)
    found = split(dim, 2)
    assert (low(found.length), high(found.length)) == (3, 5)
    columns = found.element.shape[1]
    assert (low(columns), high(columns)) == (0, 2) and split(dim, None).length == dim


def test_pieces_of_size_1_without_sizes() -> None:
    assert split(4, None).element.shape == (2, 1) and split(4, None, keepdims=False).element.shape == (2,)
    assert split(4, None).length == 4


def test_pieces_of_given_sizes() -> None:
    assert split(6, [3, 3]).element.shape == (2, 3)
    found = split(6, [1, 5, 0])
    columns = found.element.shape[1]
    assert (found.length, low(columns), high(columns)) == (3, 0, 5)


def test_sizes_known_at_run_time() -> None:
    graph = Graph()
    x = ops.Parameter(graph=graph, dtype=f32, shape=(6,))
    one = ops.Parameter(graph=graph, dtype=i64, shape=())
    three = ops.Parameter(graph=graph, dtype=i64, shape=(3,))
    assert ops.SplitToSequence(x, one).output.type.length is None
    assert ops.SplitToSequence(x, three).output.type.length == 3
