"""result_of: the result of a model, from the answer of its worker.

    result, entry = result_of(model, pool.call(task))      # or an StateEntry: the model is up to date

The entry is that of a model that was converted now, for `Outputs.put`.
"""

from __future__ import annotations

from dataclasses import replace

from mo_loop.batching.entries import StateEntry
from mo_loop.batching.plan import Planned
from mo_loop.batching.result import (
    CONVERTED,
    CRASH,
    DIFFERS,
    FAILED,
    MEMORY,
    SKIPPED,
    Error,
    FileSizes,
    ModelResult,
    errors_of,
)
from mo_loop.errors import MoLoopError
from mo_loop.support.workers import ERROR, TaskOutcome

_OUT_OF_MEMORY = ("MemoryError", "bad_alloc", "Cannot allocate memory")


def result_of(model: Planned, answer: StateEntry | TaskOutcome | MoLoopError) -> tuple[ModelResult, StateEntry | None]:
    """The result without its seconds, and the entry to be kept, if there is a new one."""
    if isinstance(answer, StateEntry):
        return _good(model, SKIPPED, answer), None
    if isinstance(answer, MoLoopError):
        return ModelResult(model, FAILED, 0, answer.exit_code, errors_of(answer)), None
    if answer.status == ERROR:
        bug = Error("ML499", answer.message, (), "", "", 4)
        return ModelResult(model, FAILED, 0, 4, (bug,), detail=answer.detail), None
    if not answer.ok:
        return ModelResult(model, status_of(answer), message=_message(answer), detail=answer.detail), None
    done = answer.value
    if done.difference:
        differs = ModelResult(
            model, DIFFERS, 0, done.exit_code, (), done.warnings, done.difference, comparison=done.comparison
        )
        return differs, None
    if done.entry is None:
        return ModelResult(model, FAILED, 0, done.exit_code, done.errors, done.warnings, detail=done.detail), None
    entry = replace(done.entry, warnings=done.warnings)
    return replace(_good(model, CONVERTED, entry), comparison=done.comparison), entry


def _good(model: Planned, status: str, entry: StateEntry) -> ModelResult:
    external = sum(file.size for file in entry.external.values())
    sizes = FileSizes(entry.source.size, external, entry.xml.size, entry.bin.size)
    return ModelResult(model, status, 0, 0, warnings=entry.warnings, facts=entry.facts, sizes=sizes)


def status_of(outcome: TaskOutcome) -> str:
    """The status of a task without a result. Native code without memory prints a message and ends the process."""
    if outcome.status == CRASH and any(sign in outcome.detail for sign in _OUT_OF_MEMORY):
        return MEMORY
    return outcome.status


def _message(outcome: TaskOutcome) -> str:
    hint = " (a system does this when it has no memory left)" if "SIGKILL" in outcome.message else ""
    return outcome.message + hint
