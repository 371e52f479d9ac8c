"""Folders of tests that run only when an option asks for them, because they need more than the others."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


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
