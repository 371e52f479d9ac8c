"""tests/running/rows.py: the rows of a test are one test, every row runs, and an error names its row."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.harness import check_node, f32, raised
from tests.running import rows

RNG = np.random.default_rng(5)


def items(test: Callable[..., None], *params: dict[str, Any], marks: list[Any] | None = None) -> list[Any]:
    """The items of pytest for a function and its rows, as far as tests/running/rows.py reads them."""
    specs = [SimpleNamespace(id="-".join(map(str, each.values())), params=each, marks=marks or []) for each in params]
    mark = pytest.mark.parametrize(tuple(params[0]), []).mark
    return [SimpleNamespace(obj=test, callspec=spec, nodeid="test", iter_markers=lambda _: [mark]) for spec in specs]


def collected(request: pytest.FixtureRequest, made: list[Any]) -> list[Any]:
    """The items that the hook makes of the items of pytest."""
    hook = rows.pytest_pycollect_makeitem(request.node.parent, "test")
    next(hook)
    found = raised(StopIteration, hook.send, made)
    result: list[Any] = found.value
    return result


def test_the_rows_are_one_test(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def test(a: int, b: int) -> None:
        seen.append((a, b))

    made = items(test, {"a": 1, "b": 2}, {"a": 3, "b": 4})
    monkeypatch.setattr(request.config.option, "each_row", False)
    (item,) = collected(request, made)
    assert item.name == "test"
    item.obj()
    assert seen == [(1, 2), (3, 4)]
    monkeypatch.setattr(request.config.option, "each_row", True)
    assert collected(request, made) == made


def test_many_rows_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts are disjoint and cover all rows; both values of a parameter that changes first are in each."""
    seen: list[list[tuple[int, int]]] = []

    def test(a: int, b: int) -> None:
        seen[-1].append((a, b))

    made = items(test, *({"a": number % 2, "b": number // 2} for number in range(20)))
    for part in range(3):
        monkeypatch.setenv(rows.VARIABLE, str(part))
        seen.append([])
        rows.joined(made, parts=3)()
    assert sorted(map(len, seen)) == [6, 7, 7] and len({*seen[0], *seen[1], *seen[2]}) == 20
    assert all({a for a, _ in part} == {0, 1} for part in seen)
    monkeypatch.setenv(rows.VARIABLE, "")
    seen.append([])
    rows.joined(made, parts=3)()
    assert len(seen[-1]) == 20


def test_each_row_draws_the_same_numbers() -> None:
    """A test that fails in a whole run fails alone too."""
    seen = [RNG.integers(1 << 30)]

    def test(a: int) -> None:
        seen.append(RNG.integers(1 << 30))

    rows.joined(items(test, {"a": 1}, {"a": 2}))()
    assert seen == [np.random.default_rng(5).integers(1 << 30)] * 3


def test_rows_with_fixtures_stay_tests(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    def test(a: int, monkeypatch: pytest.MonkeyPatch) -> None: ...

    made = items(test, {"a": 1}, {"a": 2})
    monkeypatch.setattr(request.config.option, "each_row", False)
    assert collected(request, made) == made


def test_an_error_names_its_row_and_the_other_rows_run() -> None:
    seen = []

    def test(a: int) -> None:
        seen.append(a)
        assert a != 2, "two"

    caught = raised(AssertionError, rows.joined(items(test, {"a": 1}, {"a": 2}, {"a": 3})), match="two")
    assert caught.__notes__ == ["in the row [2]"] and seen == [1, 2, 3]


def test_what_pytest_raises_is_of_one_row_too() -> None:
    """A row that is skipped ended the test before, and those after it did not run; nor did those after a failure."""
    seen = []

    def test(a: int) -> None:
        seen.append(a)
        if a in (1, 3):
            pytest.skip("odd")
        raised(ValueError, int, str(a) if a == 4 else "two")

    with pytest.raises(pytest.fail.Exception, match="DID NOT RAISE") as caught:
        rows.joined(items(test, {"a": 1}, {"a": 4}, {"a": 3}, {"a": 2}))()
    assert caught.value.__notes__ == ["in the row [4]"] and seen == [1, 4, 3, 2]
    rows.joined(items(test, {"a": 1}, {"a": 2}))()
    raised(pytest.skip.Exception, rows.joined(items(test, {"a": 1}, {"a": 3})), match="odd")


def test_the_rows_of_a_sweep_stay_tests(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    @pytest.mark.sweep(2)
    def test(a: int) -> None: ...

    made = items(test, {"a": 1}, {"a": 2})
    monkeypatch.setattr(request.config.option, "each_row", False)
    assert collected(request, made) == made


def test_several_errors_are_a_group() -> None:
    def test(a: int) -> None:
        check_node("Neg", {"x": f32(a)}, opset=13, expected=[f32(2 if a == 2 else -a)])
        assert a < 3

    with pytest.raises(ExceptionGroup, match="3 errors in 4 rows") as caught:
        rows.joined(items(test, {"a": 1}, {"a": 2}, {"a": 3}, {"a": 4}))()
    raised, _, wrong = caught.value.exceptions
    assert raised.__notes__ == ["in the row [3]"]
    assert "test_rows.py" in str(wrong) and " [2]: wrong: " in str(wrong) and "\n" not in str(wrong)


def test_marks_stay(pytester: pytest.Pytester) -> None:
    """Those of a function hold for its rows, those of a row for it alone: an expected failure that passes fails."""
    pytester.makeconftest("""
        from tests.running.rows import pytest_pycollect_makeitem as pytest_pycollect_makeitem
        def pytest_addoption(parser): parser.addoption("--each-row", action="store_true")""")
    pytester.makepyfile("""
        import warnings, pytest
        @pytest.mark.filterwarnings("error")
        @pytest.mark.parametrize("a", [1, 2])
        def test_warns(a): warnings.warn("not ignored")
        @pytest.mark.skipif(True, reason="of the function")
        @pytest.mark.parametrize("a", [1, 2])
        def test_skips(a): raise AssertionError
        wrong = pytest.mark.xfail(True, reason="of the row", strict=True)
        @pytest.mark.parametrize("a", [1, 2, pytest.param(3, marks=wrong), pytest.param(4, marks=wrong)])
        def test_expected(a): assert a != 3""")
    pytester.runpytest_inprocess("-p", "no:cacheprovider").assert_outcomes(passed=1, skipped=1, xfailed=1, failed=2)
