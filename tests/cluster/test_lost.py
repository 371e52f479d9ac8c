"""Workers and schedulers that are killed while they work: every model ends exactly once in the report."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

from tests.cli.batches import Running, batch, command, environment, files_in, good, processes, read, statuses, trouble
from tests.cli.commands import ended
from tests.cluster.dask_cluster import cluster, wait_until

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="signals and /proc")


IMPATIENT = """
import mo_loop.batching.cluster.scheduling as watching
watching.PATIENCE = 3.0
"""
"""A batch that waits three seconds for workers before it begins."""

LATE_ANSWERS = """
import asyncio
from distributed import Client
fetch, lose, delays = Client._gather_remote, Client._handle_lost_data, iter([2.0])

async def fetch_late(*arguments):
    await asyncio.sleep(next(delays, 0.0))
    return await fetch(*arguments)

def lose_late(self, *arguments, **named):
    self.loop.call_later(2.5, lambda: lose(self, *arguments, **named))

Client._gather_remote, Client._handle_lost_data = fetch_late, lose_late
"""
"""The first answer is asked for when its worker is gone, and the scheduler says after that that it is lost."""


class OnCluster(Running):
    """The same on the cluster of a scheduler, with a report; what distributed logs is not shown."""

    def __init__(self, folder: Path, address: str, *arguments: str) -> None:
        super().__init__(folder, "--report", "r.json", "--scheduler", address, *arguments)

    def end(self) -> tuple[int, str, str]:
        code, stdout, stderr = super().end()
        assert "distributed." not in stderr, stderr
        return code, stdout, stderr


@pytest.fixture
def models(tmp_path: Path) -> Path:
    """Sixteen models that take half a second each."""
    for number in range(16):
        good(tmp_path / "in" / f"m{number:02}.onnx", number, name="slow5")
    trouble(tmp_path)
    return tmp_path


def starts_with(text: str, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the command of a batch do something before it begins."""
    (models / "command.py").write_text(f"{text}\nfrom mo_loop.cli import main\nmain()\n")
    monkeypatch.setattr("tests.cli.batches.command", lambda: [sys.executable, str(models / "command.py")])


def assert_whole(out: Path) -> set[str]:
    """Every .xml has its .bin, and there are no other files. The names of the pairs."""
    names = {path.stem for path in out.glob("*.xml")}
    wanted = [f"{name}.{kind}" for name in names for kind in ("xml", "bin")]
    assert [each for each in files_in(out) if each != ".mo-loop.json"] == sorted(wanted)
    return names


def test_a_worker_is_killed_while_it_works(models: Path) -> None:
    with cluster(models / "cluster", 2) as running:
        started = OnCluster(models, running.address)
        started.wait_for(lambda: started.pairs() >= 3 and len(running.converters()) == 2)
        running.kill(running.processes[1])
        wait_until(lambda: len(running.converters()) <= 1)
        code, stdout, stderr = started.end()
        assert code == 0, stderr
        assert not running.converters()
    found = [each["name"] for each in read(models / "r.json")["models"]]
    assert len(found) == 16 and set(Counter(found).values()) == {1}
    assert set(statuses(models / "r.json").values()) == {"converted"} and "16 models: 16 converted" in stdout
    assert len(assert_whole(models / "out")) == 16


def test_a_model_whose_workers_die_is_a_crash(tmp_path: Path) -> None:
    """It kills the Dask worker above its own process, each time on another one; the rest is converted."""
    for number in range(3):
        good(tmp_path / "in" / f"m{number}.onnx", number)
    good(tmp_path / "in" / "poison.onnx", name="crash")
    trouble(tmp_path)
    text = (tmp_path / "trouble.py").read_text()
    (tmp_path / "trouble.py").write_text(text.replace("os.abort()", "os.kill(os.getppid(), 9), time.sleep(9)"))
    started = OnCluster(tmp_path, "local", "-j", "2")
    code, _, stderr = started.end()
    assert code == 1, stderr
    assert statuses(tmp_path / "r.json") == {
        "m0.onnx": "converted", "m1.onnx": "converted", "m2.onnx": "converted", "poison.onnx": "crash"
    }
    assert "crash poison.onnx: the worker was lost: 2 workers died" in stderr
    assert assert_whole(tmp_path / "out") == {"m0", "m1", "m2"}


def test_the_scheduler_is_killed_and_the_next_run_resumes(models: Path) -> None:
    with cluster(models / "cluster", 2) as running:
        started = OnCluster(models, running.address)
        started.wait_for(lambda: started.pairs() >= 3)
        running.kill(running.scheduler)
        code, stdout, stderr = started.end()
        wait_until(lambda: not running.converters())
    assert code == 1, stderr
    assert stderr.count("error: ML295: the connection to the scheduler is lost") == 1, stderr
    found = statuses(models / "r.json")
    done = {name for name, status in found.items() if status == "converted"}
    assert len(found) == 16 and set(found.values()) == {"converted", "cancelled"} and len(done) >= 2
    assert f"{len(done)} converted, {16 - len(done)} cancelled" in stdout
    assert done <= {f"{name}.onnx" for name in assert_whole(models / "out")}
    ended(batch("in", "-o", "out", "--extension", "trouble.py", "--report", "r.json", "-j", 2, cwd=models))
    assert set(statuses(models / "r.json").values()) <= {"converted", "skipped"}
    assert list(statuses(models / "r.json").values()).count("skipped") >= len(done)
    assert len(assert_whole(models / "out")) == 16


def test_all_workers_are_killed(models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No worker comes back: the batch does not wait for ever."""
    starts_with(IMPATIENT, models, monkeypatch)
    with cluster(models / "cluster", 1) as running:
        started = OnCluster(models, running.address)
        started.wait_for(lambda: started.pairs() >= 2)
        running.kill(running.processes[1])
        code, _, stderr = started.end()
    assert code == 1 and "error: ML291: the cluster has no workers left" in stderr, stderr
    assert set(statuses(models / "r.json").values()) == {"converted", "cancelled"}
    assert_whole(models / "out")


@pytest.mark.parametrize("kind", ["local", "scheduler"])
def test_ctrl_c(kind: str, models: Path) -> None:
    with cluster(models / "cluster", 2 if kind == "scheduler" else 0) as running:
        started = OnCluster(models, running.address if kind == "scheduler" else "local", "-j", "2")
        started.wait_for(lambda: started.pairs() >= 3)
        os.killpg(started.process.pid, signal.SIGINT)
        code, stdout, stderr = started.end()
        assert code == 130, stderr
        assert not running.converters() and not processes(started.mark)
    whole = {f"{name}.onnx" for name in assert_whole(models / "out")}
    found = statuses(models / "r.json")
    done = {name for name, status in found.items() if status == "converted"}
    assert len(found) == 16 and 1 <= len(done) < 16 and set(found.values()) == {"converted", "cancelled"}
    assert done <= whole and len(whole - done) <= 2
    left = 16 - len(done)
    assert f"error: ended by SIGINT, {left} of 16 models remain: the same command continues" in stderr
    assert f"{len(done)} converted, {left} cancelled" in stdout
    assert read(models / "r.json")["signal"] == "SIGINT"


def test_the_second_ctrl_c_ends_the_batch_at_once(tmp_path: Path) -> None:
    """A report is written to a pipe without a reader; the processes of the cluster end by themselves."""
    good(tmp_path / "in" / "hang.onnx", name="hang")
    trouble(tmp_path)
    os.mkfifo(tmp_path / "step.md")
    process = subprocess.Popen(
        [*command(), "batch", "in", "-o", "out", "--extension", "trouble.py", "--summary", "step.md",
         "--scheduler", "local", "-j", "1"],
        cwd=tmp_path, env=environment({"GITHUB_STEP_SUMMARY": "step.md", "MARK": f"second-{tmp_path.name}"}),
        stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: list((tmp_path / "out").glob(".mo-loop-*")))
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(timeout=8)
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=60) == 130
    wait_until(lambda: not processes(f"second-{tmp_path.name}"))


@pytest.mark.parametrize("has_answer", [False, True])
def test_workers_that_come_late_are_used(has_answer: bool, models: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The only worker dies; another one comes, and gets its MEMORY a moment after it is registered. A model whose
    answer was not fetched is converted again; nothing asked for it a second time, and the batch waited forever."""
    starts_with(LATE_ANSWERS if has_answer else "", models, monkeypatch)
    with cluster(models / "cluster", 1) as running:
        started = OnCluster(models, running.address)
        started.wait_for(lambda: started.pairs() >= 2)
        running.kill(running.processes[1])
        time.sleep(1)
        running.start_worker()
        running.start_worker()
        code, _, stderr = started.end()
    assert code == 0, stderr
    assert set(statuses(models / "r.json").values()) == {"converted"}
