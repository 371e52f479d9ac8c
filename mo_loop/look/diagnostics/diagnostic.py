"""Diagnostic: an error, a warning or a note about a model. CheckReport: all diagnostics of one model. Reports of
several models as text, JSON and Markdown; sarif.py writes SARIF.

The JSON is one object:

    schema      "mo-loop check"
    version     1; increased when a field changes its meaning or is removed, not when one is added
    tool        {"name", "version", "commit"}
    exit_code   that of the command
    counts      {"error", "warning", "note"}: diagnostics in all models
    models      one object each: file, checked, error (null, or {code, message, why, help}: why it was not checked),
                counts, accepted: the number of diagnostics that are ignored or in the baseline,
                findings, the others: [{code, level, message, why, help, place: {path, scope, node, operator}}],
                sizes: input -> what its sizes may be ("?,3,?,?"), as the pass WriteSizes describes it
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

from mo_loop.conversion_info import size_rows
from mo_loop.errors import ConversionWarning, MoLoopError, UsageError
from mo_loop.look.diagnostics.codes import CODES
from mo_loop.origin import Origin
from mo_loop.printable import PLAIN, ShownResult, Style, first_few, printable
from mo_loop.printable import counted as number_of
from mo_loop.revision import commit
from mo_loop.version import __version__

Level = Literal["error", "warning", "note"]

LEVELS: tuple[Level, ...] = ("error", "warning", "note")
"""Worst first. An error stops the conversion. With a warning the model converts, but it may give other numbers than the
ONNX model, fail when it is compiled or run, or depend on an assumption. A note is about costs and other facts."""

SCHEMA, VERSION = "mo-loop check", 1
"""The name of the JSON schema, and its version."""

COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}

Fingerprint = tuple[str, ...]
"""The file of a diagnostic, its code, its place, the operator and the message."""

SHOWN = 5
"""The number of places of a group that are listed."""


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

    def fingerprint(self, file: str) -> Fingerprint:
        """Equal for the same diagnostic of a later version of the model `file`."""
        return _fingerprint(file, self.code, self.place.path, self.place.operator, self.message)

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


def fingerprints_of(document: Any) -> set[Fingerprint]:
    """The fingerprints of all findings of a report as JSON. UsageError if it is not one of `as_json`."""
    try:
        if document["schema"] != SCHEMA:
            raise KeyError("schema")
        return {
            _fingerprint(model["file"], each["code"], each["place"]["path"], each["place"]["operator"], each["message"])
            for model in document["models"]
            for each in model["findings"]
        }
    except (KeyError, TypeError):
        raise UsageError(
            "the baseline is not a report of mo-loop check",
            hint="write it with `mo-loop check MODEL... --report FILE.json`",
        ) from None


def _fingerprint(file: str, *texts: str) -> Fingerprint:
    return (os.path.normpath(file).replace(os.sep, "/"), *texts)


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
    fail_on: Level = "warning"
    """The exit code is 1 if there are diagnostics of this level or worse ones."""
    accepted: int = 0
    """The number of diagnostics that `without` has left out."""

    def __post_init__(self) -> None:
        self.diagnostics = sorted(self.diagnostics, key=lambda each: (LEVELS.index(each.level), each.code))

    def without(self, codes: Container[str], known: Container[Fingerprint]) -> CheckReport:
        """The report without the diagnostics of some codes, and those with known fingerprints (`fingerprints_of`). Bugs
        of mo_loop stay."""
        kept = [
            each for each in self.diagnostics
            if each.code.startswith("ML4") or not (each.code in codes or each.fingerprint(self.file) in known)
        ]
        return replace(self, diagnostics=kept, accepted=self.accepted + len(self.diagnostics) - len(kept))

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
        """4 for a bug, 2 for bad input, 1 for diagnostics of the level `fail_on` or worse, else 0."""
        if any(each.code.startswith("ML4") for each in self.diagnostics):
            return 4
        if self.refused is not None:
            return self.refused.exit_code
        return int(any(self.counts[level] for level in LEVELS[: LEVELS.index(self.fail_on) + 1]))

    def lines(self, style: Style = PLAIN) -> Iterator[str]:
        return lines_of([self], style)

    def to_dict(self) -> dict[str, Any]:
        """The part of `mo-loop check --format json` for one model."""
        return as_json([self])

    def _brief(self) -> str:
        return f"{self.file}: {counted(self)}"

    def __bool__(self) -> bool:
        """Whether nothing stops or worsens the conversion."""
        return self.exit_code == 0


def exit_code(reports: Iterable[CheckReport]) -> int:
    """The exit code of several models: the worst one."""
    return max((each.exit_code for each in reports), default=0)


@dataclass(frozen=True)
class Group:
    """Errors that differ only in their place, or warnings or notes of one code."""

    same: list[Diagnostic]

    @property
    def first(self) -> Diagnostic:
        return self.same[0]

    @property
    def places(self) -> list[NodePlace]:
        return [each.place for each in self.same if str(each.place)]

    @property
    def message(self) -> str:
        """The first message, with the number of all."""
        others = ", with other names or numbers" if len({each.message for each in self.same}) > 1 else ""
        return self.first.message + (f" ({len(self.same)} times{others})" if len(self.same) > 1 else "")


def of_warnings(heard: Iterable[ConversionWarning]) -> list[Diagnostic]:
    """The diagnostics of warnings of a conversion, each once."""
    found = {}
    for each in heard:
        text = each.message.removeprefix(f"{each.where}: ")
        found[each.code, text, each.where] = Diagnostic.of_code(each.code, text, each.origin)
    return list(found.values())


_OF_SEVERAL_KINDS = ("ML570", "ML571", "ML572")
"""Codes whose messages name errors of a device."""


def grouped(diagnostics: Iterable[Diagnostic]) -> list[Group]:
    """Errors of one message together, also those of devices, other warnings and notes of one code, in the order of the
    first of each."""
    found: dict[tuple[str, ...], list[Diagnostic]] = {}
    for each in diagnostics:
        is_apart = each.level == LEVELS[0] or each.code in _OF_SEVERAL_KINDS
        details = (each.message, each.why, each.help) if is_apart else ()
        found.setdefault((each.code, each.level, *details), []).append(each)
    return list(map(Group, found.values()))


# -- reports


def as_json(reports: Sequence[CheckReport]) -> dict[str, Any]:
    """All reports as plain data."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "tool": {"name": "mo-loop", "version": __version__, "commit": commit()},
        "exit_code": exit_code(reports),
        "counts": {level: sum(each.counts[level] for each in reports) for level in LEVELS},
        "models": [_model(each) for each in reports],
    }


def _model(report: CheckReport) -> dict[str, Any]:
    error = report.refused
    return {
        "file": report.file,
        "checked": error is None,
        "error": None if error is None else {
            "code": error.code, "message": error.message, "why": error.why, "help": error.hint,
        },
        "counts": dict(report.counts),
        "accepted": report.accepted,
        "findings": [
            {"code": each.code, "level": each.level, "message": each.message, "why": each.why, "help": each.help,
             "place": asdict(each.place)}
            for each in report.shown
        ],
        "sizes": dict(report.sizes),
    }


def counted(report: CheckReport) -> str:
    """`2 errors, 1 note`, or "nothing found", and the number of those that are accepted."""
    if report.refused is not None:
        return "not checked"
    words = [number_of(count, level) for level, count in report.counts.items() if count]
    accepted = f" ({report.accepted} accepted)" if report.accepted else ""
    return (", ".join(words) or "nothing found") + accepted


def places_text(places: Iterable[Any]) -> str:
    """The first few places, and the number of the others."""
    return first_few(list(map(str, places)), SHOWN)


def lines_of(reports: Sequence[CheckReport], style: Style) -> Iterator[str]:
    """Each diagnostic with its place, reason and help; of several models the number of bad ones."""
    for report in reports:
        yield f"{style.paint(report.file, bold=True)}: {counted(report)}"
        yield from (f"  sizes: {printable(row)}" for row in size_rows(report.sizes))
        for group in grouped(report.shown):
            first, level = group.first, group.first.level
            name = style.paint(level, fg=COLOURS[level], bold=True)
            yield f"  {name} {first.code}: {printable(group.message)}"
            for name, text in (("where", places_text(group.places)), ("why", first.why), ("help", first.help)):
                if text:
                    yield f"    {name + ':':6} {printable(text)}"
    if len(reports) > 1:
        bad = sum(report.exit_code != 0 for report in reports)
        yield f"{len(reports)} models, {bad} with errors or warnings"


def as_markdown(reports: Iterable[CheckReport]) -> str:
    """A section for each model, a table of its diagnostics in it."""
    lines = ["# Models checked by mo-loop", ""]
    for report in reports:
        lines += [f"## {_escaped(report.file)}", "", f"{counted(report)[:1].upper()}{counted(report)[1:]}.", ""]
        if report.refused is not None:
            lines += [f"{report.refused.code}: {_escaped(report.refused.message)}", ""]
        if rows := size_rows(report.sizes):
            lines += [f"Sizes: {_escaped('; '.join(rows))}.", ""]
        if report.shown:
            lines += ["| level | code | what | where | why and what to do |", "|---|---|---|---|---|"]
            for group in grouped(report.shown):
                advice = "; ".join(filter(None, (group.first.why, group.first.help)))
                cells = (group.first.level, group.first.code, group.message, places_text(group.places), advice)
                lines.append(f"| {' | '.join(map(_escaped, cells))} |")
            lines.append("")
    return "\n".join(lines)


def _escaped(text: str) -> str:
    """Text with the special characters of Markdown escaped."""
    for mark in "\\`*_<|[":
        text = text.replace(mark, "&lt;" if mark == "<" else f"\\{mark}")
    return " ".join(text.split())
