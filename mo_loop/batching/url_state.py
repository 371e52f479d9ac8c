"""UrlState: the state of the outputs of a batch below a URL; an OutputState.

Three listings decide which outputs are up to date: that of the models, that of the .xml and .bin below the prefix, and
that of the records (`mo_loop.batching.url_state`). No object is read, unless a model has external data, its
conversion had a warning, or the store has no tags. Names, sizes and tags are kept on the local disk.

A worker puts the pair and then its record, so a batch that is killed loses nothing that is finished.

The records are the sources of the outputs, one small object for each model:

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

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from mo_loop.batching.engine import Remote, Work
from mo_loop.batching.estimates import Earlier, earlier_from, size_of
from mo_loop.batching.fingerprint import stamp
from mo_loop.batching.plan import Planned
from mo_loop.batching.result import RECORDS, Cost, Facts, StateEntry, StateRecord, entry_of
from mo_loop.batching.storage.locations import Info, Location, Stamp
from mo_loop.batching.storage.scratch import Scratch
from mo_loop.batching.storage.stores import delete, listed, put, read_whole
from mo_loop.batching.storage.transfers import StaleUploads
from mo_loop.errors import StorageError
from mo_loop.support.disk_table import DiskTable, key

FORMAT = 1

_BRIEF = re.compile(r"\d+(\.[A-Za-z_]+\d+)*")
_LONGEST = 200
_PARTIAL = "_"
_COST = ("_ms", "_need", "_peak")


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


_SCHEMA = """
    CREATE TABLE pairs (stem BLOB PRIMARY KEY, xml_size INTEGER, xml_tag TEXT, bin_size INTEGER, bin_tag TEXT)
    WITHOUT ROWID;
    CREATE TABLE records (owner BLOB, inputs TEXT, outputs TEXT, brief TEXT);
    CREATE INDEX owners ON records (owner)
"""
_PUT = {
    ending: f"INSERT INTO pairs (stem, {ending}_size, {ending}_tag) VALUES (?, ?, ?) ON CONFLICT (stem) DO UPDATE "
    f"SET {ending}_size = excluded.{ending}_size, {ending}_tag = excluded.{ending}_tag"
    for ending in ("xml", "bin")
}


class UrlState:
    """The outputs and the records below a URL, as listings find them.

    Raises:
        StorageError: the store cannot be listed. A prefix that does not exist has nothing.
    """

    note = ""

    def __init__(self, prefix: Location, scratch: Scratch) -> None:
        self._prefix = prefix
        self._scratch = scratch  # without a folder it is one of the machine that runs the task
        self._stale: StaleUploads | None = None
        self._table = DiskTable(_SCHEMA)
        for where, info in listed(prefix, is_literal=True):
            stem, _, ending = (where.relative_to(prefix) or "").rpartition(".")
            if ending in _PUT and not stem.startswith(f"{RECORDS}/"):
                self._table.run(_PUT[ending], key(stem), info.size, info.tag)
        records = (StateRecord.parse(where.name) for where, _ in listed(prefix / RECORDS, ".json", is_literal=True))
        rows = ((bytes.fromhex(each.owner), each.inputs, each.outputs, each.brief) for each in records if each)
        self._table.run_all("INSERT INTO records VALUES (?, ?, ?, ?)", rows)

    @contextmanager
    def drafts(self) -> Iterator[str]:
        with suppress(StorageError):  # not every user may list uploads
            self._stale = StaleUploads(self._prefix)
        with self._scratch.room("the batch", 0) as room:
            yield str(room.folder)
        self._scratch.clean()

    def prepare(self, model: Planned) -> bool:
        """End uploads that killed processes left: a pair that was not finished has no .xml, so nothing else is to be
        done."""
        assert isinstance(model.target, Location)
        if self._stale is not None:
            with suppress(StorageError):  # they stay
                self._stale.end(model.target)
        return False

    def find(self, name: str, model: Planned, work: Work) -> tuple[StateEntry | None, bool]:
        row, records = self._pair(name), self._records(name)
        if row is None or None in row or not records:
            return None, False
        xml, data = Info(*row[:2]), Info(*row[2:])
        source = model.listed or _info_of(model)
        if source is None:
            return None, False
        hashes = (inputs_hash(work.digest, source.size, source.tag), outputs_hash(xml, data))
        record = next((each for each in records if (each.inputs, each.outputs) == hashes), None)
        if record is None:
            return None, False
        entry = entry_from(record, work.digest, source, xml, data)
        return (entry, True) if entry is not None else (entry_of(load_content(self._prefix, record)), False)

    def earlier(self, name: str, model: Planned) -> Earlier | None:
        """By the name of a record, which does not have the sizes: they are those of now."""
        facts = next(filter(None, map(facts_from, self._records(name))), None)
        return None if facts is None else earlier_from(size_of(model), 0, facts)

    def has_lone_data(self, name: str, model: Planned) -> bool:
        """A worker that was killed can have left it too: then the model has a record."""
        row = self._pair(name)
        return row is not None and row[0] is None and not self._records(name)

    def remote(self, name: str, model: Planned, scratch: Scratch) -> Remote:
        is_new = self._pair(name) is None
        return Remote(scratch, model.listed, self._prefix, name, is_new, tuple(self._records(name)))

    def put(self, name: str, entry: StateEntry) -> None:
        """Nothing: the worker has put the record."""

    def save(self) -> None:
        """Nothing, as for `put`."""

    def close(self) -> None:
        """Nothing, as for `put`."""

    def _pair(self, name: str) -> tuple[Any, ...] | None:
        """Sizes and tags of the .xml and of the .bin, None for one that is not there; None if neither is there."""
        row = self._table.row("SELECT * FROM pairs WHERE stem = ?", key(name.removesuffix(".xml")))
        return None if row is None else row[1:]

    def _records(self, name: str) -> list[StateRecord]:
        """All records of a model."""
        owner = owner_of(name)
        rows = self._table.rows("SELECT inputs, outputs, brief FROM records WHERE owner = ?", bytes.fromhex(owner))
        return [StateRecord(owner, *row) for row in rows]


def _info_of(model: Planned) -> Info | None:
    """Size and SHA-256 of a local model; None if it cannot be read."""
    assert not isinstance(model.source, Location)
    try:
        read = stamp(model.source)
    except OSError:
        return None
    return Info(read.size, read.sha256)
