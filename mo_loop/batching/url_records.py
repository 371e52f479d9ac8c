"""Records: the sources of the outputs below a URL; one small object for each model.

    record = record_of("vision/model.xml", entry, is_local=False)
    save(prefix, record, {"name": "vision/model.xml", **plain(entry)}, replaced=earlier_records)

The name of an object answers whether a model is up to date:

    <prefix>/.mo-loop/<model>-<inputs>-<outputs>-<brief>.json

`model`, `inputs` and `outputs` are hashes: of the model's name; of the options, size and tag of the .onnx; of sizes and
tags of the .xml and .bin. `brief` is the entry of a model in a report: `12.Loop1.If2._ms340._need92._peak125`: layers,
operations with bodies, and the time and memory of the conversion, in milliseconds and MiB. It begins with `_` if the
content and the files of the model must be read, because there is external data, or a store without tags, or a warning
must be repeated.

No object is ever changed, and no object belongs to two models, so that processes do not disturb each other: a name that
does not fit the outputs has no effect.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from mo_loop.batching.entries import StateEntry
from mo_loop.batching.result import Cost, Facts
from mo_loop.batching.storage.locations import Location
from mo_loop.batching.storage.stamps import Info, Stamp
from mo_loop.batching.storage.stores import delete, put, read_whole
from mo_loop.errors import StorageError

FOLDER = ".mo-loop"
FORMAT = 1

_NAME = re.compile(r"([0-9a-f]{32})-([0-9a-f]{24})-([0-9a-f]{24})-([A-Za-z0-9_.]*)\.json")
_BRIEF = re.compile(r"\d+(\.[A-Za-z_]+\d+)*")
_LONGEST = 200
_PARTIAL = "_"
_COST = ("_ms", "_need", "_peak")


@dataclass(frozen=True, slots=True)
class StateRecord:
    """The name of one object: hashes of a model's name, its inputs and outputs, and a brief text (`[A-Za-z0-9_.]*`)."""

    owner: str
    inputs: str
    outputs: str
    brief: str = ""

    @classmethod
    def parse(cls, name: str) -> StateRecord | None:
        """The record of an object's name; None if it is another object."""
        match = _NAME.fullmatch(name)
        return None if match is None else cls(*match.groups())

    def at(self, prefix: Location) -> Location:
        """The object below the prefix of the outputs."""
        return prefix / f"{FOLDER}/{self.owner}-{self.inputs}-{self.outputs}-{self.brief}.json"


def owner_of(name: str) -> str:
    """The hash of the name of a model."""
    return _digest(name, letters=32)


def inputs_hash(options: str, size: int, tag: str) -> str:
    """The hash of options and model."""
    return _digest(options, size, tag)


def outputs_hash(xml: Info, data: Info) -> str:
    """The hash of a pair."""
    return _digest(xml.size, xml.tag, data.size, data.tag)


def _digest(*facts: object, letters: int = 24) -> str:
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:letters]


def record_of(name: str, entry: StateEntry, *, is_local: bool) -> StateRecord:
    """The record of a conversion; `name` is that of the .xml below the prefix. A local model has its SHA-256 as tag."""
    tag = entry.source.sha256 if is_local else entry.source.tag
    is_whole = bool(tag and entry.xml.tag and entry.bin.tag) and not entry.external and not entry.warnings
    inputs, outputs = inputs_hash(entry.options, entry.source.size, tag), outputs_hash(entry.xml.info, entry.bin.info)
    brief = _brief(entry.facts)
    return StateRecord(owner_of(name), inputs, outputs, brief if is_whole or not brief else f"{_PARTIAL}{brief}")


def entry_from(record: StateRecord, options: str, source: Info, xml: Info, data: Info) -> StateEntry | None:
    """The entry from the brief text of a record and the facts of the listings; None if it has no such text."""
    facts = None if record.brief.startswith(_PARTIAL) else facts_from(record)
    if facts is None:
        return None
    of_source, of_xml, of_data = (Stamp(info.size, "", info.tag) for info in (source, xml, data))
    return StateEntry(options, of_source, {}, of_xml, of_data, facts)


def facts_from(record: StateRecord) -> Facts | None:
    """The facts about a conversion in the brief text of its record; None if there are none."""
    brief = record.brief.removeprefix(_PARTIAL)
    if not _BRIEF.fullmatch(brief) or len(brief) > _LONGEST:
        return None
    layers, *more = brief.split(".")
    counts = {match[1]: int(match[2]) for match in (re.fullmatch(r"(\D+)(\d+)", text) for text in more) if match}
    milliseconds, memory, peak = (counts.pop(name, None) for name in _COST)
    if milliseconds is None or memory is None or peak is None:
        return Facts(int(layers), counts)
    return Facts(int(layers), counts, Cost(milliseconds / 1000, memory << 20, peak << 20))


def _brief(facts: Facts) -> str:
    parts = [str(facts.layers), *(f"{kind}{count}" for kind, count in facts.control_flow.items())]
    if facts.cost is not None:
        cost = facts.cost
        took = (round(cost.seconds * 1000), -(-cost.memory >> 20), -(-cost.peak >> 20))
        parts += [f"{name}{count}" for name, count in zip(_COST, took, strict=True)]
    text = ".".join(parts)
    return text if _BRIEF.fullmatch(text) and len(text) <= _LONGEST else ""


def load_content(prefix: Location, record: StateRecord) -> dict[str, Any] | None:
    """The content of a record; None if it is gone, damaged or of another format."""
    try:
        content = json.loads(read_whole(record.at(prefix)))
    except StorageError as error:
        if error.code != "ML282":
            raise
        return None
    except (ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) and content.get("format") == FORMAT else None


def save(prefix: Location, record: StateRecord, content: dict[str, Any], replaced: Iterable[StateRecord] = ()) -> None:
    """Write a record with its content (JSON), then remove those of the same model that it replaces."""
    put(record.at(prefix), (json.dumps({"format": FORMAT, **content}) + "\n").encode())
    for other in replaced:
        if other != record:
            delete(other.at(prefix))
