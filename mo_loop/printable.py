"""Texts of a model as they can be shown: in a terminal and a log, as columns, in XML, HTML and Markdown.

A printable text is on one line, without commands of a terminal or a CI system; it is not too long where it is
shortened.

    printable("a\x1b[2Jb")             # a\u001b[2Jb
    printable("a\n::error::b")         # a\n::error::b, in one line
    without_commands("##vso[x]")       # #\u0023vso[x]
    printable_record(inspection)       # a copy in which all texts are printable
    shortened("x" * 1000, 20)          # xxxxxxxx...xxxxxxxxx

>>> print(aligned([("pass", "ms"), ("Fold", "1.25"), ("LoopToTI", "0.5")], right=(1,)))
pass        ms
Fold      1.25
LoopToTI   0.5
>>> cell("a|b"), html_text("<a>"), xml_text("a\x00")
('a&#124;b', '&lt;a&gt;', 'a�')

The results of the functions of the library are records with a short repr, a text and plain data:

    report = mo_loop.check("model.onnx")
    report                     # <CheckReport model.onnx: 1 warning>; in a notebook the text
    print(report)              # the text that the command prints
    report.to_dict()           # the JSON that the command prints with --format json
"""

import dataclasses
import functools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

T = TypeVar("T")

_COMMANDS = re.compile(r"^(?P<start>[^\S\n]*):(?=:)|##(?=\w*\[)", re.MULTILINE)
"""The commands that CI systems execute in a log: `::name` at the start of a line, after blanks too, and `##[name`,
`##vso[name` or `##teamcity[name` anywhere."""

LETTERS = 300
"""The most letters of a cell of Markdown."""


def printable(text: str) -> str:
    """`text` with control characters, line breaks and marks of direction as in JSON, and no command of a CI system."""
    if not text.isprintable():
        text = "".join(each if each.isprintable() else escaped(each) for each in text)
    return without_commands(text)


def without_commands(text: str) -> str:
    """`text`, which can have several lines, with a character of each command of a CI system escaped."""
    return _COMMANDS.sub(_harmless, text) if "::" in text or "##" in text else text


def _harmless(found: re.Match[str]) -> str:
    start = found["start"]
    return "#\\u0023" if start is None else f"{start}\\u003a"


def escaped(character: str) -> str:
    return json.dumps(character)[1:-1]


def printable_record(record: T, length: int | None = None) -> T:
    """A copy of a dataclass, list or dictionary in which every text is printable, and has `length` characters at
    most."""
    return with_texts(record, lambda text: printable(text if length is None else shortened(text, length)))


def with_texts(record: T, change: Callable[[str], str]) -> T:
    """A copy of a record in which every text is changed: tuples, lists, dictionaries and dataclasses are followed."""
    result: Any = record
    if isinstance(record, str):
        result = change(record)
    elif type(record) in (tuple, list):
        result = type(record)(with_texts(each, change) for each in record)  # type: ignore[attr-defined,call-arg]
    elif isinstance(record, dict):
        result = {with_texts(key, change): with_texts(value, change) for key, value in record.items()}
    elif dataclasses.is_dataclass(record) and not isinstance(record, type):
        names = [field.name for field in dataclasses.fields(record) if field.init]
        result = type(record)(**{name: with_texts(getattr(record, name), change) for name in names})
    return result


def shortened(text: str, length: int) -> str:
    """A long text without its middle."""
    if len(text) <= length:
        return text
    head = (length - 3) // 2
    return f"{text[:head]}...{text[len(text) - (length - 3 - head) :]}"


def aligned(rows: Sequence[Sequence[str]], right: Sequence[int] = (), indent: str = "") -> str:
    """Columns as wide as their widest cell; those numbered in `right` are aligned to the right.

    Cells are printed without control characters, and each row is one line.
    """
    rows = [list(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if place in right else cell.ljust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append((indent + "  ".join(cells)).rstrip())
    return "\n".join(lines)


def sized(count: int) -> str:
    """A number of bytes with a unit: 999 B, 12.3 kB, 4.2 MB, 1.0 GB."""
    size, unit = float(count), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 999.95:
            break
        size, unit = size / 1000, larger
    return f"{count} B" if unit == "B" else f"{size:.1f} {unit}"


def counted(number: int, noun: str) -> str:
    """`1 node`, `2 nodes`."""
    return f"{number} {noun}{'s' * (number != 1)}"


def first_few(texts: Sequence[str], most: int) -> str:
    """`a, b and 3 more`."""
    return ", ".join(texts[:most]) + (f" and {len(texts) - most} more" if len(texts) > most else "")


def did_you_mean(name: str, known: Iterable[str], otherwise: str = "", cutoff: float = 0.5) -> str:
    """The hint for a name that is not known: the most similar known one, or else another hint."""
    from difflib import get_close_matches  # errors alone need it

    close = get_close_matches(name, list(known), 1, cutoff)
    return f"did you mean {close[0]!r}?" if close else otherwise


@functools.cache
def _not_xml() -> re.Pattern[str]:
    """The characters that XML does not have. Compiling this takes as long as importing ten modules."""
    return re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def xml_text(text: str) -> str:
    """Without characters that XML forbids: control characters, lone surrogates of names that are not UTF-8."""
    return _not_xml().sub("\ufffd", text)


def cell(text: str) -> str:
    """Text in one line of a table, with the special characters of Markdown and HTML escaped."""
    clean = "".join(each if each.isprintable() or each == "\n" else "\ufffd" for each in text)
    short = clean if len(clean) <= LETTERS else f"{clean[:LETTERS]}..."
    marked = re.sub(r"([\\`*_\[\]|~#@!:])", lambda match: f"&#{ord(match[0])};", html_text(short))
    return "<br>".join(line.strip() for line in marked.splitlines())


def html_text(text: str) -> str:
    """With the special characters of HTML escaped, outside attributes."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


class Style:
    """The style of a text: without colours, in aligned columns. The command line has another style."""

    def paint(self, text: str, **style: Any) -> str:
        """A line in the colours of `click.style`."""
        return printable(text)

    def table(
        self, rows: Sequence[Sequence[str]], right: Sequence[int] = (), indent: str = "", *, heads: bool = True
    ) -> str:
        """Rows of cells; with `heads` the first row has the titles."""
        return aligned(rows, right, indent)


PLAIN = Style()


class ShownResult:
    """Base of these records."""

    def lines(self, style: Style = PLAIN) -> Iterator[str]:
        """The lines of the text."""
        raise NotImplementedError

    def text(self, style: Style = PLAIN) -> str:
        """The text that the command prints."""
        return "\n".join(self.lines(style))

    def to_dict(self) -> dict[str, Any]:
        """The document that the command prints with `--format json`, as plain data."""
        raise NotImplementedError

    def _brief(self) -> str:
        """The result in a few words."""
        raise NotImplementedError

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {printable(self._brief())}>"

    def _repr_html_(self) -> str:
        return f"<pre>{html_text(self.text())}</pre>"
