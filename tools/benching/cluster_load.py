"""A batch of models on an S3 server with two Dask workers and with two local ones, and the plan of many models.

    python tools/benching/cluster_load.py cluster 1      one JSON document, as function_times.py prints it

The CPU seconds are those of the workers with all processes that they start, without the start of the Dask workers.
Plans are made of simulated listings, up to the first model that would be submitted. Linux alone; the extra
`cluster-tests` has the packages.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.cli.batches import good
from tests.cluster.dask_cluster import cluster
from tests.cluster.s3_server import S3Server, Store

ROOT = Path(__file__).resolve().parents[2]
MODELS = 5000
IS_QUIET = __name__ == "__main__"
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

import mo_loop.batching.storage.stores as stores
import mo_loop.batching.url_state as url_state
from mo_loop.batching.batch_options import BatchOptions
from mo_loop.batching.plan import planned
from mo_loop.batching.outputs import Outputs
from mo_loop.batching.run import Batch
from mo_loop.batching.engine import Work
from mo_loop.batching.cluster.dask_engine import DaskEngine
from mo_loop.options import ConvertOptions
from mo_loop.support.process_memory import peak_memory
from mo_loop.batching.storage.locations import Location, location_of
from mo_loop.batching.storage.scratch import Scratch
from mo_loop.batching.storage.locations import Info

count = int(sys.argv[1])


def listed(where, ending="", is_literal=False):
    if where.url.startswith("s3://zoo"):
        for number in range(count):
            yield Location(f"s3://zoo/d{number % 100:03}/model-{number:06}.onnx"), Info(1000 + number, f"{number:032x}")


stores.listed = url_state.listed = listed
plan = planned(["s3://zoo/**"], location_of("s3://ir"))
outputs = Outputs(location_of("s3://ir"), Scratch())
engine = DaskEngine.__new__(DaskEngine)
work = Work(ConvertOptions(), "0" * 64)
batch = Batch(plan, outputs, lambda _: work, BatchOptions(jobs=1), engine=engine)
assert len(plan.models) == count
first = batch._queue.take()
assert first.model.name.endswith(f"{count - 1:06}.onnx")
print(peak_memory())
"""
"""Plans a batch on simulated listings and prints the most memory that it used, in bytes."""


def say(line: str) -> None:
    """Print what has been done; a process whose output is read prints JSON alone."""
    if not IS_QUIET:
        print(line, flush=True)


def planner() -> list[str]:
    """The violated limits of the memory of plans."""
    used = {}
    for count in (1000, 100_000):
        done = subprocess.run(
            [sys.executable, "-c", PLAN, str(count)], cwd=ROOT, capture_output=True, text=True, check=True
        )
        used[count] = int(done.stdout)
        say(f"plan of {count:7,} models: {used[count] >> 20} MiB")
    small, large = used.values()
    return [f"a plan of {count} models uses {large} bytes"] * (large > PLANNER or large > FLAT * small)


@contextmanager
def stored(count: int) -> Iterator[tuple[Path, Store]]:
    """A folder, and a bucket with models."""
    with tempfile.TemporaryDirectory() as name, S3Server() as server:
        folder = Path(name)
        os.environ |= server.environment
        store = server.bucket()
        for number in range(count):
            store.put(f"zoo/d{number % 10}/m{number:05}.onnx", good(folder / "m.onnx", number, name=f"n{number}"))
        yield folder, store


def on_cluster(folder: Path, store: Store, count: int) -> float:
    """The CPU seconds of the Dask workers and their children."""
    with cluster(folder / "cluster", 2) as running:
        run(folder, store, ["--scheduler", running.address], "warm", 1)  # the workers have loaded what they need
        workers = [each.pid for each in running.processes[1:]]
        before, own = sum(map(cpu_of, workers)), sum(cpu_of(each, 2) for each in workers)
        run(folder, store, ["--scheduler", running.address], "there", count)
        require_all(folder / "there.json", count)
        say(f"  the Dask workers themselves: {sum(cpu_of(each, 2) for each in workers) - own:.1f} CPU seconds")
        return sum(map(cpu_of, workers)) - before


def local(folder: Path, store: Store, count: int) -> float:
    """The CPU seconds of the worker processes of a local batch."""
    run(folder, store, ["-j", "2"], "here", count)
    require_all(folder / "here.json", count)
    return float((folder / "here.cpu").read_text())


def run(folder: Path, store: Store, flags: list[str], name: str, count: int) -> None:
    """Run a batch; its outputs go to a prefix of its own."""
    source = f"{store.url}/zoo/**" if count > 1 else f"{store.url}/zoo/d0/m00000.onnx"
    command = [
        sys.executable, "-c", LOCAL, "batch", source, "-o", f"{store.url}/{name}", "-q", *flags,
        "--report", str(folder / f"{name}.json"), str(folder / f"{name}.cpu"),
    ]
    start = time.monotonic()
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
    say(f"{name}: {count} models, {time.monotonic() - start:.1f} s")


def require_all(report: Path, count: int) -> None:
    """SystemExit unless every model was converted."""
    statuses = Counter(each["status"] for each in json.loads(report.read_text())["models"])
    if statuses != {"converted": count}:
        raise SystemExit(f"{report.name}: {dict(statuses)}")


def cpu_of(process: int, count: int = 4) -> float:
    """CPU seconds of a process and, with 4 numbers of its line in /proc, of its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11 : 11 + count])) / os.sysconf("SC_CLK_TCK")


def main(rounds: int) -> None:
    """Print the CPU seconds of both sides in each round."""
    found: dict[str, list[float]] = {"mo-loop": [], "local workers": []}
    for _ in range(rounds):
        with stored(MODELS) as (folder, store):
            found["mo-loop"].append(on_cluster(folder, store, MODELS))
            found["local workers"].append(local(folder, store, MODELS))
    print(json.dumps({"seconds": found, "units": dict.fromkeys(found, MODELS)}))


if __name__ == "__main__":
    main(int(sys.argv[2]))
