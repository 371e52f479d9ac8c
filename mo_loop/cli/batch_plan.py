"""mo-loop batch --plan: the work of a batch, without converting anything.

ir: 100000 models, 41.2 GB: 99000 up to date, 1000 to convert, 1.3 GB
time    about 12 min with 4 workers (900 of 1000 by the earlier report)
memory  median 210.0 MB, at most 1.9 GB: vision/large.onnx
refused 3 models need more than 1.5 GB, which the worker with most memory has
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TYPE_CHECKING

from mo_loop.printable import printable, sized

if TYPE_CHECKING:
    from mo_loop.batching.estimates import Earlier
    from mo_loop.batching.plan import Planned
    from mo_loop.batching.prepared import PreparedBatch

THREADS = 8
"""Models that are examined at the same time: a disk or a store takes most of the time."""

AT_ONCE = 500
"""Models that are in memory."""


def plan_lines(
    ready: PreparedBatch, earlier: Mapping[str, Earlier], *, jobs: int, most_memory: int | None = None
) -> Iterator[str]:
    """The lines that --plan prints for so many workers. `most_memory` is that of the largest worker of a cluster."""
    from mo_loop.batching.estimates import estimate, size_of

    count, total, needed, measured = len(ready.plan.models), 0, 0, 0
    seconds, longest, most, name = 0.0, 0.0, -1, ""
    memory = array("q")
    for model, is_left in _looked_at(ready):
        size = size_of(model)
        total += size
        if not is_left:
            continue
        found = estimate(size, earlier.get(model.name), with_comparison=ready.work(model).comparing is not None)
        needed, seconds, measured = needed + size, seconds + found.seconds, measured + found.is_measured
        longest = max(longest, found.seconds)
        memory.append(found.memory)
        if found.memory >= most:
            most, name = found.memory, model.name
    left = len(memory)
    yield (
        f"{printable(str(ready.places.folder))}: {count} model{'s' * (count != 1)}, {sized(total)}: "
        f"{count - left} up to date, {left} to convert, {sized(needed)}"
    )
    if not left:
        return
    by = f"{measured} of {left} by the earlier report" if measured else "by size; --baseline REPORT improves it"
    yield f"time    about {_time(max(seconds / max(jobs, 1), longest))} with {jobs} worker{'s' * (jobs != 1)} ({by})"
    yield f"memory  median {sized(sorted(memory)[left // 2])}, at most {sized(most)}: {printable(name)}"
    if most_memory is None:
        return
    refused = sum(min(need, ready.about.asked.memory or need) > most_memory for need in memory)
    if refused:
        verb = "s need" if refused != 1 else " needs"
        yield f"refused {refused} model{verb} more than {sized(most_memory)}, which the worker with most memory has"


def _looked_at(ready: PreparedBatch) -> Iterator[tuple[Planned, bool]]:
    """Each model, and whether it has to be converted."""

    def is_left(model: Planned) -> bool:
        return ready.about.asked.force or ready.outputs.current(model, ready.work(model)) is None

    remaining = iter(ready.plan.models)
    with ThreadPoolExecutor(THREADS) as threads:
        while some := list(islice(remaining, AT_ONCE)):
            yield from zip(some, threads.map(is_left, some), strict=True)


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 1 else "1 s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
