"""Outputs: the place of the .xml and .bin of a batch, and what is up to date there.

    outputs = LocalOutputs(folder)                               # or mo_loop.batch.anywhere.outputs_for(...)
    with outputs.drafts() as drafts:
        is_new = outputs.prepare(model)
        entry = outputs.current(model, work)                     # None: convert it
        done = ...                                               # a worker runs outputs.function on outputs.task(...)
        outputs.put(model, done.entry)
    outputs.close()

LocalOutputs is a folder, with the state in one file. `mo_loop.batch.remote_outputs` is a prefix of URLs.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from mo_loop.batch.drafts import drafts_in
from mo_loop.batch.estimates import Earlier, earlier_from
from mo_loop.batch.fingerprint import are_current, is_current, outputs_of
from mo_loop.batch.plan import Planned, has_name, require_name
from mo_loop.batch.state import Entry, State
from mo_loop.batch.task import Remote, Task, Work
from mo_loop.ir.pair import restore_pair

if TYPE_CHECKING:
    from mo_loop.batch.storage.scratch import Scratch

LOCAL_JOB = "mo_loop.batch.job:convert"
REMOTE_JOB = "mo_loop.batch.remote_job:convert"


class Outputs(Protocol):
    """The outputs of one batch. All but `put`, `save` and `close` may be called from several threads."""

    note: str
    """Why nothing is up to date although there is a state; empty if it is used."""

    function: str
    """What a worker runs on a task, as `module:function`."""

    def drafts(self) -> AbstractContextManager[str]:
        """A folder for temporary files of the workers while the batch runs."""

    def prepare(self, model: Planned) -> bool:
        """Bring into order what a killed process left of a model's outputs; whether there is no .bin that a killed
        worker could not have left. StorageError if the model can have no outputs."""

    def known(self, model: Planned) -> Entry | None:
        """The entry of a model all of whose files are local: who has the model next compares them (`is_current`)."""

    def current(self, model: Planned, work: Work) -> Entry | None:
        """The entry of a model that is up to date, else None."""

    def earlier(self, model: Planned) -> Earlier | None:
        """What the conversion of an earlier batch took, also of another version of the model; no object is read."""

    def task(self, model: Planned, work: Work, durable: bool) -> Task:
        """What a worker has to do, without its draft."""

    def put(self, model: Planned, entry: Entry) -> None:
        """Keep the entry of a model that was converted."""

    def save(self) -> None:
        """Write what `put` kept. FileError if that fails."""

    def close(self) -> None:
        """The same at the end of the batch."""


class LocalOutputs:
    """Outputs in a folder. The models may be at URLs."""

    def __init__(self, folder: Path, scratch: Scratch | None = None) -> None:
        self.folder = folder
        self.state = State(folder)
        self.note = self.state.note
        self.function = LOCAL_JOB if scratch is None else REMOTE_JOB
        self._scratch = scratch

    def drafts(self) -> AbstractContextManager[str]:
        return drafts_in(self.folder)

    def prepare(self, model: Planned) -> bool:
        require_name(model)
        xml, data = model.outputs
        restore_pair(xml)
        return not data.exists()

    def known(self, model: Planned) -> Entry | None:
        return self.state.get(self._key(model)) if isinstance(model.source, Path) else None

    def current(self, model: Planned, work: Work) -> Entry | None:
        entry = self.state.get(self._key(model)) if has_name(model) else None
        if entry is None:
            return None
        if isinstance(model.source, Path):
            return entry if is_current(entry.made, model, work.digest) else None
        from mo_loop.batch.remote_stamps import is_source_current

        made = entry.made
        is_same = made.options == work.digest and are_current(outputs_of(made, model))
        return entry if is_same and is_source_current(made, model) else None

    def earlier(self, model: Planned) -> Earlier | None:
        entry = self.state.get(self._key(model))
        if entry is None:
            return None
        external = sum(each.size for each in entry.made.external.values())
        return earlier_from(entry.made.source.size, external, entry.facts)

    def task(self, model: Planned, work: Work, durable: bool) -> Task:
        if isinstance(model.source, Path):
            return Task(str(model.source), "", str(model.target), work, durable)
        assert self._scratch is not None
        remote = Remote(self._scratch, model.found)
        return Task(model.source.url, "", str(model.target), work, durable, remote)

    def put(self, model: Planned, entry: Entry) -> None:
        self.state.put(self._key(model), entry)

    def save(self) -> None:
        self.state.save()

    def close(self) -> None:
        self.state.close()

    def _key(self, model: Planned) -> str:
        return model.outputs[0].relative_to(self.folder).as_posix()
