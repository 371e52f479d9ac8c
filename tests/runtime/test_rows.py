"""tests/rows.py: the rows of a test are one test, every row runs, and an error names its row."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from tests import rows
from tests.harness import check_node, f32


def items(test: Callable[..., None], *params: dict[str, Any], marks: list[Any] | None = None) -> list[Any]:
    """What pytest makes for a function and its rows, as far as `joined` reads it."""
    specs = [SimpleNamespace(id="-".join(map(str, each.values())), params=each, marks=marks or []) for each in params]
    return [SimpleNamespace(obj=test, callspec=spec, nodeid="test") for spec in specs]


def test_the_rows_are_one_test(request: pytest.FixtureRequest) -> None:
    seen = []

    def test(a: int, request: pytest.FixtureRequest, b: int) -> None:
        seen.append((a, b, request))

    joined = rows.joined(items(test, {"a": 1, "b": 2}, {"a": 3, "b": 4}))
    joined(request=request)
    assert seen == [(1, 2, request), (3, 4, request)]


def test_pytest_makes_one_item_of_the_rows(request: pytest.FixtureRequest) -> None:
    def test(a: int, monkeypatch: pytest.MonkeyPatch) -> None: ...

    made = items(test, {"a": 1}, {"a": 2})
    for each_row, count in ((False, 1), (True, 2)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(request.config.option, "each_row", each_row)
            hook = rows.pytest_pycollect_makeitem(request.node.parent, "test")
            next(hook)
            with pytest.raises(StopIteration) as found:
                hook.send(made)
        assert len(found.value.value) == count
    hook = rows.pytest_pycollect_makeitem(request.node.parent, "test")
    next(hook)
    with pytest.raises(StopIteration) as found:
        hook.send(made)
    (item,) = found.value.value
    assert item.name == "test" and "monkeypatch" in item.fixturenames and "a" not in item.fixturenames


def test_an_error_names_its_row_and_the_other_rows_run() -> None:
    seen = []

    def test(a: int) -> None:
        seen.append(a)
        assert a != 2, "two"

    with pytest.raises(AssertionError, match="two") as caught:
        rows.joined(items(test, {"a": 1}, {"a": 2}, {"a": 3}))()
    assert caught.value.__notes__ == ["in the row [2]"] and seen == [1, 2, 3]


def test_several_errors_are_a_group() -> None:
    def test(a: int) -> None:
        check_node("Neg", {"x": f32(a)}, opset=13, expected=[f32(2 if a == 2 else -a)])
        assert a < 3

    with pytest.raises(ExceptionGroup, match="3 errors in 4 rows") as caught:
        rows.joined(items(test, {"a": 1}, {"a": 2}, {"a": 3}, {"a": 4}))()
    raised, _, wrong = caught.value.exceptions
    assert raised.__notes__ == ["in the row [3]"]
    assert "test_rows.py" in str(wrong) and " [2]: wrong: " in str(wrong) and "\n" not in str(wrong)


def test_marks_of_a_row_are_refused() -> None:
    with pytest.raises(AssertionError, match="marks of a row"):
        rows.joined(items(lambda: None, {"a": 1}, marks=[pytest.mark.xfail]))
