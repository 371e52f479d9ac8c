"""--format and --report: a report on stdout in one form, and in a file in that of its ending.

    @format_option("text", "json", "markdown")
    def command(form: str, report_file: ReportFile | None, quiet: bool) -> None:
        with reported(debug, as_json=form == "json", report_file=report_file):
            give(lambda form: formatted(found, form), form, report_file, quiet=quiet)
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import PurePath

from mo_loop.batching.storage.locations import place_of
from mo_loop.cli.output import TERMINAL, show_lines
from mo_loop.support.shown_result import ShownResult

ENDINGS = {".md": "markdown", ".sarif": "sarif", ".xml": "junit"}
"""The form of a file by its ending; any other file is JSON."""


@dataclass(frozen=True)
class ReportFile:
    """The file or URL of --report, and its format."""

    place: str
    form: str

    @classmethod
    def of(cls, place: str) -> ReportFile:
        return cls(place, ENDINGS.get(PurePath(place).suffix.lower(), "json"))

    def write(self, lines: Iterable[str]) -> None:
        """Write the file whole or not at all. FileError and StorageError if it cannot be written."""
        from mo_loop.batching.places import write_content

        write_content(place_of(self.place), (line.removesuffix("\n") + "\n" for line in lines))


def give(
    lines_of: Callable[[str], str | Iterable[str]], form: str, report_file: ReportFile | None, *, quiet: bool = False
) -> None:
    """Write the file, and print the report unless `quiet`. `lines_of` makes the text of a form, or its lines."""

    def lines(wanted: str) -> Iterable[str]:
        found = lines_of(wanted)
        return [found] if isinstance(found, str) else found

    if report_file is not None:
        report_file.write(lines(report_file.form))
    if not quiet:
        show_lines(lines(form))


def as_json(found: ShownResult) -> str:
    """A result as a JSON document."""
    return json.dumps(found.to_dict(), indent=1, ensure_ascii=False, default=str)


def formatted(found: ShownResult, form: str) -> str:
    """A result as text for the terminal, or as JSON."""
    return as_json(found) if form == "json" else found.text(TERMINAL)
