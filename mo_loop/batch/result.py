"""The result of one model, and the results of a batch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from mo_loop.batch.plan import Planned
from mo_loop.errors import ConversionErrors, MoLoopError

CONVERTED, SKIPPED, FAILED, CRASH, TIMEOUT, MEMORY, CANCELLED = STATUSES = (
    "converted", "skipped", "failed", "crash", "timeout", "memory", "cancelled"
)  # fmt: skip
"""Done; up to date already; refused with errors; ended its process; took too long; wanted too much memory; not done,
because the batch ended before."""

GOOD = (CONVERTED, SKIPPED)
BAD = (FAILED, CRASH, TIMEOUT, MEMORY)


@dataclass(frozen=True)
class Facts:
    """A converted model in numbers: layers in all scopes, operations with bodies by type."""

    layers: int
    control_flow: Mapping[str, int]


@dataclass(frozen=True)
class Error:
    """One error, as `mo_loop.errors` has it, at all the places where it is the same."""

    code: str
    message: str
    where: tuple[str, ...]
    why: str
    hint: str
    exit_code: int

    def __str__(self) -> str:
        lines = [f"{self.code}: {self.message}" + (f" ({len(self.where)} times)" if len(self.where) > 1 else "")]
        more = f" and {len(self.where) - 5} more" if len(self.where) > 5 else ""
        lines += [f"  where: {', '.join(self.where[:5])}{more}"] if self.where else []
        lines += [f"  why:   {self.why}"] if self.why else []
        lines += [f"  help:  {self.hint}"] if self.hint else []
        return "\n".join(lines)


@dataclass(frozen=True)
class Sizes:
    """Bytes of the files of one model; `external` of all its external data together."""

    model: int
    external: int
    xml: int
    bin: int


@dataclass(frozen=True)
class Result:
    """The result of one model.

    `exit_code` is that of `mo-loop convert`, None where the process did not get so far. `message` says what happened to
    the process, `detail` what it printed last or the traceback of a bug. `facts` and `sizes` are those of a pair that
    is there.
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
    sizes: Sizes | None = None

    @property
    def said(self) -> str:
        """Why there is no pair; empty if there is."""
        return "\n".join(map(str, self.errors)) or self.message


@dataclass
class Results:
    """What became of a batch: all results in the order of the plan. `signal` is the name of the one that ended it,
    `notes` are what else there is to say, `known` the names of models that failed in the batch it is compared with."""

    results: Sequence[Result] = ()
    seconds: float = 0.0
    signal: str = ""
    notes: tuple[str, ...] = ()
    known: frozenset[str] = frozenset()
    counts: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        self.counts = Counter(result.status for result in self.results)

    @property
    def failed(self) -> int:
        """Number of models that were tried and have no pair now."""
        return sum(self.counts[status] for status in BAD)

    @property
    def regressions(self) -> list[Result]:
        """What was tried and has no pair now, and is not known for it."""
        return [each for each in self.results if each.status in BAD and not self.is_known(each)]

    @property
    def mended(self) -> list[Result]:
        """What has a pair now, and failed then."""
        return [each for each in self.results if each.status in GOOD and each.model.name in self.known]

    def is_known(self, result: Result) -> bool:
        """Whether a model fails as it did in the batch that this one is compared with."""
        return result.status in BAD and result.model.name in self.known


def errors_of(error: Exception) -> tuple[Error, ...]:
    """What an exception says, equal errors of several places in one; an exception of another kind is a bug."""
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
