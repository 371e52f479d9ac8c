"""Slices, shapes and element types of values, in the notation of numpy."""

from typing import Any

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.dimension import fresh
from mo_loop.graph.types import f32, i32, i64


@pytest.fixture
def x() -> Value:
    return ops.Parameter(graph=Graph("g"), dtype=f32, shape=(fresh(1), 4, 5)).output


def inputs(value: Value) -> list[Any]:
    """The constant inputs of the node that made a value."""
    assert isinstance(value.node, ops.Slice | ops.Reshape | ops.Unsqueeze)
    return [None if each.constant is None else each.constant.tolist() for each in value.node.operands[1:]]


class TestSlices:
    def test_bounds_and_axes(self, x: Value) -> None:
        assert inputs(x[1:]) == [[1], [2**31 - 1], [1], [0]]
        assert inputs(x[:, :-1]) == [[0], [-1], [1], [1]]
        assert inputs(x[..., 1:3]) == [[1], [3], [1], [-1]]
        assert inputs(x[..., 1:3, :]) == [[1], [3], [1], [-2]]
        assert inputs(x[:2, :, 1:]) == [[0, 1], [2, 2**31 - 1], [1, 1], [0, 2]]
        assert inputs(x.cut(-1, 1)) == [[1], [2**31 - 1], [1], [-1]]

    def test_a_length_that_is_known_at_run_time_is_a_bound(self, x: Value) -> None:
        length = x.size(0)
        assert isinstance(length, Value) and inputs(x[:, :length])[1] is None
        assert inputs(x[:, : np.int64(3)])[1] == [3]  # type: ignore[misc]

    def test_new_axes(self, x: Value) -> None:
        assert inputs(x[None]) == [[0]] and inputs(x[:, None, None]) == [[1, 2]] and inputs(x[..., None]) == [[-1]]

    @pytest.mark.parametrize("key", [0, np.s_[::2], np.s_[:, 0], np.s_[:], np.s_[None, 1:]], ids=str)
    def test_other_keys_are_refused(self, x: Value, key: Any) -> None:
        with pytest.raises(TypeError, match="neither slices nor new axes"):
            x[key]

    def test_a_value_has_no_items(self, x: Value) -> None:
        with pytest.raises(TypeError):
            list(x)  # type: ignore[call-overload]


class TestShapes:
    def test_none_keeps_a_size(self, x: Value) -> None:
        kept, whole = x.reshape([None, 20]), x.reshape([-1, 20])
        assert inputs(kept) == [[0, 20]] and kept.node.special_zero
        assert inputs(whole) == [[-1, 20]] and not whole.node.special_zero

    def test_lengths(self, x: Value) -> None:
        assert x.size(1) == 4 and x.size(-1) == 5
        assert x.sizes[1:].constant.tolist() == [4, 5]
        assert x.reshape([x.size(0), 20]).shape[1] == 20

    def test_the_same_type_needs_no_node(self, x: Value) -> None:
        assert x.astype(f32) is x
        assert x.astype(i32).astype(i64).dtype is i64
