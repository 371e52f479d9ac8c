"""Diagnostic: an error, a warning or a note about a model. CheckReport: all diagnostics of one model."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from mo_loop.diagnostics.codes import CODES
from mo_loop.errors import ConversionWarning, MoLoopError
from mo_loop.graph.origin import Origin
from mo_loop.support.shown_result import PLAIN, ShownResult, Style

Level = Literal["error", "warning", "note"]

LEVELS: tuple[Level, ...] = ("error", "warning", "note")
"""Worst first. An error stops the conversion. With a warning the model converts, but it may give other numbers than the
ONNX model, fail when it is compiled or run, or depend on an assumption. A note is about costs and other facts."""


@dataclass(frozen=True)
class NodePlace:
    """The place of a node or value in a model.

    `path` is the scope path of a node or value, `scope` that of the graph which holds it (empty for the main graph) and
    `node` its name there; `operator` is the ONNX operator, or the operation of the
    IR if it does not come from a single one.
    """

    path: str = ""
    scope: str = ""
    node: str = ""
    operator: str = ""

    @classmethod
    def of(cls, origin: Origin) -> NodePlace:
        """The place of an origin."""
        name = origin.output or origin.node
        return cls(origin.path, Origin(origin.scope).path, name, origin.operator)

    def __str__(self) -> str:
        return f"{self.path} ({self.operator})" if self.path and self.operator else self.path or self.operator


@dataclass(frozen=True)
class Diagnostic:
    """An error, warning or note: what, where, why, and what to do. `code` is stable; codes.py has the meaning of each.
    """

    code: str
    message: str
    place: NodePlace = NodePlace()
    why: str = ""
    help: str = ""

    @property
    def level(self) -> Level:
        return CODES[self.code].level if self.code in CODES else "error"

    @classmethod
    def of_error(cls, error: MoLoopError, origin: Origin | None = None) -> Diagnostic:
        """The diagnostic of an error; without a reason or help of the error it gets those of the code."""
        known = CODES.get(error.code)
        why, help_ = (known.why, known.help) if known else ("", "")
        message = f"{error.message} (in {error.during})" if error.during else error.message
        origin = origin or error.origin
        place = NodePlace(error.where, node=error.where) if origin is None else NodePlace.of(origin)
        return cls(error.code, message, place, error.why or why, error.hint or help_)

    @classmethod
    def of_code(cls, code: str, message: str, origin: Origin | None = None) -> Diagnostic:
        """A diagnostic with the reason and help of its code, at the place of an origin or of the whole model."""
        place = NodePlace() if origin is None else NodePlace.of(origin)
        return cls(code, message, place, CODES[code].why, CODES[code].help)


@dataclass(repr=False)
class CheckReport(ShownResult):
    """All diagnostics of one model, worst first. `refused` is the error if the model could not be checked: the file is
    not a model, or an argument does not fit it."""

    file: str
    diagnostics: list[Diagnostic] = field(default_factory=list)
    refused: MoLoopError | None = None
    trouble: str = ""
    """The traceback of a bug, if one occurred."""
    sizes: Mapping[str, str] = field(default_factory=dict)
    """The name of each input -> what its sizes may be, as the pass WriteSizes describes it; empty if errors were found.
    """
    level: Level = "note"
    """Diagnostics of this level and worse ones are shown; all are counted."""

    def __post_init__(self) -> None:
        self.diagnostics = sorted(self.diagnostics, key=lambda each: (LEVELS.index(each.level), each.code))

    @property
    def shown(self) -> list[Diagnostic]:
        """The diagnostics that a report shows."""
        return [each for each in self.diagnostics if LEVELS.index(each.level) <= LEVELS.index(self.level)]

    @cached_property
    def counts(self) -> dict[Level, int]:
        """Level -> number of diagnostics."""
        found = Counter(each.level for each in self.diagnostics)
        return {level: found[level] for level in LEVELS}

    @property
    def exit_code(self) -> int:
        """4 for a bug, 2 for bad input, 1 for errors and warnings; notes alone are 0."""
        if any(each.code.startswith("ML4") for each in self.diagnostics):
            return 4
        if self.refused is not None:
            return self.refused.exit_code
        return 1 if self.counts["error"] or self.counts["warning"] else 0

    def text(self, style: Style = PLAIN) -> str:
        """The text that `mo-loop check` prints."""
        from mo_loop.diagnostics.formats import as_text

        return as_text([self], style)

    def to_dict(self) -> dict[str, Any]:
        """The part of `mo-loop check --format json` for one model."""
        from mo_loop.diagnostics.formats import as_json

        return as_json([self])

    def _brief(self) -> str:
        from mo_loop.diagnostics.formats import counted

        return f"{self.file}: {counted(self)}"

    def __bool__(self) -> bool:
        """Whether nothing stops or worsens the conversion."""
        return self.exit_code == 0


def exit_code(reports: Iterable[CheckReport]) -> int:
    """The exit code of several models: the worst one."""
    codes = {each.exit_code for each in reports}
    return max(codes, default=0)


@dataclass(frozen=True)
class Group:
    """Errors that differ only in their place, or warnings or notes of one code."""

    first: Diagnostic
    places: tuple[NodePlace, ...]
    count: int
    differ: bool

    @property
    def message(self) -> str:
        """The first message, with the number of all."""
        if self.count < 2:
            return self.first.message
        return f"{self.first.message} ({self.count} times{', with other names or numbers' if self.differ else ''})"


def of_warnings(heard: Iterable[ConversionWarning]) -> list[Diagnostic]:
    """The diagnostics of warnings of a conversion, each once."""
    found = {}
    for each in heard:
        text = each.message.removeprefix(f"{each.where}: ")
        found[each.code, text, each.where] = Diagnostic.of_code(each.code, text, each.origin)
    return list(found.values())


def grouped(diagnostics: Iterable[Diagnostic]) -> list[Group]:
    """Errors of one message together, warnings and notes of one code, in the order of the first of each."""
    found: dict[tuple[str, ...], list[Diagnostic]] = {}
    for each in diagnostics:
        details = (each.message, each.why, each.help) if each.level == LEVELS[0] else ()
        found.setdefault((each.code, each.level, *details), []).append(each)
    return [
        Group(
            same[0], tuple(each.place for each in same if str(each.place)), len(same),
            len({each.message for each in same}) > 1,
        )
        for same in found.values()
    ]  # fmt: skip
