"""Ordered unions: as tuples, without the time of copies."""

from functools import reduce

from mo_loop.origin import FEW, Many, union


def test_few_elements_are_a_tuple() -> None:
    assert union((), ("a",)) == ("a",) and union(("a",), ()) == ("a",)
    found = union(("a", "b"), ("c", "b"))
    assert found == ("a", "b", "c") and isinstance(found, tuple)


def test_many_elements_are_like_a_tuple() -> None:
    numbers = tuple(range(FEW + 10))
    found = union(numbers, (5, -1))
    expected = (*numbers, -1)
    assert isinstance(found, Many) and found and found[0] == 0
    assert found == expected and expected == found and hash(found) == hash(expected)
    assert tuple(found) == expected and found[-1] == -1 and found[1:3] == (1, 2) and len(found) == len(expected)
    assert -1 in found and -2 not in found and repr(found) == repr(expected) and found != numbers
    assert union((-5,), found) == (-5, *expected)


def test_each_element_once_in_the_order_of_both_sides() -> None:
    first, second = tuple(range(50)), tuple(range(80, 30, -1))
    assert union(union(first, second), union(second, first)) == tuple(dict.fromkeys((*first, *second)))


def test_unions_of_unions_are_listed_once() -> None:
    """Each step doubles the parts of the union, and a chain is too long for recursion."""
    found = reduce(lambda each, _: union(each, union((*range(40),), each)), range(100), tuple(range(40)))
    assert found == tuple(range(40))
    assert list(reduce(lambda each, number: union(each, (number,)), range(20000), ())) == list(range(20000))
    assert list(reduce(lambda each, number: union((number,), each), range(20000), ())) == list(range(19999, -1, -1))
