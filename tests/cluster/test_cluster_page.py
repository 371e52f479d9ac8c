"""The commands of docs/cluster.md that need a cluster: they run as they are written, with another port."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests import ROOT
from tests.cli.batches import batch, good
from tests.cli.commands import ended
from tests.cluster.dask_cluster import Cluster

PAGE = ROOT / "docs" / "cluster.md"
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes of a group")


def commands(program: str) -> list[list[str]]:
    """The arguments of the commands of the page that begin like this."""
    lines = [line.strip() for line in PAGE.read_text("utf-8").splitlines() if line.startswith("    ")]
    return [shlex.split(line.removeprefix(program)) for line in lines if line.startswith(program)]


def test_a_cluster_by_hand(tmp_path: Path) -> None:
    good(tmp_path / "models" / "m.onnx")
    by_hand = [each for each in commands("mo-loop batch ") if "tcp://127.0.0.1:8786" in each]
    (scheduler,), workers = commands("dask scheduler "), commands("dask worker ")
    assert len(by_hand) == 1 and len(workers) == 2
    running = Cluster(tmp_path)

    def here(words: list[str]) -> list[str]:
        return [each.replace("8786", str(running.port)) for each in words]

    try:
        running.scheduler = running.start("distributed.cli.dask_scheduler", *here(scheduler), "--no-dashboard")
        for each in workers:
            running.start("distributed.cli.dask_worker", *here(each), "--local-directory", tmp_path)
        ended(batch(*here(by_hand[0]), cwd=tmp_path))
        assert (tmp_path / "ir" / "m.xml").exists()
    finally:
        running.close()


def test_a_cluster_on_this_machine(tmp_path: Path) -> None:
    good(tmp_path / "models" / "m.onnx")
    (local,) = [each for each in commands("mo-loop batch ") if "local" in each]
    done: subprocess.CompletedProcess[str] = batch(*local, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "1 model: 1 converted" in done.stdout and "dashboard" not in done.stderr
