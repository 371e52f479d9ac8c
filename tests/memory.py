"""The memory that a piece of code needs.

    few, many = (least_peak(lambda: planned(count)) for count in (500, 5000))
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable


def least_peak(run: Callable[[], object], times: int = 3) -> int:
    """The most bytes that objects of Python took while `run` ran, in the attempt that took least.

    Several attempts, because the interpreter sometimes enlarges a table of its own meanwhile, such as that of interned
    strings, by a megabyte.
    """
    peaks = []
    for _ in range(times):
        tracemalloc.start()
        try:
            run()
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    return min(peaks)
