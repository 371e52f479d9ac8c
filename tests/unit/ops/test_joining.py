"""Joining and widening of sequence and optional types."""

import pytest

from mo_loop.errors import TypeError_
from mo_loop.graph.dimension import fresh, named
from mo_loop.graph.types import UNKNOWN, OptionalType, SequenceType, TensorType, f32, i64
from mo_loop.ops.infer import covers_type, exported, join_types, of_one_element, symbols_in, widen_types
from mo_loop.text.spelling import Scanner, parse_type, show_type

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
