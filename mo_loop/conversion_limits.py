"""Limits: how much a model may make a conversion do, and Budget: how much of it a conversion has used.

    limits = Limits.of({"nodes": 5_000_000, "time": "10m"})
    with limited(limits):                                     # in this block `budget()` is one Budget
        budget().fold(4096)                                   # LimitError above limits.folded_bytes

A small file can describe work without end: functions that call each other double with each level, a sparse tensor of a
few bytes is dense in memory, a name is repeated in everything that is written. Each limit is checked where the work
is done, before it is done, and an error names the limit and the option that raises it.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import Field, dataclass, field, fields
from typing import TYPE_CHECKING, Any, NamedTuple

from mo_loop.errors import LimitError, UsageError

if TYPE_CHECKING:
    from mo_loop.origin import Origin

COUNT, BYTES, SECONDS = "number", "bytes", "time"
_UNITS: dict[str, dict[str, int]] = {
    COUNT: {"": 1},
    BYTES: {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40},
    SECONDS: {"": 1, "S": 1, "M": 60, "H": 3600},
}
_FORMS = {COUNT: "5000", BYTES: "512M, 4G", SECONDS: "90s, 10m, 2h"}
_DEEPEST = 100
"""The largest depth that can be requested: each level of bodies and calls needs several of Python's calls."""

_EVERY = 256
"""Translated nodes between two checks of the time."""

_GROWTH = 4
"""The factor by which a .bin may be larger than the files of a large model, whatever the limit."""

_MADE_EVERY = 1024
"""Nodes of the graph that are made between two checks of the time."""


def _limit(default: int, kind: str, code: str, text: str, why: str) -> Any:
    return field(default=default, metadata={"kind": kind, "code": code, "text": text, "why": why})


@dataclass(frozen=True)
class Limits:
    """The limits of a conversion. A model that exceeds one is refused with a LimitError.

    Raises:
        UsageError: a value is below 1, or a depth above 100.
    """

    nesting: int = _limit(
        32, COUNT, "ML312", "depth of nested bodies",
        "each level needs several of Python's calls; protobuf reads few more",
    )
    call_depth: int = _limit(
        100, COUNT, "ML312", "depth of functions that call each other", "exporters nest the modules of a network"
    )
    nodes: int = _limit(
        2_000_000, COUNT, "ML341",
        "nodes that are translated, those of functions once for each call, those of bodies too",
        "a file of 2 GB, the most that protobuf allows, can hold tens of millions",
    )
    made_nodes: int = _limit(
        10_000_000, COUNT, "ML348",
        "nodes that translators and passes make in the graph, also those that later passes remove",
        "a conversion makes two to five for each node of the model, but one node can ask for any number",
    )
    calls: int = _limit(
        5_000, COUNT, "ML347", "calls of one function", "functions that call others twice double with each level"
    )
    unrolled_nodes: int = _limit(
        1_000_000, COUNT, "ML346", "nodes that unrolling adds (--unroll)", "a loop whose copies have more than 20,000 "
        "nodes stays a loop anyway",
    )
    constant_bytes: int = _limit(
        2 << 30, BYTES, "ML342", "bytes of one constant that is computed in memory",
        "weights of a file do not count: they are copied in pieces",
    )
    folded_bytes: int = _limit(
        2 << 30, BYTES, "ML343",
        "bytes of all constants that are computed in memory: by translators, by folding, from sparse ones",
        "folding computes at most 1 MB for each node, and leaves larger ones to the runtime or to the writer",
    )
    output_bytes: int = _limit(
        2 << 30, BYTES, "ML349",
        "bytes of the .bin, where those are more than four times the bytes of the model's files",
        "constants of equal content count once; files can declare one range of bytes for many weights that overlap",
    )
    name_length: int = _limit(
        1 << 16, COUNT, "ML344", "characters of a name of a node, an operator, a tensor or a dimension",
        "names are repeated in the .xml, in reports and in messages",
    )
    attribute_bytes: int = _limit(
        256 << 20, BYTES, "ML345", "bytes of one attribute other than a tensor or graph, 8 for each number",
        "decision trees list their nodes in attributes: 256 MB are 32 million numbers",
    )
    xml_bytes: int = _limit(
        128 << 20, BYTES, "ML351", "bytes of an .xml that is read",
        "it is held in memory, where a file that is made for it takes 25 times its size",
    )
    time: int = _limit(
        3600, SECONDS, "ML340", "time of a conversion, including writing the files",
        "it is checked while nodes are made, between passes, before each match of a pattern, and for each piece of "
        "a constant that is compared or written",
    )

    def __post_init__(self) -> None:
        for each in fields(self):
            value = getattr(self, each.name)
            if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
                raise _invalid(each, value)
        for name in ("nesting", "call_depth"):
            if getattr(self, name) > _DEEPEST:
                raise UsageError(f"the limit {name!r} is {getattr(self, name)}", hint=f"the largest one is {_DEEPEST}")

    @classmethod
    def of(cls, given: Limits | Mapping[str, Any] | None) -> Limits:
        """Limits from values by name: numbers, or text with a unit ("4G", "10m"). None: the default ones.

        Raises:
            UsageError: there is no limit of this name, or the value is not valid.
        """
        if isinstance(given, Limits):
            return given
        if not isinstance(given, Mapping | None):
            raise UsageError(f"limits is {type(given).__name__}", hint='give values by name, as {"nodes": 5000000}')
        known = {each.name: each for each in fields(cls)}
        values = {}
        for name, value in (given or {}).items():
            key = str(name).strip().replace("-", "_")
            if key not in known:
                raise UsageError(f"there is no limit {name!r}", hint=f"the limits are {', '.join(known)}")
            number = amount(value, known[key].metadata["kind"]) if isinstance(value, str) else value
            if number is None or (not number and isinstance(value, str)):
                raise _invalid(known[key], value)
            values[key] = number
        return cls(**values)

    @classmethod
    def parse(cls, texts: Sequence[str]) -> Limits:
        """Limits from texts `NAME=VALUE`, as on the command line. UsageError as for `of`."""
        values = {}
        for text in texts:
            name, equals, values[name] = text.partition("=")
            if not equals:
                raise UsageError(f"--limit {text} has no value", hint="write, for example, --limit nodes=5000000")
        return cls.of(values)


DEFAULT = Limits()


def amount(text: str, kind: str) -> int | None:
    """The number that a text with a unit of this kind spells: `4G` as bytes; None for any other text."""
    units = _UNITS[kind]
    found = re.fullmatch(r"(\d{1,18}(?:\.\d{1,6})?)\s*([A-Za-z]?)(?:i?B)?", text.strip(), re.ASCII | re.IGNORECASE)
    if found is None or found[2].upper() not in units or ("." in found[1] and len(units) == 1):
        return None
    unit = units[found[2].upper()]
    return int(float(found[1]) * unit) if "." in found[1] else int(found[1]) * unit


def _invalid(limit: Field[Any], value: object) -> UsageError:
    form = _FORMS[limit.metadata["kind"]]
    return UsageError(f"the limit {limit.name!r} cannot be {value!r}", hint=f"write at least 1, for example {form}")


def exceeded(limits: Limits, name: str, what: str, where: Origin | None = None, needed: int = 0) -> LimitError:
    """The error for a model that exceeds the limit `name`; `what` begins the sentence: "the model has more nodes". At
    least `needed` are known to be necessary."""
    (limit,) = [each for each in fields(limits) if each.name == name]
    value, kind = getattr(limits, name), limit.metadata["kind"]
    larger = min(2 * value, _DEEPEST) if name in ("nesting", "call_depth") else 2 * max(value, needed)
    return LimitError(
        f"{what} than the limit {name!r}, which is {shown(value, kind)}", where=where, code=limit.metadata["code"],
        hint=f"if you trust the model, raise the limit: --limit {name}={larger}",
    )


def shown(value: int, kind: str) -> str:
    """A value of a limit, with its unit."""
    if kind == SECONDS:
        return f"{value} s"
    for unit, size in reversed(_UNITS[kind].items()):
        if unit and value >= size and not value % size:
            return f"{value // size} {unit}B"
    return f"{value} bytes" if kind == BYTES else f"{value}"


class Remaining(NamedTuple):
    """The rest of the limits of a conversion, for writing its graph."""

    limits: Limits
    seconds: float


class Budget:
    """The use that one conversion has made of its limits. Each method raises LimitError if that is too much."""

    def __init__(self, limits: Limits = DEFAULT, *, seconds: float | None = None, read: int = 0) -> None:
        """For the writing of a graph: `seconds` are left of the time, and its files have `read` bytes."""
        self.limits = limits
        self._most_written = max(limits.output_bytes, _GROWTH * read)
        self._longest = limits.name_length
        self._end = time.monotonic() + (limits.time if seconds is None else seconds)
        self.begin()

    def begin(self) -> None:
        """Begin to count: an attempt to convert the model begins. All attempts together have the time."""
        self.nodes = 0
        self.made = 0
        self.next_look = min(_MADE_EVERY, self.limits.made_nodes + 1)
        """The number of made nodes at which the graph calls `look`."""
        self.folded = 0
        self.unrolled = 0
        self._look = min(_EVERY, self.limits.nodes + 1)
        self._calls: Counter[Hashable] = Counter()

    @property
    def remaining(self) -> Remaining:
        """The limits that are left for writing."""
        return Remaining(self.limits, self._end - time.monotonic())

    def check_time(self) -> None:
        """Whether there is time left."""
        if time.monotonic() > self._end:
            raise exceeded(self.limits, "time", "the conversion takes longer")

    def check_nodes(self, count: int) -> None:
        """Whether a model may have this number of nodes."""
        if count > self.limits.nodes:
            raise exceeded(self.limits, "nodes", "the model has more nodes", needed=count)

    def node(self, name: str, operator: str, outputs: Iterable[str]) -> None:
        """One more node is translated."""
        self.nodes += 1
        if self.nodes >= self._look:  # one comparison for most nodes
            self.check_nodes(self.nodes)
            self.check_time()
            self._look = min(self.nodes + _EVERY, self.limits.nodes + 1)
        longest = self._longest
        if len(name) > longest or len(operator) > longest:
            self.name(max(name, operator, key=len))
        for each in outputs:
            if len(each) > longest:
                self.name(each)

    def look(self) -> None:
        """Raise an error if more nodes are made than allowed, or the time is over."""
        if self.made > self.limits.made_nodes:
            raise exceeded(self.limits, "made_nodes", "the conversion makes more nodes")
        self.check_time()
        self.next_look = min(self.made + _MADE_EVERY, self.limits.made_nodes + 1)

    def name(self, name: str) -> None:
        """A name of the model."""
        if len(name) > self.limits.name_length:
            raise exceeded(self.limits, "name_length", f"the name {name[:40]!r}... has {len(name)} characters, more")

    def call(self, function: Hashable, name: str) -> None:
        """One more call of a function."""
        self._calls[function] += 1
        if self._calls[function] > self.limits.calls:
            raise exceeded(self.limits, "calls", f"the function {name} is called more often")

    def attribute(self, name: str, size: int, where: Origin | None) -> None:
        """The bytes of one attribute."""
        if size > self.limits.attribute_bytes:
            raise exceeded(self.limits, "attribute_bytes", f"the attribute {name!r} has {size} bytes, more", where)

    def constant(self, what: str, size: int) -> None:
        """The bytes of one constant that is to be computed in memory."""
        if size > self.limits.constant_bytes:
            raise exceeded(self.limits, "constant_bytes", f"{what} has {size} bytes, more", None)

    def fold(self, size: int, what: str = "a constant that is computed") -> None:
        """The bytes of a constant that a translator or folding is to compute in memory."""
        self.constant(what, size)
        self.folded += size
        if self.folded > self.limits.folded_bytes:
            raise exceeded(self.limits, "folded_bytes", "the constants that are computed have more bytes")

    def write(self, size: int) -> None:
        """The bytes of the .bin with the next constant."""
        if size > self._most_written:
            raise exceeded(self.limits, "output_bytes", "the .bin has more bytes")

    def document(self, name: str, size: int) -> None:
        """The bytes of an .xml that is to be read."""
        if size > self.limits.xml_bytes:
            raise exceeded(self.limits, "xml_bytes", f"{name} has {size} bytes, more")

    def unroll(self, count: int) -> None:
        """The nodes that unrolling a loop is to add."""
        self.unrolled += count
        if self.unrolled > self.limits.unrolled_nodes:
            raise exceeded(self.limits, "unrolled_nodes", "unrolling adds more nodes")


current: ContextVar[Budget | None] = ContextVar("budget", default=None)
"""The budget of the conversion that runs, None outside of one. A Graph counts in it the nodes that are made."""


def budget() -> Budget:
    """The budget of the conversion that runs; outside of one, a new one with the default limits."""
    return current.get() or Budget()


def check_time() -> None:
    """Whether the conversion that runs, if one does, has time left. LimitError if not."""
    within = current.get()
    if within is not None:
        within.check_time()


@contextmanager
def writing_within(remaining: Remaining | None, read: int) -> Iterator[Budget | None]:
    """The block writes a graph, within the remaining limits of its conversion; None, if no conversion made it: nothing
    is limited.

    `read` are the bytes of the files that hold its weights.
    """
    within = None if remaining is None else Budget(remaining.limits, seconds=remaining.seconds, read=read)
    token = current.set(within)
    try:
        yield within
    finally:
        current.reset(token)


@contextmanager
def limited(limits: Limits | None) -> Iterator[Budget]:
    """A new budget for the block, unless a block around it has begun one already. None: that one, or the defaults."""
    outer = current.get()
    if outer is not None and limits in (None, outer.limits):
        yield outer
        return
    token = current.set(Budget(limits or DEFAULT))
    try:
        yield budget()
    finally:
        current.reset(token)
