"""Outputs: the .xml and .bin of a batch, in a folder or below a URL, and which of them are up to date.

    outputs = Outputs(Path("ir"))                                # or a Location, or models at URLs: with a Scratch
    with outputs.drafts() as drafts:
        is_new = outputs.prepare(model)
        entry = outputs.current(model, work)                     # None: convert it
        done = ...                                               # a worker converts outputs.task(...)
        outputs.put(model, done.entry)
    outputs.close()

The differences between a folder and a store are in an OutputState: `mo_loop.batching.folder_state` is that of a folder,
`mo_loop.batching.url_state` that of a prefix of URLs, which is loaded for URLs alone.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mo_loop.batching.entries import StateEntry
from mo_loop.batching.estimates import Earlier
from mo_loop.batching.fingerprint import is_current
from mo_loop.batching.folder_state import FolderState
from mo_loop.batching.plan import Planned, has_name, require_name
from mo_loop.batching.storage.locations import Location, PathOrUrl
from mo_loop.batching.task import Remote, Task, Work

if TYPE_CHECKING:
    from mo_loop.batching.storage.scratch import Scratch


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
        source, target = map(_text_of, (model.source, model.target))
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


def _text_of(place: PathOrUrl) -> str:
    return place.url if isinstance(place, Location) else str(place)
