"""The thread that looks at the workers of a cluster."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("distributed", reason="the extra `cluster` is not installed")

from mo_loop.batching.cluster.requirements import Unable
from mo_loop.batching.cluster.scheduling import Watch


def test_a_look_that_fails_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of one look ended the thread: from then on nothing noticed workers that come late."""
    monkeypatch.setattr("mo_loop.batching.cluster.scheduling.EVERY", 0.01)
    found = {"workers": {"tcp://1": {"nthreads": 2, "resources": {"MEMORY": 5}}}}
    client: Any = SimpleNamespace(scheduler_info=lambda n_workers: found)
    watch, calls, done = Watch(client), [], threading.Event()

    def changed() -> None:
        calls.append(1)
        if len(calls) < 3:
            raise TimeoutError("too busy")
        done.set()

    watch.start(changed, lambda error: pytest.fail(str(error)))
    assert done.wait(10)
    watch.stop()
    assert (watch.threads, watch.largest) == (2, 5)


def test_an_error_of_our_own_ends_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every error of a look was passed over: a wrong name in what follows it would not be seen in the whole batch."""
    monkeypatch.setattr("mo_loop.batching.cluster.scheduling.EVERY", 0.01)
    client: Any = SimpleNamespace(scheduler_info=lambda n_workers: {"workers": {}})
    found: list[Exception] = []
    done = threading.Event()

    def failed(error: Exception) -> None:
        found.append(error)
        done.set()

    Watch(client).start(lambda: {}["wrong"], failed)
    assert done.wait(10) and isinstance(found[0], KeyError)


def test_workers_that_are_left_out_do_not_count() -> None:
    workers = {f"tcp://{number}": {"nthreads": 2, "resources": {"MEMORY": number}} for number in (5, 9)}
    client: Any = SimpleNamespace(scheduler_info=lambda n_workers: {"workers": workers})
    watch = Watch(client)
    assert watch.leave_out(Unable("tcp://9", "ML280", "no s3fs")) and watch.able == ["tcp://5"] and watch.threads == 2
    assert not watch.leave_out(Unable("tcp://9", "ML280", "no s3fs")) and watch.has_workers
    watch.leave_out(Unable("tcp://5", "ML281", "refused"))
    assert not watch.has_workers
