"""Replacements of Graphviz's program `dot`, for tests of pictures."""

import stat
from pathlib import Path

import pytest

from mo_loop.transforms import visualize


def use_as_graphviz(folder: Path, monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    """The shell `script`, as a program in `folder`, draws pictures."""
    program = folder / "dot"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(visualize, "_program", lambda: str(program))
