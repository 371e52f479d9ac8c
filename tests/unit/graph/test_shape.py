"""Dimensions and shapes: affine arithmetic compared with integers, broadcasting with numpy, laws of join and merge."""

import pickle
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from mo_loop.errors import TypeError_
from mo_loop.graph.dimension import Dim, Dimension, fresh, high, low, named, one_of, open_symbols, opened
from mo_loop.graph.shape import (
    broadcast,
    broadcast_dim,
    covers,
    element_count,
    is_static,
    join,
    join_shapes,
    merge,
    merge_dim,
    normalise_axis,
    show,
    symbols_of,
    widen,
)
from tests.harness import raised

NAMES = ("K", "M", "N")
VALUES = {"K": 3, "M": 0, "N": 7}

static = st.integers(0, 9)
symbols = st.sampled_from(NAMES).map(named)
bounded = st.tuples(st.integers(0, 4), st.integers(0, 5)).map(lambda pair: fresh(pair[0], pair[0] + pair[1]))
affine = st.builds(lambda s, t, a, b, c: s * a + t * b + c, symbols, symbols, static, static, st.integers(-5, 5))
# Affine arithmetic may give a number below 0, which is not a dimension.
dims: st.SearchStrategy[Dimension] = st.one_of(static, symbols, affine, st.builds(fresh, static), bounded).filter(
    lambda dim: not isinstance(dim, int) or dim >= 0
)
plain_dims = st.one_of(static, symbols, affine)


def value(dim: Dimension) -> int:
    """The value of a dimension of named symbols for K = 3, M = 0 and N = 7."""
    if isinstance(dim, int):
        return dim
    return sum(factor * VALUES[symbol.name] for symbol, factor in dim.terms) + dim.const


def bounds(dim: Dimension) -> tuple[int, int | None]:
    return low(dim), high(dim)


class TestArithmetic:
    @given(plain_dims, plain_dims, st.integers(-4, 4))
    def test_as_with_integers(self, a: Dimension, b: Dimension, factor: int) -> None:
        assert value(a + b) == value(a) + value(b) and value(a - b) == value(a) - value(b)
        assert value(a * factor) == value(a) * factor

    @given(plain_dims, plain_dims, plain_dims)
    def test_addition_is_a_group(self, a: Dimension, b: Dimension, c: Dimension) -> None:
        assert a + b == b + a and (a + b) + c == a + (b + c) and a - a == 0
        assert (a + b) - b == a

    @given(plain_dims, st.integers(1, 5))
    def test_what_was_multiplied_divides(self, a: Dimension, factor: int) -> None:
        assert (a * factor) // factor == a

    @given(affine, st.integers(2, 5))
    def test_a_quotient_lies_within_its_bounds(self, a: Dimension, divisor: int) -> None:
        assume(value(a) >= 0)
        quotient = a // divisor
        assert low(quotient) <= value(a) // divisor
        top = high(quotient)
        assert top is None or value(a) // divisor <= top

    @given(plain_dims)
    def test_bounds_hold(self, a: Dimension) -> None:
        assume(value(a) >= 0)
        top = high(a)
        assert low(a) <= value(a) and (top is None or value(a) <= top)

    def test_equal_expressions_are_equal_and_hash_alike(self) -> None:
        n, m = named("N"), named("M")
        assert n + m + 1 == m + 1 + n and hash(n + m + 1) == hash(m + 1 + n) and n * 2 + n == n * 3
        assert n * m == m * n and named("N") != named("N", 1) and fresh() != fresh()

    def test_static_results_are_plain_integers(self) -> None:
        n = named("N")
        assert type(n - n) is int and type(n * 0) is int and type(fresh(3, 3)) is int

    @pytest.mark.parametrize(("dim", "text"), [
        (named("N") * 2 + 1, "2N+1"), (named("N") - 1, "N-1"), (-named("N") + 3, "-N+3"),
        (named("N") * named("M"), "M*N"), ((named("N") + 1) // 2, "floor(N+1/2)"), (named("N") * 2 // 2, "N"),
        (fresh(), "?"), (fresh(1, 5), "1..5"), (fresh(2), "2.."), (fresh(1, 5) + 1, "2..6"),
    ])
    def test_as_text(self, dim: Dim, text: str) -> None:
        assert repr(dim) == text

    def test_fresh_symbols_say_nothing_in_products(self) -> None:
        assert repr(fresh(1, 2) * fresh(2, 3)) == "2..6" and repr(named("N") * fresh()) == "?"

    def test_element_count(self) -> None:
        n = named("N")
        assert element_count(None) is None and element_count(()) == 1 and element_count((2, n, 3)) == n * 6
        assert element_count((fresh(), 0)) == 0


def test_expressions_without_end_are_fresh_symbols() -> None:
    """Nodes that multiply or add a size to itself would double its name or its factor each time."""
    product = total = sum_ = named("N", 2)
    quotient: Dimension = named("N") + 1
    for i in range(200):
        product, total, sum_ = product * product, total + total, sum_ + named(f"N{i}")  # type: ignore[assignment]
        quotient = quotient // 3 + 1
    assert isinstance(product, Dim) and product.is_fresh and product.lo == 2**63 and product.hi is None
    assert isinstance(total, Dim) and len(repr(total.terms)) < 200 and 2**63 <= total.lo < 2**127
    assert isinstance(sum_, Dim) and len(sum_.terms) <= 64 and sum_.lo == 2
    assert isinstance(quotient, Dim) and len(repr(quotient)) < 1100


class TestBroadcast:
    @given(st.lists(st.lists(st.integers(0, 3), max_size=4), min_size=1, max_size=4))
    def test_static_shapes_as_numpy_does(self, shapes: list[list[int]]) -> None:
        try:
            wanted: Any = np.broadcast_shapes(*map(tuple, shapes))
        except ValueError:
            raised(TypeError_, broadcast, *map(tuple, shapes))
            return
        assert broadcast(*map(tuple, shapes)) == wanted

    @given(dims)
    def test_one_gives_way(self, a: Dimension) -> None:
        assert broadcast_dim(a, 1) == a == broadcast_dim(1, a) and broadcast_dim(a, a) == a

    @given(plain_dims, plain_dims)
    def test_the_result_covers_what_happens(self, a: Dimension, b: Dimension) -> None:
        x, y = value(a), value(b)
        assume(x >= 0 and y >= 0 and (x == y or 1 in (x, y)))
        result = broadcast_dim(a, b)
        happens = y if x == 1 else x
        if isinstance(result, int) or not result.has_fresh():
            assert value(result) == happens
        else:
            top = high(result)
            assert low(result) <= happens and (top is None or happens <= top)

    def test_an_unknown_rank_makes_the_rank_unknown(self) -> None:
        assert broadcast((1,), None) is None

    def test_a_dimension_that_cannot_be_one_wins(self) -> None:
        big = fresh(2)
        assert broadcast_dim(big, named("N")) == big == broadcast_dim(named("N"), big)


class TestMerge:
    @given(dims)
    def test_idempotent(self, a: Dimension) -> None:
        assert merge_dim(a, a) == a

    @given(dims, dims)
    def test_commutative_up_to_bounds(self, a: Dimension, b: Dimension) -> None:
        def merged(x: Dimension, y: Dimension) -> Any:
            try:
                return bounds(merge_dim(x, y))
            except TypeError_:
                return "contradiction"

        assert (merged(a, b) == "contradiction") == (merged(b, a) == "contradiction")
        if isinstance(a, int) or isinstance(b, int):
            assert merged(a, b) == merged(b, a)

    def test_the_more_precise_statement_wins(self) -> None:
        n = named("N")
        assert merge_dim(fresh(), n) == n == merge_dim(n, fresh()) and merge_dim(n, 4) == 4 == merge_dim(4, n)
        assert bounds(merge_dim(fresh(1, 9), fresh(2, 5))) == (2, 5) and merge((2, fresh()), (fresh(), 3)) == (2, 3)
        assert merge(None, (n,)) == (n,)

    @pytest.mark.parametrize(("a", "b"), [(2, 3), (fresh(4), 3), (3, fresh(0, 2)), (named("N", 5), 4)])
    def test_contradictions_are_refused(self, a: Dimension, b: Dimension) -> None:
        raised(TypeError_, merge_dim, a, b)

    def test_ranks_that_differ_are_refused(self) -> None:
        raised(TypeError_, merge, (1,), (1, 2), match="another rank")


class TestJoin:
    @given(dims)
    def test_idempotent(self, a: Dimension) -> None:
        assert join(a, a) == a

    @given(dims, dims)
    def test_commutative_up_to_bounds(self, a: Dimension, b: Dimension) -> None:
        assert bounds(join(a, b)) == bounds(join(b, a))

    @given(dims, dims, dims)
    def test_associative_up_to_bounds(self, a: Dimension, b: Dimension, c: Dimension) -> None:
        assert bounds(join(join(a, b), c)) == bounds(join(a, join(b, c)))

    @given(dims, dims)
    def test_it_covers_both(self, a: Dimension, b: Dimension) -> None:
        both = join(a, b)
        assert all(covers(both, each) for each in (a, b))
        assert bounds(join(both, a)) == bounds(both) == bounds(join(both, b))

    @given(dims, dims)
    def test_two_that_differ_make_a_third(self, a: Dimension, b: Dimension) -> None:
        """An unknown size that covers another one is the size of a tensor, and not always that of the result."""
        assume(a != b)
        assert join(a, b) not in (a, b)

    def test_shapes(self) -> None:
        n = named("N")
        assert join_shapes((n, 2), (n, 2)) == (n, 2) and show(join_shapes((n, 2), (n, 3))) == "[N,2..3]"
        assert join_shapes((n,), (n, 1)) is None and join_shapes(None, (n,)) is None

    @given(st.lists(st.tuples(dims, dims), min_size=1, max_size=8))
    def test_widening_ends(self, pairs: list[tuple[Dimension, Dimension]]) -> None:
        """A dimension changes at most twice: to another one, then to one without bounds."""
        shape: Any = (pairs[0][0],)
        outer = set(symbols_of(shape))
        changes = 0
        for _, new in pairs:
            wider = widen(shape, (new,), outer)
            changes += wider != shape
            shape = wider
        assert changes <= 2

    def test_a_size_of_something_else_does_not_widen(self) -> None:
        """A size that changes between iterations is not the size of a tensor outside."""
        outside = fresh()
        (same,) = widen((outside,), (outside,), set(symbols_of((outside,)))) or ()
        (other,) = widen((outside,), (outside + 1,), set(symbols_of((outside,)))) or ()
        assert same == outside and other != outside and bounds(other) == (0, None)
        assert widen((other,), (other + 1,), set(symbols_of((outside,)))) == (other,)


def test_axes_count_from_both_ends() -> None:
    assert [normalise_axis(axis, 3) for axis in (-3, -1, 0, 2)] == [0, 2, 0, 2]
    for axis in (-4, 3):
        raised(TypeError_, normalise_axis, axis, 3, match="rank 3")


def test_shapes_as_text() -> None:
    assert show(None) == "[...]" and show(()) == "[]" and show((2, named("N"), fresh(0, 4))) == "[2,N,0..4]"
    assert is_static((2, 3)) and not is_static((named("N"),)) and not is_static(None)


def test_the_sizes_of_a_long_chain_follow_from_those_of_its_beginning() -> None:
    """The number of symbols that are visited for a size does not depend on the length of the chain."""
    size, other = opened("x", 0, 8192), opened("y", 0, 3)
    last: Dimension = size
    for _ in range(2000):
        last = one_of(last, last // 2 + other, 4)
    assert isinstance(last, Dim) and last.symbol is not None
    assert len(last.symbol.sources) == 2 and not any(each.sources for each in last.symbol.sources)
    assert open_symbols([last]) == {size.symbol, other.symbol}
    assert pickle.loads(pickle.dumps(last.symbol)).sources == last.symbol.sources
