"""Which rows run, and as how many tests.

The rows of parameters of a test function are one test, whose models are compiled together (tests/running/together.py),
and which pytest handles once: what it does for a test, and sends between processes, takes longer than many a row. The
conftest.py of a folder of such tests imports the hook. Every row runs even when others fail, and each error names its
row. `pytest --each-row` makes each row a test of its own.

`make test` runs one part of the rows of a long sweep, and `make test-all` runs all parts. It does the same with the
rows of each function in tests/runtime: of 20 rows one of five parts, 4 rows.

    @pytest.mark.sweep(3)                                   # one third of the rows
    @pytest.mark.parametrize("index", range(300))
    def test_model(index): ...

    for seed in turn(range(60), 3): ...                     # the same within a test

`--files-of 6` runs one sixth of the test files, for runs in other environments.

Every run chooses part 0, so what passed for one change fails for the next one only by that change. MO_LOOP_TEST_PART=N
chooses part N instead. The same choice decides which tests check the invariants of the graph after each pass: one of
`CHECKED` in `make test`.
"""

import inspect
import os
import re
import shlex
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import pytest

from mo_loop.compare.execution.runtime import ISA_LIMIT as LIMIT
from tests import ROOT
from tests.running import draws, together
from tests.running.processor import fail_or_skip, is_of_the_processor
from tools.runtimes import VARIABLE as RUNTIME


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
    parts = -(-len(alike) // MOST) if collector.path.is_relative_to(MODELS_RUN) else 1
    made = pytest.Function.from_parent(collector, name=name, callobj=joined(alike, parts))
    marks = (mark for mark in getattr(items[0].obj, "pytestmark", ()) if mark.name != "parametrize")
    made.own_markers.extend(marks)
    made.keywords.update((mark.name, mark) for mark in made.own_markers)
    return [made, *alone]


def parameters(item: pytest.Function) -> set[str]:
    """The names that the marks `parametrize` give values."""
    names = [mark.args[0] for mark in item.iter_markers("parametrize")]
    return {name.strip() for each in names for name in (each.split(",") if isinstance(each, str) else each)}


def joined(items: Sequence[pytest.Function], parts: int = 1) -> Callable[[], None]:
    """A function that runs each row, or one of `parts` parts. Rows that follow each other often differ in a parameter
    that repeats, so the rows of a part are those that follow each other in the order of a hash."""
    test = items[0].obj
    rows = {item.callspec.id: item.callspec.params for item in items}
    if parts > 1:
        rows = {row: rows[row] for row in turn(sorted(rows, key=lambda row: zlib.crc32(row.encode())), parts)}

    def call(values: dict[str, Any]) -> None:
        draws.restart(test.__module__)
        test(**values)

    return lambda: run({row: partial(call, values) for row, values in rows.items()})


def run(rows: dict[str, Callable[[], None]]) -> None:
    """Run each row, then judge the models of all. One error is raised as it is, several as a group. The test is skipped
    if all rows are, or if there is no error but those of the processor (tests/running/processor.py)."""
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


# -- parts of sweeps


T = TypeVar("T")

VARIABLE = "MO_LOOP_TEST_PART"
MODELS_RUN = ROOT / "tests" / "runtime"
MOST = 4
"""So many rows of a function in MODELS_RUN run at most, if its rows are one test."""
CHECKED = 4


def choose(config: pytest.Config) -> None:
    """Set the part of this run for all processes of xdist; nothing if all parts run."""
    if config.getoption("all"):
        os.environ[VARIABLE] = ""
    os.environ.setdefault(VARIABLE, "0")


def part() -> int | None:
    """The part of this run, a number that is taken modulo the number of parts; None if all run."""
    text = os.environ.get(VARIABLE, "")
    return int(text) if text else None


def turn(rows: Sequence[T], parts: int) -> Sequence[T]:
    """Those of the rows that run: one of `parts` parts, or all."""
    chosen = part()
    return rows if chosen is None else rows[chosen % parts :: parts]


def header() -> str:
    """The line of the run about its parts."""
    return "sweeps: all rows" if part() is None else f"sweeps: part {part()} of the rows ({VARIABLE}={part()})"


def of_these_files(items: list[pytest.Item], parts: int) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests of one of `parts` parts of the files, and the others; all if `parts` is 0."""
    number = part() or 0
    kept, left = [], []
    for item in items:
        is_kept = not parts or (zlib.crc32(item.nodeid.partition("::")[0].encode()) - number) % parts == 0
        (kept if is_kept else left).append(item)
    return kept, left


def without_other_parts(items: list[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The tests that run, and those of the other parts of sweeps. A row that is asked for alone runs."""
    chosen = part()
    if chosen is None:
        return items, []
    totals = Counter(_function(item) for item in items)
    rows: Counter[str] = Counter()
    kept, left = [], []
    for item in items:
        mark, name = item.get_closest_marker("sweep"), _function(item)
        is_kept = mark is None or totals[name] == 1 or (rows[name] - chosen) % mark.args[0] == 0
        rows[name] += 1
        (kept if is_kept else left).append(item)
    return kept, left


def _function(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]


def checks_passes(nodeid: str) -> bool:
    """Whether a test checks the invariants after each pass of its conversions."""
    chosen = part()
    return chosen is None or (zlib.crc32(nodeid.encode()) - chosen) % CHECKED == 0


def command(item: pytest.Item, error: BaseException | None) -> str:
    """The command that repeats a test which failed: its row alone, if the error names one, and the part of this run."""
    notes = " ".join(getattr(error, "__notes__", ()))
    row = re.search(r"in the row (\[.*\])", notes)
    variables = {VARIABLE: os.environ.get(VARIABLE, ""), **{name: os.environ.get(name) for name in (RUNTIME, LIMIT)}}
    options = ["--each-row"] if row else []
    options += [f"--{name}" for name in ("browser", "cluster", "devices") if item.config.getoption(name)]
    python = Path(sys.executable)
    here = python.relative_to(ROOT) if python.is_relative_to(ROOT) else python
    words = [str(here), "-m", "pytest", item.nodeid + (row[1] if row else ""), *options]
    return " ".join([*(f"{name}={value}" for name, value in variables.items() if value is not None), shlex.join(words)])


# -- folders that an option chooses


def skip_unless_chosen(
    config: pytest.Config, items: list[pytest.Item], folder: Path, option: str, lack: str | None, what: str
) -> None:
    """Skip the tests below `folder` without the option; with it, what they need must be there.

    Args:
        lack: what the tests lack in this environment, as the rest of a sentence; None if it has everything.
        what: what the target of make with the name of the option does.

    Raises:
        pytest.UsageError: the option is given, and something is missing.
    """
    start = f"{folder}{os.sep}"
    mine = [item for item in items if str(item.path).startswith(start)]
    name = f"tests/{folder.name}"
    if config.getoption(option):
        if mine and lack:
            raise pytest.UsageError(f"{name} {lack}")
        return
    reason = f"{name} {lack}" if lack else f"`make test-{option}` runs the tests {what}"
    for item in mine:
        item.add_marker(pytest.mark.skip(reason=reason))
