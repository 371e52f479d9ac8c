"""Preprocessing that a conversion builds into the model (layouts, batch, channels, mean and scale), and the values that
options give to single inputs, by name or by position:

    PerInput.of("data[1,2,3],info(4)", BRACKETS, numbers, "--mean-values")     ->  data: (1.0, 2.0, 3.0), info: (4.0,)
    PerInput.of({"data": [1, 2, 3]}, BRACKETS, numbers, "mean_values")
    values.among([{"data"}, {"info"}])                                       ->  {0: (1.0, 2.0, 3.0), 1: (4.0,)}

As text: entries of a name and a value in brackets, separated by commas; or values alone, one for each input in order.
A name can be in quotes (mo_loop/support/flags.py).
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from mo_loop.errors import UsageError
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
    def of(cls, given: Any, form: re.Pattern[str], parse: Callable[[Any], T], flag: str) -> PerInput[T]:
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
                close = difflib.get_close_matches(name, known, 1)
                listed = f"there are {', '.join(list(known)[:8])}" if known else ""
                raise UsageError(
                    f"{self.flag} names {name!r}, which the model does not have",
                    hint=f"did you mean {close[0]!r}?" if close else listed,
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
