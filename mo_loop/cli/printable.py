r"""Names of a model as they can be shown: without control characters, which a terminal would obey, and not too long.

    printable("a\x1b[2Jb")             # a\u001b[2Jb
    printable_record(inspection)       # a copy in which all texts are printable
    shortened("x" * 1000, 20)          # xxxxxxxx...xxxxxxxxx
"""

from __future__ import annotations

import dataclasses
import json
from typing import Any, TypeVar

T = TypeVar("T")


def printable(text: str) -> str:
    """`text` with control characters, line breaks and marks of direction written as in JSON."""
    return text if text.isprintable() else "".join(each if each.isprintable() else escaped(each) for each in text)


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
