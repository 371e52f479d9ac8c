"""Test parameters: every combination of their values, or every pair of values of two parameters in at least one case.

@every(axis=[0, 1], dtype=[np.float32, np.int64], dynamic=[False, True])
def test_something(axis, dtype, dynamic): ...          # 8 cases

@pairs(axis=[0, 1], dtype=[np.float32, np.int64], dynamic=[False, True])
def test_something(axis, dtype, dynamic): ...          # 4 cases instead of 8; 20 instead of 600 with more values
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import pytest


def every(**values: Sequence[Any]) -> pytest.MarkDecorator:
    """Parametrize a test by all combinations; the values of the first parameter change first."""
    rows = [row[::-1] for row in product(*reversed(values.values()))]
    return pytest.mark.parametrize(tuple(values), rows)


def pairs(**values: Sequence[Any]) -> pytest.MarkDecorator:
    """Parametrize a test by rows of `pairwise`."""
    return pytest.mark.parametrize(tuple(values), pairwise(*values.values()))


def pairwise(*values: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Rows of one value from each sequence; the same rows in every run.

    A row starts with a pair that no row has yet. Every other place takes the value that adds most new pairs; where
    several do, the one that is used least.
    """
    missing = dict.fromkeys(
        ((i, a), (j, b))
        for i, j in combinations(range(len(values)), 2)
        for a in range(len(values[i]))
        for b in range(len(values[j]))
    )
    used = {(place, choice): 0 for place, each in enumerate(values) for choice in range(len(each))}
    rows = []
    while missing:
        row = dict(next(iter(missing)))
        for place, each in enumerate(values):
            if place not in row:
                row[place] = _best(place, len(each), row, missing, used)
        ends = sorted(row.items())
        for pair in combinations(ends, 2):
            missing.pop(pair, None)
        for end in ends:
            used[end] += 1
        rows.append(tuple(values[place][choice] for place, choice in ends))
    return rows


def _best(place: int, count: int, row: dict[int, int], missing: Any, used: dict[tuple[int, int], int]) -> int:
    """The index of the value at a place that adds most missing pairs to a row."""

    def worth(choice: int) -> tuple[int, int]:
        end = (place, choice)
        return sum(tuple(sorted((end, other))) in missing for other in row.items()), -used[end]

    return max(range(count), key=worth)
