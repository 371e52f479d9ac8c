"""Preprocessing that a conversion builds into the model (layouts, batch, channels, mean and scale), and the values that
options give to single inputs, by name or by position. The front end and transforms both read these records.

    PerInput.of("data[1,2,3],info(4)", BRACKETS, numbers, "--mean-values")     ->  data: (1.0, 2.0, 3.0), info: (4.0,)
    PerInput.of({"data": [1, 2, 3]}, BRACKETS, numbers, "mean_values")
    values.among([{"data"}, {"info"}])                                       ->  {0: (1.0, 2.0, 3.0), 1: (4.0,)}

As text: entries of a name and a value in brackets, separated by commas; or values alone, one for each input in order.
A name can be in quotes (mo_loop/support/flags.py).

Layout: the names of the dimensions of a tensor, such as [N,C,H,W], in OpenVINO's notation.

>>> Layout.parse("nhwc"), Layout.parse("[n,...,c]"), Layout.parse("N?C...")
([N,H,W,C], [N,...,C], [N,?,C,...])
>>> Layout.parse("n...c").axis("C", 4)
3
>>> permutation(Layout.parse("nhwc"), Layout.parse("nchw"), 4)
(0, 3, 1, 2)

A name is a letter, or a word in the long form with brackets; `?` is a dimension without a name, `...` any number of
dimensions. Upper and lower case are the same.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from mo_loop.errors import UsageError
from mo_loop.graph import Value
from mo_loop.printable import did_you_mean
from mo_loop.support.flags import masked, unquoted

T = TypeVar("T")

PARENTHESES = re.compile(r"(?P<name>.*)\((?P<value>[^()]*)\)", re.DOTALL)
"""An entry whose value can contain square brackets: `name(value)`."""

BRACKETS = re.compile(r"(?P<name>.*)[\[(](?P<value>[^\[\]()]*)[\])]", re.DOTALL)
"""An entry `name[value]` or `name(value)`."""


@dataclass(frozen=True)
class PerInput(Generic[T]):
    """Names and their values; an empty name means the position. `flag` is the name of the option in messages.

    `tensors` has the tensor for each name that is that of a node; the converter fills it for the model.
    """

    entries: tuple[tuple[str, T], ...]
    flag: str
    tensors: dict[str, str] = field(default_factory=dict, compare=False)

    @classmethod
    def of(cls, given: Any, form: re.Pattern[str], parse: Callable[[Any], T], flag: str) -> "PerInput[T]":
        """From text of that form, a mapping by name, or one value for each input in order. `parse` reads one value.

        Raises UsageError if the text does not have this form, or contains a name twice.
        """
        if isinstance(given, str):
            entries = [_taken_apart(text, form) for text in split(given)]
        elif isinstance(given, Mapping):
            entries = list(given.items())
        elif isinstance(given, Iterable):
            entries = [("", each) for each in given]
        else:
            raise UsageError(f"{flag}: {given!r} is neither text, nor a list, nor a dict by name")
        names = [name for name, _ in entries if name]
        if not entries or 0 < len(names) < len(entries) or not all(isinstance(name, str) for name in names):
            raise UsageError(f"{flag} names {'some inputs, but not all' if names else 'no input'}: {given!r}")
        for name in names:
            if names.count(name) > 1:
                raise UsageError(f"{flag} names {name!r} twice")
        return cls(tuple((name, parse(value)) for name, value in entries), flag)

    def among(self, candidates: Sequence[Collection[str]]) -> dict[int, T]:
        """Position -> its value; each candidate is a set of names. Names that no candidate has are ignored.

        Raises UsageError if the number of entries without a name is not that of the candidates.
        """
        if not self.entries[0][0]:
            if len(self.entries) != len(candidates):
                raise UsageError(
                    f"{self.flag}: numbers of values ({len(self.entries)}) and of inputs ({len(candidates)}) differ",
                    hint=f"name them: {', '.join(sorted(min(names, default='?') for names in candidates)[:5])}",
                )
            return {place: value for place, (_, value) in enumerate(self.entries)}
        return {
            place: value
            for name, value in self.entries
            for place, names in enumerate(candidates)
            if self.tensors.get(name, name) in names
        }

    def require_known(self, known: Collection[str]) -> None:
        """Raise UsageError for a name that is not among `known`."""
        for name, _ in self.entries:
            if name and self.tensors.get(name, name) not in known:
                listed = f"there are {', '.join(list(known)[:8])}" if known else ""
                raise UsageError(
                    f"{self.flag} names {name!r}, which the model does not have",
                    hint=did_you_mean(name, known, listed, 0.6),
                )


def _taken_apart(text: str, form: re.Pattern[str]) -> tuple[str, str]:
    """The name and the value; text without brackets is a value."""
    found = form.fullmatch(text)
    return ("", text) if found is None else (unquoted(found["name"].strip()), found["value"].strip())


def split(text: str, hint: str = "") -> Iterator[str]:
    """The parts between commas outside brackets and quotes, stripped; empty parts are left out.

    Raises UsageError with `hint` if brackets do not match.
    """
    depth = start = 0
    for place, character in enumerate([*masked(text), ","]):
        depth += (character in "[({") - (character in "])}")
        if character == "," and depth <= 0:
            part = text[start:place].strip()
            start = place + 1
            if part:
                yield part
    if depth:
        raise UsageError(f"brackets do not match in {text!r}", hint=hint)


REST = "..."
NAMELESS = "?"
SCALAR = "**SCALAR**"
"""OpenVINO's spelling of the layout []."""

_WORDS = {"BATCH": "N", "CHANNELS": "C", "DEPTH": "D", "HEIGHT": "H", "WIDTH": "W"}
_NAME = re.compile(r"[A-Z0-9_]+")
_HINT = "write nchw, n...c or nc??, or with brackets: [n,c,...]; a scalar is []"


@dataclass(frozen=True)
class Layout:
    """The names of the dimensions in order: `?` is one without a name, `...` any number, at most once."""

    names: tuple[str, ...]

    @classmethod
    def parse(cls, text: str) -> "Layout":
        """A layout from its text. Raises UsageError for other text."""
        plain = text.strip().upper()
        if plain.startswith("[") and plain.endswith("]"):
            inside = plain[1:-1].strip()
            names = [name.strip() for name in inside.split(",")] if inside else []
        else:
            names = re.findall(r"\.\.\.|.", plain)
        names = [_WORDS.get(name, name) for name in names]
        real = [name for name in names if name not in (REST, NAMELESS)]
        wrong = [name for name in real if not _NAME.fullmatch(name)]
        if not plain or wrong:
            reason = f": {wrong[0]!r} is not a name" if wrong else ""
            raise UsageError(f"{text!r} is not a layout{reason}", hint=_HINT)
        twice = [name for name in [*real, *(each for each in names if each == REST)] if names.count(name) > 1]
        if twice:
            raise UsageError(f"the layout {text!r} has {twice[0]} twice", hint=_HINT)
        return cls(tuple(names))

    def __repr__(self) -> str:
        return f"[{','.join(self.names)}]"

    @property
    def least_rank(self) -> int:
        return len(self.names) - (REST in self.names)

    def fits(self, rank: int | None) -> bool:
        """Whether a tensor of that rank (None: unknown) can have this layout."""
        if rank is None:
            return True
        return rank >= self.least_rank if REST in self.names else rank == self.least_rank

    def of_rank(self, rank: int) -> tuple[str, ...]:
        """The name of every dimension of a tensor of that rank, `?` for one without a name."""
        if REST not in self.names:
            return self.names
        place = self.names.index(REST)
        return (*self.names[:place], *[NAMELESS] * (rank - self.least_rank), *self.names[place + 1 :])

    def axis(self, name: str, rank: int) -> int | None:
        """The dimension called `name` of a tensor of that rank; None if there is none."""
        names = self.of_rank(rank)
        return names.index(name) if name in names else None


def permutation(source: Layout, target: Layout, rank: int) -> tuple[int, ...]:
    """The axes of `source` in the order of `target`; dimensions without a name in `target` keep their order.

    Raises UsageError if `target` has a name that `source` does not have.
    """
    names, wanted = source.of_rank(rank), target.of_rank(rank)
    strange = [name for name in wanted if name != NAMELESS and name not in names]
    if strange:
        raise UsageError(f"{source} has no dimension {strange[0]}, which {target} has", hint=_HINT)
    rest = iter([axis for axis, name in enumerate(names) if name == NAMELESS or name not in wanted])
    return tuple(next(rest) if name == NAMELESS else names.index(name) for name in wanted)


Layouts = tuple[Layout | None, Layout]
"""The layout of the model (None: the same) and the layout in the IR."""


def layouts_of(given: Any) -> Layouts:
    """The layouts in `nhwc`, in `nhwc->nchw`, or in a pair of the model's layout and the new one."""
    if isinstance(given, str):
        given = given.split("->")
    parts = [None, *given][-2:] if isinstance(given, Sequence) and 1 <= len(given) <= 2 else []
    if not parts or not isinstance(parts[0], str | None) or not isinstance(parts[1], str):
        raise UsageError(f"--layout: {given!r} is not a layout", hint="write nhwc, or nhwc->nchw to change it")
    return None if parts[0] is None else Layout.parse(parts[0]), Layout.parse(parts[1])


# -- the layout of a value in the file, which OpenVINO's get_layout reads


def layout_of(value: Value) -> Layout | None:
    """The layout recorded for a value; None without one, or if it cannot be parsed."""
    node: Any = value.node
    text = node.port_info.get(("output", value.index), {}).get("layout", {}).get("layout", "")
    try:
        return Layout.parse("[]" if text == SCALAR else text) if text else None
    except UsageError:
        return None  # from a file


def record_layout(value: Value, layout: Layout) -> None:
    """Record the layout of a value; the writer puts it into the file."""
    node: Any = value.node
    port = ("output", value.index)
    info = {**node.port_info.get(port, {}), "layout": {"version": 0, "layout": str(layout) if layout.names else SCALAR}}
    node.__dict__["port_info"] = {**node.port_info, port: info}  # copies of the node share the old one
