"""Estimates of the memory and time of a conversion, from its size and from the result of an earlier batch.

    earlier = earlier_of(report)                       # the report of --baseline, by the names of the models
    estimate(size, earlier.get(name))                  # Estimate(memory, seconds, is_measured)
    for place in largest_first(plan.models): ...

The memory of a worker is about

    BASE + HEAD_FACTOR * min(size, HEAD) + TAIL_FACTOR * (size - HEAD)

with the bytes of the .onnx: weights of a file above HEAD stay in the file, those below are read. External data is not
read into memory. How many nodes a file has, and whether bodies are translated again, only an earlier result tells:

    BASE + DATA_FACTOR * min(size, HEAD) + TAIL_FACTOR * (size - HEAD) + LAYER * layers * (BODIES with control flow)

The time is that of the earlier result, in proportion to the size; without one it is START + size / RATE.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mo_loop.batch.plan import Planned
from mo_loop.batch.result import CONVERTED
from mo_loop.disk_table import DiskTable

BASE = 150 << 20
"""Bytes of a worker before its first model."""

HEAD = 16 << 20
"""Bytes above which the weights of an .onnx stay in the file (`mo_loop.frontend.model.LARGE`)."""

HEAD_FACTOR, DATA_FACTOR, TAIL_FACTOR = 12.0, 2.5, 0.25
LAYER = 12 << 10
BODIES = 1.5
START, RATE = 0.02, 100e6
"""Seconds for any model, and bytes in a second: of reading, of hashing twice, of writing."""


@dataclass(frozen=True, slots=True)
class Earlier:
    """The result of an earlier conversion: bytes of the .onnx and of its external data, layers, operations with bodies,
    seconds."""

    size: int
    external: int
    layers: int
    control_flow: int
    seconds: float | None


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bytes of memory and seconds of one conversion; `is_measured` if an earlier result was used."""

    memory: int
    seconds: float
    is_measured: bool


def estimate(size: int, earlier: Earlier | None = None, external: int = 0) -> Estimate:
    """The estimate for an .onnx of `size` bytes; `external` are those of its external data, if they are known."""
    head, tail = min(size, HEAD), max(0, size - HEAD)
    if earlier is None:
        memory = BASE + HEAD_FACTOR * head + TAIL_FACTOR * tail
        return Estimate(int(memory), START + (size + external) / RATE, False)
    bodies = BODIES if earlier.control_flow else 1.0
    memory = BASE + DATA_FACTOR * head + TAIL_FACTOR * tail + LAYER * earlier.layers * bodies
    total, before = size + (external or earlier.external), earlier.size + earlier.external
    if earlier.seconds is None:
        return Estimate(int(memory), START + total / RATE, True)
    return Estimate(int(memory), earlier.seconds * (total / before if before else 1.0), True)


def earlier_of(report: Mapping[str, Any]) -> dict[str, Earlier]:
    """The models of a report that had output files, by name. A model that was up to date has no time of conversion."""
    found = {}
    for each in report["models"]:
        sizes, layers = each.get("sizes"), each.get("layers")
        if not sizes or layers is None:
            continue
        seconds = float(each["seconds"]) if each["status"] == CONVERTED else None
        flow = sum(each.get("control_flow", {}).values())
        found[str(each["name"])] = Earlier(int(sizes["model"]), int(sizes["external"]), int(layers), flow, seconds)
    return found


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
