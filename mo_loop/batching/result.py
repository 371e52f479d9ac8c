"""The result of one model, and the results of a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mo_loop.batching.plan import Planned
from mo_loop.errors import ConversionErrors, MoLoopError, as_text

CONVERTED, SKIPPED, FAILED, DIFFERS, CRASH, TIMEOUT, MEMORY, CANCELLED = STATUSES = (
    "converted", "skipped", "failed", "differs", "crash", "timeout", "memory", "cancelled"
)  # fmt: skip
"""The statuses: converted; up to date already; failed with errors; converted, but its numbers are not those of ONNX
Runtime; the process ended; the time limit; the memory limit; not converted because the batch ended."""

NOT_VERIFIED = "not verified"
"""The status of the comparison of a model that cannot be compared."""

GOOD = (CONVERTED, SKIPPED)
BAD = (FAILED, DIFFERS, CRASH, TIMEOUT, MEMORY)


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a conversion: seconds, and bytes of memory (`mo_loop.batching.measuring`): a new worker process
    needs `memory` at least, and `peak` at most."""

    seconds: float
    memory: int
    peak: int

    def as_json(self) -> dict[str, float]:
        """As plain data."""
        return {"seconds": round(self.seconds, 3), "memory": self.memory, "peak": self.peak}


@dataclass(frozen=True, slots=True)
class Facts:
    """A converted model in numbers: layers in all scopes, operations with bodies by type; the time and memory of its
    conversion, if they are known."""

    layers: int
    control_flow: Mapping[str, int]
    cost: Cost | None = None


@dataclass(frozen=True, slots=True)
class Error:
    """One error of `mo_loop.errors`, with all places at which it occurs."""

    code: str
    message: str
    where: tuple[str, ...]
    why: str
    hint: str
    exit_code: int

    def __str__(self) -> str:
        count = f" ({len(self.where)} times)" if len(self.where) > 1 else ""
        more = f" and {len(self.where) - 5} more" if len(self.where) > 5 else ""
        where = ", ".join(self.where[:5]) + more
        return as_text(self.code, self.message + count, where=where, why=self.why, hint=self.hint)


@dataclass(frozen=True, slots=True)
class FileSizes:
    """The sizes in bytes of the files of one model; `external` is the sum of its external data."""

    model: int
    external: int
    xml: int
    bin: int


@dataclass(frozen=True, slots=True)
class ModelResult:
    """The result of one model.

    `exit_code` is that of `mo-loop convert`, or None if the process ended early. `message` describes the end of the
    process, or the outputs that differ; `detail` is its last output or the traceback of a bug. `facts` and `sizes`
    belong to existing files. `comparison` is the report of the comparison with ONNX Runtime as plain data.
    """

    model: Planned
    status: str
    seconds: float = 0.0
    exit_code: int | None = None
    errors: tuple[Error, ...] = ()
    warnings: tuple[str, ...] = ()
    message: str = ""
    detail: str = ""
    facts: Facts | None = None
    sizes: FileSizes | None = None
    comparison: Any = None

    @property
    def said(self) -> str:
        """Why there are no output files; empty if there are."""
        return "\n".join(map(str, self.errors)) or self.message


@dataclass
class Results:
    """All results of a batch, in the order of the plan. `signal` is the name of the signal that ended it, `notes` are
    further messages, `known` are the names of models that failed in the batch with which this one is compared, `lost`
    is the error of an engine that could not continue."""

    results: Sequence[ModelResult] = ()
    seconds: float = 0.0
    signal: str = ""
    notes: tuple[str, ...] = ()
    known: frozenset[str] = frozenset()
    lost: str = ""
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.counts = Counter(result.status for result in self.results)

    @property
    def failed(self) -> int:
        """The number of models that failed."""
        return sum(self.counts[status] for status in BAD)

    @property
    def new_failures(self) -> int:
        """The number of models that failed and are not in `known`."""
        return self.failed - sum(map(self.is_known, self.results if self.known else ()))

    def is_mended(self, result: ModelResult) -> bool:
        """Whether a model has output files now, and failed in the batch with which this one is compared."""
        return result.status in GOOD and result.model.name in self.known

    def is_known(self, result: ModelResult) -> bool:
        """Whether a model failed in this batch and in the batch with which it is compared."""
        return result.status in BAD and result.model.name in self.known


def errors_of(error: Exception) -> tuple[Error, ...]:
    """The errors of an exception, with equal errors joined. An exception that is not of mo_loop is a bug."""
    if not isinstance(error, MoLoopError):
        return (Error("ML499", f"{type(error).__name__}: {error}", (), "", "", 4),)
    groups: dict[Error, list[str]] = {}
    for each in error.errors if isinstance(error, ConversionErrors) else (error,):
        message = f"{each.message} (in {each.during})" if each.during else each.message
        group = Error(each.code, message, (), each.why, each.hint, each.exit_code)
        groups.setdefault(group, []).extend([each.where] if each.where else [])
    return tuple(
        Error(group.code, group.message, tuple(places), group.why, group.hint, group.exit_code)
        for group, places in groups.items()
    )
