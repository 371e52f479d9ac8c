"""Outputs: the .xml and .bin of a batch, in a folder or below a URL, and which of them are up to date.

    outputs = Outputs(Path("ir"))                                # or a Location, or models at URLs: with a Scratch
    refuse_weights(plan, outputs)                                # no output may be in the place of weights of a model
    with outputs.drafts() as drafts:
        is_new = outputs.prepare(model)
        entry = outputs.current(model, work)                     # None: convert it
        done = ...                                               # a worker converts outputs.task(...)
        outputs.put(model, done.entry)
    outputs.close()

The differences between a folder and a store are in an OutputState. That of a prefix of URLs,
`mo_loop.batching.url_state`, is loaded for URLs alone. FolderState has the outputs of earlier batches in
`.mo-loop.json` in their folder, a JSON text in each line:

    {"format": 2}
    ["a/b.xml", {"made": {...}, "facts": {...}, "warnings": []}]

The last line of an output counts. A running batch appends to the file, and writes it anew at its end, sorted and
without removed outputs. Lines that are not valid are ignored. A file that begins with another line is ignored too: the
only consequence is that models are converted again.

Workers write into a temporary folder next to it (`drafts_in`). A batch holds a lock on that folder: one without a lock
is of a batch that was killed, and the next batch removes it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from mo_loop.batching.engine import Remote, Task, Work
from mo_loop.batching.estimates import Earlier, earlier_from
from mo_loop.batching.fingerprint import is_current
from mo_loop.batching.plan import BatchPlan, Planned, has_name, require_name
from mo_loop.batching.result import StateEntry, entry_of, plain
from mo_loop.batching.storage.locations import Location, PathOrUrl
from mo_loop.errors import FileError, UsageError
from mo_loop.ir.pair import restore_pair
from mo_loop.support import files
from mo_loop.support.disk_table import DiskTable, key, text_of

if TYPE_CHECKING:
    from mo_loop.batching.storage.scratch import Scratch


NAME = ".mo-loop.json"
HEAD = b'{"format": 2}\n'
_LONGEST = 64 << 20
"""Bytes of a line: a file without ends of lines is not read whole."""

_DRAFTS = ".mo-loop-"
"""The prefix of the names of temporary folders."""

_KEPT = "INSERT OR REPLACE INTO entries VALUES (?, ?)"


class FolderState:
    """The entries of a folder, by the path of the .xml below it, on the local disk; an OutputState."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / NAME
        self._table = _table()
        self.note = _read(self.path, self._table)
        """The reason if a file exists but is not used."""
        self._new: list[bytes] = []  # lines that are not in the file yet
        self._is_changed = False

    def get(self, name: str) -> StateEntry | None:
        """The entry of an output."""
        row = self._table.row("SELECT line FROM entries WHERE name = ?", key(name))
        return None if row is None else entry_of(_parsed(row[0]))

    def drafts(self) -> AbstractContextManager[str]:
        return drafts_in(self.path.parent)

    def prepare(self, model: Planned) -> bool:
        xml, data = model.outputs
        assert isinstance(xml, Path) and isinstance(data, Path)
        restore_pair(xml)
        return not data.exists()

    def find(self, name: str, model: Planned, work: Work) -> tuple[StateEntry | None, bool]:
        return self.get(name), False

    def earlier(self, name: str, model: Planned) -> Earlier | None:
        entry = self.get(name)
        if entry is None:
            return None
        return earlier_from(entry.source.size, sum(stamp.size for stamp in entry.external.values()), entry.facts)

    def has_lone_data(self, name: str, model: Planned) -> bool:
        xml, data = map(str, model.outputs)
        return os.path.exists(data) and not os.path.exists(xml)

    def remote(self, name: str, model: Planned, scratch: Scratch) -> Remote:
        return Remote(scratch, model.listed)

    def put(self, name: str, entry: StateEntry | None) -> None:
        """Set the entry of an output; None removes it, because its files are not certain to be complete."""
        line = json.dumps([name, None if entry is None else plain(entry)]).encode() + b"\n"
        self._table.run(_KEPT, key(name), line)
        self._new.append(line)

    def save(self) -> None:
        """Append the new entries to the file. FileError if that fails."""
        if self._new:
            files.append_lines(self.path, HEAD, b"".join(self._new))
            self._new = []
            self._is_changed = True

    def close(self) -> None:
        """Append the new entries, and write the file anew, with those that other processes appended meanwhile.
        FileError if that fails."""
        self.save()
        if self._is_changed:
            files.write_whole(self.path, self._lines())

    def _lines(self) -> Iterator[bytes]:
        """The lines of the new file; the old one is read when the first is taken."""
        folder = str(self.path.parent)
        table = _table()
        _read(self.path, table)
        yield HEAD
        for name, line in table.rows("SELECT * FROM entries ORDER BY name"):
            if _parsed(line) is not None and os.path.exists(os.path.join(folder, text_of(name))):
                yield line


@contextmanager
def drafts_in(folder: Path) -> Iterator[str]:
    """The path of a new folder in `folder`, which is created if need be; the new folder is removed at the end.

    Raises:
        FileError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with files.locked(folder / NAME):  # no other batch removes the new folder before it is locked
            files.remove_abandoned(folder, _DRAFTS)
            drafts, lock = files.new_locked_folder(folder.absolute(), _DRAFTS)
    except OSError as error:
        raise FileError(
            f"{folder} cannot be written: {files.reason_of(error)}", code="ML219", hint="give another folder"
        ) from None
    try:
        yield drafts
    finally:
        files.remove_locked(drafts, lock)


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
    """The entry of a line; None if the line is not valid JSON."""
    return _json(line)[1]


def _json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class OutputState(Protocol):
    """The place of the outputs: the results of earlier batches, and the files that killed ones left. `name` is the path
    of an .xml.

    All but `put`, `save` and `close` may be called from several threads.
    """

    note: str
    """Why nothing is up to date although there is a state; empty if it is used."""

    def drafts(self) -> AbstractContextManager[str]:
        """A folder for temporary files of the workers while the batch runs."""

    def prepare(self, model: Planned) -> bool:
        """Clean up the outputs of a model that a killed process left. Returns whether there is no .bin that a killed
        worker could not have left."""

    def find(self, name: str, model: Planned, work: Work) -> tuple[StateEntry | None, bool]:
        """The entry of a model that can be up to date, and whether that is certain without reading its files."""

    def earlier(self, name: str, model: Planned) -> Earlier | None:
        """The time and memory of the conversion in an earlier batch, also of another version of the model; reads no
        object."""

    def has_lone_data(self, name: str, model: Planned) -> bool:
        """Whether there is a .bin without an .xml in the place of the outputs, which no earlier batch left."""

    def remote(self, name: str, model: Planned, scratch: Scratch) -> Remote:
        """The additional data of a task whose model or outputs are at URLs."""

    def put(self, name: str, entry: StateEntry) -> None:
        """Keep the entry of a model that was converted."""

    def save(self) -> None:
        """Write the entries of `put`. FileError if that fails."""

    def close(self) -> None:
        """The same at the end of the batch."""


class Outputs:
    """The outputs of one batch. `scratch` is needed where something is at a URL.

    Raises:
        StorageError: the store cannot be listed.
    """

    def __init__(self, place: PathOrUrl, scratch: Scratch | None = None) -> None:
        self.place = place.without_slash() if isinstance(place, Location) else place
        self._scratch = scratch
        self._state: OutputState
        if isinstance(self.place, Path):
            self._state = FolderState(self.place)
        else:
            from mo_loop.batching.storage.scratch import Scratch
            from mo_loop.batching.url_state import UrlState

            self._scratch = scratch or Scratch()
            self._state = UrlState(self.place, self._scratch)
        self.note = self._state.note
        self.drafts = self._state.drafts
        self.save = self._state.save
        self.close = self._state.close

    def prepare(self, model: Planned) -> bool:
        """As `OutputState.prepare`. StorageError if the model can have no outputs."""
        require_name(model)
        return self._state.prepare(model)

    def known(self, model: Planned, work: Work) -> StateEntry | None:
        """The entry of a model all of whose files are local: its engine compares them (`is_current`)."""
        return self._state.find(self._name(model), model, work)[0] if _is_local(model) else None

    def current(self, model: Planned, work: Work) -> StateEntry | None:
        """The entry of a model that is up to date, else None."""
        if not has_name(model):
            return None
        entry, is_certain = self._state.find(self._name(model), model, work)
        return entry if entry is None or is_certain or is_current(entry, model, work.digest) else None

    def earlier(self, model: Planned) -> Earlier | None:
        """As `OutputState.earlier`."""
        return self._state.earlier(self._name(model), model)

    def has_lone_data(self, model: Planned) -> bool:
        """As `OutputState.has_lone_data`."""
        return self._state.has_lone_data(self._name(model), model)

    def task(self, model: Planned, work: Work, durable: bool) -> Task:
        """The task of a worker, without its draft."""
        places = (model.source, model.target)
        source, target = (place.url if isinstance(place, Location) else str(place) for place in places)
        if _is_local(model):
            return Task(source, "", target, work, durable)
        assert self._scratch is not None
        return Task(source, "", target, work, durable, self._state.remote(self._name(model), model, self._scratch))

    def put(self, model: Planned, entry: StateEntry) -> None:
        """Keep the entry of a model that was converted."""
        self._state.put(self._name(model), entry)

    def _name(self, model: Planned) -> str:
        """The path of the .xml below the place, with / between folders."""
        if isinstance(model.target, Location) and isinstance(self.place, Location):
            return model.target.relative_to(self.place) or ""
        assert isinstance(model.target, Path) and isinstance(self.place, Path)
        return model.target.relative_to(self.place).as_posix()


def _is_local(model: Planned) -> bool:
    return isinstance(model.source, Path) and isinstance(model.target, Path)


_OF_ONE_STORE = {"s3a": "s3", "gcs": "gs", "abfss": "abfs"}
"""Schemes that are other names of one."""


def refuse_weights(plan: BatchPlan, outputs: Outputs) -> None:
    """Raise UsageError if a model has its .bin in the place of one that can be the weights of a model."""
    above, below = sorted((_folder(plan.root), _folder(outputs.place)), key=len)
    if "://" in above + below and not f"{below}/".startswith(f"{above}/"):
        return  # no output is in a folder of models
    folders: set[str] = set()
    for model in plan.models:
        if not outputs.has_lone_data(model):
            continue
        folders = folders or {_folder(each.source.parent) for each in plan.models}
        data = model.outputs[1]
        if _folder(data.parent) in folders:
            raise UsageError(
                f"{data} is in a folder of models and can be the weights of one: {model.name} would overwrite it",
                hint="convert into another folder, or move the file if it is not needed",
            )


def _folder(place: PathOrUrl) -> str:
    """The same text for the same folder: without links for one of this machine, which may be that of a file:// URL."""
    if isinstance(place, Location) and place.scheme in ("file", "local"):
        from mo_loop.batching.storage.filesystems import local_path

        place = Path(local_path(place) or "")
    if isinstance(place, Path):
        return os.path.realpath(place)
    return f"{_OF_ONE_STORE.get(place.scheme, place.scheme)}://{place.rest}"
