"""What a cluster costs: a batch of models on an S3 server with two Dask workers, against the local batch of the same.

    python tools/load_cluster.py                    500 models; CPU seconds of the workers, and memory of the planner
    python tools/load_cluster.py --models 5000      takes some minutes
    python tools/load_cluster.py --cluster-only     without the local batch, for a profile

The workers of the cluster, with all processes that they start, may use RATIO of the CPU seconds of the worker processes
of the local batch: the start of the Dask workers does not count, their work for Dask does. Every model must be
converted by both. Before, batches of 1,000 and 100,000 models are planned on simulated listings, up to the first model
that would be submitted; the large one may use PLANNER bytes, and FLAT times as many as the small one. The exit code is
1 if one of these does not hold. Linux alone.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.cli.batches import good
from tests.cluster.dask_cluster import cluster
from tests.cluster.s3_server import S3Server, Store

ROOT = Path(__file__).resolve().parents[1]
RATIO = 1.25
PLANNER = 500 << 20
FLAT = 1.1

LOCAL = """
import resource, sys
from mo_loop.cli import main
try:
    main(sys.argv[1:-1])
finally:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(used.ru_utime + used.ru_stime, file=open(sys.argv[-1], "w"))
"""
"""A batch in a process of its own, which writes the CPU seconds of its worker processes to its last argument."""

PLAN = """
import sys
from pathlib import Path

import mo_loop.batch.remote_outputs as remote_outputs
import mo_loop.batch.remote_plan as remote_plan
import mo_loop.storage.remote_state as remote_state
from mo_loop.batch.anywhere import outputs_for, planned_anywhere
from mo_loop.batch.engine import Limits
from mo_loop.batch.run import Batch
from mo_loop.batch.task import Work
from mo_loop.cluster.dask_engine import DaskEngine
from mo_loop.options import ConvertOptions
from mo_loop.process_memory import peak_memory
from mo_loop.storage.locations import Location, location_of
from mo_loop.storage.scratch import Scratch
from mo_loop.storage.stores import Info

count = int(sys.argv[1])


def listed(where, ending=""):
    if where.url.startswith("s3://zoo"):
        for number in range(count):
            yield Location(f"s3://zoo/d{number % 100:03}/model-{number:06}.onnx"), Info(1000 + number, f"{number:032x}")


remote_plan.listed = remote_outputs.listed = remote_state.listed = listed
plan = planned_anywhere(["s3://zoo/**"], location_of("s3://ir"))
outputs = outputs_for(location_of("s3://ir"), Scratch())
engine = DaskEngine.__new__(DaskEngine)
work = Work(ConvertOptions(), "0" * 64)
batch = Batch(plan, outputs, lambda _: work, Limits(), engine=engine)
assert len(plan.models) == count
first = batch._desk.take()
assert first.model.name.endswith(f"{count - 1:06}.onnx")
print(peak_memory())
"""
"""Plans a batch on simulated listings and prints the most memory that it used, in bytes."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run both parts; 0 if everything holds, else 1."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=500)
    parser.add_argument("--cluster-only", action="store_true", help="without the local batch")
    options = parser.parse_args(arguments)
    found = planner()
    with tempfile.TemporaryDirectory() as folder, S3Server() as server:
        os.environ |= server.environment
        found += both(Path(folder), server.bucket(), options.models, options.cluster_only)
    for each in found:
        print(f"error: {each}")
    return int(bool(found))


def planner() -> list[str]:
    """What does not hold of the memory of plans."""
    used = {}
    for count in (1000, 100_000):
        done = subprocess.run(
            [sys.executable, "-c", PLAN, str(count)], cwd=ROOT, capture_output=True, text=True, check=True
        )
        used[count] = int(done.stdout)
        print(f"plan of {count:7,} models: {used[count] >> 20} MiB")
    small, large = used.values()
    return [f"a plan of {count} models uses {large} bytes"] * (large > PLANNER or large > FLAT * small)


def both(folder: Path, store: Store, count: int, is_cluster_only: bool) -> list[str]:
    """What does not hold of the batches."""
    for number in range(count):
        store.put(f"zoo/d{number % 10}/m{number:05}.onnx", good(folder / "m.onnx", number, name=f"n{number}"))
    found: list[str] = []
    there = on_cluster(folder, store, count, found)
    if is_cluster_only:
        return found
    here = local(folder, store, count, found)
    print(f"CPU seconds of the workers: {there:.1f} on the cluster, {here:.1f} locally, {there / here:.2f}")
    return found + [f"the cluster uses {there / here:.2f} of the CPU"] * (there > RATIO * here)


def on_cluster(folder: Path, store: Store, count: int, found: list[str]) -> float:
    """The CPU seconds of the Dask workers and their children."""
    with cluster(folder / "cluster", 2) as running:
        run(folder, store, ["--scheduler", running.address], "warm", 1)  # the workers have loaded what they need
        workers = [each.pid for each in running.processes[1:]]
        before, own = sum(map(cpu_of, workers)), sum(cpu_of(each, 2) for each in workers)
        run(folder, store, ["--scheduler", running.address], "there", count)
        check(folder / "there.json", count, found)
        print(f"  the Dask workers themselves: {sum(cpu_of(each, 2) for each in workers) - own:.1f} CPU seconds")
        return sum(map(cpu_of, workers)) - before


def local(folder: Path, store: Store, count: int, found: list[str]) -> float:
    """The CPU seconds of the worker processes of a local batch."""
    run(folder, store, ["-j", "2"], "here", count)
    check(folder / "here.json", count, found)
    return float((folder / "here.cpu").read_text())


def run(folder: Path, store: Store, flags: list[str], name: str, count: int) -> None:
    """Run a batch; its outputs go to a prefix of its own."""
    source = f"{store.url}/zoo/**" if count > 1 else f"{store.url}/zoo/d0/m00000.onnx"
    command = [
        sys.executable, "-c", LOCAL, "batch", source, "-o", f"{store.url}/{name}", "-q", *flags,
        "--report", str(folder / f"{name}.json"), str(folder / f"{name}.cpu"),
    ]  # fmt: skip
    start = time.monotonic()
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
    print(f"{name}: {count} models, {time.monotonic() - start:.1f} s")


def check(report: Path, count: int, found: list[str]) -> None:
    """Every model was converted."""
    statuses = Counter(each["status"] for each in json.loads(report.read_text())["models"])
    if statuses != {"converted": count}:
        found.append(f"{report.name}: {dict(statuses)}")


def cpu_of(process: int, count: int = 4) -> float:
    """CPU seconds of a process and, with 4 numbers of its line in /proc, of its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11 : 11 + count])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    sys.exit(main())
