"""The conversion of one model in a worker, where the model or its outputs are at URLs.

    done = convert(Task("s3://zoo/m.onnx", "", "s3://ir/m.xml", work, remote=Remote(scratch, ...)))

The model is staged, converted as every other model into a draft on the local disk, and the draft is put at its URL or
moved to its place. The record of the conversion is put last.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from mo_loop.batch.job import computed, placed, tried
from mo_loop.batch.remote_stamps import with_outputs, with_source
from mo_loop.batch.state import plain
from mo_loop.batch.state_records import record_of
from mo_loop.batch.storage.locations import Location, is_url
from mo_loop.batch.storage.remote_state import save
from mo_loop.batch.storage.staging import Staged, staged
from mo_loop.batch.storage.uploading import upload_pair
from mo_loop.batch.task import Done, Remote, Task
from mo_loop.support.files import overwritten_source


def convert(task: Task) -> Done:
    """Convert one model. Raises MemoryError if there is too little memory; the answer contains every other failure."""
    assert task.remote is not None
    remote = task.remote
    return tried(lambda: _converted(task, remote))


def _converted(task: Task, remote: Remote) -> Done:
    with _local(task, remote) as (local, model):
        done = computed(local)
        if done.entry is not None and model is not None:
            done = replace(done, entry=replace(done.entry, made=with_source(done.entry.made, model)))
        if remote.prefix is None:
            return placed(done, local)
        return _uploaded(done, local, task, remote)


@contextmanager
def _local(task: Task, remote: Remote) -> Iterator[tuple[Task, Staged | None]]:
    """The task with local files in the place of URLs, and the model that was staged."""
    has_outputs = remote.prefix is not None
    if is_url(task.source):
        where = Location(task.source)
        with staged(where, remote.scratch, known=remote.found, with_outputs=has_outputs) as model:
            _keep(model, task.target)
            local = replace(task, source=str(model.path))
            yield _with_draft(local, model.drafts) if has_outputs else local, model
        return
    size = os.path.getsize(task.source) if os.path.isfile(task.source) else 0
    with remote.scratch.room(task.source, size) as room:
        yield _with_draft(task, room.folder), None


def _with_draft(task: Task, folder: Path) -> Task:
    return replace(task, draft=str(folder / "draft.xml"), target=str(folder / "model.xml"))


def _keep(model: Staged, target: str) -> None:
    """Refuse to overwrite an object of the model."""
    for each in (target, os.path.splitext(target)[0] + ".bin"):
        if each in model.urls:
            raise overwritten_source(str(Location(each)), "convert to another prefix")


def _uploaded(done: Done, local: Task, task: Task, remote: Remote) -> Done:
    if done.entry is None:
        return done
    assert remote.prefix is not None
    placed_at = upload_pair(Path(local.draft), Location(task.target), is_new=remote.is_new)
    entry = replace(done.entry, made=with_outputs(done.entry.made, placed_at), warnings=done.warnings)
    record = record_of(remote.name, entry, is_local=not is_url(task.source))
    save(remote.prefix, record, {"name": remote.name, **plain(entry)}, replaced=remote.records)
    return replace(done, entry=entry)
