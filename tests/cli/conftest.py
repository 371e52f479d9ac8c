"""Files that the tests of the command use."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness import parsed

from .commands import PLAIN, saved


@pytest.fixture
def plain(tmp_path: Path) -> Path:
    return saved(parsed(PLAIN), tmp_path)


@pytest.fixture
def old_pair(tmp_path: Path) -> Path:
    """The .xml file of a pair that an earlier conversion wrote."""
    folder = tmp_path / "out"
    folder.mkdir()
    (folder / "model.xml").write_bytes(b"<old/>")
    (folder / "model.bin").write_bytes(b"old weights")
    return folder / "model.xml"
