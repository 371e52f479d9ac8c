"""The thread that looks at the workers of a cluster."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("distributed", reason="the extra `cluster` is not installed")

from mo_loop.cluster.watching import Watch


def test_a_look_that_fails_is_not_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    """An error of one look ended the thread: from then on nothing noticed workers that come late."""
    monkeypatch.setattr("mo_loop.cluster.watching.EVERY", 0.01)
    found = {"workers": {"tcp://1": {"nthreads": 2, "resources": {"MEMORY": 5}}}}
    client: Any = SimpleNamespace(scheduler_info=lambda n_workers: found)
    watch, calls, done = Watch(client), [], threading.Event()

    def changed() -> None:
        calls.append(1)
        if len(calls) < 3:
            raise TimeoutError("too busy")
        done.set()

    watch.start(changed)
    assert done.wait(10)
    watch.stop()
    assert (watch.threads, watch.largest) == (2, 5)
