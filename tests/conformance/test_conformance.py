"""The ONNX backend test suite gives the results listed in tests/conformance/expectations.toml: every listed case, and a
fixed tenth of the others, but for those that test_backend_control_flow.py and test_backend_sequences.py run.

`make conformance` runs all cases. The list holds for the versions that it names; with other versions a case may give
another result without a fault in this project.
"""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from zlib import crc32

import pytest

from mo_loop.support.workers import Pool
from tests.conformance import test_backend_control_flow, test_backend_sequences
from tests.conformance.cases import KINDS, Entry, collect
from tests.conformance.expectations import Expectations, Group, differences, faults, read, versions, write
from tests.conformance.test_backend_control_flow import has_control_flow
from tests.running.samples import CRASH, PASSED, REFUSED, WRONG, Verdict
from tools.conformance import judged, main

BATCHES, SHARE = 3, 10
"""Few batches: a process needs 5 seconds to import all cases."""

EVERYWHERE = read()
EXPECTED = EVERYWHERE.on("")

as_listed = pytest.mark.skipif(EXPECTED.versions != versions(), reason=f"the list is about {EXPECTED.versions}")


@cache
def entries() -> tuple[Entry, ...]:
    """Every case of the suite."""
    return tuple(collect(KINDS))


@cache
def pool() -> Pool:
    """One pool for all cases of this process."""
    return Pool("tests.running.samples:judge", limit=120)


def chosen() -> Iterator[Entry]:
    """Every listed case and a tenth of the others, chosen by a hash of the name: the same cases in every run."""
    listed = EXPECTED.by_case
    elsewhere = {each.name for module in (test_backend_control_flow, test_backend_sequences) for each in module.CASES}
    others = (each for each in entries() if each.name not in elsewhere)
    return (each for each in others if each.name in listed or crc32(each.name.encode()) % SHARE == 0)


@as_listed
@pytest.mark.sweep(BATCHES)
@pytest.mark.parametrize("batch", range(BATCHES))
def test_results_are_the_expected_ones(batch: int) -> None:
    verdicts = dict(judged(pool(), list(chosen())[batch::BATCHES]))
    assert verdicts
    wrong = list(differences(EXPECTED, verdicts))
    assert not wrong, "\n".join(wrong)


@as_listed
def test_the_file_has_a_reason_for_each_case_and_lists_only_cases_that_exist() -> None:
    assert list(faults(EVERYWHERE, [entry.name for entry in entries()])) == []


def test_the_tests_of_control_flow_and_of_sequences_have_all_cases_of_their_patterns() -> None:
    """They import only the modules in which they expect cases."""
    control_flow = [each for each in entries() if re.search(test_backend_control_flow.PATTERN, each.name)]
    found = {each.name for each in control_flow if each.kind == "node" and has_control_flow(each)}
    assert found == {each.name for each in test_backend_control_flow.CASES}
    of_kinds = (each.name for each in entries() if each.kind in ("node", "simple"))
    assert {name for name in of_kinds if re.search(test_backend_sequences.PATTERN, name)} == {
        each.name for each in test_backend_sequences.CASES
    }


def test_names_are_unique_across_kinds() -> None:
    names = [entry.name for entry in entries()]
    assert len(names) == len(set(names)) > 1500


# -- the list itself

LIST = Expectations(
    versions(),
    (
        Group(REFUSED, "no such type", "ML322", frozenset({"a", "b"})),
        Group(WRONG, "computed in f32", "", frozenset({"c"})),
    ),
)
AS_SAID = {"a": Verdict(REFUSED, "i2", "ML322"), "b": Verdict(REFUSED, "i2", "ML322"), "c": Verdict(WRONG, "1 is 2")}


def test_expected_results_are_no_difference() -> None:
    assert list(differences(LIST, {**AS_SAID, "d": Verdict(PASSED)})) == []
    assert list(differences(LIST, {"a": AS_SAID["a"]})) == []


@pytest.mark.parametrize(
    ("name", "verdict", "says"),
    [
        ("a", Verdict(PASSED), "a: passes, but is listed as refused (ML322): no such type"),
        ("d", Verdict(WRONG, "1 is 2"), "d: wrong, but is not listed: 1 is 2"),
        ("a", Verdict(WRONG, "1 is 2"), "a: wrong, but is listed as refused (ML322): 1 is 2"),
        ("b", Verdict(REFUSED, "n", "ML301"), "b: refused (ML301), but is listed as refused (ML322): n"),
        ("c", Verdict(CRASH, "infer 0"), "c: crash, but is listed as wrong: infer 0"),
    ],
)
def test_differences_in_both_directions(name: str, verdict: Verdict, says: str) -> None:
    assert list(differences(LIST, {**AS_SAID, name: verdict})) == [says]


def test_errors_in_the_file(tmp_path: Path) -> None:
    assert list(faults(LIST, ["a", "b"])) == ["c: is listed, but there is no such case"]
    twice = tmp_path / "twice.toml"
    group = '[[group]]\nresult = "wrong"\nreason = "r"\ncases = ["a"]\n'
    twice.write_text(f"[versions]\n{group}{group}")
    with pytest.raises(ValueError, match="listed twice: a"):
        read(twice)


def test_writing_keeps_reasons_and_marks_missing_ones(tmp_path: Path) -> None:
    """`a` passes now, `c` was not run, `d` and `e` fail in the same way: one new group, whose reason is missing."""
    path = tmp_path / "list.toml"
    new = Verdict(REFUSED, 'ML302: no "Foo"\nat all', "ML302")
    write(LIST, {"a": Verdict(PASSED), "b": AS_SAID["b"], "d": new, "e": new}, path)
    found = read(path)
    assert found.groups[:2] == (Group(REFUSED, "no such type", "ML322", frozenset({"b"})), LIST.groups[1])
    assert found.groups[2:] == (Group(REFUSED, '? ML302: no "Foo"\nat all', "ML302", frozenset({"d", "e"})),)
    assert [each.partition(": ")[0] for each in faults(found, ["b", "c", "d", "e"])] == ["d and 1 more"]
    write(found, {"b": Verdict(PASSED), "d": new, "e": Verdict(PASSED)}, path)
    assert [(group.reason, *group.cases) for group in read(path).groups] == [
        ("computed in f32", "c"),
        ('? ML302: no "Foo"\nat all', "d"),
    ]


def test_groups_of_a_release_take_the_place_of_the_others(tmp_path: Path) -> None:
    older = Group(REFUSED, "since 2025.0", "ML326", frozenset({"b", "d"}), "2024.6.0")
    both = Expectations(versions(), (*LIST.groups, older))
    assert set(both.on("").by_case) == {"a", "b", "c"} == set(both.on("2025.4.1").by_case)
    found = both.on("2024.6.0").by_case
    assert found["b"] is older and found["d"] is older and found["a"].code == "ML322" and found["c"].result == WRONG
    path = tmp_path / "list.toml"
    write(both, {"b": Verdict(REFUSED, "n", "ML326"), "d": Verdict(PASSED), "e": Verdict(WRONG, "1")}, path, "2024.6.0")
    assert read(path).groups[:2] == LIST.groups
    assert read(path).groups[2:] == (
        Group(REFUSED, "since 2025.0", "ML326", frozenset({"b"}), "2024.6.0"),
        Group(WRONG, "? 1", "", frozenset({"e"}), "2024.6.0"),
    )


# -- the tool


@pytest.mark.parametrize(
    ("listed", "says"),
    [
        (Group(REFUSED, "no such type", "ML301", frozenset({"test_quantizelinear_int2"})), "all as expected"),
        (Group(WRONG, "r", "", frozenset({"test_quantizelinear_int2"})), "refused (ML301), but is listed as wrong"),
        (Group(WRONG, "r", "", frozenset({"test_abs"})), "test_abs: passes, but is listed as wrong: r"),
        (Group(WRONG, "r", "", frozenset({"test_gone"})), "test_gone: is listed, but there is no such case"),
    ],
    ids=["as_listed", "otherwise", "passes", "gone"],
)
def test_the_exit_code_of_the_tool_is_1_for_any_difference(
    listed: Group, says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "list.toml"
    write(Expectations(versions(), (listed,)), {}, path)
    arguments = [
        "--filter",
        "^test_(abs|quantizelinear_int2)$",
        "--kinds",
        "node",
        "--expectations",
        str(path),
        "-j",
        "1",
    ]
    assert main(arguments) == int(says != "all as expected")
    assert says in capsys.readouterr().out
