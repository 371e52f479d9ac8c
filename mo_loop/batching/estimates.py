"""Estimates of the memory and time of a conversion, from its size and from the result of an earlier batch.

    earlier = earlier_of(report)                       # the report of --baseline, by the names of the models
    estimate(size, earlier.get(name))                  # Estimate(memory, seconds, is_measured)
    for place in largest_first(plan.models): ...

The memory of a worker is about

    BASE + HEAD_FACTOR * min(size, HEAD) + TAIL_FACTOR * (size - HEAD)

with the bytes of the .onnx: weights of a file above HEAD stay in the file, those below are read. External data is not
read into memory. How many nodes a file has, and whether bodies are translated again, only an earlier result shows:

    BASE + DATA_FACTOR * min(size, HEAD) + TAIL_FACTOR * (size - HEAD) + LAYER * layers * (BODIES with control flow)

This is more than many models need. So where the conversion was measured, the estimate is at most the peak of its
process, and at least what the model added to a new one (`mo_loop.batching.estimates`), but not below BASE: a model is
not refused for an estimate above the memory in which it was converted before. A larger file needs more in proportion.

A comparison loads the weights in another process, while the worker keeps its memory:

    BASE + COMPARED + EMBEDDED_FACTOR * size + EXTERNAL_FACTOR * external

The time is that of the earlier result, in proportion to the size; without one it is START + size / RATE, and with a
comparison that of the earlier one, or COMPARISON + size / COMPARED_RATE, more.

Meter measures time and memory of one conversion in a worker process, which may have converted other models before.

    meter = Meter()
    ...                         # convert
    cost = meter.cost()         # a Cost: seconds and bytes

The peak of a process includes the memory that earlier models left in it. So two numbers are kept: the peak, which a new
process would not exceed, and the memory of a new process plus the growth during this model, which it would need at
least: a model can reuse memory that an earlier one has freed. In a new process both are the same.
"""

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mo_loop.batching.plan import Planned
from mo_loop.batching.result import CONVERTED, Cost, Facts
from mo_loop.support.disk_table import DiskTable
from mo_loop.support.process_memory import memory_now, peak_memory, reset_peak

BASE = 150 << 20
"""Bytes of a worker before its first model."""

HEAD = 16 << 20
"""Bytes above which the weights of an .onnx stay in the file (`mo_loop.frontend.model.LARGE`)."""

HEAD_FACTOR, DATA_FACTOR, TAIL_FACTOR = 12.0, 2.5, 0.25
LAYER = 12 << 10
COMPARED, EMBEDDED_FACTOR, EXTERNAL_FACTOR = 100 << 20, 2.2, 1.1
BODIES = 1.5
START, RATE = 0.02, 100e6
"""Seconds for any model, and bytes in a second: of reading, of hashing twice, of writing."""

COMPARISON, COMPARED_RATE = 1.5, 20e6
"""The same of a comparison: of generating inputs, and of compiling and running on both sides, most of it for any model.
"""


@dataclass(frozen=True, slots=True)
class Earlier:
    """The result of an earlier conversion: bytes of the .onnx and of its external data, layers, operations with bodies,
    seconds; the bytes of memory that it needed at least and at most, and the seconds of a comparison, if they were
    measured."""

    size: int
    external: int
    layers: int
    control_flow: int
    seconds: float | None
    memory: int | None = None
    peak: int | None = None
    compared: float | None = None


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes of memory and seconds of one conversion; `is_measured` if the seconds are those of an earlier one."""

    memory: int
    seconds: float
    is_measured: bool


def estimate(size: int, earlier: Earlier | None = None, *, with_comparison: bool = False) -> Estimate:
    """The estimate for an .onnx of `size` bytes."""
    external = 0 if earlier is None else earlier.external
    memory = _memory(size, earlier)
    total = size + external
    before = 0 if earlier is None else earlier.size + earlier.external
    growth, compared = total / before if before else 1.0, 0.0
    if with_comparison:
        memory = max(memory, BASE + COMPARED + EMBEDDED_FACTOR * size + EXTERNAL_FACTOR * external)
        known = None if earlier is None else earlier.compared
        compared = COMPARISON + total / COMPARED_RATE if known is None else growth * known
    if earlier is None or earlier.seconds is None:
        return Estimate(int(memory), START + total / RATE + compared, False)
    return Estimate(int(memory), earlier.seconds * growth + compared, True)


def _memory(size: int, earlier: Earlier | None) -> float:
    """The bytes of a conversion without a comparison."""
    head, tail = min(size, HEAD), max(0, size - HEAD)
    if earlier is None:
        return BASE + HEAD_FACTOR * head + TAIL_FACTOR * tail
    bodies = BODIES if earlier.control_flow else 1.0
    memory = BASE + DATA_FACTOR * head + TAIL_FACTOR * tail + LAYER * earlier.layers * bodies
    if earlier.memory is None or earlier.peak is None:
        return memory
    growth = max(1.0, size / earlier.size) if earlier.size else 1.0
    return max(BASE, growth * earlier.memory, min(memory, growth * earlier.peak))


def earlier_of(report: Mapping[str, Any]) -> dict[str, Earlier]:
    """The models of a report that had output files, by name.

    Raises:
        KeyError, TypeError, ValueError: it is not the report of a batch.
    """
    results = {}
    for each in report["models"]:
        sizes, layers = each.get("sizes"), each.get("layers")
        if not sizes or layers is None:
            continue
        cost, compared = each.get("conversion") or {}, (each.get("comparison") or {}).get("seconds")
        # The seconds of a model that was up to date are those of the check of its files.
        seconds = each["seconds"] if each["status"] == CONVERTED else cost.get("seconds")
        if each["status"] == CONVERTED and compared is not None:
            seconds = max(0.0, seconds - compared)
        flow = sum(each.get("control_flow", {}).values())
        memory, peak = (None if cost.get(key) is None else int(cost[key]) for key in ("memory", "peak"))
        seconds, compared = (None if value is None else float(value) for value in (seconds, compared))
        results[str(each["name"])] = Earlier(
            int(sizes["model"]), int(sizes["external"]), int(layers), flow, seconds, memory, peak, compared,
        )
    return results


def earlier_from(size: int, external: int, facts: Facts) -> Earlier:
    """The result of a conversion of an .onnx of `size` bytes with external data."""
    flow, cost = sum(facts.control_flow.values()), facts.cost
    if cost is None:
        return Earlier(size, external, facts.layers, flow, None)
    return Earlier(size, external, facts.layers, flow, cost.seconds, cost.memory, cost.peak)


def largest_first(models: Iterable[Planned]) -> Iterator[int]:
    """The places of models by the size of their .onnx, the largest first: no long one is left for the end."""
    table = DiskTable("CREATE TABLE sizes (number INTEGER PRIMARY KEY, size INTEGER)")
    table.run_all("INSERT INTO sizes VALUES (?, ?)", ((place, size_of(each)) for place, each in enumerate(models)))
    return (place for (place,) in table.rows("SELECT number FROM sizes ORDER BY size DESC, number"))


def size_of(model: Planned) -> int:
    """The bytes of the .onnx; 0 if it is gone, which its conversion reports."""
    try:
        return model.size
    except OSError:
        return 0


_NEW_PROCESS = memory_now()
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
        return Cost(time.perf_counter() - self._start, min(_NEW_PROCESS, self._before) + max(grown, 0), peak)
