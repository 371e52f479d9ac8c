"""The memory of this process: the resident memory now and its peak, a limit of its allocations, pauses of its garbage
collection.

Linux limits the memory of a process without mapped files and reserved address space; other systems with the module
`resource` limit the address space. Windows has no such limit, macOS does not enforce it.

Garbage collection takes a third of a large conversion and finds nothing to collect. The import of our modules and
libraries finds nothing either, and takes an eighth of a small conversion.
"""

import contextlib
import gc
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NO_MEMORY_LIMIT = "this system cannot limit the memory of a process"


def peak_memory() -> int:
    """The most bytes that this process had in memory so far; 0 where the system does not report it.

    Linux gives `ru_maxrss` on to the program that a process starts: a small program started by a large one would show
    the memory of the large one. `VmHWM` belongs to the program alone.
    """
    if sys.platform == "linux":
        return _status(b"VmHWM:")
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak


def memory_now() -> int:
    """The bytes that this process has in memory; its peak where the system reports nothing else."""
    return _status(b"VmRSS:") if sys.platform == "linux" else peak_memory()


def reset_peak() -> bool:
    """Let `peak_memory` begin anew with the memory of now; whether this system can."""
    try:
        Path("/proc/self/clear_refs").write_bytes(b"5")
    except OSError:
        return False
    return True


def _status(key: bytes) -> int:
    """A line of /proc/self/status, in bytes; 0 if it cannot be read."""
    try:
        status = Path("/proc/self/status").read_bytes()
    except OSError:
        return 0
    return next((1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith(key)), 0)


def can_limit_memory() -> bool:
    """Whether `limit_memory` has an effect on this system."""
    try:
        import resource  # noqa: F401
    except ImportError:
        return False
    return sys.platform != "darwin"


def limit_memory(limit: int | None) -> None:
    """Make allocations above `limit` bytes fail; no effect for None, or if the system has no such limit."""
    if limit is None or not can_limit_memory():
        return
    import resource

    kind = resource.RLIMIT_DATA if sys.platform == "linux" else resource.RLIMIT_AS
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(kind, (limit, resource.getrlimit(kind)[1]))


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
