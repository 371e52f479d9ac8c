"""mo-loop batch --plan: what a batch would do, without converting anything.

ir: 100000 models, 41.2 GB: 99000 up to date, 1000 to convert, 1.3 GB
time    about 12 min with 4 workers (900 of 1000 by the earlier report)
memory  about 210 MB in the middle, 1.9 GB at most: vision/large.onnx
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

from mo_loop.cli.printable import printable

if TYPE_CHECKING:
    from mo_loop.batch.estimates import Earlier
    from mo_loop.batch.outputs import Outputs
    from mo_loop.batch.plan import Plan, Planned
    from mo_loop.batch.task import Work

THREADS = 8
"""Models that are looked at at the same time: most of the time is waiting for a disk or a store."""


def plan_lines(
    plan: Plan, outputs: Outputs, work: Callable[[Planned], Work], earlier: Mapping[str, Earlier], *, folder: str,
    jobs: int, force: bool,
) -> Iterator[str]:  # fmt: skip
    """The lines that --plan prints."""
    from mo_loop.batch.estimates import estimate, size_of

    left = list(plan.models) if force else _not_current(plan.models, outputs, work)
    total, needed = (sum(map(size_of, models)) for models in (plan.models, left))
    count = len(plan.models)
    yield (
        f"{printable(folder)}: {count} model{'s' * (count != 1)}, {_size(total)}: {count - len(left)} up to date, "
        f"{len(left)} to convert, {_size(needed)}"
    )
    if not left:
        return
    found = [(estimate(size_of(each), earlier.get(each.name)), each.name) for each in left]
    measured = sum(each.is_measured for each, _ in found)
    seconds = max(sum(each.seconds for each, _ in found) / jobs, max(each.seconds for each, _ in found))
    by = f"{measured} of {len(left)} by the earlier report" if measured else "by size; --baseline REPORT tells more"
    yield f"time    about {_time(seconds)} with {jobs} worker{'s' * (jobs != 1)} ({by})"
    by_memory = sorted((each.memory, name) for each, name in found)
    middle, (most, name) = by_memory[len(by_memory) // 2][0], by_memory[-1]
    yield f"memory  about {_size(middle)} in the middle, {_size(most)} at most: {printable(name)}"


def _not_current(models: Sequence[Planned], outputs: Outputs, work: Callable[[Planned], Work]) -> list[Planned]:
    with ThreadPoolExecutor(THREADS) as threads:
        found = threads.map(lambda model: outputs.current(model, work(model)) is None, models)
        return [model for model, is_left in zip(models, found, strict=True) if is_left]


def _size(count: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


def _time(seconds: float) -> str:
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 1 else "1 s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
