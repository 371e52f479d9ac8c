"""Watch: the workers of a cluster while a batch runs: how many threads, how much memory; whether any are left."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from distributed.system import MEMORY_LIMIT

from mo_loop.batching.cluster.on_worker import MEMORY
from mo_loop.batching.cluster.requirements import Unable

if TYPE_CHECKING:
    from distributed import Client

EVERY = 2.0
"""Seconds between two looks."""

PATIENCE = 60.0
"""Seconds in which a worker that was lost may be replaced."""


class Watch:
    """Asks the scheduler for its workers now and then, in a thread of its own."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._end = threading.Event()
        self._short_since = 0.0
        self._lock = threading.Lock()
        self._workers: dict[str, Any] = {}
        self.unable: dict[str, Unable] = {}
        """Workers that are left out, by their addresses, and why."""
        self.able: list[str] = []
        """The addresses of the others, if there are workers that are left out."""
        self.threads = 0
        """Threads of all workers; while there are none, those that there were."""
        self.largest = 0
        """The MEMORY of the worker that has most of it. A worker that is lost counts for some time."""
        self.present = 0
        """The same of the workers that are there now."""
        self.look()

    def look(self) -> None:
        """Ask now."""
        workers = workers_of(self._client)
        with self._lock:
            self._workers = workers
            self._count()

    def leave_out(self, unable: Unable) -> bool:
        """Do not count a worker any more; whether it was counted before."""
        with self._lock:
            is_new = unable.worker not in self.unable
            self.unable[unable.worker] = unable
            self._count()
            return is_new

    def _count(self) -> None:
        workers = {address: each for address, each in self._workers.items() if address not in self.unable}
        self.able = list(workers) if self.unable else []
        if self._workers and not workers:  # to wait does not help: all that are there lack something
            self.largest = self.present = 0
            return
        self.threads = sum(each["nthreads"] for each in workers.values()) or self.threads
        largest = max((int(each["resources"].get(MEMORY, 0)) for each in workers.values()), default=0)
        self.present = largest
        if largest >= self.largest:
            self._short_since = 0.0
            self.largest = largest
            return
        self._short_since = self._short_since or time.monotonic()
        if time.monotonic() - self._short_since > PATIENCE:
            self.largest = largest

    @property
    def has_workers(self) -> bool:
        """Whether there are workers, or there were some a short time ago."""
        return self.largest > 0

    def start(self, changed: Callable[[], None], failed: Callable[[Exception], None]) -> None:
        """Check at intervals, and call `changed` after each check, until `stop`; `failed` if that is not possible."""

        def run() -> None:
            while not self._end.wait(EVERY):
                try:
                    self.look()
                    changed()
                except (OSError, TimeoutError):
                    # The scheduler is gone, which the futures will report, or it is busy: the next check may succeed.
                    continue
                except Exception as error:
                    failed(error)
                    return

        threading.Thread(target=run, daemon=True).start()

    def stop(self) -> None:
        """Look no more."""
        self._end.set()


def workers_of(client: Client) -> dict[str, Any]:
    """Address of each worker -> the facts that the scheduler has about it."""
    try:
        info = client.scheduler_info(n_workers=-1)
    except TypeError:  # an older release of distributed, which gives all
        info = client.scheduler_info()
    workers: dict[str, Any] = info["workers"]
    return workers


def machines(client: Client) -> tuple[int, int]:
    """The threads of all workers, and the bytes of memory of the largest one: its MEMORY, or the value that it will
    get."""
    workers = workers_of(client).values()
    memory = [int(each["resources"].get(MEMORY) or each["memory_limit"] or MEMORY_LIMIT) for each in workers]
    return sum(each["nthreads"] for each in workers), max(memory, default=0)
