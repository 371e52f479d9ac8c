"""Layout: the names of the dimensions of a tensor, such as [N,C,H,W], in OpenVINO's notation.

>>> Layout.parse("nhwc"), Layout.parse("[n,...,c]"), Layout.parse("N?C...")
([N,H,W,C], [N,...,C], [N,?,C,...])
>>> Layout.parse("n...c").axis("C", 4)
3
>>> permutation(Layout.parse("nhwc"), Layout.parse("nchw"), 4)
(0, 3, 1, 2)

A name is a letter, or a word in the long form with brackets; `?` is a dimension without a name, `...` any number of
dimensions. Upper and lower case are the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mo_loop.errors import UsageError
from mo_loop.graph import Value

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
    def parse(cls, text: str) -> Layout:
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
