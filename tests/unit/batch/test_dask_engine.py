"""DaskEngine before it submits a model; tests/cluster has the rest."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("distributed", reason="the extra `cluster` is not installed")

from mo_loop.batching.batch_options import BatchOptions
from mo_loop.batching.cluster.dask_engine import CHECKS_AT_ONCE, DaskEngine
from mo_loop.batching.plan import Planned
from mo_loop.batching.storage.locations import Location
from mo_loop.batching.storage.stores import Info


def test_models_are_looked_at_at_once_and_stay_in_order() -> None:
    """Whether a model at a URL is up to date may take several requests: one after another they would take hours."""
    found = {"workers": {"tcp://1": {"nthreads": 2, "resources": {"MEMORY": 5}}}}
    client: Any = SimpleNamespace(scheduler_info=lambda n_workers: found)
    engine = DaskEngine(client, BatchOptions(memory=7))
    together, numbers = threading.Barrier(CHECKS_AT_ONCE, timeout=60), iter(range(CHECKS_AT_ONCE))

    def take() -> Any:
        number = next(numbers, None)
        if number is None:
            return None
        together.wait()
        size = 10 * (1 + number % 3)
        task = SimpleNamespace(work=SimpleNamespace(comparing=None))
        return SimpleNamespace(number=number, known=None, earlier=None, task=task, model=Planned(
            Location(f"s3://zoo/{number}.onnx"), Path(f"{number}.xml"), f"{number}.onnx", Info(size)
        ))

    engine._queue = SimpleNamespace(take=take)
    taken = engine._taken(CHECKS_AT_ONCE + 3)
    assert [(each.model.size, each.number, need) for each, need in taken] == [
        (30, 2, 7), (30, 5, 7), (20, 1, 7), (20, 4, 7), (20, 7, 7), (10, 0, 7), (10, 3, 7), (10, 6, 7)
    ]
