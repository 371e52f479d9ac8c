"""A line on stderr with the current phase of a long conversion; it disappears at the end.

    writing 3 s, 1.2 GB of 4.0 GB, 413.8 MB/s

It appears after a second, and only on a terminal.
"""

from __future__ import annotations

import sys
import threading
import time
from typing import TYPE_CHECKING

from mo_loop.printable import sized

if TYPE_CHECKING:
    from mo_loop.transforms.manager import Phase, Step


class Progress:
    """An observer that shows the phases of a conversion while the block runs."""

    def __init__(self, after: float = 1.0) -> None:
        """The line appears `after` seconds."""
        self._phase: Phase | None = None
        self._after = after
        self._total = 0
        self._since = 0.0  # the beginning of the phase
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._show, daemon=True)

    def __call__(self, event: Step | Phase) -> None:
        from mo_loop.transforms.manager import Phase

        if isinstance(event, Phase):
            self._phase = event
            if event.seconds is None:
                self._since = time.monotonic()

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
        """The text after `seconds`."""
        phase = self._phase
        text = f"{'starting' if phase is None else phase.name} {seconds:.0f} s"
        if phase is None or phase.name != "writing" or phase.graph is None or phase.subject is None:
            return text
        from mo_loop.report.record import graph_statistics

        self._total = self._total or graph_statistics(phase.graph).bytes
        written = phase.subject.size
        rate = written / max(phase.seconds or time.monotonic() - self._since, 1e-6)
        return f"{text}, {sized(written)} of {sized(self._total)}, {sized(round(rate))}/s"
