"""`mo-loop batch --scheduler` with a scheduler and two workers that are processes of their own."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from tests.cli.batches import batch, files_in, good, read, refused, statuses, trouble
from tests.cli.commands import ended
from tests.cluster.dask_cluster import PRELOADS, Cluster, cluster

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory limits and /proc")


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler without mo_loop, and two workers."""
    with cluster(tmp_path_factory.mktemp("cluster"), 0) as found:
        found.kill(found.scheduler)
        found.start_scheduler("no package")
        for _ in range(2):
            found.start_worker()
        yield found


def without_times(report: Path) -> dict[str, Any]:
    """A report without what differs between two runs."""
    text = report.read_text().replace(str(report.parent), "")
    content: dict[str, Any] = json.loads(text)
    for each in (content, *content["models"]):
        for key in ("seconds", "started", "conversion"):
            each.pop(key, None)
    return content


def forty(folder: Path) -> None:
    """Forty models: good ones of different sizes, refused ones, one with a warning, one that cannot be read."""
    for number in range(34):
        good(folder / "in" / f"{'ab'[number % 2]}" / f"m{number:02}.onnx", number)
    for number in range(4):
        refused(folder / "in" / "r" / f"r{number}.onnx")
    (folder / "in" / "r" / "broken.onnx").write_bytes(b"\x08\x09nonsense")
    good(folder / "in" / "crash.onnx", name="crash")
    trouble(folder)


def test_the_reports_are_those_of_the_local_batch(running: Cluster, tmp_path: Path) -> None:
    for name, flags in (("here", ("-j", 2)), ("there", ("--scheduler", running.address))):
        folder = tmp_path / name
        forty(folder)
        ended(batch("in", "-o", "out", "--extension", "trouble.py", "--report", "r.json", *flags, cwd=folder), 1)
    here, there = (without_times(tmp_path / name / "r.json") for name in ("here", "there"))
    assert there == here
    assert here["totals"]["models"] == 40 and here["totals"]["converted"] == 34
    for name in files_in(tmp_path / "here" / "out"):
        if not name.endswith(".json"):
            parts = [(tmp_path / each / "out" / name).read_bytes() for each in ("here", "there")]
            assert parts[0] == parts[1], name
    assert files_in(tmp_path / "here" / "out") == files_in(tmp_path / "there" / "out")


def test_failing_models_cost_only_themselves(running: Cluster, tmp_path: Path) -> None:
    bad = {"hang.onnx": "timeout", "crash.onnx": "crash", "greedy.onnx": "memory"}
    for name in bad:
        good(tmp_path / "in" / name, name=Path(name).stem)
    for number in range(9):
        good(tmp_path / "in" / f"m{number}.onnx", number)
    workers = {each.pid for each in running.processes}
    flags = ("--timeout", 5, "--memory", "1G", "--extension", trouble(tmp_path), "--report", "r.json")
    ended(batch("in", "-o", "out", *flags, "--scheduler", running.address, cwd=tmp_path), 1)
    assert statuses(tmp_path / "r.json") == {**bad, **{f"m{number}.onnx": "converted" for number in range(9)}}
    assert {each.pid for each in running.processes if each.poll() is None} == workers - {running.processes[0].pid}
    wanted = [".mo-loop.json", *(f"m{number}.{kind}" for number in range(9) for kind in ("xml", "bin"))]
    assert files_in(tmp_path / "out") == sorted(wanted)
    assert not running.converters(), "the workers end their processes at the end of the batch"


def test_what_is_up_to_date_is_not_converted_again(running: Cluster, tmp_path: Path) -> None:
    """Neither after a batch on the cluster, nor after one here."""
    for number in range(4):
        good(tmp_path / "in" / f"m{number}.onnx", number)
    flags = ("in", "-o", "out", "--report", "r.json")
    assert batch(*flags, "--scheduler", running.address, cwd=tmp_path).returncode == 0
    good(tmp_path / "in" / "m1.onnx", 7)
    assert batch(*flags, "--scheduler", running.address, cwd=tmp_path).returncode == 0
    assert statuses(tmp_path / "r.json") == {
        "m0.onnx": "skipped", "m1.onnx": "converted", "m2.onnx": "skipped", "m3.onnx": "skipped"
    }
    assert batch(*flags, "-j", 1, cwd=tmp_path).returncode == 0
    assert set(statuses(tmp_path / "r.json").values()) == {"skipped"}


def test_fail_fast_begins_nothing_after_a_failure(running: Cluster, tmp_path: Path) -> None:
    for number in range(12):
        good(tmp_path / "in" / f"m{number:02}.onnx", number, name="slow3")
    (tmp_path / "in" / "broken.onnx").write_bytes(b"\x08\x09nonsense" * 1000)  # the largest, so the first
    flags = ("--fail-fast", "--extension", trouble(tmp_path), "--report", "r.json", "--scheduler", running.address)
    ended(batch("in", "-o", "out", *flags, cwd=tmp_path), 1)
    counts = read(tmp_path / "r.json")["totals"]
    assert counts["failed"] == 1 and counts["cancelled"] >= 8
    assert counts["converted"] + counts["cancelled"] == 12


def test_the_files_of_the_user_reach_the_workers(running: Cluster, tmp_path: Path) -> None:
    """An extension is read where the batch is started, even if the workers see another file, or none, at its path."""
    good(tmp_path / "in" / "m.onnx")
    extension = tmp_path / "seen.py"
    extension.write_text(
        "from pathlib import Path\n"
        "def register(extensions):\n"
        f"    Path({str(tmp_path / 'seen.txt')!r}).write_text(__file__)\n"
    )
    ended(batch("in", "-o", "out", "--extension", extension, "--scheduler", running.address, cwd=tmp_path))
    place = Path((tmp_path / "seen.txt").read_text())
    assert place.name == "seen.py" and place != extension
    assert not place.exists(), "the workers remove it at the end"
    extension.write_text("def register(extensions):\n    raise ValueError('no')\n")
    done = batch("in", "-o", "out", "--extension", extension, "--scheduler", running.address, cwd=tmp_path)
    assert done.returncode == 1 and f"{extension}:2" in done.stderr and str(place.parent.parent) not in done.stderr


def test_folders_and_files_beside_an_extension_reach_the_workers(running: Cluster, tmp_path: Path) -> None:
    """Inputs in a folder of ONNX's tests, and a file that the extension names."""
    model = good(tmp_path / "in" / "m.onnx")
    arrays = {"x": np.ones(3, np.float32), "n": np.array(2, np.int64)}
    for number, port in enumerate(onnx.load(model).graph.input):
        content = numpy_helper.from_array(arrays[port.name], port.name).SerializeToString()
        path = tmp_path / "sets" / "test_data_set_0" / f"input_{number}.pb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (tmp_path / "table.txt").write_text("seven")
    (tmp_path / "reads.py").write_text(
        "from pathlib import Path\n"
        "MO_LOOP_FILES = ['table.txt']\n"
        "def register(extensions):\n"
        "    assert Path(__file__).with_name('table.txt').read_text() == 'seven'\n"
    )
    flags = ("--verify", "--inputs", "sets", "--extension", "reads.py", "--report", "r.json")
    ended(batch("in", "-o", "out", *flags, "--scheduler", running.address, cwd=tmp_path))
    (found,) = read(tmp_path / "r.json")["models"]
    assert found["comparison"]["passed"]


def test_options_of_models_and_numbers_reach_the_workers(running: Cluster, tmp_path: Path) -> None:
    good(tmp_path / "in" / "m.onnx")
    good(tmp_path / "in" / "n.onnx", 3)
    (tmp_path / "c.toml").write_text('verify = true\n[[models]]\nmatch = "n.onnx"\noutput = "absent"\nverify = false\n')
    flags = ("--config", "c.toml", "--report", "r.json", "--scheduler", running.address)
    ended(batch("in", "-o", "out", *flags, cwd=tmp_path), 1)
    found = {each["name"]: each for each in read(tmp_path / "r.json")["models"]}
    assert found["m.onnx"]["comparison"]["passed"] and found["n.onnx"]["status"] == "failed"
    assert found["n.onnx"]["errors"][0]["code"] == "ML202"


def test_progress_names_rates_and_failures(running: Cluster, tmp_path: Path) -> None:
    good(tmp_path / "in" / "m.onnx")
    refused(tmp_path / "in" / "r.onnx")
    done = batch("in", "-o", "out", "--scheduler", running.address, cwd=tmp_path)
    assert "failed r.onnx: ML302" in done.stderr and "/s] " in done.stderr
    assert "distributed" not in done.stderr and "Traceback" not in done.stderr
    assert "dashboard" not in done.stderr, "the scheduler was started without one"


def test_workers_of_a_running_cluster_are_not_counted_by_the_user(running: Cluster, tmp_path: Path) -> None:
    good(tmp_path / "in" / "m.onnx")
    done = batch("in", "-o", "out", "-j", 3, "--scheduler", running.address, cwd=tmp_path)
    assert done.returncode == 0 and "warning: -j has no effect" in done.stderr


def test_the_preloads_of_these_tests_change_something() -> None:
    assert all("distributed.versions" in text for text in PRELOADS.values())
