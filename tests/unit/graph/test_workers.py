"""Worker processes: a crashed or hanging one is replaced, and none survives its parent."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
import venv
from collections.abc import Iterator
from pathlib import Path

import pytest

from mo_loop.support import worker_process
from mo_loop.support.worker_process import Worker, remove_folder
from mo_loop.support.workers import Pool, TaskOutcome, WorkerStartError, report_stage

THIS = __name__


def work(task: object) -> object:
    """The function of the workers in these tests."""
    report_stage("begun")
    if task == "crash":
        print("last words", flush=True)
        ctypes.string_at(0)
    if task == "hang":
        time.sleep(600)
    if task == "raise":
        raise ValueError("of no value")
    if task == "exit":
        os._exit(3)
    if task == "noise":
        os.write(1, b"native code prints what it likes\n" * 1000)
        print("and so does Python")
    if task == "big":
        return bytes(3 << 20)
    if task == "children":
        return [subprocess.Popen(["sleep", "600"]).pid for _ in range(2)]
    if task == "orphans":
        pids = [subprocess.Popen(["sleep", "600"]).pid for _ in range(2)]
        print(*pids, flush=True)
        os.abort()
    if task == "lambda":
        return lambda: None
    if task == "unreadable":
        return Unreadable()
    return task, os.getpid()


class Unreadable:
    """An object that can be pickled, but not read."""

    def __reduce__(self) -> tuple[type, tuple[str]]:
        return int, ("x",)


def allocate(size: int) -> int:
    """Allocates more memory than the limit may allow."""
    return len(bytearray(size))


@pytest.fixture(scope="module")
def pool() -> Iterator[Pool]:
    with Pool(f"{THIS}:work", limit=60) as workers:
        yield workers


def pid_of(outcome: TaskOutcome) -> int:
    assert outcome.ok, outcome
    pid: int = outcome.value[1]
    return pid


def is_running(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # An orphan that has ended stays in the process table until the first process of the system removes it.
    status = Path(f"/proc/{pid}/stat")
    return not status.exists() or status.read_text().rpartition(")")[2].split()[0] != "Z"


def gone(pid: int, within: float = 60.0) -> bool:
    end = time.monotonic() + within
    while time.monotonic() < end:
        if not is_running(pid):
            return True
        time.sleep(0.02)
    return False


def test_a_worker_is_kept_for_the_next_task(pool: Pool) -> None:
    assert pid_of(pool.call("a")) == pid_of(pool.call("b"))


def test_a_fresh_worker_has_done_nothing_before(pool: Pool) -> None:
    before = pid_of(pool.call("a"))
    outcome = pool.call("b", fresh=True)
    assert outcome.first and pid_of(outcome) != before and not is_running(before)
    assert not pool.call("c").first


def test_an_exception_is_an_error_and_keeps_the_worker(pool: Pool) -> None:
    before = pid_of(pool.call("a"))
    outcome = pool.call("raise")
    assert (outcome.status, outcome.error, outcome.message) == ("error", "ValueError", "ValueError: of no value")
    assert "of no value" in outcome.detail and pid_of(pool.call("a")) == before


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_a_crash_names_the_signal_and_the_worker_is_replaced(pool: Pool) -> None:
    before = pid_of(pool.call("a"))
    outcome = pool.call("crash")
    assert (outcome.status, outcome.stage) == ("crash", "begun") and "SIGSEGV" in outcome.message
    assert "last words" in outcome.detail and pid_of(pool.call("a")) != before


def test_an_exit_is_a_crash(pool: Pool) -> None:
    outcome = pool.call("exit")
    assert (outcome.status, outcome.message) == ("crash", "ended with exit code 3") and pool.call("a").ok


def test_a_hang_ends_at_the_limit_and_the_worker_is_replaced(pool: Pool) -> None:
    before = pid_of(pool.call("a"))
    outcome = pool.call("hang", limit=0.3)
    assert outcome.status == "timeout" and outcome.seconds < 60 and gone(before)
    assert pool.call("a").ok


def test_output_of_native_code_does_not_disturb(pool: Pool) -> None:
    assert pool.call("noise").ok and pool.call("a").ok


def test_large_results_arrive(pool: Pool) -> None:
    assert len(pool.call("big").value) == 3 << 20


def test_what_cannot_be_pickled_is_an_error(pool: Pool) -> None:
    assert pool.call("lambda").status == "error" and pool.call(lambda: None).status == "error" and pool.call("a").ok


def test_a_result_that_cannot_be_read_is_an_error_and_keeps_the_worker(pool: Pool) -> None:
    before = pid_of(pool.call("a"))
    outcome = pool.call("unreadable")
    assert (outcome.status, outcome.error) == ("error", "ValueError") and "cannot be read" in outcome.message
    assert pid_of(pool.call("a")) == before


def test_map_yields_every_outcome_once() -> None:
    tasks = ["a", "exit", "b", "raise", "c", "d"]
    with Pool(f"{THIS}:work", jobs=2, limit=60) as workers:
        outcomes = list(workers.map(tasks))
    assert sorted(outcome.task for outcome in outcomes) == sorted(tasks)
    assert {outcome.task for outcome in outcomes if outcome.ok} == {"a", "b", "c", "d"}


def test_map_raises_what_the_tasks_raise() -> None:
    def tasks() -> Iterator[str]:
        yield "a"
        raise KeyError("no more tasks")

    with Pool(f"{THIS}:work") as workers, pytest.raises(KeyError):
        list(workers.map(tasks()))


def test_a_function_that_cannot_be_imported_is_told() -> None:
    with Pool(f"{THIS}:nowhere") as workers, pytest.raises(WorkerStartError, match="nowhere"):
        workers.call(1)


@pytest.mark.skipif(sys.platform != "linux", reason="address space limits")
def test_memory_is_limited() -> None:
    with Pool(f"{THIS}:allocate", memory=2 << 30) as workers:
        assert workers.call(1 << 20).ok
        outcome = workers.call(4 << 30)
        assert (outcome.status, outcome.error, outcome.first) == ("memory", "MemoryError", False)
        assert workers.call(1 << 20).first, "a worker that ran out of memory is not used again"


def test_close_ends_the_workers() -> None:
    workers = Pool(f"{THIS}:work", jobs=2)
    pids = {pid_of(outcome) for outcome in workers.map(range(8))}
    workers.close()
    workers.close()
    assert not any(is_running(pid) for pid in pids)
    with pytest.raises(RuntimeError, match="closed"):
        workers.call("a")


@pytest.mark.skipif(sys.platform == "win32", reason="process groups")
def test_what_a_task_started_ends_with_its_worker() -> None:
    with Pool(f"{THIS}:work", limit=60) as workers:
        started = workers.call("children", fresh=True).value
        crashed = [int(pid) for pid in workers.call("orphans").detail.split()[-2:]]
        assert len(crashed) == 2 and all(gone(pid) for pid in crashed)
    assert all(gone(pid) for pid in started)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
def test_close_ends_a_worker_that_is_busy_or_still_starting(tmp_path: Path) -> None:
    for pause in (0.05, 1.0):
        scratch = tmp_path / str(pause)
        scratch.mkdir()
        workers = Pool(f"{THIS}:work", limit=600, scratch=str(scratch))
        results: list[object] = []
        thread = threading.Thread(target=call_quietly, args=(workers, "hang", results))
        thread.start()
        time.sleep(pause)
        workers.close()
        thread.join(timeout=60)
        assert results and not scratch.exists()


def test_close_waits_for_a_process_that_another_thread_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    forked, started = threading.Event(), []

    def slow(*arguments: object, **options: object) -> Worker:
        worker = Worker(*arguments, **options)
        started.append(worker)
        forked.set()
        time.sleep(0.5)
        return worker

    monkeypatch.setattr("mo_loop.support.workers.Worker", slow)
    workers = Pool(f"{THIS}:work")
    thread = threading.Thread(target=call_quietly, args=(workers, "a", []))
    thread.start()
    assert forked.wait(60)
    workers.close()
    assert not started[0].alive
    thread.join(timeout=60)


def call_quietly(workers: Pool, task: str, results: list[object]) -> None:
    """The result of a task whose pool is closed: a crash, or an error at the start."""
    try:
        results.append(workers.call(task).status)
    except (WorkerStartError, RuntimeError) as error:
        results.append(error)


@pytest.mark.skipif(sys.platform == "win32", reason="signals")
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "busy"])
def test_no_worker_outlives_a_killed_parent(busy: bool, tmp_path: Path) -> None:
    script = (
        "import sys, threading, time\n"
        f"sys.path[:] = {sys.path!r}\n"
        "from mo_loop.support.workers import Pool\n"
        f"pool = Pool('{THIS}:work', limit=600)\n"
        "print(pool.call('a').value[1], flush=True)\n"
        "threading.Thread(target=pool.call, args=('hang',), daemon=True).start()\n"
        "time.sleep(600)\n"
        if busy
        else "import sys, time\n"
        f"sys.path[:] = {sys.path!r}\n"
        "from mo_loop.support.workers import Pool\n"
        f"pool = Pool('{THIS}:work')\n"
        "print(pool.call('a').value[1], flush=True)\n"
        "time.sleep(600)\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, env=environment)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    time.sleep(0.2)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    parent.stdout.close()
    assert gone(pid) and not list(tmp_path.iterdir())


def test_a_pool_left_open_ends_with_the_interpreter() -> None:
    script = (
        "import sys\n"
        f"sys.path[:] = {sys.path!r}\n"
        "from mo_loop.support.workers import Pool\n"
        f"pool = Pool('{THIS}:work')\n"
        "print(pool.call('a').value[1])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60, check=True)
    assert gone(int(done.stdout))


def test_a_worker_of_another_interpreter_has_the_packages_of_that_one(tmp_path: Path) -> None:
    """An environment without packages: the worker imports this package only, and nothing else of the parent's."""
    venv.create(tmp_path)
    python = tmp_path / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    with Pool("importlib.util:find_spec", limit=60, python=str(python)) as workers:
        assert workers.call("mo_loop").value is not None and workers.call("numpy").value is None
    with Pool("sys:intern", limit=60, python=str(tmp_path / "gone")) as workers, pytest.raises(FileNotFoundError):
        workers.call("x")


def test_a_worker_whose_parent_ends_at_once_removes_the_temporary_files(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / "draft.xml").write_text("")
    worker = Worker(f"{THIS}:work", scratch=str(scratch))
    process = worker._process
    assert process.stdin is not None
    process.stdin.close()
    process.wait(60)
    assert not scratch.exists()


def test_a_folder_is_removed_in_which_another_thread_still_writes(tmp_path: Path) -> None:
    """A task can make a file between the removal of the files and that of their folder."""
    folder = tmp_path / "scratch"
    folder.mkdir()
    end = time.monotonic() + 1

    def write() -> None:
        while time.monotonic() < end and folder.exists():
            with contextlib.suppress(OSError):
                (folder / str(time.monotonic_ns())).touch()

    writers = [threading.Thread(target=write) for _ in range(3)]
    for each in writers:
        each.start()
    remove_folder(folder)
    for each in writers:
        each.join()
    assert not folder.exists()


def test_a_worker_that_answers_a_parent_that_has_ended_still_removes_its_files(tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    for number in range(3000):  # so many that the removal takes longer than the answer
        (scratch / str(number)).touch()
    process = subprocess.Popen(
        worker_process._command(None, str(scratch)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, process_group=0,
    )
    assert process.stdin is not None and process.stdout is not None
    process.stdout.close()
    worker_process.write(process.stdin, {"function": "os:getcwd", "memory": None})
    process.stdin.close()
    process.wait(60)
    assert not scratch.exists()
