"""The stores of all tests of this folder, and when they run: `make test-cluster` gives --cluster."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.s3_server import S3Server, Store
from tests.running.rows import skip_unless_chosen

HERE = Path(__file__).parent
NEEDED = ("fsspec", "s3fs", "moto", "distributed")


def missing() -> str | None:
    """The requirement of these tests that this environment does not meet, as a sentence; None if it meets all."""
    lacking = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    return f"need {', '.join(lacking)}: pip install -e '.[verify,cluster]' --group cluster-tests" if lacking else None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Without --cluster, the tests of this folder are skipped; with it, what they need must be there."""
    skip_unless_chosen(config, items, HERE, "cluster", missing(), "with stores and a cluster")


@pytest.fixture(scope="session")
def server() -> Iterator[S3Server]:
    """One S3 server for all tests."""
    with S3Server() as running:
        yield running


@pytest.fixture(scope="session")
def temporary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of temporary files of all tests with a store: worker processes in one environment are kept."""
    return tmp_path_factory.mktemp("temporary")


@pytest.fixture
def store(server: S3Server, monkeypatch: pytest.MonkeyPatch, temporary: Path) -> Iterator[Store]:
    """An empty bucket; the environment has its address, and an empty folder for temporary files."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    shutil.rmtree(temporary)
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", None)
    server.mend()
    yield server.bucket()
    server.mend()
