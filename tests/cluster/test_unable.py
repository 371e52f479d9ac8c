"""Workers that cannot convert models are left out, with one message each: it is never the result of a model."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.batches import batch, good, statuses, trouble
from tests.cluster.dask_cluster import Cluster, cluster, wait_until
from tests.cluster.s3_server import DENIED, S3Server, Store
from tests.cluster.test_lost import OnCluster

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="/proc")

NO_KEYS = {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "HOME": "/nowhere"}


def without_s3fs(folder: Path) -> dict[str, str]:
    """The environment of a process that cannot import s3fs."""
    folder.mkdir()
    (folder / "s3fs.py").write_text("raise ImportError('no s3fs')\n")
    return {"PYTHONPATH": f"{folder}:{Path(__file__).parents[2]}"}


def wait_for_workers(running: Cluster, count: int) -> None:
    """Wait until this many workers are registered with the scheduler."""
    logs = [running.folder / f"log{number}.txt" for number in range(1, len(running.processes))]
    wait_until(lambda: sum("Registered to" in log.read_text() for log in logs) == count)


@pytest.mark.parametrize("lack", ["s3fs", "credentials"])
def test_a_worker_without_what_urls_need(lack: str, store: Store, tmp_path: Path) -> None:
    for number in range(12):
        store.put(f"zoo/m{number:02}.onnx", good(tmp_path / "m.onnx", number))
    env = NO_KEYS if lack == "credentials" else without_s3fs(tmp_path / "no")
    with cluster(tmp_path / "cluster", 1) as running:
        running.start_worker(env=env)
        wait_for_workers(running, 2)
        flags = ("--report", tmp_path / "r.json", "--scheduler", running.address)
        done = batch(f"{store.url}/zoo", "-o", f"{store.url}/ir", *flags)
    assert done.returncode == 0, done.stderr
    assert set(statuses(tmp_path / "r.json").values()) == {"converted"}
    code = {"s3fs": "ML280", "credentials": "ML281"}[lack]
    assert done.stderr.count(f"warning: a worker is left out: {code}: ") == 1, done.stderr


def test_no_worker_has_credentials(store: Store, tmp_path: Path) -> None:
    """One message before work begins, and not one for each model."""
    for number in range(5):
        store.put(f"zoo/m{number}.onnx", good(tmp_path / "m.onnx", number))
    with cluster(tmp_path / "cluster", 0) as running:
        running.start_worker(env=NO_KEYS)
        running.start_worker(env=NO_KEYS)
        wait_for_workers(running, 2)
        done = batch(f"{store.url}/zoo", "-o", f"{store.url}/ir", "--scheduler", running.address)
    assert done.returncode == 2 and "error: ML281: no worker can convert the models" in done.stderr, done.stderr
    assert done.stderr.count("error: ") == 1 and store.names() == [f"zoo/m{number}.onnx" for number in range(5)]


def test_credentials_that_end_during_a_batch(store: Store, server: S3Server, tmp_path: Path) -> None:
    """The batch ends with one message, what is not converted is cancelled, and the next run continues."""
    for number in range(12):
        store.put(f"zoo/m{number:02}.onnx", good(tmp_path / "m.onnx", number))
    arguments = (f"{store.url}/zoo", "-o", f"{store.url}/ir", "--report", tmp_path / "r.json")
    refuses = lambda request: request.method == "PUT" and len(store.names()) > 15  # noqa: E731
    with cluster(tmp_path / "cluster", 1) as running:
        server.fail_when(refuses, DENIED, "403 Forbidden")
        done = batch(*arguments, "--scheduler", running.address)
        assert done.returncode == 1 and done.stderr.count("error: ML281: no worker can convert") == 1, done.stderr
        found = statuses(tmp_path / "r.json")
        assert set(found.values()) == {"converted", "cancelled"} and len(found) == 12
        server.mend()
        assert batch(*arguments, "--scheduler", running.address).returncode == 0
    assert set(statuses(tmp_path / "r.json").values()) == {"converted", "skipped"}


def test_an_object_that_is_refused_to_all_fails_alone(store: Store, server: S3Server, tmp_path: Path) -> None:
    for number in range(6):
        store.put(f"zoo/m{number}.onnx", good(tmp_path / "m.onnx", number))
    flags = ("--report", tmp_path / "r.json")
    with cluster(tmp_path / "cluster", 1) as running:
        server.fail_when(lambda request: "m3.onnx" in request.path, DENIED, "403 Forbidden")
        done = batch(f"{store.url}/zoo", "-o", f"{store.url}/ir", *flags, "--scheduler", running.address)
    assert done.returncode == 1 and "left out" not in done.stderr, done.stderr
    assert statuses(tmp_path / "r.json") == {f"m{n}.onnx": "failed" if n == 3 else "converted" for n in range(6)}


@pytest.mark.parametrize(("preload", "code"), [("other onnx", "ML293"), ("no package", "ML292")])
def test_a_late_worker_with_other_packages(preload: str, code: str, tmp_path: Path) -> None:
    """It does not get models, also if it was started with the resource that they need."""
    for number in range(16):
        good(tmp_path / "in" / f"m{number:02}.onnx", number, name="slow3")
    trouble(tmp_path)
    with cluster(tmp_path / "cluster", 1) as running:
        started = OnCluster(tmp_path, running.address)
        started.wait_for(lambda: started.pairs() >= 2)
        running.start_worker("--resources", "MEMORY=8e9", preload=preload)
        ended, _, stderr = started.end()
    assert ended == 0, stderr
    assert set(statuses(tmp_path / "r.json").values()) == {"converted"}
    if code == "ML293":
        assert stderr.count(f"warning: a worker is left out: {code}: ") == 1, stderr


def test_signed_urls_are_in_no_log(store: Store, tmp_path: Path) -> None:
    store.put("zoo/m.onnx", good(tmp_path / "m.onnx"))
    given = store.client.generate_presigned_url("get_object", Params={"Bucket": store.name, "Key": "zoo/m.onnx"})
    with cluster(tmp_path / "cluster", 1) as running:
        for flags in (("--memory", "1M"), (), ("--extension", _fails(tmp_path))):
            batch(given, "-o", tmp_path / "out", "--force", "--scheduler", running.address, *flags)
        logs = [each.read_text() for each in running.folder.glob("log*.txt")]
    assert len(logs) == 2 and not any("Signature" in each or "Compute Failed" in each for each in logs)


def _fails(folder: Path) -> Path:
    path = folder / "fails.py"
    path.write_text("def register(extensions):\n    raise ValueError('no')\n")
    return path
