"""Known sizes, and values from which sizes are computed: equal symbols always mean equal sizes."""

import operator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.dimension import Dimension, fresh, high, least, low, most, named, now, opened, unknown
from mo_loop.graph.types import ElementType, TensorType, boolean, f32, i32, i64, known_array, u8, u32
from mo_loop.ops import values
from tests.cases import read_cases


def tensor(graph: Graph, *shape: Dimension) -> Value:
    return ops.Parameter(graph=graph, dtype=f32, shape=shape).output


def vector(graph: Graph, *items: Dimension) -> Value:
    type_ = TensorType(i64, (len(items),), known_array(items, (len(items),)))
    return ops.Parameter(graph=graph, type=type_).output


class TestRenaming:
    """Inference makes new symbols each time: an equal result is not a change, a different one is."""

    def test_another_input_of_the_same_bounds_is_a_change(self) -> None:
        graph = Graph()
        a, b = tensor(graph, fresh()), tensor(graph, fresh())
        node = ops.Exp(a)
        graph.set_input(node, 0, b)
        graph.validate()
        assert node.output.shape == b.shape != a.shape

    def test_a_size_whose_declared_value_is_no_longer_known_is_a_change(self) -> None:
        graph = Graph()
        of_input, unknown = opened("x", 0, 2), fresh()
        a, b = tensor(graph, of_input), tensor(graph, unknown)
        node = ops.Add(a, tensor(graph, opened("y", 0, 2)))
        assert node.output.shape is not None and now(node.output.shape[0]) == 2
        graph.set_input(node, 0, b)
        graph.validate()
        assert now(node.output.shape[0]) is None

    def test_another_order_is_a_change(self) -> None:
        graph = Graph()
        x = tensor(graph, fresh(), fresh())
        node = ops.Transpose(x, [0, 1])
        graph.set_input(node, 1, ops.Constant([1, 0], graph=graph).output)
        graph.validate()
        assert x.shape is not None and node.output.shape == (x.shape[1], x.shape[0])

    def test_two_sizes_are_not_one(self) -> None:
        """One unknown size that is now two different ones is a change."""
        graph = Graph()
        x, k = tensor(graph, 4), vector(graph, 1, 2)
        node = ops.Tile(x, k)
        before = node.output.type
        graph.parameters[1].retype(TensorType(i64, (2,)))
        graph.validate()
        assert node.output.type != before and node.output.shape is not None
        first, second = node.output.shape
        assert first != second

    def test_the_same_again_changes_nothing(self, monkeypatch: pytest.MonkeyPatch) -> None:
        graph = Graph()
        found = ops.NonZero(tensor(graph, 4))
        reader = ops.Abs(found)
        monkeypatch.setattr(type(reader), "infer", lambda self, x: pytest.fail("inferred again"))
        before = found.output.type
        graph.touch(found)
        graph.validate()
        assert found.output.type is before


class TestPartlyKnown:
    def test_an_unknown_item_spoils_none_but_its_own(self) -> None:
        graph = Graph()
        n = named("N")
        k = ops.Parameter(graph=graph, dtype=i64, shape=(1,)).output
        pattern = ops.Concat(vector(graph, n, 4), k, axis=0)
        (a, b, c) = pattern.output.known
        assert (a, b) == (n, 4) and least(c) < 0
        tiled = ops.Tile(tensor(graph, 1, 2, 3), pattern).output
        assert tiled.shape is not None and tiled.shape[:2] == (n, 8)
        assert ops.Gather(pattern, 1, 0).output.type.integers == (4,)

    def test_one_unknown_size_of_a_reshape_is_what_is_left(self) -> None:
        graph = Graph()
        k = ops.Parameter(graph=graph, dtype=i64, shape=(1,)).output
        pattern = ops.Concat(k, vector(graph, 4), axis=0)
        assert ops.Reshape(tensor(graph, 2, 6), pattern).output.shape == (3, 4)

    def test_beside_a_size_of_0_nothing_is_left_to_say(self) -> None:
        graph = Graph()
        rows = ops.Reshape(tensor(graph, fresh(), 0, 1), [0, 0, 1], special_zero=True).output
        assert rows.shape is not None and (low(rows.shape[0]), high(rows.shape[0])) == (0, None)
        k = ops.Parameter(graph=graph, dtype=i64, shape=(1,)).output
        assert ops.Reshape(tensor(graph, 2, 0), ops.Concat(k, vector(graph, 4), axis=0)).output.shape == (0, 4)
        n = named("N")
        shape = ops.Reshape(tensor(graph, n), vector(graph, n, 0, -1)).output.shape
        assert shape is not None and shape[:2] == (n, 0) and (low(shape[2]), high(shape[2])) == (0, None)

    def test_two_unknown_sizes_of_a_reshape_are_unknown(self) -> None:
        graph = Graph()
        k = ops.Parameter(graph=graph, dtype=i64, shape=(2,)).output
        pattern = ops.Concat(k, vector(graph, 4), axis=0)
        shape = ops.Reshape(tensor(graph, 2, 6), pattern).output.shape
        assert shape is not None and shape[2] == 4 and [low(d) for d in shape[:2]] == [0, 0]

    def test_the_length_of_a_range_of_symbols(self) -> None:
        graph = Graph()
        n = named("N")
        start, stop = (ops.Squeeze(vector(graph, each), [0]) for each in (2, n + 5))
        assert ops.Range(start, stop, 1, output_type=i64).output.shape == (n + 3,)

    def test_values_that_do_not_fit_their_type_are_unknown(self) -> None:
        graph = Graph()
        number = ops.Constant([200, 7], dtype=u8, graph=graph).output
        total = ops.Add(number, number).output
        assert total.type.integers is None and total.known[1] == 14
        assert ops.Convert(vector(graph, 300, 1), destination_type=u8).output.known[1] == 1
        assert ops.Convert(vector(graph, 300), destination_type=u8).output.known is None
        assert ops.Convert(vector(graph, 300, 0), destination_type=boolean).output.type.integers == (1, 0)

    @pytest.mark.parametrize(
        ("dtype", "lo", "hi"), [(i32, -(2**31), 2**31 - 1), (i64, -(2**63), 2**63 - 1), (u32, 0, 2**32 - 1)]
    )
    def test_numbers_up_to_the_limits_of_wide_types_are_known(self, dtype: ElementType, lo: int, hi: int) -> None:
        items = (lo - 1, lo, 7, hi, hi + 1)
        found = values.fitting(known_array(items, (5,)), dtype)
        assert found is not None
        assert [each if isinstance(each, int) else None for each in found] == [None, lo, 7, hi, None]

    def test_elements_picked_from_many(self) -> None:
        assert ops.Gather(vector(Graph(), *range(20)), [3, -1, 0], 0).output.type.integers == (3, 19, 0)

    def test_padded_values_are_plain_integers(self) -> None:
        assert ops.Pad(vector(Graph(), 1, 2), [1], [1], 9).output.type.integers == (9, 1, 2, 9)


@pytest.mark.parametrize(
    ("lo", "hi", "divisor", "expected"), [(-3, -1, 2, (-2, 0)), (3, 9, 2, (1, 4)), (-5, 6, 4, (-2, 2))]
)
def test_bounds_of_a_quotient_rounded_towards_0(lo: int, hi: int, divisor: int, expected: tuple[int, int]) -> None:
    quotient = values.divide(unknown(lo, hi), divisor)
    assert (least(quotient), most(quotient)) == expected


def test_the_length_of_a_signal_from_its_half() -> None:
    """The half of n elements are n / 2 + 1."""
    graph = Graph()
    for half, length in ((5, 8), (named("N") + 1, 2 * named("N"))):
        assert ops.IRDFT(tensor(graph, 3, half, 2), [1]).output.shape == (3, length)


def within(result: Dimension, value: int) -> bool:
    top = most(result)
    return least(result) <= value and (top is None or value <= top)


bounds = st.tuples(st.integers(-6, 6), st.integers(0, 5))
RULES: dict[str, Any] = {
    "add": lambda a, b: a + b, "subtract": lambda a, b: a - b, "multiply": lambda a, b: a * b, "maximum": max,
    "minimum": min, "less": lambda a, b: int(a < b), "equal": lambda a, b: int(a == b),
    "divide_down": lambda a, b: a // b if b else None, "divide": lambda a, b: int(a / b) if b else None,
    "remainder_down": lambda a, b: a % b if b else None,
    "remainder": lambda a, b: a - b * int(a / b) if b else None,
}
SUMS: dict[str, Any] = {"add": operator.add, "subtract": operator.sub}
"""The rules that are operators of Python."""


@pytest.mark.parametrize("name", RULES)
@given(left=bounds, right=bounds, is_number=st.booleans(), data=st.data())
def test_rules_hold_for_all_values_within_bounds(
    name: str, left: tuple[int, int], right: tuple[int, int], is_number: bool, data: Any
) -> None:
    a = data.draw(st.integers(left[0], sum(left)))
    b = right[0] if is_number else data.draw(st.integers(right[0], sum(right)))
    rule = SUMS.get(name) or getattr(values, name)
    result = rule(unknown(left[0], sum(left)), b if is_number else unknown(right[0], sum(right)))
    expected = RULES[name](a, b)
    assert expected is None or within(result, expected)


@given(
    st.integers(0, 6), st.none() | st.integers(0, 6), st.sampled_from((-(2**40), -5, -2, -1, 0, 1, 3, 5, 2**40)),
    st.sampled_from((-(2**40), -5, -2, -1, 0, 1, 3, 5, 2**40)), st.sampled_from((-3, -2, -1, 1, 2, 3)),
    st.integers(0, 30),
)
def test_slices_of_unknown_sizes(lo: int, more: int | None, start: int, stop: int, step: int, longer: int) -> None:
    """The bounds of the result hold for every size within the bounds of the dimension."""
    graph = Graph()
    x = tensor(graph, fresh(lo, None if more is None else lo + more))
    size = lo + (longer if more is None else min(longer, more))
    (said,) = ops.Slice(x, [start], [stop], [step], [0]).output.shape or ()
    (found,) = ops.Slice(tensor(graph, size), [start], [stop], [step], [0]).output.shape or ()
    top = high(said)
    assert isinstance(found, int) and low(said) <= found and (top is None or found <= top)


read_cases(globals())
