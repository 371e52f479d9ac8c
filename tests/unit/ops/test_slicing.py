"""The size of a slice: every size within the bounds of the inputs gives a size within the bounds of the result."""

from itertools import product

import pytest

from mo_loop.graph.dimension import Dimension, fresh, high, low, unknown
from mo_loop.ops.control import slice_count
from mo_loop.ops.movement import sliced_dim

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
