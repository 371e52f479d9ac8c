"""The releases of the runtime that have an error."""

from __future__ import annotations

import pytest

from mo_loop.target import Gap

RELEASES = ("2025.1.0", "2025.3.0", "2025.4.1", "2026.0.0")


@pytest.mark.parametrize(
    ("since", "until", "expected"),
    [
        ("", "", RELEASES), ("2025.3.0", "", RELEASES[1:]), ("", "2025.4.1", RELEASES[:3]),
        ("2025.3.0", "2025.3.0", RELEASES[1:2]), ("2025.2.0", "2025.10.0", RELEASES[1:3]),
    ],
)  # fmt: skip
def test_releases_between_the_first_and_the_last_have_it(since: str, until: str, expected: tuple[str, ...]) -> None:
    gap = Gap("id", "a sentence", since=since, until=until)
    assert tuple(each for each in RELEASES if gap.is_in(each)) == expected


def test_processors_without_avx512_may_have_it_no_longer() -> None:
    gap = Gap("id", "a sentence", since="2025.3.0", avx512_since="2025.4.1")
    assert tuple(each for each in RELEASES if gap.is_in(each, has_avx512=False)) == ("2025.3.0",)
    assert tuple(each for each in RELEASES if gap.is_in(each)) == RELEASES[1:]


def test_only_processors_without_avx512_may_have_it() -> None:
    gap = Gap("id", "a sentence", since="2025.3.0", without_avx512=True)
    assert tuple(each for each in RELEASES if gap.is_in(each, has_avx512=False)) == RELEASES[1:]
    assert not any(gap.is_in(each) for each in RELEASES)
