"""The rows of parameters of a test function are one test, whose models are compiled together (tests/together.py), and
which pytest handles once: what it does for a test, and sends between processes, takes longer than many a row.

The conftest.py of a folder of such tests imports the hook. Every row runs even when others fail, and each error names
its row. `pytest --each-row` makes each row a test of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests import together
from tests.processor import fail_or_skip, is_of_the_processor


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector: pytest.Module | pytest.Class, name: str) -> Any:
    """Replace the items that pytest makes for the rows of a function by one.

    A function with fixtures keeps its items: each row needs its own fixtures. So does a sweep, of which a part runs. A
    row with marks stays a test of its own, and the marks of the function are those of all its rows.
    """
    items = yield
    if not isinstance(items, list) or len(items) < 2 or collector.config.getoption("each_row"):
        return items
    if not inspect.signature(items[0].obj).parameters.keys() <= parameters(items[0]):
        return items
    if any(mark.name == "sweep" for mark in getattr(items[0].obj, "pytestmark", ())):
        return items
    alone = [item for item in items if item.callspec.marks]
    alike = [item for item in items if not item.callspec.marks]
    if len(alike) < 2:
        return items
    made = pytest.Function.from_parent(collector, name=name, callobj=joined(alike))
    marks = (mark for mark in getattr(items[0].obj, "pytestmark", ()) if mark.name != "parametrize")
    made.own_markers.extend(marks)
    made.keywords.update((mark.name, mark) for mark in made.own_markers)
    return [made, *alone]


def parameters(item: pytest.Function) -> set[str]:
    """The names that the marks `parametrize` give values."""
    names = [mark.args[0] for mark in item.iter_markers("parametrize")]
    return {name.strip() for each in names for name in (each.split(",") if isinstance(each, str) else each)}


def joined(items: Sequence[pytest.Function]) -> Callable[[], None]:
    """A function that runs each row."""
    test = items[0].obj
    rows = {item.callspec.id: item.callspec.params for item in items}
    return lambda: run({row: lambda values=values: test(**values) for row, values in rows.items()})


def run(rows: dict[str, Callable[[], None]]) -> None:
    """Run each row, then judge the models of all. One error is raised as it is, several as a group. The test is skipped
    if all rows are, or if there is no error but those of the processor (tests/processor.py)."""
    errors: list[BaseException] = []
    of_the_processor: list[BaseException] = []
    skipped: list[BaseException] = []
    not_computed: BaseException | None = None
    for row, test in rows.items():
        together.row = row
        try:
            test()
        except pytest.skip.Exception as reason:
            skipped.append(reason)
        except (Exception, pytest.fail.Exception) as error:
            error.add_note(f"in the row [{row}]")
            (of_the_processor if is_of_the_processor(str(error)) else errors).append(error)
        finally:
            together.row = ""
    try:
        together.judge_all()
        fail_or_skip([f"{each} ({each.__notes__[-1]})" for each in of_the_processor])
    except AssertionError as error:
        errors.append(error)
    except pytest.skip.Exception as reason:
        not_computed = reason
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise BaseExceptionGroup(f"{len(errors)} errors in {len(rows)} rows", errors)
    if not_computed is not None:
        raise not_computed
    if len(skipped) == len(rows):
        raise skipped[0]
