"""Operations in numpy, for different arguments of the same meaning."""

from typing import Any

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.graph import Graph
from mo_loop.graph.dimension import fresh
from mo_loop.graph.types import f32
from mo_loop.ops.base import Parameter

DATA = np.arange(24, dtype=np.float32).reshape(2, 3, 4)


def folded(operation: Any, *inputs: Any, **attributes: Any) -> Any:
    """The result of an operation for constants."""
    graph = Graph()
    constants = [ops.Constant(np.asarray(each), graph=graph).output for each in inputs]
    node = operation(*constants, **attributes)
    found = node.evaluate(*(np.asarray(each) for each in inputs))
    arrays = found if isinstance(found, tuple) else (found,)
    assert [each.shape for each in arrays] == [output.shape for output in node.outputs]
    return [each.tolist() for each in arrays]


@pytest.mark.parametrize("axis", range(3))
def test_slices_are_replaced_along_an_axis_from_behind_too(axis: int) -> None:
    indices = np.array([0, -1])
    updates = -np.take(DATA, indices, axis)
    expected = DATA.copy()
    np.moveaxis(expected, axis, 0)[indices] = np.moveaxis(updates, axis, 0)
    for each in (axis, axis - 3):
        assert folded(ops.ScatterUpdate, DATA, indices, updates, each) == [expected.tolist()]


@pytest.mark.parametrize("axis", range(3))
def test_elements_are_replaced_along_an_axis_from_behind_too(axis: int) -> None:
    indices = np.zeros((1, 1, 1), np.int64)
    indices[:] = -1
    expected = DATA.copy()
    place = [0, 0, 0]
    place[axis] = -1
    expected[tuple(place)] = 100
    updates = np.full((1, 1, 1), 100, np.float32)
    for each in (axis, axis - 3):
        assert folded(ops.ScatterElementsUpdate, DATA, indices, updates, each) == [expected.tolist()]


@pytest.mark.parametrize("lengths", [(-1, 1, 2), (1, -1, 2), (1, 2, -1)])
@pytest.mark.parametrize("axis", [2, -1])
def test_what_is_left_of_a_split_may_be_any_piece(lengths: tuple[int, ...], axis: int) -> None:
    sizes = [1 if each == -1 else each for each in lengths]
    expected = [each.tolist() for each in np.split(DATA, np.cumsum(sizes)[:-1], axis)]
    assert folded(ops.VariadicSplit, DATA, axis, np.array(lengths)) == expected


def test_what_is_left_of_a_split_of_unknown_length() -> None:
    graph = Graph()
    n = fresh(3)
    x = Parameter(graph=graph, dtype=f32, shape=(2, n)).output
    node = ops.VariadicSplit(x, 1, [1, -1, 2])
    assert [output.shape for output in node.outputs] == [(2, 1), (2, n - 3), (2, 2)]
