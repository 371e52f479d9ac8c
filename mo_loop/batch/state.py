"""State: the outputs of earlier batches, stored in `.mo-loop.json` in the output folder, a JSON text in each line.

    {"format": 2}
    ["a/b.xml", {"made": {...}, "facts": {...}, "warnings": []}]

The last line of an output counts. A running batch appends to the file, and writes it anew at its end, sorted and
without what is gone. Lines that are not valid are ignored, and so is a file that begins with another line: the only
consequence is that models are converted again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from mo_loop.batch.fingerprint import Made, Stamp
from mo_loop.batch.result import Cost, Facts
from mo_loop.support.disk_table import DiskTable, key, text_of
from mo_loop.support.files import append_lines, write_whole

NAME = ".mo-loop.json"
HEAD = b'{"format": 2}\n'
_LONGEST = 64 << 20
"""Bytes of a line: a file without ends of lines is not read whole."""

_KEPT = "INSERT OR REPLACE INTO entries VALUES (?, ?)"


@dataclass(frozen=True, slots=True)
class Entry:
    """The .xml and .bin files of a model, and the facts and warnings of its conversion."""

    made: Made
    facts: Facts
    warnings: tuple[str, ...] = ()


class State:
    """The entries of a folder, by the path of the .xml below it, on the local disk."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._table = _table()
        self.note = _read(self.path, self._table)
        """The reason if a file exists but is not used."""
        self._new: list[bytes] = []  # lines that are not in the file yet
        self._is_changed = False

    def get(self, name: str) -> Entry | None:
        """The entry of an output."""
        found = self._table.row("SELECT line FROM entries WHERE name = ?", key(name))
        return None if found is None else entry_of(_parsed(found[0]))

    def put(self, name: str, entry: Entry | None) -> None:
        """Set the entry of an output; None removes it, because its files are not certain to be complete."""
        line = json.dumps([name, None if entry is None else plain(entry)]).encode() + b"\n"
        self._table.run(_KEPT, key(name), line)
        self._new.append(line)

    def save(self) -> None:
        """Append the new entries to the file. FileError if that fails."""
        if self._new:
            append_lines(self.path, HEAD, b"".join(self._new))
            self._new = []
            self._is_changed = True

    def close(self) -> None:
        """Append the new entries, and write the file anew, with those that other processes appended meanwhile.
        FileError if that fails."""
        self.save()
        if self._is_changed:
            write_whole(self.path, self._lines())

    def _lines(self) -> Iterator[bytes]:
        """The lines of the new file; the old one is read when the first is taken."""
        folder = str(self.path.parent)
        table = _table()
        _read(self.path, table)
        yield HEAD
        for name, line in table.rows("SELECT * FROM entries ORDER BY name"):
            if _parsed(line) is not None and os.path.exists(os.path.join(folder, text_of(name))):
                yield line


def _table() -> DiskTable:
    return DiskTable("CREATE TABLE entries (name BLOB PRIMARY KEY, line BLOB)")


def _read(path: Path, table: DiskTable) -> str:
    """Fill the table from the file; return the reason if a file exists but is not used."""
    try:
        with open(path, "rb") as file:
            if file.readline(_LONGEST) != HEAD:
                return f"{path} was written by another version: no model is up to date"
            table.run_all(_KEPT, _entries(file))
    except FileNotFoundError:
        return ""
    except OSError:
        return f"{path} cannot be read: no model is up to date"
    return ""


def _entries(file: BinaryIO) -> Iterator[tuple[bytes, bytes]]:
    """The names and lines of a file whose first line was read."""
    while line := file.readline(_LONGEST):
        match _json(line):
            case [str(name), _]:
                yield key(name), line


def _parsed(line: bytes) -> Any:
    """What a line says about its output."""
    return _json(line)[1]


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def entry_of(found: Any) -> Entry | None:
    """The entry that `plain` made; None if it is not valid."""
    try:
        made, facts = found["made"], found["facts"]
        external = {str(name): _stamp(each) for name, each in made["external"].items()}
        source, xml, data = (_stamp(made[key]) for key in ("source", "xml", "bin"))
        flow = {str(kind): _whole(count) for kind, count in facts["control_flow"].items()}
        notes = tuple(map(str, found["warnings"]))
        return Entry(Made(str(made["options"]), source, external, xml, data), _facts(facts, flow), notes)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _facts(found: Mapping[str, Any], flow: Mapping[str, int]) -> Facts:
    cost = found.get("cost")
    return Facts(
        _whole(found["layers"]), flow,
        None if cost is None else Cost(float(cost["seconds"]), _whole(cost["memory"]), _whole(cost["peak"])),
    )  # fmt: skip


def _stamp(found: Mapping[str, Any]) -> Stamp:
    ranges = found.get("ranges")
    return Stamp(
        _whole(found["size"]), str(found["sha256"]), str(found.get("tag", "")),
        None if ranges is None else tuple((_whole(start), _whole(end)) for start, end in ranges),
    )  # fmt: skip


def _whole(found: Any) -> int:
    """A count or a size. ValueError for anything else: JSON also has 1e999, true and "3"."""
    if type(found) is not int or found < 0:
        raise ValueError(f"{found!r} is no count")
    return found


def _plain_stamp(each: Stamp) -> dict[str, Any]:
    found: dict[str, Any] = {"size": each.size, "sha256": each.sha256}
    if each.tag:
        found["tag"] = each.tag
    if each.ranges is not None:
        found["ranges"] = each.ranges
    return found


def _plain_facts(facts: Facts) -> dict[str, Any]:
    found: dict[str, Any] = {"layers": facts.layers, "control_flow": dict(facts.control_flow)}
    if facts.cost is not None:
        cost = facts.cost
        found["cost"] = {"seconds": round(cost.seconds, 3), "memory": cost.memory, "peak": cost.peak}
    return found


def plain(entry: Entry) -> dict[str, Any]:
    """The JSON that `entry_of` reads. dataclasses.asdict copies everything, which takes longer than the writing."""
    made = entry.made
    stamps = {"source": made.source, "xml": made.xml, "bin": made.bin}
    return {
        "made": {
            "options": made.options,
            **{key: _plain_stamp(each) for key, each in stamps.items()},
            "external": {name: _plain_stamp(each) for name, each in made.external.items()},
        },
        "facts": _plain_facts(entry.facts),
        "warnings": list(entry.warnings),
    }
