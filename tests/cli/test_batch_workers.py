"""`mo-loop batch` with models that hang, crash or take all memory: the others convert; no process or file is left."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from .batches import batch, command, environment, files_in, good, installed_batch, processes, read, statuses, trouble
from .commands import ended, run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="memory limits and /proc")


def test_three_failing_models_among_sixty(tmp_path: Path) -> None:
    bad = {"x/hang.onnx": "timeout", "y/crash.onnx": "crash", "z/greedy.onnx": "memory"}
    for name in bad:
        good(tmp_path / "in" / name, name=Path(name).stem)
    names = [f"{'xyz'[number % 3]}/m{number:02}" for number in range(57)]
    for number, name in enumerate(names):
        good(tmp_path / "in" / f"{name}.onnx", number)
    mark = f"batch-of-{tmp_path.name}-{time.time_ns()}"
    flags = ("-j", 2, "--timeout", 10, "--memory", "1G", "--extension", trouble(tmp_path), "--report", "r.json")
    done = installed_batch("in", "-o", "out", *flags, cwd=tmp_path, env={"MARK": mark})
    assert not processes(mark), "no process is left"
    assert done.returncode == 1, done.stderr
    assert statuses(tmp_path / "r.json") == {**bad, **{f"{name}.onnx": "converted" for name in names}}
    report = read(tmp_path / "r.json")
    assert report["totals"] == {
        "models": 60, "converted": 57, "skipped": 0, "failed": 0, "differs": 0, "crash": 1, "timeout": 1, "memory": 1,
        "cancelled": 0, "warnings": 0,
    }
    wanted = sorted([".mo-loop.json", *(f"{name}.{kind}" for name in names for kind in ("xml", "bin"))])
    assert files_in(tmp_path / "out") == wanted
    for name in (names[0], names[-1]):
        ended(run(f"in/{name}.onnx", "-o", "one.xml", "--extension", tmp_path / "trouble.py", cwd=tmp_path))
        assert (tmp_path / "one.xml").read_bytes() == (tmp_path / "out" / f"{name}.xml").read_bytes()


def test_workers_are_used_again(tmp_path: Path) -> None:
    """Four models, one worker: it loads the converter once, so an extension runs in one process."""
    for number in range(4):
        good(tmp_path / "in" / f"{number}.onnx", number)
    body = "import os\n        print(os.getpid(), file=open('pids.txt', 'a'))"
    text = trouble(tmp_path).read_text().replace("return False", f"{body}\n        return False")
    (tmp_path / "trouble.py").write_text(text)
    assert batch("in", "-o", "out", "-j", 1, "--extension", "trouble.py", cwd=tmp_path).returncode == 0
    assert len(set((tmp_path / "pids.txt").read_text().split())) == 1


def test_a_model_that_fails_only_in_a_used_worker_converts(tmp_path: Path) -> None:
    """The first model changes the state of the process, and the second fails with it; in a new process it converts."""
    for number in range(2):
        good(tmp_path / "in" / f"{number}.onnx", number)
    (tmp_path / "e.py").write_text(
        "import builtins, os\n"
        "def register(extensions):\n"
        "    if hasattr(builtins, 'used'):\n"
        "        os.abort()\n"
        "    builtins.used = True\n"
    )
    ended(batch("in", "-o", "out", "-j", 1, "--extension", "e.py", "--report", "r.json", cwd=tmp_path))
    assert statuses(tmp_path / "r.json") == {"0.onnx": "converted", "1.onnx": "converted"}


def test_child_processes_of_a_model_end_with_it(tmp_path: Path) -> None:
    for name in ("a", "hang"):
        good(tmp_path / "in" / f"{name}.onnx", name=name)
    text = trouble(tmp_path).read_text().replace("import os\n", "import os, subprocess\n")
    (tmp_path / "trouble.py").write_text(
        text.replace("time.sleep(1000)", "subprocess.Popen(['sleep', '500']), time.sleep(1000)")
    )
    mark = f"children-{time.time_ns()}"
    done = batch("in", "-o", "out", "--timeout", 4, "--extension", "trouble.py", cwd=tmp_path, env={"MARK": mark})
    assert done.returncode == 1 and "timeout hang.onnx: no answer within 4 s" in done.stderr and not processes(mark)


@pytest.mark.parametrize("pause", [0, 0.3, 3])
def test_nothing_survives_a_killed_batch(pause: float, tmp_path: Path) -> None:
    """Nor temporary files: the workers notice that their parent has ended."""
    good(tmp_path / "in" / "hang.onnx", name="hang")
    mark = f"killed-{time.time_ns()}"
    process = subprocess.Popen(
        [*command(), "batch", "in", "-o", "out", "--extension", trouble(tmp_path)],
        cwd=tmp_path, env=environment({"MARK": mark}), stderr=subprocess.DEVNULL,
    )
    wait_until(lambda: len(processes(mark)) == 2)
    time.sleep(pause)
    process.kill()
    process.wait()
    wait_until(lambda: not processes(mark))
    assert files_in(tmp_path / "out") == []


def wait_until(condition: object, seconds: float = 180) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)
