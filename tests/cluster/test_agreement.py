"""Refusals before work begins: one coded message, no traceback, in a limited time."""

from __future__ import annotations

import socket
import subprocess
import time
from pathlib import Path

import onnx
import pytest

from mo_loop import __version__
from tests.cli.batches import batch, good
from tests.cluster.dask_cluster import cluster, wait_until


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with one model."""
    good(tmp_path / "in" / "m.onnx")
    return tmp_path


def assert_refused(done: subprocess.CompletedProcess[str], code: str, folder: Path) -> str:
    """One message with this code, exit code 2, nothing written."""
    assert done.returncode == 2, done.stderr
    assert done.stderr.startswith(f"error: {code}: "), done.stderr
    assert done.stderr.count("error: ") == 1
    assert not any(word in done.stderr for word in ("Traceback", "distributed.client", "Exception ignored", "ML499"))
    assert not (folder / "out").exists()
    return done.stderr


@pytest.mark.parametrize("address", ["host:8786", "http://host:8786", "tcp://", "tcp:/host", "", "Local"])
def test_what_is_no_address(address: str, folder: Path) -> None:
    said = assert_refused(batch("in", "-o", "out", "--scheduler", address, cwd=folder), "ML201", folder)
    assert "tcp://host:8786" in said


def test_without_the_extra(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mo_loop.batching.cluster.connecting.find_spec", lambda _: None)
    said = assert_refused(batch("in", "-o", "out", "--scheduler", "local", cwd=folder), "ML203", folder)
    assert "pip install distributed fsspec" in said


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scheduler has two seconds to answer."""
    monkeypatch.setattr("mo_loop.batching.cluster.connecting.CONNECT", 2.0)


def test_a_port_without_anybody(folder: Path, impatient: None) -> None:
    start = time.monotonic()
    done = batch("in", "-o", "out", "--scheduler", "tcp://127.0.0.1:9", cwd=folder)
    assert time.monotonic() - start < 60
    assert "tcp://127.0.0.1:9 cannot be reached" in assert_refused(done, "ML290", folder)


def test_a_port_that_does_not_answer(folder: Path, impatient: None) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        start = time.monotonic()
        done = batch("in", "-o", "out", "--scheduler", f"tcp://127.0.0.1:{silent.getsockname()[1]}", cwd=folder)
        assert time.monotonic() - start < 60
    assert_refused(done, "ML290", folder)


def test_tls_without_certificates(folder: Path) -> None:
    said = assert_refused(batch("in", "-o", "out", "--scheduler", "tls://127.0.0.1:9", cwd=folder), "ML290", folder)
    assert "certificates" in said


def test_no_workers(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mo_loop.batching.cluster.connecting.WORKERS", 1.0)
    with cluster(folder / "cluster", 0) as running:
        done = batch("in", "-o", "out", "--scheduler", running.address, cwd=folder)
    assert "within 1 s" in assert_refused(done, "ML291", folder)


def test_a_worker_without_the_package(folder: Path) -> None:
    with cluster(folder / "cluster", 1, preload="no package") as running:
        done = batch("in", "-o", "out", "--scheduler", running.address, cwd=folder)
    said = assert_refused(done, "ML292", folder)
    assert "worker tcp://127.0.0.1:" in said and "does not have mo_loop" in said


def test_a_worker_with_other_versions(folder: Path) -> None:
    """Both lists are shown, and that of equal workers once."""
    with cluster(folder / "cluster", 0) as running:
        for preload in ("", "other onnx", "other onnx"):
            running.start_worker(preload=preload)
        wait_until(lambda: sum("Registered to" in log.read_text() for log in running.folder.glob("log*.txt")) == 3)
        done = batch("in", "-o", "out", "--scheduler", running.address, cwd=folder)
    said = assert_refused(done, "ML293", folder)
    assert f"here: mo_loop {__version__}, onnx {onnx.__version__}, " in said
    assert said.count("onnx 1.0.0") == 1 and "and 1 more: " in said


def test_a_folder_that_a_worker_does_not_see(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulated: the processes of a test share the disk."""
    from distributed import Client

    monkeypatch.setattr(Client, "run", lambda *_: {"tcp://10.0.0.1:4000": False, "tcp://10.0.0.2:4000": True})
    with cluster(folder / "cluster", 1) as running:
        done = batch("in", "-o", "out", "--scheduler", running.address, cwd=folder)
    said = done.stderr
    assert done.returncode == 2 and "error: ML296: the worker tcp://10.0.0.1:4000 does not see " in said
    assert "1 of 2 workers" in said
