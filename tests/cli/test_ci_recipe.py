"""The recipe for make in docs/ci.md works as it is printed there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT

from .batches import good, refused


@pytest.fixture
def project(tmp_path: Path) -> Path:
    page = (ROOT / "docs" / "ci.md").read_text("utf-8")
    found = re.search(r"^```make\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    (tmp_path / "Makefile").write_text(found[1])
    good(tmp_path / "models" / "sub" / "good.onnx")
    refused(tmp_path / "models" / "refused.onnx")
    return tmp_path


def make(project: Path, target: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["make", target], cwd=project, capture_output=True, text=True, timeout=300, env={**os.environ, "PATH": path}
    )


def test_failures_count_until_they_are_in_the_baseline(project: Path) -> None:
    assert make(project, "ir").returncode == 2, "make's own code for a command that failed"
    assert (project / "ir" / "sub" / "good.xml").exists() and (project / "junit.xml").exists()
    assert make(project, "accept").returncode == 0
    assert make(project, "ir").returncode == 0
    refused(project / "models" / "sub" / "good.onnx")
    assert make(project, "ir").returncode == 2
