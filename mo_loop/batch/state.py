"""State: the outputs of earlier batches, stored in `.mo-loop.json` in the output folder.

    {"format": 1, "models": {"a/b.xml": {"made": {...}, "facts": {...}, "warnings": []}}}

It is written atomically and repeatedly while a batch runs. A file that is incomplete, is not JSON or has another format
is ignored, and so is an entry that is not valid: the only consequence is that models are converted again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mo_loop.batch.fingerprint import Made, Stamp
from mo_loop.batch.result import Facts
from mo_loop.files import write_whole

NAME = ".mo-loop.json"
FORMAT = 1


@dataclass(frozen=True, slots=True)
class Entry:
    """The .xml and .bin files of a model, and the facts and warnings of its conversion."""

    made: Made
    facts: Facts
    warnings: tuple[str, ...] = ()


class State:
    """The entries of a folder, by the path of the .xml below it."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._found, self.note = _read(self.path)
        """Read the entries of the file, and the reason if a file exists but is not used."""
        self._own: dict[str, Entry | None] = {}

    def get(self, name: str) -> Entry | None:
        """The entry of an output."""
        return self._own[name] if name in self._own else entry_of(self._found.get(name))

    def put(self, name: str, entry: Entry | None) -> None:
        """Set the entry of an output; None removes it, because its files are not certain to be complete."""
        self._own[name] = entry

    def save(self) -> None:
        """Write the new entries and keep those that other processes wrote meanwhile. FileError if that fails."""
        if not self._own:
            return
        folder = str(self.path.parent)
        own = {name: None if each is None else plain(each) for name, each in self._own.items()}
        entries = {**_read(self.path)[0], **own}
        kept = {
            name: each for name, each in sorted(entries.items()) if each and os.path.exists(os.path.join(folder, name))
        }
        write_whole(self.path, json.dumps({"format": FORMAT, "models": kept}) + "\n")


def _read(path: Path) -> tuple[dict[str, Any], str]:
    """The entries in the file, and the reason if a file exists but is not used."""
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}, ""
    except (OSError, ValueError, RecursionError):
        return {}, f"{path} cannot be read: no model is up to date"
    if not isinstance(found, dict) or found.get("format") != FORMAT or not isinstance(found.get("models"), dict):
        return {}, f"{path} was written by another version: no model is up to date"
    return found["models"], ""


def entry_of(found: Any) -> Entry | None:
    """The entry that `plain` made; None if it is not valid."""
    try:
        made, facts = found["made"], found["facts"]
        external = {str(name): _stamp(each) for name, each in made["external"].items()}
        source, xml, data = (_stamp(made[key]) for key in ("source", "xml", "bin"))
        flow = {str(kind): int(count) for kind, count in facts["control_flow"].items()}
        notes = tuple(map(str, found["warnings"]))
        return Entry(Made(str(made["options"]), source, external, xml, data), Facts(int(facts["layers"]), flow), notes)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _stamp(found: Mapping[str, Any]) -> Stamp:
    ranges = found.get("ranges")
    return Stamp(
        int(found["size"]), str(found["sha256"]), str(found.get("tag", "")),
        None if ranges is None else tuple((int(start), int(end)) for start, end in ranges),
    )  # fmt: skip


def _plain_stamp(each: Stamp) -> dict[str, Any]:
    found: dict[str, Any] = {"size": each.size, "sha256": each.sha256}
    if each.tag:
        found["tag"] = each.tag
    if each.ranges is not None:
        found["ranges"] = each.ranges
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
        "facts": {"layers": entry.facts.layers, "control_flow": dict(entry.facts.control_flow)},
        "warnings": list(entry.warnings),
    }
