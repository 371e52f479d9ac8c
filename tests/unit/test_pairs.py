"""Pairwise parameters: no pair of values is missing."""

from itertools import combinations

import pytest

from tests.harness import pairwise


@pytest.mark.parametrize("sizes", [(2, 2), (3, 2, 4), (2, 3, 4, 2, 4, 3), (1, 5, 1), (7, 5, 2)], ids=str)
def test_every_two_values_meet(sizes: tuple[int, ...]) -> None:
    values = [[(place, choice) for choice in range(size)] for place, size in enumerate(sizes)]
    rows = pairwise(*values)
    met = {pair for row in rows for pair in combinations(row, 2)}
    assert met == {(a, b) for left, right in combinations(values, 2) for a in left for b in right}
    assert len(rows) <= 2 * max(len(a) * len(b) for a, b in combinations(values, 2)) and rows == pairwise(*values)
