"""The progress of a batch on stderr, and the text of --plan.

Progress is a bar on a terminal, otherwise a line for each model; only failures with --quiet.

    ━━━━━━━━━━━━━━━━━━━━━━━━╺━━━━━━━━━━━  187/300  2 failed  0:00:12  0:00:07 left
    vision/large.onnx 4 s, text/decoder.onnx

Failures stay above the bar. NO_COLOR switches colours off; a terminal that cannot move its cursor (TERM=dumb) gets
lines.

`mo-loop batch --plan` prints the work of a batch, without converting anything:

ir: 100000 models, 41.2 GB: 99000 up to date, 1000 to convert, 1.3 GB
time    about 12 min with 4 workers (900 of 1000 by the earlier report)
memory  median 210.0 MB, at most 1.9 GB: vision/large.onnx
refused 3 models need more than 1.5 GB, which the worker with most memory has
"""

from __future__ import annotations

import os
import sys
import threading
import time
from array import array
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from itertools import islice
from typing import TYPE_CHECKING, Any

import click

from mo_loop.batching.estimates import Earlier, estimate, size_of
from mo_loop.batching.plan import Planned
from mo_loop.batching.result import GOOD, SKIPPED, ModelResult
from mo_loop.batching.run import BatchListener, PreparedBatch
from mo_loop.cli.output import is_coloured
from mo_loop.printable import printable, sized

if TYPE_CHECKING:
    from rich.console import RenderableType



THREADS = 8
"""Models that are examined at the same time: a disk or a store takes most of the time."""

AT_ONCE = 500
"""Models that are in memory."""


def plan_lines(
    ready: PreparedBatch, earlier: Mapping[str, Earlier], *, jobs: int, most_memory: int | None = None
) -> Iterator[str]:
    """The lines that --plan prints for so many workers. `most_memory` is that of the largest worker of a cluster."""
    count, total, needed, measured = len(ready.plan.models), 0, 0, 0
    seconds, longest, most, name = 0.0, 0.0, -1, ""
    memory = array("q")
    for model, is_left in _looked_at(ready):
        size = size_of(model)
        total += size
        if not is_left:
            continue
        found = estimate(size, earlier.get(model.name), with_comparison=ready.work(model).comparing is not None)
        needed, seconds, measured = needed + size, seconds + found.seconds, measured + found.is_measured
        longest = max(longest, found.seconds)
        memory.append(found.memory)
        if found.memory >= most:
            most, name = found.memory, model.name
    left = len(memory)
    yield (
        f"{printable(str(ready.places.folder))}: {count} model{'s' * (count != 1)}, {sized(total)}: "
        f"{count - left} up to date, {left} to convert, {sized(needed)}"
    )
    if not left:
        return
    by = f"{measured} of {left} by the earlier report" if measured else "by size; --baseline REPORT improves it"
    yield f"time    about {_time(max(seconds / max(jobs, 1), longest))} with {jobs} worker{'s' * (jobs != 1)} ({by})"
    yield f"memory  median {sized(sorted(memory)[left // 2])}, at most {sized(most)}: {printable(name)}"
    if most_memory is None:
        return
    refused = sum(min(need, ready.about.asked.memory or need) > most_memory for need in memory)
    if refused:
        verb = "s need" if refused != 1 else " needs"
        yield f"refused {refused} model{verb} more than {sized(most_memory)}, which the worker with most memory has"


def _looked_at(ready: PreparedBatch) -> Iterator[tuple[Planned, bool]]:
    """Each model, and whether it has to be converted."""

    def is_left(model: Planned) -> bool:
        return ready.about.asked.force or ready.outputs.current(model, ready.work(model)) is None

    remaining = iter(ready.plan.models)
    with ThreadPoolExecutor(THREADS) as threads:
        while some := list(islice(remaining, AT_ONCE)):
            yield from zip(some, threads.map(is_left, some), strict=True)


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 1 else "1 s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"


LINES = 6
"""Lines of an error that are shown; a report has all of them."""

SHOW_CURSOR = "\x1b[?25h"


def display(total: int, is_quiet: bool, *, with_rate: bool = False) -> Display:
    """The kind of progress display that fits stderr; `with_rate` adds the number of models in a second."""
    if is_quiet:
        return Display(total)
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        return Bar(total, with_rate)
    return Lines(total, with_rate)


class Display(BatchListener, AbstractContextManager["Display"]):
    """Shows only failures. A context manager around the batch."""

    def __init__(self, total: int, with_rate: bool = False) -> None:
        self.total = total
        self.done = 0
        self.failed = 0
        self._with_rate = with_rate
        self._first = 0.0

    def __exit__(self, *_: object) -> None:
        return None

    def started(self, model: Planned) -> None:
        """A worker begins."""

    def finished(self, result: ModelResult) -> None:
        """A model is done."""
        self.done += 1
        self._first = self._first or time.monotonic()
        if result.status in GOOD:
            self.succeeded(result)
            return
        self.failed += 1
        head, *more = _said(result)
        name = printable(result.model.name)
        status = click.style(result.status, fg="red", bold=True) if is_coloured(sys.stderr) else result.status
        self.echo("\n".join([f"{self.place()}{status} {name}: {head}", *(f"    {line}" for line in more)]))

    def succeeded(self, result: ModelResult) -> None:
        """A model was converted or is up to date."""

    def place(self) -> str:
        """The text at the beginning of a line."""
        return ""

    def rate(self) -> str:
        """The number of models per second since the first one; empty if it is not shown, or not known."""
        passed = time.monotonic() - self._first
        return "" if not self._with_rate or self.done < 2 or passed <= 0 else f"{(self.done - 1) / passed:.3g}/s"

    def echo(self, text: str) -> None:
        """Write a line."""
        click.echo(text, err=True)

    def restore(self) -> None:
        """Restore the terminal when the process ends without leaving the block."""


class Lines(Display):
    """A line for each model."""

    def place(self) -> str:
        """The number of finished models and of all models."""
        rate = self.rate()
        return f"[{self.done:{len(str(self.total))}}/{self.total}{f', {rate}' if rate else ''}] "

    def succeeded(self, result: ModelResult) -> None:
        """A model was converted or is up to date."""
        count = len(result.warnings)
        more = f", {count} warning{'s' if count > 1 else ''}" if count else ""
        status = "up to date" if result.status == SKIPPED else result.status
        self.echo(f"{self.place()}{status} {printable(result.model.name)}, {result.seconds:.2f} s{more}")


class Bar(Display):
    """A bar, and the models in progress below it."""

    def __init__(self, total: int, with_rate: bool = False) -> None:
        super().__init__(total, with_rate)
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        bar = self

        class Shown(Progress):
            """The bar with a line below."""

            def get_renderables(self) -> Iterable[RenderableType]:
                yield self.make_tasks_table(self.tasks)
                yield bar._at_work()

        self._running: dict[str, float] = {}
        self._lock = threading.Lock()
        self._console = Console(stderr=True, highlight=False, markup=False, emoji=False)
        self._progress = Shown(
            BarColumn(), TextColumn("{task.completed}/{task.total}"), TextColumn("{task.fields[failed]}", style="red"),
            *([TextColumn("{task.fields[rate]}")] if with_rate else ()),
            TimeElapsedColumn(), TimeRemainingColumn(), TextColumn("left"),
            console=self._console, transient=True, redirect_stdout=False, redirect_stderr=False,
        )
        self._task = self._progress.add_task("", total=total, failed="", rate="")

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def started(self, model: Planned) -> None:
        """A worker begins."""
        with self._lock:
            self._running[model.name] = time.monotonic()

    def finished(self, result: ModelResult) -> None:
        """A model is done."""
        with self._lock:
            self._running.pop(result.model.name, None)
        super().finished(result)
        failed = f"{self.failed} failed" if self.failed else ""
        self._progress.update(self._task, advance=1, failed=failed, rate=self.rate())

    def echo(self, text: str) -> None:
        """Write above the bar."""
        from rich.text import Text

        self._console.print(Text.from_ansi(text))

    def restore(self) -> None:
        """Show the cursor again, which a bar hides."""
        os.write(sys.stderr.fileno(), f"\r{SHOW_CURSOR}\n".encode())

    def _at_work(self) -> Any:
        from rich.text import Text

        now = time.monotonic()
        with self._lock:
            running = [(name, now - start) for name, start in self._running.items()]
        names = [printable(name) + (f" {seconds:.0f} s" if seconds >= 1 else "") for name, seconds in running]
        return Text(", ".join(names), style="dim", no_wrap=True, overflow="ellipsis")


def _said(result: ModelResult) -> list[str]:
    lines = [printable(line) for line in result.said.splitlines()] or [""]
    more = len(lines) - LINES
    return lines if more <= 0 else [*lines[:LINES], f"... {more} more lines"]
