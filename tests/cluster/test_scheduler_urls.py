"""A batch on two workers with models and outputs on an S3 server."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.batches import batch, good, read, refused, statuses, trouble
from tests.cluster.dask_cluster import cluster
from tests.cluster.models import numbers, with_external
from tests.cluster.s3_server import S3Server, Store
from tests.cluster.test_batch_urls import Watch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc")


def assert_no_half_pair(store: Store) -> set[str]:
    """Every .xml has its .bin, and is of the same model. The names of the pairs."""
    names = store.names()
    pairs = {name.removesuffix(".xml") for name in names if name.endswith(".xml")}
    assert {f"{name}.bin" for name in pairs} <= set(names)
    return pairs


def test_every_tenth_request_fails(store: Store, server: S3Server, temporary: Path, tmp_path: Path) -> None:
    """Every model ends exactly once, with its external data, and nobody sees half a pair meanwhile."""
    for number in range(20):
        store.put(f"zoo/d{number % 3}/m{number}.onnx", good(tmp_path / "m.onnx", number, name=f"n{number}"))
    store.put("zoo/r.onnx", refused(tmp_path / "r.onnx"))
    store.put("large/m.onnx", with_external(tmp_path, {"a": ("d.bin", 400, 100)}))
    store.put("large/d.bin", numbers(4000))
    arguments = (f"{store.url}/zoo/**", "-o", f"{store.url}/ir", "--report", tmp_path / "r.json")
    with cluster(tmp_path / "cluster", 2) as running:
        server.fail_every(10)
        watch = Watch(store, tmp_path / "watch")
        watch.start()
        done = batch(*arguments, "--scheduler", running.address, "--scratch", "1G")
        watch.end()
        assert done.returncode == 1, done.stderr
        found = [each["name"] for each in read(tmp_path / "r.json")["models"]]
        assert len(found) == 21 and set(Counter(found).values()) == {1}
        assert Counter(statuses(tmp_path / "r.json").values()) == {"converted": 20, "failed": 1}
        assert len(assert_no_half_pair(store)) == 20
        large = batch(f"{store.url}/large", "-o", f"{store.url}/ir", "--scheduler", running.address)
        assert large.returncode == 0 and "ir/m.xml" in store.names()
        server.mend()
        again = batch(*arguments, "--scheduler", running.address)
        assert Counter(statuses(tmp_path / "r.json").values()) == {"skipped": 20, "failed": 1}, again.stderr
        assert not running.converters()
    here = batch(*arguments)
    assert Counter(statuses(tmp_path / "r.json").values()) == {"skipped": 20, "failed": 1}, here.stderr
    assert list(temporary.rglob("room-*")) == []


def test_a_worker_is_killed_while_it_uploads(store: Store, tmp_path: Path) -> None:
    for number in range(12):
        store.put(f"zoo/m{number:02}.onnx", good(tmp_path / "m.onnx", number, name="slow3"))
    with cluster(tmp_path / "cluster", 2) as running:

        def kill() -> None:
            end = time.monotonic() + 60
            while time.monotonic() < end and sum(name.endswith(".xml") for name in store.names()) < 3:
                time.sleep(0.05)
            running.kill(running.processes[1])

        threading.Thread(target=kill, daemon=True).start()
        flags = ("--extension", trouble(tmp_path), "--report", f"{store.url}/r.json", "--scheduler", running.address)
        done = batch(f"{store.url}/zoo", "-o", f"{store.url}/ir", *flags)
    assert done.returncode == 0, done.stderr
    (tmp_path / "r.json").write_bytes(store.read("r.json"))
    assert set(statuses(tmp_path / "r.json").values()) == {"converted"} and len(statuses(tmp_path / "r.json")) == 12
    assert len(assert_no_half_pair(store)) == 12
