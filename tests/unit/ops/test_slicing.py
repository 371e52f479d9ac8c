"""Slices: the notation of numpy for values, their sizes, and lists of parts."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from mo_loop import ops
from mo_loop.errors import TypeError_
from mo_loop.graph import Graph, Value
from mo_loop.graph.dimension import Dimension, fresh, high, low, named, unknown
from mo_loop.graph.types import UNKNOWN, OptionalType, SequenceType, TensorType, f32, i32, i64
from mo_loop.ops.control import slice_count
from mo_loop.ops.infer import covers_type, exported, join_types, of_one_element, symbols_in, widen_types
from mo_loop.ops.movement import sliced_dim
from mo_loop.text.spelling import Scanner, parse_type, show_type

# -- The size of a slice: every size within the bounds of the inputs gives a size within the bounds of the result


FAR = 2**40
BOUNDS = (-FAR, -5, -3, -2, -1, 0, 1, 2, 3, 5, FAR)


def kept(size: int, start: int, stop: int, step: int) -> int:
    """As in numpy, but a start before the first element is the first element."""
    return len(range(*slice(max(start, -size), stop, step).indices(size)))


def holds(result: Dimension, sizes: list[int]) -> bool:
    top = high(result)
    return low(result) <= min(sizes) and (top is None or max(sizes) <= top)


@pytest.mark.parametrize("more", [0, 1, 3, None])
@pytest.mark.parametrize("lo", range(5))
def test_of_every_size_of_a_dimension(lo: int, more: int | None) -> None:
    dim = lo if more == 0 else fresh(lo, None if more is None else lo + more)
    sizes = range(lo, lo + (12 if more is None else more) + 1)
    for bounds in product(BOUNDS, BOUNDS, (-3, -2, -1, 1, 2, 3)):
        said = sliced_dim(dim, *bounds)
        assert holds(said, [kept(size, *bounds) for size in sizes]), (bounds, said)


@pytest.mark.parametrize(("lo", "hi"), [(0, 3), (2, 5), (4, 4), (1, None)])
def test_of_every_bound_that_is_known_at_run_time(lo: int, hi: int | None) -> None:
    dim = lo if lo == hi else fresh(lo, hi)
    sizes = range(lo, (hi or 8) + 1)
    ranges = [range(first, first + more + 1) for first, more in product((-4, -1, 0, 2, 3), (0, 1, 3))]
    for starts, stops, step in product(ranges, ranges, (-2, -1, 1, 2)):
        start, stop = (each[0] if len(each) == 1 else unknown(each[0], each[-1]) for each in (starts, stops))
        said = sliced_dim(dim, start, stop, step)
        found = [kept(*each, step) for each in product(sizes, starts, stops)]
        assert holds(said, found), (start, stop, step, said)


@pytest.mark.parametrize(("lo", "hi", "bounds", "expected"), [
    (0, None, (1, FAR, 1), (0, None)), (2, None, (1, FAR, 1), (1, None)), (0, 9, (-3, FAR, 1), (0, 3)),
    (0, 9, (0, 4, 1), (0, 4)), (5, 9, (0, 4, 1), (4, 4)), (3, 9, (0, -2, 1), (1, 7)), (3, 9, (0, FAR, 2), (2, 5)),
    (0, None, (1, -1, 1), (0, None)), (4, None, (0, -2, 1), (2, None)), (4, None, (-FAR, -1, 1), (3, None)),
    (0, 9, (-4, 7, 1), (0, 4)), (0, 9, (-4, 7, 3), (0, 2)), (2, 9, (FAR, -FAR, -1), (2, 9)),
])
def test_bounds_are_no_wider_than_needed(
    lo: int, hi: int | None, bounds: tuple[int, int, int], expected: tuple[int, int | None]
) -> None:
    said = sliced_dim(fresh(lo, hi), *bounds)
    assert (low(said), high(said)) == expected


@pytest.mark.parametrize(
    ("start", "expected"), [(unknown(-3, -1), (0, 3)), (unknown(-3, 2), (0, 9)), (unknown(-12, -1), (0, 9))]
)
def test_of_a_start_from_the_end_no_more_than_that_many(start: Dimension, expected: tuple[int, int]) -> None:
    said = sliced_dim(fresh(0, 9), start, FAR, 1)
    assert (low(said), high(said)) == expected


@pytest.mark.parametrize(("size", "start", "end", "stride", "part", "expected"), [
    (5, 0, -1, 1, 1, 5), (5, -1, 0, -1, 1, 5), (5, 1, 4, 1, 1, 3), (5, -3, -1, 1, 1, 2), (5, -4, -2, 1, 1, 2),
    (5, 0, -1, 2, 1, 3), (4, 0, -1, 2, 1, 2), (6, 0, -1, 2, 2, 3), (6, -1, 0, -2, 2, 3), (9, 0, -1, 3, 3, 3),
])
def test_the_slices_of_a_loop(size: int, start: int, end: int, stride: int, part: int, expected: int) -> None:
    """Of a start or end below 0, -1 is the end of the tensor itself."""
    assert slice_count(size, start, end, stride, part) == expected


# -- Slices, shapes and element types of values, in the notation of numpy


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


# -- The lengths and elements of sequences made by splitting tensors


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


# -- Joining and widening of sequence and optional types


EMPTY = SequenceType(TensorType(f32, None), 0)
PAIR = SequenceType(TensorType(f32, (2, 3)), 2)
N = named("N")


def test_an_empty_sequence_takes_over_the_element_of_another() -> None:
    assert show_type(join_types(EMPTY, PAIR)) == "seq(f32[2,3], 0..2)"
    assert show_type(join_types(PAIR, EMPTY)) == "seq(f32[2,3], 0..2)" and join_types(EMPTY, EMPTY) == EMPTY


def test_elements_are_joined() -> None:
    other = SequenceType(TensorType(f32, (4, 3)), 2)
    assert show_type(join_types(PAIR, other)) == "seq(f32[2..4,3], 2)"
    with pytest.raises(TypeError_, match="i64"):
        join_types(PAIR, SequenceType(TensorType(i64, (2, 3)), 2))
    with pytest.raises(TypeError_):
        join_types(PAIR, PAIR.element)


def test_widening_ends() -> None:
    """One step from empty to any length, another one to any size, and no more."""
    first = widen_types(EMPTY, SequenceType(TensorType(f32, (2, N)), 1), set())
    assert show_type(first) == "seq(f32[2,N])"
    second = widen_types(first, SequenceType(TensorType(f32, (5, N)), 7), set())
    assert show_type(second) == "seq(f32[?,N])"
    assert widen_types(second, SequenceType(TensorType(f32, (9, N)), None), set()) is second
    assert widen_types(second, EMPTY, set()) is second and widen_types(second, UNKNOWN, set()) is second
    assert widen_types(EMPTY, SequenceType(TensorType(f32, (2,)), 0), set()) == EMPTY


def test_a_length_that_is_covered_stays_unless_it_is_one_outside_of_the_loop() -> None:
    length, two = fresh(0, 3), SequenceType(TensorType(f32, (2,)), 2)
    old = SequenceType(TensorType(f32, (2,)), length)
    assert widen_types(old, two, set()) is old
    assert show_type(widen_types(old, two, set(symbols_in(old)))) == "seq(f32[2])"


def test_covering() -> None:
    wide = SequenceType(TensorType(f32, (fresh(), 3)))
    assert covers_type(wide, PAIR, set()) and covers_type(wide, EMPTY, set()) and not covers_type(PAIR, wide, set())
    assert not covers_type(wide, TensorType(f32, (2, 3)), set())


def test_two_elements_need_not_have_the_same_size() -> None:
    ragged = SequenceType(TensorType(f32, (fresh(), N)))
    a, b = of_one_element(ragged), of_one_element(ragged)
    assert a.dims[0] != b.dims[0] and a.dims[1] == b.dims[1] == N


def test_what_leaves_a_body_has_no_sizes_of_its_own() -> None:
    inner = SequenceType(TensorType(f32, (named("K"), N)), named("L"))
    assert {symbol.name for symbol in symbols_in(inner)} == {"K", "L", "N"}
    assert show_type(exported(inner, {N.symbol})) == "seq(f32[?,N], ?)"


def test_optionals() -> None:
    there, absent = OptionalType(TensorType(f32, (2,)), True), OptionalType(TensorType(f32, None), False)
    assert show_type(join_types(there, absent)) == "optional(f32[2])"
    assert show_type(widen_types(there, there, set())) == "optional(f32[2], here)"


@pytest.mark.parametrize(
    "text",
    ["seq(f32[2,?], 3)", "seq(f32[...], 0)", "seq(i64[N])", "optional(f32[2], absent)", "optional(seq(f32[2], 1))"],
)
def test_text(text: str) -> None:
    assert show_type(parse_type(Scanner(text))) == text
