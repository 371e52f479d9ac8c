"""The memory requirements of models are declared to Dask; the order is that of their sizes."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from mo_loop.batching.estimates import estimate
from tests.cli.batches import batch, good, read, statuses
from tests.cli.commands import ended
from tests.cluster.dask_cluster import cluster
from tests.cluster.s3_server import Store

Client = pytest.importorskip("distributed", reason="tests/cluster need distributed").Client
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes of a group")

NOTED = """
import time
from pathlib import Path
from mo_loop.transforms.function_pass import FunctionPass

class Noted(FunctionPass):
    def run_on_graph(self, graph):
        begin = time.time()
        time.sleep(0.5)
        with open({place!r}, "a") as file:
            file.write(f"{{begin}} {{time.time()}}\\n")
        return False

def register(extensions):
    extensions.add_pass(Noted, at="start")
"""


def at_once(times: Path) -> int:
    """The largest number of models that were converted at the same time."""
    spans = [tuple(map(float, line.split())) for line in times.read_text().splitlines()]
    return max(sum(begin <= start < end for begin, end in spans) for start, _ in spans)


@pytest.mark.parametrize(("need", "most"), [(4.5e9, 1), (4e9, 2), (1e9, 3)])
def test_a_worker_is_given_what_fits(need: float, most: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    estimated = SimpleNamespace(memory=int(need))
    monkeypatch.setattr("mo_loop.batching.cluster.scheduling.estimate", lambda *_, **__: estimated)
    for number in range(6):
        good(tmp_path / "in" / f"m{number}.onnx", number)
    (tmp_path / "noted.py").write_text(NOTED.format(place=str(tmp_path / "times.txt")))
    with cluster(tmp_path / "cluster", 1, "--nthreads", 3, "--resources", "MEMORY=8e9") as running:
        flags = ("--extension", "noted.py", "--scheduler", running.address)
        done = batch("in", "-o", "out", *flags, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert at_once(tmp_path / "times.txt") == most


def test_a_model_above_every_worker_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    small = good(tmp_path / "in" / "small.onnx")
    good(tmp_path / "in" / "large.onnx", name="a_much_longer_name_of_a_graph")
    limit = small.stat().st_size
    found = lambda size, *_, **__: SimpleNamespace(memory=1 if size <= limit else 9 << 30)  # noqa: E731
    monkeypatch.setattr("mo_loop.batching.cluster.scheduling.estimate", found)
    with cluster(tmp_path / "cluster", 1, "--memory-limit", "2GiB") as running:
        flags = ("--report", "r.json", "--scheduler", running.address)
        done = batch("in", "-o", "out", *flags, cwd=tmp_path)
    assert done.returncode == 1 and "failed large.onnx: ML294: the model needs about" in done.stderr
    assert statuses(tmp_path / "r.json") == {"large.onnx": "failed", "small.onnx": "converted"}
    (error,) = read(tmp_path / "r.json")["models"][0]["errors"]
    assert str(2 << 30) in error["why"] and "--memory-limit" in error["hint"]


def test_a_report_says_what_models_at_urls_need(store: Store, tmp_path: Path) -> None:
    """Without the baseline both are estimated from their sizes alone, and fit."""
    for name in ("large", "small"):
        store.put(f"zoo/{name}.onnx", good(tmp_path / "m.onnx"))
    sizes = {"model": 1000, "external": 0, "xml": 1, "bin": 1}
    took = {"seconds": 1.0, "memory": 6 << 30, "peak": 6 << 30}
    large = {"name": "large.onnx", "status": "skipped", "seconds": 0, "sizes": sizes, "layers": 9, "conversion": took}
    report = {"schema": "mo-loop batch report", "version": 1, "models": [large]}
    (tmp_path / "b.json").write_text(json.dumps(report))
    with cluster(tmp_path / "cluster", 1, "--resources", "MEMORY=5e9") as running:
        flags = ("--baseline", tmp_path / "b.json", "--scheduler", running.address)
        said = batch(f"{store.url}/zoo", "-o", f"{store.url}/ir", *flags, "--plan").stdout
        done = batch(f"{store.url}/zoo", "-o", f"{store.url}/ir", *flags, "--report", tmp_path / "r.json")
    assert "with 1 worker (1 of 2 by the earlier report)" in said and "refused 1 model needs more than 5.0 GB" in said
    assert statuses(tmp_path / "r.json") == {"large.onnx": "failed", "small.onnx": "converted"}, done.stderr
    assert "failed large.onnx: ML294" in done.stderr


def test_a_converted_model_is_not_refused_after_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The formula for layers gives far too much, as for large bodies; the measured memory counts."""
    monkeypatch.setattr("mo_loop.batching.estimates.LAYER", 1 << 30)
    with cluster(tmp_path / "cluster", 1, "--resources", "MEMORY=1e9") as running:
        for number in (1, 2):
            good(tmp_path / "in" / "m.onnx", number)
            ended(batch("in", "-o", "out", "--report", "r.json", "--scheduler", running.address, cwd=tmp_path))
            assert statuses(tmp_path / "r.json") == {"m.onnx": "converted"}


def test_a_plan_asks_the_scheduler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    good(tmp_path / "in" / "m.onnx")
    with monkeypatch.context() as impatient:
        impatient.setattr("mo_loop.batching.cluster.connecting.CONNECT", 2.0)
        done = batch("in", "-o", "out", "--plan", "--scheduler", "tcp://127.0.0.1:9", cwd=tmp_path)
    assert done.returncode == 2 and "error: ML290" in done.stderr
    with cluster(tmp_path / "cluster", 1, "--nthreads", 3, "--resources", "MEMORY=1e8") as running:
        said = batch("in", "-o", "out", "--plan", "--scheduler", running.address, cwd=tmp_path).stdout
    assert "with 3 workers" in said and "refused 1 model needs more than 100.0 MB" in said
    assert not (tmp_path / "out").exists()


def test_a_worker_gets_the_resource_from_its_limit(tmp_path: Path) -> None:
    good(tmp_path / "in" / "m.onnx")
    with cluster(tmp_path / "cluster", 0) as running:
        running.start_worker("--memory-limit", "3GiB")
        running.start_worker("--resources", "MEMORY=5e9")
        with Client(running.address, set_as_default=False) as client:
            client.wait_for_workers(2, timeout=30)
            assert batch("in", "-o", "out", "--scheduler", running.address, cwd=tmp_path).returncode == 0
            workers = client.scheduler_info()["workers"].values()
            assert sorted(each["resources"]["MEMORY"] for each in workers) == [3 << 30, 5e9]


def test_the_limit_of_the_batch_is_the_most_that_a_model_needs(tmp_path: Path) -> None:
    assert estimate(1 << 30).memory > 300 << 20
    good(tmp_path / "in" / "m.onnx")
    with cluster(tmp_path / "cluster", 1, "--resources", "MEMORY=1e8") as running:
        assert "ML294" in ended(batch("in", "-o", "out", "--scheduler", running.address, cwd=tmp_path), 1).stderr
        done = batch("in", "-o", "out", "--memory", "90M", "--scheduler", running.address, cwd=tmp_path)
    assert "ML294" not in done.stderr


def test_the_largest_come_first(tmp_path: Path) -> None:
    for number in range(5):
        good(tmp_path / "in" / f"m{number}.onnx", name="g" * 10 * (1 + (number * 3) % 5))
    with cluster(tmp_path / "cluster", 1) as running:
        done = batch("in", "-o", "out", "--scheduler", running.address, cwd=tmp_path)
    order = [int(each) for each in re.findall(r"converted m(\d)", done.stderr)]
    assert order == sorted(range(5), key=lambda number: -((number * 3) % 5))
