"""Many executions, in worker processes with limits of time and memory.

Workers get tasks of many executions. If one of them ends its worker, or native code in it does not end, the rest of the
task is given out again, and the one runs once more alone: an execution that does so alone, too, is a failure.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace

from mo_loop.support.workers import Pool, TaskOutcome
from tests.fuzz.damage.execution import LIMIT, Failure, Found, Task

EACH, MEMORY = 50, 4 << 30
"""Executions of a task, and bytes of a worker."""


def run(kind: str, seed: int, first: int, count: int, jobs: int,
        told: Callable[[Found], None] = lambda _: None) -> Found:
    """The counts and failures of executions `first` to `first + count - 1` of a seed."""
    found = Found()
    tasks = [Task(kind, seed, start, min(EACH, first + count - start)) for start in range(first, first + count, EACH)]
    with Pool("tests.fuzz.damage.execution:execute", jobs=jobs, limit=2 * LIMIT, memory=MEMORY) as pool:
        while tasks:
            left: list[Task] = []
            for outcome in pool.map(tasks, limit=20 * LIMIT):
                for part in _parts(outcome, pool, left):
                    _add(found, part)
                told(found)
            tasks = left
    found.failures.sort(key=lambda each: each.number)
    return found


def _parts(outcome: TaskOutcome, pool: Pool, left: list[Task]) -> Iterator[Found]:
    """The findings of the executions of a task. Those that did not run, and those whose results are lost, are `left`.
    """
    task: Task = outcome.task
    if outcome.ok:
        yield outcome.value
        return
    number = int(outcome.stage or task.first)
    left += [replace(task, count=number - task.first)] if number > task.first else []
    rest = task.first + task.count - number - 1
    left += [replace(task, first=number + 1, count=rest)] if rest else []
    again = pool.call(replace(task, first=number, count=1), limit=2 * LIMIT)
    if again.ok:
        yield again.value
    else:
        yield Found(failures=[Failure(number, "", again.status, again.message, again.detail)])


def _add(found: Found, part: Found) -> None:
    found.accepted += part.accepted
    found.failures += part.failures
    for code, count in part.refused.items():
        found.refused[code] = found.refused.get(code, 0) + count
