"""A line on stderr that says what a long conversion is doing; gone when it is done.

    writing 3 s, 1.2 GB of 4.0 GB

It appears after a second, and only on a terminal.
"""

from __future__ import annotations

import sys
import threading
import time
from types import TracebackType
from typing import TYPE_CHECKING

from mo_loop.cli.conversion_summary import sized

if TYPE_CHECKING:
    from mo_loop.report.record import Record

CLEAR = "\r\x1b[K"


class Progress:
    """Shows what `record` says while the block runs."""

    def __init__(self, record: Record, after: float = 1.0, every: float = 0.1) -> None:
        """The line appears `after` seconds and is written anew `every` so many."""
        self._record = record
        self._after = after
        self._every = every
        self._total = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, where: TracebackType | None
    ) -> None:
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()

    def _show(self) -> None:
        start = time.monotonic()
        if self._done.wait(self._after):
            return
        while not self._done.wait(self._every):
            sys.stderr.write(CLEAR + self.line(time.monotonic() - start))
            sys.stderr.flush()
        sys.stderr.write(CLEAR)
        sys.stderr.flush()

    def line(self, seconds: float) -> str:
        """What is to be seen after so many seconds."""
        text = f"{self._record.now or 'starting'} {seconds:.0f} s"
        if self._record.now != "writing" or self._record.graph is None:
            return text
        from mo_loop.report.statistics import contents_of_graph

        self._total = self._total or contents_of_graph(self._record.graph).bytes
        return f"{text}, {sized(self._record.written)} of {sized(self._total)}"
