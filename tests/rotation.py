"""Parts of long sweeps: `make test` runs one part, chosen by the commit, and `make test-all` runs all parts.

    @pytest.mark.sweep(3)                                   # one third of the rows, another third at another commit
    @pytest.mark.parametrize("index", range(300))
    def test_model(index): ...

    for seed in turn(range(60), 3): ...                     # the same within a test

`--files-of 6` runs one sixth of the test files, another sixth at another commit, for runs in other environments.

Runs of one commit choose the same parts, so a failure can be repeated. MO_LOOP_TEST_PART=N chooses part N instead. The
same choice decides which tests check the invariants of the graph after each pass: one of `CHECKED` in `make test`.
"""

from __future__ import annotations

import os
import subprocess
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

import pytest

from tests import ROOT

T = TypeVar("T")

VARIABLE = "MO_LOOP_TEST_PART"
CHECKED = 4


def choose(config: pytest.Config) -> None:
    """Set the part of this run for all processes of xdist; nothing if all parts run."""
    if config.getoption("all"):
        os.environ[VARIABLE] = ""
    elif VARIABLE not in os.environ:
        command = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
        try:
            commit = subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
        except FileNotFoundError:  # an unpacked sdist on a machine without git
            commit = ""
        os.environ[VARIABLE] = str(int(commit[:7], 16) if commit else 0)


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
    """The tests that run, and those of sweeps that run at other commits. A row that is asked for alone runs."""
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
