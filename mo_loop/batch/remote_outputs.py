"""RemoteOutputs: the outputs of a batch below a URL.

Three listings say what is up to date: that of the models, that of the .xml and .bin below the prefix, and that of the
records (`mo_loop.batch.storage.remote_state`). No object is read, unless a model has external data, its conversion had
a warning, or the store has no tags. Names, sizes and tags are kept on the local disk.

A worker puts the pair and then its record, so a batch that is killed loses nothing that is finished.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from mo_loop.batch.estimates import Earlier, earlier_from, size_of
from mo_loop.batch.fingerprint import are_current, inputs_of, stamp
from mo_loop.batch.outputs import REMOTE_JOB
from mo_loop.batch.plan import Planned, require_name
from mo_loop.batch.remote_stamps import are_stamps_current, is_source_current
from mo_loop.batch.state import Entry, entry_of
from mo_loop.batch.state_records import entry_from, facts_from, inputs_hash, outputs_hash
from mo_loop.batch.storage.locations import Location
from mo_loop.batch.storage.remote_state import FOLDER, Record, RemoteState, load_content
from mo_loop.batch.storage.scratch import Scratch
from mo_loop.batch.storage.stores import Info, listed
from mo_loop.batch.storage.uploading import StaleUploads
from mo_loop.batch.task import Remote, Task, Work
from mo_loop.errors import StorageError
from mo_loop.support.disk_table import DiskTable, key

_PAIRS = """
    CREATE TABLE pairs (stem BLOB PRIMARY KEY, xml_size INTEGER, xml_tag TEXT, bin_size INTEGER, bin_tag TEXT)
    WITHOUT ROWID
"""
_PUT = {
    ending: f"INSERT INTO pairs (stem, {ending}_size, {ending}_tag) VALUES (?, ?, ?) ON CONFLICT (stem) DO UPDATE "
    f"SET {ending}_size = excluded.{ending}_size, {ending}_tag = excluded.{ending}_tag"
    for ending in ("xml", "bin")
}


class RemoteOutputs:
    """Outputs below a URL.

    Raises:
        StorageError: the store cannot be listed.
    """

    def __init__(self, prefix: Location, scratch: Scratch) -> None:
        self.prefix = prefix.without_slash()
        self.note = ""
        self.function = REMOTE_JOB
        self._scratch = scratch  # without a folder it is one of the machine that runs the task
        self._pairs = DiskTable(_PAIRS)
        self._list_pairs()
        self._stale: StaleUploads | None = None
        self._state = RemoteState(self.prefix)
        self._state.load()

    @contextmanager
    def drafts(self) -> Iterator[str]:
        with suppress(StorageError):  # not every user may list uploads
            self._stale = StaleUploads(self.prefix)
        with self._scratch.room("the batch", 0) as room:
            yield str(room.folder)
        self._scratch.clean()

    def prepare(self, model: Planned) -> bool:
        """End uploads that killed processes left: a pair that was not finished has no .xml, so nothing else is to be
        done. StorageError if the model can have no outputs here."""
        require_name(model)
        if self._stale is not None:
            with suppress(StorageError):  # they stay
                self._stale.end(_target(model))
        return False

    def known(self, model: Planned) -> Entry | None:
        """None: the listings say what is up to date."""
        return None

    def current(self, model: Planned, work: Work) -> Entry | None:
        pair = self._pair(model)
        if pair is None:
            return None
        xml, data = pair
        if not self._state.records(self._name(model)):
            return None
        source = self._source(model)
        if source is None:
            return None
        inputs = inputs_hash(work.digest, source.size, source.tag)
        record = self._state.find(self._name(model), inputs, outputs_hash(xml, data))
        if record is None:
            return None
        return entry_from(record, work.digest, source, xml, data) or self._checked(model, record, work)

    def earlier(self, model: Planned) -> Earlier | None:
        """By the name of a record, which does not have the sizes: they are those of now."""
        facts = next(filter(None, map(facts_from, self._state.records(self._name(model)))), None)
        return None if facts is None else earlier_from(size_of(model), 0, facts)

    def task(self, model: Planned, work: Work, durable: bool) -> Task:
        name = self._name(model)
        is_new = self._row(model) is None
        remote = Remote(self._scratch, model.found, self.prefix, name, is_new, tuple(self._state.records(name)))
        source = str(model.source) if isinstance(model.source, Path) else model.source.url
        return Task(source, "", _target(model).url, work, durable, remote)

    def put(self, model: Planned, entry: Entry) -> None:
        """Nothing: the worker has put the record."""

    def save(self) -> None:
        """Nothing, as for `put`."""

    def close(self) -> None:
        """Nothing, as for `put`."""

    def _list_pairs(self) -> None:
        """Keep sizes and tags of the .xml and .bin that are below the prefix."""
        for where, info in listed(self.prefix, is_literal=True):
            stem, _, ending = (where.relative_to(self.prefix) or "").rpartition(".")
            if ending in _PUT and not stem.startswith(f"{FOLDER}/"):
                self._pairs.run(_PUT[ending], key(stem), info.size, info.tag)

    def _pair(self, model: Planned) -> tuple[Info, Info] | None:
        """Size and tag of the .xml and of the .bin; None unless both are there."""
        row = self._row(model)
        if row is None or None in row:
            return None
        _, xml_size, xml_tag, bin_size, bin_tag = row
        return Info(xml_size, xml_tag), Info(bin_size, bin_tag)

    def _row(self, model: Planned) -> tuple[Any, ...] | None:
        """What the listing says about the .xml and the .bin; None if it has neither."""
        return self._pairs.row("SELECT * FROM pairs WHERE stem = ?", key(self._name(model)[: -len(".xml")]))

    def _checked(self, model: Planned, record: Record, work: Work) -> Entry | None:
        """The entry of a record whose files have to be looked at."""
        entry = entry_of(load_content(self.prefix, record))
        if entry is None or entry.made.options != work.digest:
            return None
        made, target = entry.made, _target(model)
        if isinstance(model.source, Path):
            is_same = are_current(inputs_of(made, model))
        else:
            is_same = is_source_current(made, model)
        pair = ((target, made.xml), (target.with_suffix(".bin"), made.bin))
        return entry if is_same and are_stamps_current(pair) else None

    @staticmethod
    def _source(model: Planned) -> Info | None:
        """Size and tag of a model; of a local one the SHA-256, None if it cannot be read."""
        if model.found is not None:
            return model.found
        try:
            found = stamp(model.local_source)
        except OSError:
            return None
        return Info(found.size, found.sha256)

    def _name(self, model: Planned) -> str:
        return _target(model).relative_to(self.prefix) or ""


def _target(model: Planned) -> Location:
    assert isinstance(model.target, Location)
    return model.target
