"""Pauses garbage collection during a conversion: it takes a third of a large one and finds nothing to collect.

The import of our modules and libraries finds nothing either, and takes an eighth of a small conversion.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_lock = threading.Lock()
_running = 0
_was_enabled = False


@contextmanager
def paused_collector() -> Iterator[None]:
    """Pauses cyclic garbage collection; the last of several nested or concurrent users restores it."""
    global _running, _was_enabled
    with _lock:
        if _running == 0:
            _was_enabled = gc.isenabled()
            gc.disable()
        _running += 1
    try:
        yield
    finally:
        with _lock:
            _running -= 1
            if _running == 0 and _was_enabled:
                gc.enable()
