"""Worker: one worker process, as the parent controls it; TaskOutcome: the result of a task, or how it failed; serve:
the main loop of the process.
"""

import contextlib
import faulthandler
import os
import pickle
import pkgutil
import queue
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO

from mo_loop.support.process_memory import limit_memory, paused_collector

OK, ERROR, CRASH, TIMEOUT, MEMORY = "ok", "error", "crash", "timeout", "memory"

# The first argument is the folder of temporary files: a worker whose parent ends at once has to remove it, too.
_SERVE = "from mo_loop.support.worker_process import serve; serve(sys.argv[1] or None)"
_BOOT = f"import sys; sys.path[:] = sys.argv[2:]; {_SERVE}"
_BOOT_ELSEWHERE = f"import sys; sys.path.insert(0, sys.argv[2]); {_SERVE}"
_PROJECT = str(Path(__file__).resolve().parents[2])
_START_LIMIT = 300.0
_LOG_TAIL = 2000
_WINDOWS_CRASHES = {0xC0000005: "ACCESS_VIOLATION", 0xC0000094: "INTEGER_DIVIDE_BY_ZERO", 0xC00000FD: "STACK_OVERFLOW"}


@dataclass(frozen=True, slots=True)
class TaskOutcome:
    """The result of one task, or how it failed.

    `status` is one of ok, error, crash, timeout, memory. `value` is the result of the function (ok only). `message`
    describes a failure: the exception, or the name of the signal. `stage` is the last name given to
    `report_stage`, `error` the exception's class name, `code` its `code` attribute if it has one, `detail` a traceback
    or the last lines that the process printed. `first` is true if it was the first task of its worker.
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
    first: bool = True

    @property
    def ok(self) -> bool:
        """Whether the function returned."""
        return self.status == OK


class WorkerStartError(RuntimeError):
    """A worker could not import its function."""


class Worker:
    """One child process. Only `kill` may be called by several threads at once."""

    def __init__(
        self, function: str, *, memory: int | None = None, env: Mapping[str, str] | None = None,
        scratch: str | None = None, python: str | None = None,
    ) -> None:
        environment = {**os.environ, **(env or {})}
        if scratch is not None:
            # A crashed process does not remove its temporary files: they are in a folder that the pool removes.
            environment |= {"TMPDIR": scratch, "TEMP": scratch, "TMP": scratch}
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the process)
        self._process = subprocess.Popen(
            _command(python, scratch),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._log,
            env=environment,
            process_group=0,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # what Windows has instead
        )
        self._setup = {"function": function, "memory": memory}
        self._is_new = True
        self._is_closed = False

    def start(self) -> None:
        """Wait until the worker has imported the function. Raises WorkerStartError if the import fails."""
        with self._killed_after(_START_LIMIT):
            self._send(self._setup)
            answer = self._receive()
        if answer is None or answer[0] != "ready":
            text = answer[1] if answer else f"{self._cause()}\n{self._tail()}"
            self.close()
            raise WorkerStartError(f"worker for {self._setup['function']} did not start: {text}")

    @property
    def pid(self) -> int:
        """Process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the process can take another task."""
        return self._process.poll() is None

    def run(self, task: Any, limit: float) -> TaskOutcome:
        """Run one task for at most `limit` seconds. After `crash`, `timeout` and `memory` the worker is dead."""
        try:
            payload = pickle.dumps(task, protocol=pickle.HIGHEST_PROTOCOL)
        except Exception as error:
            return TaskOutcome(task, ERROR, message=f"task cannot be pickled: {error}", error=type(error).__name__)
        first, self._is_new = self._is_new, False
        self._log.seek(0)
        self._log.truncate()
        stage, started, value = "", time.perf_counter(), None
        with self._killed_after(limit) as expired:
            self._send((limit, payload))
            while (answer := self._receive()) is not None and answer[0] == "stage":
                stage = answer[1]
        seconds = time.perf_counter() - started
        if answer is not None and answer[0] == OK:
            try:
                value = pickle.loads(answer[1])
            except Exception as error:
                answer = ERROR, (f"result cannot be read: {error}", type(error).__name__, "", "")
            else:
                return TaskOutcome(task, OK, value, stage=stage, seconds=seconds, first=first)
        if answer is not None:
            status, (text, error_type, code, detail) = answer
            if status == MEMORY:
                self.close()  # the rest of the stream may be incomplete
            return TaskOutcome(task, status, None, text, stage, error_type, code, detail, seconds, first)
        cause = self._cause()
        status, message = (TIMEOUT, f"no answer within {limit:g} s") if expired.is_set() else (CRASH, cause)
        outcome = TaskOutcome(task, status, None, message, stage, detail=self._tail(), seconds=seconds, first=first)
        self.close()
        return outcome

    def kill(self) -> None:
        """End the process, and the processes that it started, at once."""
        if hasattr(os, "killpg") and not self._is_closed:  # later the system may give its number to another group
            with contextlib.suppress(OSError):
                os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()

    def close(self) -> None:
        """End the process. Safe to call twice."""
        self.kill()
        for stream in (self._process.stdin, self._process.stdout, self._log):
            with contextlib.suppress(OSError):
                if stream is not None:
                    stream.close()
        self._process.wait()
        self._is_closed = True

    def wait(self) -> None:
        """Wait until a killed process has ended; give up if the system does not end it."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(timeout=10)

    @contextmanager
    def _killed_after(self, limit: float) -> Iterator[threading.Event]:
        """Kill the process if the block takes longer than `limit` seconds; the event is set then."""
        expired = threading.Event()

        def expire() -> None:
            expired.set()
            self.kill()

        timer = threading.Timer(limit, expire)
        timer.daemon = True
        timer.start()
        try:
            yield expired
        finally:
            timer.cancel()

    def _send(self, content: object) -> None:
        """Send a message; one to a process that has ended is lost, and `_receive` gives None."""
        assert self._process.stdin is not None
        with contextlib.suppress(OSError, ValueError):  # the second: the pool was closed meanwhile
            write(self._process.stdin, content)

    def _receive(self) -> tuple[str, Any] | None:
        """The next message; None if the process has ended, or ends within one."""
        assert self._process.stdout is not None
        try:
            answer: tuple[str, Any] = pickle.load(self._process.stdout)
        except (OSError, ValueError, EOFError, pickle.UnpicklingError):
            return None
        return answer

    def _cause(self) -> str:
        try:
            code = self._process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            return "closed its output stream"
        if code < 0:
            name = f"signal {-code}"
            with contextlib.suppress(ValueError):
                name = signal.Signals(-code).name
            return f"killed by {name}"
        return f"ended with {_WINDOWS_CRASHES.get(code, f'exit code {code}')}"

    def _tail(self) -> str:
        self._log.seek(0, os.SEEK_END)
        self._log.seek(max(0, self._log.tell() - _LOG_TAIL))
        return self._log.read().decode(errors="replace").strip()


def write(stream: IO[bytes], content: object) -> None:
    """Send a message to the other process."""
    pickle.dump(content, stream, pickle.HIGHEST_PROTOCOL)
    stream.flush()


def _command(python: str | None, scratch: str | None) -> list[str]:
    if python is not None:  # it has packages of its own
        return [python, "-c", _BOOT_ELSEWHERE, scratch or "", _PROJECT]
    return [sys.executable, "-c", _BOOT, scratch or "", *(entry or os.getcwd() for entry in sys.path)]


_stage_channel: Callable[[str], None] | None = None


def report_stage(name: str) -> None:
    """Report the stage of the current task; `Outcome.stage` keeps it. Does nothing outside a worker process."""
    if _stage_channel is not None:
        _stage_channel(name)


def serve(scratch: str | None = None) -> None:
    """Run tasks from standard input until it ends; then remove the folder `scratch`."""
    inbox, outbox = _private_streams()
    messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
    # No daemon: an answer to a parent that has ended raises an error here, and the folder still has to be removed.
    threading.Thread(target=_pump, args=(inbox, messages, scratch)).start()
    setup = messages.get()
    limit_memory(setup["memory"])
    try:
        with paused_collector():
            function = pkgutil.resolve_name(setup["function"])
    except BaseException:
        write(outbox, ("failed", traceback.format_exc()))
        return
    write(outbox, ("ready", os.getpid()))

    global _stage_channel
    _stage_channel = lambda name: write(outbox, ("stage", name))  # noqa: E731
    while True:
        limit, payload = messages.get()
        faulthandler.dump_traceback_later(2 * limit + 10, exit=True)
        answer = _run(function, payload)
        faulthandler.cancel_dump_traceback_later()
        write(outbox, answer)


def _private_streams() -> tuple[BinaryIO, BinaryIO]:
    """Move the protocol off descriptors 0 and 1, which native code reads and prints to."""
    inbox, outbox = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nowhere = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nowhere, 0)
    os.close(nowhere)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return inbox, outbox


def _pump(inbox: BinaryIO, messages: queue.SimpleQueue[Any], scratch: str | None) -> None:
    with contextlib.suppress(EOFError, OSError, pickle.UnpicklingError):
        while True:
            messages.put(pickle.load(inbox))
    _leave(scratch)


def _leave(scratch: str | None) -> None:
    """Remove the temporary files and end the process: the parent has ended and cannot do it."""
    if scratch is not None:
        remove_folder(Path(scratch))
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)  # this process and those that its task started
    os._exit(0)


def remove_folder(folder: Path) -> None:
    """Remove a folder in which other threads and workers may still write: a file made meanwhile stops a removal."""
    end = time.monotonic() + 5
    while folder.exists() and time.monotonic() < end:
        shutil.rmtree(folder, ignore_errors=True)


def _run(function: Callable[[Any], Any], payload: bytes) -> tuple[str, Any]:
    try:
        return OK, pickle.dumps(function(pickle.loads(payload)), protocol=pickle.HIGHEST_PROTOCOL)
    except BaseException as error:
        status = MEMORY if isinstance(error, MemoryError) else ERROR
        text = "".join(traceback.format_exception_only(error)).strip()
        code = getattr(error, "code", "")
        return status, (text, type(error).__name__, code if isinstance(code, str) else "", traceback.format_exc())
