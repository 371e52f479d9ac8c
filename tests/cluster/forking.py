"""Schedulers and workers of Dask that are forked from a process with their modules: their imports take longer than most
tests, and the tests start a hundred of them.

    process = forked("distributed.cli.dask_scheduler", ["--port", "8786"], environment, log)
    process.poll(), process.wait(10), process.send_signal(15)       # as of subprocess.Popen; the exit code is always 0
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path

from tests import ROOT

MODULES = ("distributed.cli.dask_scheduler", "distributed.cli.dask_worker", "mo_loop.batching.cluster.on_worker")


class Forked:
    """A process that is not a child of this one."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._ended = os.pidfd_open(pid)

    def __del__(self) -> None:
        os.close(self._ended)

    def poll(self) -> int | None:
        """None while it runs."""
        return 0 if select.select([self._ended], [], [], 0)[0] else None

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended; TimeoutExpired if it has not in these seconds."""
        if not select.select([self._ended], [], [], timeout)[0]:
            raise subprocess.TimeoutExpired(str(self.pid), timeout or 0)
        return 0

    def kill(self) -> None:
        """End it at once."""
        signal.pidfd_send_signal(self._ended, signal.SIGKILL)


def forked(module: str, arguments: Sequence[str], environment: Mapping[str, str], log: Path) -> Forked:
    """Run the command of one of MODULES in a process that leads a group; `log` gets its output. Linux alone."""
    server = _server()
    assert server.stdin is not None and server.stdout is not None
    server.stdin.write(json.dumps([module, [*arguments], {**environment}, str(log)]).encode() + b"\n")
    server.stdin.flush()
    return Forked(int(server.stdout.readline()))


@cache
def _server() -> subprocess.Popen[bytes]:
    """It ends with this process."""
    command = [sys.executable, "-m", __name__]
    return subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0)


def _serve() -> None:
    for each in MODULES:
        importlib.import_module(each)
    gc.freeze()
    signal.signal(signal.SIGCHLD, _reap)
    while line := sys.stdin.buffer.readline():
        module, arguments, environment, log = json.loads(line)
        pid = os.fork()
        if not pid:
            _become(environment, log)
            sys.argv = [module, *arguments]
            importlib.import_module(module).main()
            return
        with suppress(ProcessLookupError):
            os.setpgid(pid, pid)  # before anybody can end the group
        print(pid, flush=True)


def _reap(*_: object) -> None:
    """Nothing stays of a child that has ended."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue


def _become(environment: Mapping[str, str], log: str) -> None:
    """Give this process an environment and files of its own."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, (path, flags) in enumerate([(os.devnull, os.O_RDONLY), *[(log, os.O_WRONLY | os.O_APPEND)] * 2]):
        file = os.open(path, flags | os.O_CREAT)
        os.dup2(file, number)
        os.close(file)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None


if __name__ == "__main__":
    _serve()
