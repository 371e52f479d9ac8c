"""tests/running/rows.py and the rows of tests/harness.py: every row runs at some commit, every two values meet."""

from itertools import combinations
from types import SimpleNamespace
from typing import Any

import pytest

from tests.harness import pairwise
from tests.running import rows
from tests.running.rows import CHECKED, checks_passes, command, header, of_these_files, without_other_parts

# -- tests/running/rows.py: every row of a sweep runs at some commit, and everything else at each


def item(name: str, mark: Any) -> Any:
    return SimpleNamespace(nodeid=f"a.py::{name}", get_closest_marker=lambda _: mark)


SWEEP = SimpleNamespace(args=(3,))
ITEMS = [*(item(f"swept[{row}]", SWEEP) for row in range(7)), *(item(f"plain[{row}]", None) for row in range(2))]


def run(part: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv(rows.VARIABLE, part)
    kept, left = without_other_parts(ITEMS)
    assert len(kept) + len(left) == len(ITEMS)
    return [each.nodeid for each in kept]


def test_parts_are_disjoint_and_cover_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [run(part, monkeypatch) for part in ("7", "8", "9")]
    assert all(names[-2:] == ["a.py::plain[0]", "a.py::plain[1]"] for names in found)
    swept = [name for names in found for name in names[:-2]]
    assert sorted(swept) == [each.nodeid for each in ITEMS[:-2]] and run("10", monkeypatch) == found[0]


def test_turns_cover_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for number in ("6", "7", "8"):
        monkeypatch.setenv(rows.VARIABLE, number)
        found += rows.turn(range(7), 3)
    assert sorted(found) == [*range(7)]
    monkeypatch.setenv(rows.VARIABLE, "")
    assert rows.turn("abc", 3) == "abc"


def test_a_row_that_is_asked_for_alone_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    for part in ("0", "1", "2"):
        monkeypatch.setenv(rows.VARIABLE, part)
        assert without_other_parts(ITEMS[:1]) == (ITEMS[:1], [])


def test_parts_of_the_files_are_disjoint_and_cover_all(monkeypatch: pytest.MonkeyPatch) -> None:
    tests = [SimpleNamespace(nodeid=f"{file}.py::{name}") for file in range(30) for name in "ab"]
    chosen = []
    for number in range(4):
        monkeypatch.setenv(rows.VARIABLE, str(number))
        kept, left = of_these_files(tests, 4)
        assert 2 < len(kept) < 40 and len(kept) + len(left) == len(tests)
        chosen += [each.nodeid for each in kept]
    assert sorted(chosen) == sorted(each.nodeid for each in tests) and of_these_files(tests, 0) == (tests, [])


def test_without_a_part_everything_runs_and_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(run("", monkeypatch)) == len(ITEMS) and checks_passes("any") and header() == "sweeps: all rows"


def test_each_test_checks_passes_at_one_of_the_commits(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = []
    for part in range(CHECKED):
        monkeypatch.setenv(rows.VARIABLE, str(part))
        chosen += [name for name in map(str, range(100)) if checks_passes(name)]
    assert sorted(chosen) == sorted(map(str, range(100)))


def test_the_part_is_chosen_without_git(monkeypatch: pytest.MonkeyPatch) -> None:
    """An sdist may be tested on a machine that has no git."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv(rows.VARIABLE)
    rows.choose(SimpleNamespace(getoption=lambda _: False))
    assert rows.part() == 0


ROW = (("in the row [1-x]",), "'a.py::plain[1-x]' --each-row")


@pytest.mark.parametrize(("notes", "words"), [((), "a.py::plain"), ROW])
def test_a_red_test_names_the_command_that_repeats_it(
    notes: tuple[str, ...], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(rows.VARIABLE, "7")
    monkeypatch.setenv(rows.LIMIT, "AVX2")
    monkeypatch.delenv(rows.RUNTIME, raising=False)
    error = ValueError()
    for note in notes:
        error.add_note(note)
    failed = SimpleNamespace(nodeid="a.py::plain", config=SimpleNamespace(getoption=lambda _: False))
    said = command(failed, error)
    assert said.startswith(f"{rows.VARIABLE}=7 {rows.LIMIT}=AVX2 ") and said.endswith(f" -m pytest {words}")


# -- Pairwise parameters: no pair of values is missing


@pytest.mark.parametrize("sizes", [(2, 2), (3, 2, 4), (2, 3, 4, 2, 4, 3), (1, 5, 1), (7, 5, 2)], ids=str)
def test_every_two_values_meet(sizes: tuple[int, ...]) -> None:
    values = [[(place, choice) for choice in range(size)] for place, size in enumerate(sizes)]
    rows = pairwise(*values)
    met = {pair for row in rows for pair in combinations(row, 2)}
    assert met == {(a, b) for left, right in combinations(values, 2) for a in left for b in right}
    assert len(rows) <= 2 * max(len(a) * len(b) for a, b in combinations(values, 2)) and rows == pairwise(*values)
