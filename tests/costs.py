"""The costs of code as numbers: memory and executed lines."""

import sys
import tracemalloc
from collections.abc import Callable
from typing import Any, TypeVar

# -- The memory that a piece of code needs.
#
# bound = least_peak(lambda: planned(500)) + (500 << 10)
# assert least_peak(lambda: planned(5000), bound) < bound


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


# -- The work of a call as a number that neither other work of the machine nor its processor changes


T = TypeVar("T")


def executed_lines(call: Callable[[], T]) -> tuple[T, int]:
    """The result of a call, and the number of lines of Python that it executes in this thread.

    A line counts as often as it is executed, in a comprehension too. A function of C counts as a part of the line that
    calls it, so this does not show a scan of a list in C.
    """
    count = 0

    def trace(*_: Any) -> Any:
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return call(), count
    finally:
        sys.settrace(before)
