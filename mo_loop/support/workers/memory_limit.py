"""A limit of the memory that this process may allocate, on systems that have one.

Linux limits the memory of a process without mapped files and reserved address space; other systems with the module
`resource` limit the address space. Windows has no such limit, macOS does not enforce it.
"""

from __future__ import annotations

import contextlib
import sys

NO_MEMORY_LIMIT = "this system cannot limit the memory of a process"


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
