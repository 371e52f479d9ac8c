"""Persistent worker processes that run native code which may crash or hang.

    with Pool("package.module:function", jobs=2, limit=30) as pool:
        for outcome in pool.map(tasks):
            print(outcome.task, outcome.status, outcome.value or outcome.message)

`function(task)` runs in a fresh interpreter that is kept for the next task. A worker that dies, or that exceeds the
time limit, is replaced, and its task ends as `crash` or `timeout`; an exception in the function ends as `error`.

Frames are a length and a pickle. They travel on private copies of the worker's standard streams; what native code
prints goes to a log of which the last lines are put into the message of a crash. A worker ends at the end of its input
stream, so it never outlives its parent: a reader thread watches the stream while a task runs, and should native code
hold the interpreter lock forever, a timer of `faulthandler`, which needs no lock, ends the process.
"""

from __future__ import annotations

import contextlib
import faulthandler
import importlib
import io
import os
import pickle
import queue
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

OK, ERROR, CRASH, TIMEOUT = "ok", "error", "crash", "timeout"

_HEADER = struct.Struct("<Q")
_BOOT = "import sys; sys.path[:] = sys.argv[1:]; from mo_loop.verify.workers import serve; serve()"
_START_LIMIT = 300.0
_LOG_TAIL = 2000
_WINDOWS_CRASHES = {0xC0000005: "ACCESS_VIOLATION", 0xC0000094: "INTEGER_DIVIDE_BY_ZERO", 0xC00000FD: "STACK_OVERFLOW"}


@dataclass(frozen=True)
class Outcome:
    """What became of one task.

    `status` is one of ok, error, crash, timeout. `value` is what the function returned (ok only). `message` says what
    happened otherwise: the exception, or the signal by name. `stage` is the last name given to `report_stage`,
    `error` the exception's class name, `code` its `code` attribute if it has one, `detail` a traceback or the end of
    what the process printed.
    """

    task: Any
    status: str
    value: Any = None
    message: str = ""
    stage: str = ""
    error: str = ""
    code: str = ""
    detail: str = ""
    seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """Whether the function returned."""
        return self.status == OK


class WorkerStartError(RuntimeError):
    """A worker could not import the function it should run."""


# ---------------------------------------------------------------------------------------------------- in the worker

_stage_channel: Callable[[str], None] | None = None


def report_stage(name: str) -> None:
    """Tell the parent which stage the current task has reached; kept in `Outcome.stage`. Does nothing elsewhere."""
    if _stage_channel is not None:
        _stage_channel(name)


def serve() -> None:
    """Run tasks from standard input until it ends. The body of a worker process."""
    inbox, outbox = _private_streams()
    tasks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    setup = pickle.loads(_read_frame(inbox) or _leave(None))
    _limit_memory(setup["memory"])
    try:
        function = _resolve(setup["function"])
    except BaseException:
        _write_frame(outbox, ("failed", traceback.format_exc()))
        return
    _write_frame(outbox, ("ready", os.getpid()))

    global _stage_channel
    _stage_channel = lambda name: _write_frame(outbox, ("stage", name))  # noqa: E731
    threading.Thread(target=_pump, args=(inbox, tasks, setup["scratch"]), daemon=True).start()
    while True:
        limit, payload = pickle.loads(tasks.get())
        faulthandler.dump_traceback_later(2 * limit + 10, exit=True)
        frame = _run(function, payload)
        faulthandler.cancel_dump_traceback_later()
        _write_raw(outbox, frame)


def _private_streams() -> tuple[BinaryIO, BinaryIO]:
    """Move the protocol off descriptors 0 and 1, which native code reads and prints to."""
    inbox = os.fdopen(os.dup(0), "rb", buffering=0)
    outbox = os.fdopen(os.dup(1), "wb", buffering=0)
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return inbox, outbox


def _pump(inbox: BinaryIO, tasks: queue.SimpleQueue[bytes], scratch: str | None) -> None:
    while True:
        tasks.put(_read_frame(inbox) or _leave(scratch))


def _leave(scratch: str | None) -> bytes:
    """The parent is gone, so nobody else clears up."""
    if scratch is not None:
        shutil.rmtree(scratch, ignore_errors=True)
    os._exit(0)


def _run(function: Callable[[Any], Any], payload: bytes) -> bytes:
    try:
        return pickle.dumps(("ok", function(pickle.loads(payload))), protocol=pickle.HIGHEST_PROTOCOL)
    except BaseException as error:
        text = "".join(traceback.format_exception_only(error)).strip()
        code = getattr(error, "code", "")
        facts = (text, type(error).__name__, code if isinstance(code, str) else "", traceback.format_exc())
        return pickle.dumps(("error", facts))


def _resolve(name: str) -> Callable[[Any], Any]:
    module, _, attribute = name.partition(":")
    function: Any = importlib.import_module(module)
    for part in attribute.split("."):
        function = getattr(function, part)
    return function


def _limit_memory(limit: int | None) -> None:
    if limit is None:
        return
    try:
        import resource
    except ImportError:
        return
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))


# ------------------------------------------------------------------------------------------------------------ frames


def _write_raw(stream: BinaryIO, data: bytes) -> None:
    view = memoryview(_HEADER.pack(len(data)) + data)
    while view:
        view = view[stream.write(view) or 0 :]


def _write_frame(stream: BinaryIO, content: object) -> None:
    _write_raw(stream, pickle.dumps(content, protocol=pickle.HIGHEST_PROTOCOL))


def _read_exactly(stream: BinaryIO, size: int) -> bytes | None:
    buffer = io.BytesIO()
    while buffer.tell() < size:
        chunk = stream.read(size - buffer.tell())
        if not chunk:
            return None
        buffer.write(chunk)
    return buffer.getvalue()


def _read_frame(stream: BinaryIO) -> bytes | None:
    """The next frame, or None at the end of the stream."""
    header = _read_exactly(stream, _HEADER.size)
    return _read_exactly(stream, _HEADER.unpack(header)[0]) if header else None


# ---------------------------------------------------------------------------------------------------- in the parent


class _Deadline:
    """Kills a process when the time is up; remembers that it did."""

    def __init__(self, process: subprocess.Popen[bytes], limit: float) -> None:
        self._process = process
        self._timer = threading.Timer(limit, self._expire)
        self._timer.daemon = True
        self.expired = False

    def _expire(self) -> None:
        self.expired = True
        self._process.kill()

    def __enter__(self) -> _Deadline:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()


class Worker:
    """One child process. Not for several threads at once."""

    def __init__(
        self,
        function: str,
        *,
        memory: int | None = None,
        env: Mapping[str, str] | None = None,
        scratch: str | None = None,
    ) -> None:
        environment = {**os.environ, **(env or {})}
        if scratch is not None:
            # A crashed process leaves its temporary files behind: they go where the pool removes them.
            environment |= {"TMPDIR": scratch, "TEMP": scratch, "TMP": scratch}
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BOOT, *(entry or os.getcwd() for entry in sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            bufsize=0,
        )
        self._start({"function": function, "memory": memory, "scratch": scratch})

    def _start(self, setup: dict[str, Any]) -> None:
        with _Deadline(self._process, _START_LIMIT):
            with contextlib.suppress(OSError):
                self._send(setup)
            answer = self._receive()
        if answer is None or answer[0] != "ready":
            text = answer[1] if answer else f"{self._cause()}\n{self._tail()}"
            self.close()
            raise WorkerStartError(f"worker for {setup['function']} did not start: {text}")

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process can take another task."""
        return self._process.poll() is None

    def run(self, task: Any, limit: float) -> Outcome:
        """Run one task for at most `limit` seconds. After `crash` or `timeout` the worker is dead."""
        try:
            payload = pickle.dumps(task, protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            return Outcome(task, ERROR, message=f"task cannot be pickled: {error}", error=type(error).__name__)
        self._log.seek(0)
        self._log.truncate()
        stage, started, answer = "", time.perf_counter(), None
        with _Deadline(self._process, limit) as deadline:
            try:
                self._send((limit, payload))
                answer = self._receive()
                while answer is not None and answer[0] == "stage":
                    stage = answer[1]
                    answer = self._receive()
            except OSError:
                answer = None
            except Exception as error:
                answer = ("error", (f"result cannot be read: {error}", type(error).__name__, "", ""))
        seconds = time.perf_counter() - started
        if answer is not None and answer[0] == "ok":
            return Outcome(task, OK, answer[1], stage=stage, seconds=seconds)
        if answer is not None:
            text, error_type, code, detail = answer[1]
            return Outcome(task, ERROR, None, text, stage, error_type, code, detail, seconds)
        cause = self._cause()
        status, message = (TIMEOUT, f"no answer within {limit:g} s") if deadline.expired else (CRASH, cause)
        outcome = Outcome(task, status, None, message, stage, detail=self._tail(), seconds=seconds)
        self.close()
        return outcome

    def close(self) -> None:
        """End the process. Safe to call twice."""
        if self._process.poll() is None:
            self._process.kill()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        self._process.wait()

    def _send(self, content: object) -> None:
        assert self._process.stdin is not None
        _write_frame(self._process.stdin, content)  # type: ignore[arg-type]

    def _receive(self) -> tuple[str, Any] | None:
        assert self._process.stdout is not None
        frame = _read_frame(self._process.stdout)  # type: ignore[arg-type]
        answer: tuple[str, Any] | None = None if frame is None else pickle.loads(frame)
        return answer

    def _cause(self) -> str:
        try:
            code = self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            return "closed its output stream"
        if code < 0:
            return f"killed by {_signal_name(-code)}"
        return f"ended with {_WINDOWS_CRASHES.get(code, f'exit code {code}')}"

    def _tail(self) -> str:
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - _LOG_TAIL))
        return self._log.read().decode(errors="replace").strip()


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


class Pool:
    """Workers for one function, started when needed, replaced when they die, ended with the pool or the interpreter.

    `jobs` workers at most; `limit` seconds for a task; `memory` bytes of address space for a worker where the system
    supports it; `env` is added to the workers' environment. A pool may be shared by threads.
    """

    def __init__(
        self,
        function: str,
        *,
        jobs: int = 1,
        limit: float = 60.0,
        memory: int | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.function = function
        self.jobs = max(1, jobs)
        self.limit = limit
        self._memory = memory
        self._env = dict(env or {})
        self._scratch = tempfile.mkdtemp(prefix="mo_loop-workers-")
        self._idle: list[Worker] = []
        self._workers: set[Worker] = set()
        self._slots = threading.Semaphore(self.jobs)
        self._lock = threading.Lock()
        self._end = weakref.finalize(self, _end, self._workers, self._scratch)

    def call(self, task: Any, limit: float | None = None) -> Outcome:
        """Run one task, waiting for a free worker first."""
        with self._slots:
            worker = self._take()
            try:
                outcome = worker.run(task, self.limit if limit is None else limit)
            except BaseException:
                worker.close()
                raise
            finally:
                self._give_back(worker)
            return outcome

    def map(self, tasks: Iterable[Any], limit: float | None = None) -> Iterator[Outcome]:
        """Run many tasks; yields outcomes as they come, so not in the order of the tasks."""
        source = iter(tasks)
        results: queue.SimpleQueue[Outcome | BaseException | None] = queue.SimpleQueue()
        guard, stop = threading.Lock(), threading.Event()
        done = object()

        def work() -> None:
            try:
                while not stop.is_set():
                    with guard:
                        task = next(source, done)
                    if task is done:
                        break
                    results.put(self.call(task, limit))
            except BaseException as error:
                results.put(error)
            finally:
                results.put(None)

        threads = [threading.Thread(target=work, daemon=True) for _ in range(self.jobs)]
        for thread in threads:
            thread.start()
        running = len(threads)
        try:
            while running:
                result = results.get()
                if isinstance(result, BaseException):
                    raise result
                if result is None:
                    running -= 1
                    continue
                yield result
        finally:
            stop.set()

    def close(self) -> None:
        """End all workers and remove what they left behind. Safe to call twice; also happens at exit."""
        self._end()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self) -> Worker:
        with self._lock:
            worker = self._idle.pop() if self._idle else None
        if worker is not None and worker.alive:
            return worker
        if worker is not None:
            self._drop(worker)
        if not self._end.alive:
            raise RuntimeError("the pool is closed")
        worker = Worker(self.function, memory=self._memory, env=self._env, scratch=self._scratch)
        with self._lock:
            self._workers.add(worker)
        return worker

    def _give_back(self, worker: Worker) -> None:
        if not (worker.alive and self._end.alive):
            self._drop(worker)
            return
        with self._lock:
            self._idle.append(worker)

    def _drop(self, worker: Worker) -> None:
        with self._lock:
            self._workers.discard(worker)
        worker.close()


def _end(workers: set[Worker], scratch: str) -> None:
    for worker in list(workers):
        worker.close()
    shutil.rmtree(scratch, ignore_errors=True)
