"""The stores of all tests of this folder, and when they run: `make test-cluster` gives --cluster."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.chosen import skip_unless_chosen
from tests.cluster.s3_server import S3Server, Store

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


@pytest.fixture
def store(server: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Store]:
    """An empty bucket; the environment has its address, and temporary files are below the folder of the test."""
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    monkeypatch.setattr("tempfile.tempdir", None)
    server.mend()
    yield server.bucket()
    server.mend()
