"""serve: the main loop of a worker process."""

from __future__ import annotations

import contextlib
import faulthandler
import os
import pickle
import pkgutil
import queue
import shutil
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

from mo_loop.support.garbage_collection import paused_collector
from mo_loop.support.process_memory import limit_memory
from mo_loop.support.workers.worker import ERROR, MEMORY, OK, write

_stage_channel: Callable[[str], None] | None = None


def report_stage(name: str) -> None:
    """Report the stage of the current task; `Outcome.stage` keeps it. Does nothing outside a worker process."""
    if _stage_channel is not None:
        _stage_channel(name)


def serve(scratch: str | None = None) -> None:
    """Run tasks from standard input until it ends; then remove the folder `scratch`."""
    inbox, outbox = _private_streams()
    messages: queue.SimpleQueue[Any] = queue.SimpleQueue()
    threading.Thread(target=_pump, args=(inbox, messages, scratch), daemon=True).start()
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
