"""Where the time of the tests goes, by file and by what is done: `make test-times` prints it.

Times of single tests add up over the processes of xdist, so the sums exceed the time of the whole run. `cpu` is that of
the test process and of all processes below it; what workers do is also listed by the stages that they report.
"""

import os
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from weakref import WeakSet

import pytest

from mo_loop.conversion import Conversion
from mo_loop.support.worker_process import Worker

FILES = 30
"""So many files are listed."""


_TICK = os.sysconf("SC_CLK_TCK")


_running: WeakSet[subprocess.Popen[Any]] = WeakSet()


def _processor_time() -> float:
    """Seconds of this process and of those that it has started; of the running ones where the system has /proc."""
    mine = os.times()
    seconds = mine.user + mine.system + mine.children_user + mine.children_system
    for each in list(_running):
        if each.returncode is None:
            with suppress(OSError):
                fields = Path(f"/proc/{each.pid}/stat").read_text().rpartition(")")[2].split()
                seconds += sum(map(int, fields[11:15])) / _TICK
    return seconds


class Times:
    """Seconds by file and by kind of work."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self.wall: Counter[str] = Counter()
        self.cpu: Counter[str] = Counter()
        self.kinds: Counter[str] = Counter()
        self._stage: dict[int, tuple[str, float]] = {}
        self._wrap(Conversion, "run", "conversion")
        self._wrap(Worker, "start", "start of workers")
        self._wrap(subprocess.Popen, "communicate", "other processes")
        self._follow_stages()
        self._find_processes()

    def _find_processes(self) -> None:
        """Remember what is started, to read its time while it runs."""
        start = subprocess.Popen.__init__

        def started(process: Any, *arguments: Any, **keywords: Any) -> None:
            start(process, *arguments, **keywords)
            _running.add(process)

        subprocess.Popen.__init__ = started  # type: ignore[method-assign]

    def _wrap(self, owner: Any, name: str, kind: str) -> None:
        original: Callable[..., Any] = getattr(owner, name)

        def timed(*arguments: Any, **keywords: Any) -> Any:
            started = time.perf_counter()
            try:
                return original(*arguments, **keywords)
            finally:
                self.kinds[kind] += time.perf_counter() - started

        setattr(owner, name, timed)

    def _follow_stages(self) -> None:
        """Record the stages of a worker from its messages: `compile`, `infer 0`, and at last its answer."""
        send, receive = Worker._send, Worker._receive

        def sent(worker: Worker, content: object) -> None:
            send(worker, content)
            self._stage[id(worker)] = "other work", time.perf_counter()

        def received(worker: Worker) -> Any:
            answer = receive(worker)
            now = time.perf_counter()
            stage, started = self._stage.get(id(worker), ("other work", now))
            self.kinds[f"in workers: {stage}"] += now - started
            if answer is not None and answer[0] == "stage":
                self._stage[id(worker)] = str(answer[1]).split()[0], now
            return answer

        Worker._send, Worker._receive = sent, received  # type: ignore[method-assign]

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Measure one test with its fixtures."""
        file = item.path.relative_to(self._config.rootpath).as_posix()
        wall, cpu = time.perf_counter(), _processor_time()
        try:
            return (yield)
        finally:
            self.wall[file] += time.perf_counter() - wall
            self.cpu[file] += _processor_time() - cpu

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """A process of xdist hands its times to the one that prints them."""
        output = getattr(session.config, "workeroutput", None)
        if output is not None:
            output["times"] = [dict(each) for each in (self.wall, self.cpu, self.kinds)]

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Add the times of a process of xdist."""
        for mine, other in zip((self.wall, self.cpu, self.kinds), node.workeroutput.get("times", ()), strict=False):
            mine.update(other)

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Print both tables."""
        terminalreporter.section("times in seconds")
        folders: Counter[str] = Counter()
        cpu = self.cpu.copy()
        for file, seconds in self.wall.items():
            folder = "/".join(Path(file).parts[:2])
            folders[folder] += seconds
            cpu[folder] += self.cpu[file]
        total = sum(self.wall.values())
        for title, rows in (("kind", self.kinds), ("folder", folders), ("file", self.wall)):
            terminalreporter.write_line(f"{'wall':>8} {'cpu':>8}  {title}")
            for name in sorted(rows, key=lambda each, rows=rows: (-cpu[each], -rows[each]))[:FILES]:
                own = f"{cpu[name]:8.1f}" if name in cpu else " " * 8
                terminalreporter.write_line(f"{rows[name]:8.1f} {own}  {name}")
        terminalreporter.write_line(f"{total:8.1f} {sum(self.cpu.values()):8.1f}  all tests")
