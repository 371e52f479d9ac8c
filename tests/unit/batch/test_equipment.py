"""The worker processes of a Dask worker, and when they end; the logs of distributed."""

from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("distributed", reason="the extra `cluster` is not installed")

from mo_loop.batching.cluster import on_worker
from mo_loop.batching.cluster.connecting import _silent_logs
from mo_loop.batching.cluster.requirements import SentFile
from mo_loop.errors import ClusterError


class FakePool:
    """A pool that records that it is closed."""

    is_closed = False

    def close(self) -> None:
        self.is_closed = True


def equipment(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Equipment whose pool has been idle for long."""
    monkeypatch.setattr(on_worker, "IDLE", 0.02)
    found: Any = on_worker.Equipment.__new__(on_worker.Equipment)
    found._lock, found._running, found._is_closed = threading.Lock(), 0, False
    found._last, found._pool, found._places = time.monotonic() - 1e6, FakePool(), {}
    return found


def test_a_pool_is_not_closed_under_a_conversion_that_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """The look and the end are one step: who begins in between would get a pool that is closed a moment later."""
    found = equipment(monkeypatch)
    pool = found._pool

    class Watched:
        """The lock; at its first end a conversion begins."""

        lock, is_first = found._lock, True

        def __enter__(self) -> None:
            self.lock.__enter__()

        def __exit__(self, *error: Any) -> None:
            self.lock.__exit__(*error)
            if self.is_first and found._pool is pool:
                self.is_first = False
                found._running += 1

    found._lock = Watched()
    threading.Thread(target=found._end_when_idle, args=(pool,), daemon=True).start()
    time.sleep(0.3)
    assert not (found._running and pool.is_closed)
    found._pool = None


def test_an_idle_pool_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    found = equipment(monkeypatch)
    pool = found._pool
    found._end_when_idle(pool)
    assert pool.is_closed and found._pool is None


def test_a_pool_ends_after_its_conversions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after one that raised an error."""
    found = equipment(monkeypatch)
    found.unable, found._is_ready, pool = None, threading.Event(), found._pool
    found._is_ready.set()
    monkeypatch.setattr(found, "_converted", lambda number, drafts: [1][number])
    assert found.convert(0, "") == 1
    with pytest.raises(IndexError):
        found.convert(1, "")
    ending = threading.Thread(target=found._end_when_idle, args=(pool,), daemon=True)
    ending.start()
    ending.join(10)
    assert pool.is_closed


def test_logs_of_distributed_are_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    log = logging.getLogger("distributed.client")
    monkeypatch.setattr(log, "level", logging.INFO)
    before = dict(os.environ)
    with pytest.raises(KeyError), _silent_logs():
        assert log.level > logging.CRITICAL and os.environ != before
        raise KeyError
    assert log.level == logging.INFO and dict(os.environ) == before


def test_a_file_that_did_not_arrive_leaves_no_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    found = equipment(monkeypatch)
    found._pool, found._files = None, (SentFile("a.py", "a.py", "wrong", b""),)
    with pytest.raises(ClusterError):
        found._ready()
    assert list(tmp_path.iterdir()) == []
