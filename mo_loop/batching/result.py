"""The result of one model, and the results of a batch; what is kept of both.

    entry_of(plain(entry)) == entry                   # a StateEntry as JSON, in a folder and at a URL
    results = KeptResults(plan.models)                # on disk while a batch runs, in the order of the plan
    results.put(3, result)
    results[3], results[4].status                     # the result; "cancelled" for a model that has none

A StateEntry has the .xml and .bin of a model, and the sources of both.
"""

import pickle
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mo_loop.batching.plan import Planned
from mo_loop.batching.storage.locations import Location, Stamp
from mo_loop.errors import ConversionErrors, MoLoopError, as_text
from mo_loop.printable import first_few
from mo_loop.support.disk_table import DiskSequence, DiskTable

CONVERTED, SKIPPED, FAILED, DIFFERS, CRASH, TIMEOUT, MEMORY, CANCELLED = STATUSES = (
    "converted", "skipped", "failed", "differs", "crash", "timeout", "memory", "cancelled"
)
"""The statuses: converted; up to date already; failed with errors; converted, but its numbers are not those of ONNX
Runtime; the process ended; the time limit; the memory limit; not converted because the batch ended."""

NOT_VERIFIED = "not verified"
"""The status of the comparison of a model that cannot be compared."""

GOOD = (CONVERTED, SKIPPED)
BAD = (FAILED, DIFFERS, CRASH, TIMEOUT, MEMORY)


@dataclass(frozen=True, slots=True)
class Cost:
    """The cost of a conversion: seconds, and bytes of memory (`mo_loop.batching.estimates`): a new worker process
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
        return as_text(self.code, self.message + count, where=first_few(self.where, 5), why=self.why, hint=self.hint)


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


@dataclass(frozen=True, slots=True)
class StateEntry:
    """The hash of the options, the stamps of the inputs and outputs of a conversion, its facts, warnings and comparison
    as plain data. Names of external files are relative to the model."""

    options: str
    source: Stamp
    external: Mapping[str, Stamp]
    xml: Stamp
    bin: Stamp
    facts: Facts
    warnings: tuple[str, ...] = ()
    comparison: Any = None


RECORDS = ".mo-loop"
"""The folder of the records below the prefix of outputs at URLs."""

_RECORD_NAME = re.compile(r"([0-9a-f]{32})-([0-9a-f]{24})-([0-9a-f]{24})-([A-Za-z0-9_.]*)\.json")


@dataclass(frozen=True, slots=True)
class StateRecord:
    """The name of one object: hashes of a model's name, its inputs and outputs, and a brief text (`[A-Za-z0-9_.]*`)."""

    owner: str
    inputs: str
    outputs: str
    brief: str = ""

    @classmethod
    def parse(cls, name: str) -> "StateRecord | None":
        """The record of an object's name; None if it is another object."""
        match = _RECORD_NAME.fullmatch(name)
        return None if match is None else cls(*match.groups())

    def at(self, prefix: Location) -> Location:
        """The object below the prefix of the outputs."""
        return prefix / f"{RECORDS}/{self.owner}-{self.inputs}-{self.outputs}-{self.brief}.json"


def entry_of(content: Any) -> StateEntry | None:
    """The entry that `plain` made; None if it is not valid."""
    try:
        made, facts = content["made"], content["facts"]
        external = {str(name): _stamp(stamp) for name, stamp in made["external"].items()}
        source, xml, data = (_stamp(made[key]) for key in ("source", "xml", "bin"))
        flow = {str(kind): _whole(count) for kind, count in facts["control_flow"].items()}
        warnings = tuple(map(str, content["warnings"]))
        cost = facts.get("cost")
        known = Facts(
            _whole(facts["layers"]), flow,
            None if cost is None else Cost(float(cost["seconds"]), _whole(cost["memory"]), _whole(cost["peak"])),
        )
        comparison = content.get("comparison")
        if not isinstance(comparison, dict | None):
            return None
        return StateEntry(str(made["options"]), source, external, xml, data, known, warnings, comparison)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _stamp(content: Mapping[str, Any]) -> Stamp:
    ranges = content.get("ranges")
    return Stamp(
        _whole(content["size"]), str(content["sha256"]), str(content.get("tag", "")),
        None if ranges is None else tuple((_whole(start), _whole(end)) for start, end in ranges),
    )


def _whole(number: Any) -> int:
    """A count or a size. ValueError for anything else: JSON also has 1e999, true and "3"."""
    if type(number) is not int or number < 0:
        raise ValueError(f"{number!r} is not a count")
    return number


def _plain_stamp(stamp: Stamp) -> dict[str, Any]:
    optional = {"tag": stamp.tag or None, "ranges": stamp.ranges}
    present = {key: value for key, value in optional.items() if value is not None}
    return {"size": stamp.size, "sha256": stamp.sha256, **present}


def _plain_facts(facts: Facts) -> dict[str, Any]:
    content: dict[str, Any] = {"layers": facts.layers, "control_flow": dict(facts.control_flow)}
    if facts.cost is not None:
        content["cost"] = facts.cost.as_json()
    return content


def plain(entry: StateEntry) -> dict[str, Any]:
    """The JSON that `entry_of` reads. dataclasses.asdict copies everything, which takes longer than the writing."""
    stamps = {"source": entry.source, "xml": entry.xml, "bin": entry.bin}
    return {
        "made": {
            "options": entry.options,
            **{key: _plain_stamp(stamp) for key, stamp in stamps.items()},
            "external": {name: _plain_stamp(stamp) for name, stamp in entry.external.items()},
        },
        "facts": _plain_facts(entry.facts),
        "warnings": list(entry.warnings),
        **({} if entry.comparison is None else {"comparison": entry.comparison}),
    }


class KeptResults(DiskSequence[ModelResult]):
    """A result for each model."""

    def __init__(self, models: Sequence[Planned]) -> None:
        self._models = models
        # The file is private to this process: nobody else can write what is unpickled.
        self._table = DiskTable("CREATE TABLE results (number INTEGER PRIMARY KEY, content BLOB)")

    def put(self, number: int, result: ModelResult) -> None:
        """Keep the result of the model at a place of the plan."""
        self._table.run("INSERT OR REPLACE INTO results VALUES (?, ?)", number, pickle.dumps(result, protocol=5))

    def __len__(self) -> int:
        return len(self._models)

    def __iter__(self) -> Iterator[ModelResult]:
        kept = self._table.rows("SELECT * FROM results ORDER BY number")
        place, content = next(kept, (None, b""))
        for number, model in enumerate(self._models):
            if number == place:
                yield pickle.loads(content)
                place, content = next(kept, (None, b""))
            else:
                yield ModelResult(model, CANCELLED)

    def _at(self, place: int) -> ModelResult:
        row = self._table.row("SELECT content FROM results WHERE number = ?", place)
        result: ModelResult = ModelResult(self._models[place], CANCELLED) if row is None else pickle.loads(row[0])
        return result
