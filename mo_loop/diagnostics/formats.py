"""Reports as text, JSON and Markdown. sarif.py writes SARIF.

The JSON is one object:

    schema      "mo-loop check"
    version     1; increased when a field changes its meaning or is removed, not when one is added
    tool        {"name", "version"}
    exit_code   that of the command
    counts      {"error", "warning", "note"}: diagnostics in all models
    models      one object each: file, checked, error (null, or {code, message, why, help}: why it was not checked),
                counts, findings: [{code, level, message, why, help, place: {path, scope, node, operator}}],
                sizes: input -> what its sizes may be ("?,3,?,?"), as the pass WriteSizes describes it
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from mo_loop.diagnostics.diagnostic import LEVELS, CheckReport, Diagnostic, Group, exit_code, grouped
from mo_loop.errors import MoLoopError
from mo_loop.report.size_texts import size_rows
from mo_loop.support.printable import printable
from mo_loop.support.shown_result import Style
from mo_loop.version import __version__

SCHEMA, VERSION = "mo-loop check", 1
"""The name of the JSON schema, and its version."""

COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}

SHOWN = 5
"""The number of places of a group that are listed."""


def as_json(reports: Sequence[CheckReport]) -> dict[str, Any]:
    """All reports as plain data."""
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "tool": {"name": "mo-loop", "version": __version__},
        "exit_code": exit_code(reports),
        "counts": {level: sum(each.counts[level] for each in reports) for level in LEVELS},
        "models": [_model(each) for each in reports],
    }


def _model(report: CheckReport) -> dict[str, Any]:
    error = report.refused
    return {
        "file": report.file,
        "checked": error is None,
        "error": None if error is None else _error(error),
        "counts": dict(report.counts),
        "findings": [_diagnostic(each) for each in report.shown],
        "sizes": dict(report.sizes),
    }


def _error(error: MoLoopError) -> dict[str, str]:
    return {"code": error.code, "message": error.message, "why": error.why, "help": error.hint}


def _diagnostic(diagnostic: Diagnostic) -> dict[str, Any]:
    place = diagnostic.place
    return {
        "code": diagnostic.code, "level": diagnostic.level, "message": diagnostic.message, "why": diagnostic.why,
        "help": diagnostic.help,
        "place": {"path": place.path, "scope": place.scope, "node": place.node, "operator": place.operator},
    }  # fmt: skip


def counted(report: CheckReport) -> str:
    """`2 errors, 1 note`, or "nothing found"."""
    if report.refused is not None:
        return "not checked"
    words = [f"{count} {level}{'s' * (count != 1)}" for level, count in report.counts.items() if count]
    return ", ".join(words) or "nothing found"


def places_text(places: Iterable[Any]) -> str:
    """The first few places, and the number of the others."""
    texts = [str(each) for each in places]
    more = f" and {len(texts) - SHOWN} more" if len(texts) > SHOWN else ""
    return ", ".join(texts[:SHOWN]) + more


def as_text(reports: Sequence[CheckReport], style: Style) -> str:
    """Each diagnostic with its place, reason and help; of several models the number of bad ones."""
    return "\n".join(_text(reports, style))


def _text(reports: Sequence[CheckReport], style: Style) -> Iterator[str]:
    for report in reports:
        yield f"{style.paint(report.file, bold=True)}: {counted(report)}"
        yield from (f"  sizes: {printable(row)}" for row in size_rows(report.sizes))
        for group in grouped(report.shown):
            yield from _lines(group, style)
    if len(reports) > 1:
        bad = sum(report.exit_code != 0 for report in reports)
        yield f"{len(reports)} models, {bad} with errors or warnings"


def _lines(group: Group, style: Style) -> Iterator[str]:
    first = group.first
    level = style.paint(first.level, fg=COLOURS[first.level], bold=True)
    yield f"  {level} {first.code}: {printable(group.message)}"
    for name, text in (("where", places_text(group.places)), ("why", first.why), ("help", first.help)):
        if text:
            yield f"    {name + ':':6} {printable(text)}"


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
            lines += [f"| {' | '.join(_row(each))} |" for each in grouped(report.shown)]
            lines.append("")
    return "\n".join(lines)


def _row(group: Group) -> list[str]:
    first = group.first
    advice = "; ".join(each for each in (first.why, first.help) if each)
    cells = [first.level, first.code, group.message, places_text(group.places), advice]
    return [_escaped(each) for each in cells]


def _escaped(text: str) -> str:
    """Text with the special characters of Markdown escaped."""
    for mark in "\\`*_<|[":
        text = text.replace(mark, "&lt;" if mark == "<" else f"\\{mark}")
    return " ".join(text.split())
