"""A line on stderr that says what a long conversion does; it disappears at the end.

    writing 3 s, 1.2 GB of 4.0 GB

It appears after a second, and only on a terminal.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING

from mo_loop.cli.conversion_summary import sized

if TYPE_CHECKING:
    from mo_loop.report.record import Record


class Progress:
    """Shows what `record` says while the block runs."""

    def __init__(self, record: Record, after: float = 1.0) -> None:
        """The line appears `after` seconds."""
        self._record = record
        self._after = after
        self._total = 0
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __enter__(self) -> Progress:
        if sys.stderr.isatty():
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        if self._thread.is_alive():
            self._thread.join()

    def _show(self) -> None:
        start = time.monotonic()
        if self._done.wait(self._after):
            return
        from rich.console import Console
        from rich.live import Live
        from rich.text import Text

        console = Console(stderr=True)
        with Live(
            get_renderable=lambda: Text(self.line(time.monotonic() - start), no_wrap=True, overflow="ellipsis"),
            console=console, refresh_per_second=10, transient=True, redirect_stdout=False, redirect_stderr=False,
        ):  # fmt: skip
            self._done.wait()

    def line(self, seconds: float) -> str:
        """The text after so many seconds."""
        text = f"{self._record.now or 'starting'} {seconds:.0f} s"
        if self._record.now != "writing" or self._record.graph is None:
            return text
        from mo_loop.report.statistics import graph_statistics

        self._total = self._total or graph_statistics(self._record.graph).bytes
        return f"{text}, {sized(self._record.written)} of {sized(self._total)}"
