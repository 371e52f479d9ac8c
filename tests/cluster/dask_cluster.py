"""A scheduler and workers of Dask, each a process of its own on the loopback, as users start them by hand."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.cli.batches import environment, processes
from tests.cluster.forking import Forked, forked

Process = subprocess.Popen[bytes] | Forked

_NO_PACKAGE = """
import sys
import distributed.versions as versions

for name in [each for each in sys.modules if each.partition(".")[0] == "mo_loop"]:
    del sys.modules[name]
sys.modules["mo_loop"] = None
found = versions._version_cached
versions._version_cached = lambda name, found=found: None if name == "mo_loop" else found(name)
"""
"""A preload of Dask: a process without mo_loop."""

_OTHER_ONNX = """
import distributed.versions as versions

found = versions._version_cached
versions._version_cached = lambda name, found=found: "1.0.0" if name == "onnx" else found(name)
"""
"""A preload of Dask: a process with another version of onnx."""

PRELOADS = {"no package": _NO_PACKAGE, "other onnx": _OTHER_ONNX}


class Cluster:
    """A scheduler and its workers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mark = f"cluster-{folder.parent.name}-{time.time_ns()}"
        self.port = _free_port()
        self.address = f"tcp://127.0.0.1:{self.port}"
        self.processes: list[Process] = []
        self.scheduler: Process | None = None

    def start_scheduler(self, preload: str = "") -> None:
        """Start the scheduler and wait until it answers."""
        self.scheduler = self._started(
            "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", self.port, "--no-dashboard",
            preload=preload,
        )
        wait_until(lambda: _answers(self.port))

    def start_worker(self, *arguments: object, preload: str = "", env: Mapping[str, str] | None = None) -> Process:
        """Start a worker with one thread."""
        flags = ("--nthreads", 1, "--no-dashboard", "--no-nanny", "--local-directory", self.folder)
        return self._started("distributed.cli.dask_worker", self.address, *flags, *arguments, preload=preload, env=env)

    def kill(self, process: Process | None) -> None:
        """Kill a process at once."""
        assert process is not None
        process.kill()
        process.wait()

    def converters(self) -> set[int]:
        """The processes that the workers have started, and that have not ended."""
        return set(processes(self.mark)) - {each.pid for each in self.processes}

    def close(self) -> None:
        """End all processes, and those that they have started."""
        for each in self.processes:
            with suppress(ProcessLookupError):
                os.killpg(each.pid, signal.SIGKILL)
        for each in self.processes:
            each.wait()

    def start(self, module: str, *arguments: object, env: Mapping[str, str] | None = None) -> Process:
        """Start a process as a user does. One with variables of its own reads them at its imports."""
        command = [sys.executable, "-m", module, *map(str, arguments)]
        with self._new_log().open("wb") as log:
            return self._kept(subprocess.Popen(
                command, env=self._environment(env), process_group=0, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            ))

    def _started(
        self, module: str, *arguments: object, preload: str = "", env: Mapping[str, str] | None = None
    ) -> Process:
        if preload:
            path = self.folder / f"preload_{preload.replace(' ', '_')}.py"
            path.write_text(PRELOADS[preload])
            arguments = (*arguments, "--preload", path)
        if env is not None or sys.platform != "linux":
            return self.start(module, *arguments, env=env)
        return self._kept(forked(module, [*map(str, arguments)], self._environment(), self._new_log()))

    def _kept(self, process: Process) -> Process:
        self.processes.append(process)
        return process

    def _new_log(self) -> Path:
        """An empty file, which tests may read before the process has begun."""
        path = self.folder / f"log{len(self.processes)}.txt"
        path.touch()
        return path

    def _environment(self, more: Mapping[str, str] | None = None) -> dict[str, str]:
        return environment({"MARK": self.mark, **(more or {})})


@contextmanager
def cluster(folder: Path, workers: int = 2, *arguments: object, preload: str = "") -> Iterator[Cluster]:
    """A scheduler with workers, which end with the block."""
    folder.mkdir(exist_ok=True)
    running = Cluster(folder)
    try:
        running.start_scheduler()
        for _ in range(workers):
            running.start_worker(*arguments, preload=preload)
        yield running
    finally:
        running.close()


def wait_until(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait until a condition holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port


def _answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1).close()
    except OSError:
        return False
    return True
