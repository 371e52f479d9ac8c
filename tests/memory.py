"""The memory that a piece of code needs.

    bound = least_peak(lambda: planned(500)) + (500 << 10)
    assert least_peak(lambda: planned(5000), bound) < bound
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable


def least_peak(run: Callable[[], object], bound: int = 0, times: int = 3) -> int:
    """The most bytes that objects of Python took while `run` ran, in the attempt that took least.

    Several attempts, because the interpreter sometimes enlarges a table of its own meanwhile, such as that of interned
    strings, by a megabyte. One that takes less than `bound` is the last.
    """
    peaks: list[int] = []
    while len(peaks) < times and (not peaks or peaks[-1] >= bound):
        tracemalloc.start()
        try:
            run()
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    return min(peaks)
