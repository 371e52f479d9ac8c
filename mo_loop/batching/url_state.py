"""UrlState: the state of the outputs of a batch below a URL; an OutputState.

Three listings decide which outputs are up to date: that of the models, that of the .xml and .bin below the prefix, and
that of the records (`mo_loop.batching.url_records`). No object is read, unless a model has external data, its
conversion had a warning, or the store has no tags. Names, sizes and tags are kept on the local disk.

A worker puts the pair and then its record, so a batch that is killed loses nothing that is finished.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from mo_loop.batching.entries import StateEntry, entry_of
from mo_loop.batching.estimates import Earlier, earlier_from, size_of
from mo_loop.batching.fingerprint import stamp
from mo_loop.batching.plan import Planned
from mo_loop.batching.storage.locations import Location
from mo_loop.batching.storage.scratch import Scratch
from mo_loop.batching.storage.stamps import Info
from mo_loop.batching.storage.stores import listed
from mo_loop.batching.storage.uploading import StaleUploads
from mo_loop.batching.task import Remote, Work
from mo_loop.batching.url_records import (
    FOLDER,
    StateRecord,
    entry_from,
    facts_from,
    inputs_hash,
    load_content,
    outputs_hash,
    owner_of,
)
from mo_loop.errors import StorageError
from mo_loop.support.disk_table import DiskTable, key

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
            if ending in _PUT and not stem.startswith(f"{FOLDER}/"):
                self._table.run(_PUT[ending], key(stem), info.size, info.tag)
        records = (StateRecord.parse(where.name) for where, _ in listed(prefix / FOLDER, ".json", is_literal=True))
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
