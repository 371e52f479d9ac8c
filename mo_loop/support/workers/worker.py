"""Worker: one worker process, as the parent controls it."""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mo_loop.support.workers.messages import (
    CRASH,
    ERROR,
    MEMORY,
    OK,
    TIMEOUT,
    TaskOutcome,
    WorkerStartError,
    read_frame,
    write_frame,
)

# The first argument is the folder of temporary files: a worker whose parent ends at once has to remove it, too.
_SERVE = "from mo_loop.support.workers.serve import serve; serve(sys.argv[1] or None)"
_BOOT = f"import sys; sys.path[:] = sys.argv[2:]; {_SERVE}"
_BOOT_ELSEWHERE = f"import sys; sys.path.insert(0, sys.argv[2]); {_SERVE}"
_PROJECT = str(Path(__file__).resolve().parents[3])
_START_LIMIT = 300.0
_LOG_TAIL = 2000
_WINDOWS_CRASHES = {0xC0000005: "ACCESS_VIOLATION", 0xC0000094: "INTEGER_DIVIDE_BY_ZERO", 0xC00000FD: "STACK_OVERFLOW"}


class _Deadline:
    """Kills a worker at the time limit, and records that it did."""

    def __init__(self, worker: Worker, limit: float) -> None:
        self._worker = worker
        self._timer = threading.Timer(limit, self._expire)
        self._timer.daemon = True
        self.expired = False

    def _expire(self) -> None:
        self.expired = True
        self._worker.kill()

    def __enter__(self) -> _Deadline:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()


class Worker:
    """One child process. Only `kill` may be called by several threads at once."""

    def __init__(
        self,
        function: str,
        *,
        memory: int | None = None,
        env: Mapping[str, str] | None = None,
        scratch: str | None = None,
        python: str | None = None,
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
            bufsize=0,
            process_group=0,
            creationflags=getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0),  # what Windows has instead
        )
        self._setup = {"function": function, "memory": memory}
        self._is_new = True
        self._is_closed = False

    def start(self) -> None:
        """Wait until the worker has imported the function. Raises WorkerStartError if the import fails."""
        with _Deadline(self, _START_LIMIT):
            try:
                self._send(self._setup)
                answer = self._receive()
            except OSError:
                answer = None
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
        stage, started, answer = "", time.perf_counter(), None
        with _Deadline(self, limit) as deadline:
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
            return TaskOutcome(task, OK, answer[1], stage=stage, seconds=seconds, first=first)
        if answer is not None:
            status, (text, error_type, code, detail) = answer
            if status == MEMORY:
                self.close()  # the rest of the stream may be incomplete
            return TaskOutcome(task, status, None, text, stage, error_type, code, detail, seconds, first)
        cause = self._cause()
        status, message = (TIMEOUT, f"no answer within {limit:g} s") if deadline.expired else (CRASH, cause)
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

    def _send(self, content: object) -> None:
        assert self._process.stdin is not None
        write_frame(self._process.stdin, content)  # type: ignore[arg-type]

    def _receive(self) -> tuple[str, Any] | None:
        assert self._process.stdout is not None
        frame = read_frame(self._process.stdout)  # type: ignore[arg-type]
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


def _command(python: str | None, scratch: str | None) -> list[str]:
    if python is not None:  # it has packages of its own
        return [python, "-c", _BOOT_ELSEWHERE, scratch or "", _PROJECT]
    return [sys.executable, "-c", _BOOT, scratch or "", *(entry or os.getcwd() for entry in sys.path)]


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
