"""The peak of resident memory of this process."""

from __future__ import annotations

import sys
from pathlib import Path


def peak_memory() -> int:
    """The most bytes that this process had in memory so far; 0 where the system does not tell.

    Linux gives `ru_maxrss` on to the program that a process starts: a small program started by a large one would show
    the memory of the large one. `VmHWM` belongs to the program alone.
    """
    if sys.platform == "linux":
        try:
            status = Path("/proc/self/status").read_bytes()
        except OSError:
            return 0
        return next((1024 * int(line.split()[1]) for line in status.splitlines() if line.startswith(b"VmHWM:")), 0)
    try:
        import resource
    except ImportError:
        return 0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else 1024 * peak
