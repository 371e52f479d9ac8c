"""Meter: time and memory of one conversion in a worker process, which may have converted other models before.

    meter = Meter()
    ...                         # convert
    cost = meter.cost()         # a Cost: seconds and bytes

The peak of a process includes the memory that earlier models left in it. So two numbers are kept: the peak, which a new
process would not exceed, and the memory of a new process plus the growth during this model, which it would need at
least: a model can reuse memory that an earlier one has freed. In a new process both are the same.
"""

from __future__ import annotations

import time

from mo_loop.batching.result import Cost
from mo_loop.support.process_memory import memory_now, peak_memory, reset_peak

_NEW = memory_now()
"""Bytes of this process before its first model: a worker loads this module with the converter."""


class Meter:
    """Measures from now on."""

    def __init__(self) -> None:
        self._start = time.perf_counter()
        self._least = 0 if reset_peak() else peak_memory()
        self._before = memory_now()

    def cost(self) -> Cost:
        """The time and memory measured so far. Where the peak cannot be reset, that of an earlier model is only an
        upper bound."""
        peak = peak_memory()
        grown = peak - self._before if peak > self._least else 0
        return Cost(time.perf_counter() - self._start, min(_NEW, self._before) + max(grown, 0), peak)
