r"""Names of a model as they can be shown: on one line, without what a terminal or a CI system obeys, not too long.

    printable("a\x1b[2Jb")             # a\u001b[2Jb
    printable("a\n::error::b")         # a\n::error::b, in one line
    without_commands("##vso[x]")       # #\u0023vso[x]
    printable_record(inspection)       # a copy in which all texts are printable
    shortened("x" * 1000, 20)          # xxxxxxxx...xxxxxxxxx
"""

from __future__ import annotations

import dataclasses
import json
import re
from typing import Any, TypeVar

T = TypeVar("T")

_COMMANDS = re.compile(r"^(?P<start>[^\S\n]*):(?=:)|##(?=\w*\[)", re.MULTILINE)
"""What CI systems obey in a log: `::name` at the start of a line, after blanks too, and `##[name`, `##vso[name` or
`##teamcity[name` anywhere."""


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
    found: Any = record
    if isinstance(record, str):
        found = printable(record if length is None else shortened(record, length))
    elif isinstance(record, list):
        found = [printable_record(each, length) for each in record]
    elif isinstance(record, dict):
        found = {printable_record(key, length): printable_record(value, length) for key, value in record.items()}
    elif dataclasses.is_dataclass(record) and not isinstance(record, type):
        names = [each.name for each in dataclasses.fields(record) if each.init]
        found = type(record)(**{name: printable_record(getattr(record, name), length) for name in names})
    return found


def shortened(text: str, length: int) -> str:
    """A long text without its middle."""
    if len(text) <= length:
        return text
    head = (length - 3) // 2
    return f"{text[:head]}...{text[len(text) - (length - 3 - head) :]}"
