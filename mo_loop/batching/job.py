"""The conversion of one model in a worker: hash the inputs, convert, hash the outputs, compare the numbers.

    done = convert(Task("model.onnx", "out/.draft/3/model.xml", "out/model.xml", Work(options, digest)))
    done = convert(Task("s3://zoo/m.onnx", "", "s3://ir/m.xml", work, remote=Remote(scratch, ...)))

The .xml and .bin are written to a draft folder and moved to their place together: a worker may be killed at any time.
A model at a URL is staged and converted like every other model; a draft for a URL is on the local disk, and is put at
its URL. The record of such a conversion is put last.
"""

import gc
import os
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mo_loop.batching.engine import Done, Remote, Task
from mo_loop.batching.estimates import Meter
from mo_loop.batching.fingerprint import stamp, stamp_of
from mo_loop.batching.result import NOT_VERIFIED, Facts, StateEntry, errors_of, plain
from mo_loop.batching.storage.locations import Location, is_url
from mo_loop.conversion import Conversion
from mo_loop.converted_model import save_draft
from mo_loop.errors import MoLoopError, NotComparableError, traceback_text
from mo_loop.frontend.onnx_graphs import external_files
from mo_loop.ir.pair import move_pair, remove_draft
from mo_loop.printable import printable
from mo_loop.support.files import keep_sources, pair_of, refuse_device
from mo_loop.support.process_memory import paused_collector
from mo_loop.support.traversal import reached

if TYPE_CHECKING:
    from mo_loop.batching.storage.transfers import Staged

gc.freeze()  # imported objects stay: collections after each model need not search them for cycles


def convert(task: Task) -> Done:
    """Convert one model. Raises MemoryError if there is too little memory; the answer contains every other failure."""
    remote = task.remote
    if remote is not None:
        return _tried(lambda: _at_urls(task, remote))
    done = _computed(task)
    # The last step: a worker that is killed has moved its files only if its answer is on the way.
    return _tried(lambda: _placed(done, task))


def _computed(task: Task) -> Done:
    """All but the last step: the pair is a draft."""
    meter = Meter()
    with paused_collector(), warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        done = _tried(lambda: _compared(Done(_converted(task)), task))
        gc.collect(0)  # frees the objects of this model: the collector was paused, so all of them are young
    if done.entry is not None:
        done = replace(done, entry=replace(done.entry, facts=replace(done.entry.facts, cost=meter.cost())))
    texts = (*(printable(str(warning.message)) for warning in heard), *done.warnings)
    return replace(done, warnings=tuple(dict.fromkeys(texts)))


def _tried(step: Callable[[], Done]) -> Done:
    """Return the result of a step, or the answer for its exception."""
    try:
        return step()
    except Exception as error:
        if _wanted_memory(error):
            raise MemoryError(f"{type(error).__name__}: {error}") from error
        exit_code = error.exit_code if isinstance(error, MoLoopError) else 4
        # The traceback of a bug; for other errors the text is enough.
        return Done(None, errors_of(error), exit_code, traceback_text(error) if exit_code == 4 else "")


def _placed(done: Done, task: Task) -> Done:
    """Move the draft to its place, if there is an entry; else remove it."""
    draft = Path(task.draft)
    if done.entry is None:
        remove_draft(draft)
    else:
        move_pair(draft, Path(task.target), durable=task.durable)
    return done


def _converted(task: Task) -> StateEntry:
    refuse_device(task.source, or_pipe=True)  # one found in a folder: nobody writes to it
    files = external_files(task.source, task.work.options.allowed_folders)
    keep_sources(pair_of(task.target), [*(file.path for file in files), task.source], "convert into another folder")
    home = os.path.realpath(os.path.dirname(task.source) or ".")
    # Hashed before they are read for conversion: a change in between is detected by the next batch.
    source = stamp(task.source)
    external = {_relative(file.path, home): stamp_of(file) for file in files}
    graph: Any = Conversion(task.work.options, is_one_of_many=True).run(task.source)
    save_draft(graph, Path(task.draft), task.work.options.compress_to_fp16)
    xml, data = (stamp(path) for path in (task.draft, Path(task.draft).with_suffix(".bin")))
    scopes = list(graph.scopes())
    flow = Counter(node.type for scope in scopes for node in scope.ordered() if node.bodies)
    facts = Facts(sum(map(len, scopes)), dict(sorted(flow.items())))
    return StateEntry(task.work.digest, source, external, xml, data, facts)


def _relative(path: str, folder: str) -> str:
    try:
        return os.path.relpath(path, folder)
    except ValueError:  # another drive
        return path


def _compared(done: Done, task: Task) -> Done:
    """The result with that of the comparison, if there is to be one.

    A model whose numbers differ has no entry; the files of one that cannot be compared are kept, with a warning.
    """
    comparing = task.work.comparing
    if comparing is None:
        return done
    try:
        report, exit_code, difference = comparing.compare(task.source, task.draft, task.work.options)
    except NotComparableError as error:
        if comparing.strict:
            raise
        why = f"{error.message}: {error.why}" if error.why else error.message
        comparison = {"status": NOT_VERIFIED, "code": error.code, "why": why}
        return replace(done, warnings=(*done.warnings, f"{NOT_VERIFIED}: {why}"), comparison=comparison)
    if exit_code:
        return Done(exit_code=exit_code, difference=difference, comparison=report)
    return replace(done, comparison=report)


# -- URLs


def _at_urls(task: Task, remote: Remote) -> Done:
    with _local(task, remote) as (local, model):
        done = _computed(local)
        if done.entry is not None and model is not None:
            done = replace(done, entry=replace(done.entry, source=model.source, external=model.external))
        if remote.prefix is None:
            return _placed(done, local)
        return done if done.entry is None else _uploaded(done, done.entry, local, task, remote, remote.prefix)


@contextmanager
def _local(task: Task, remote: Remote) -> "Iterator[tuple[Task, Staged | None]]":
    """The task with local files instead of URLs, and the model that was staged."""
    from mo_loop.batching.storage.transfers import staged

    has_outputs = remote.prefix is not None
    if is_url(task.source):
        where = Location(task.source)
        with staged(where, remote.scratch, known=remote.listed, with_outputs=has_outputs) as model:
            keep_sources(map(Location, pair_of(task.target)), model.urls, "convert to another prefix")
            local = replace(task, source=str(model.path))
            yield _with_draft(local, model.drafts) if has_outputs else local, model
        return
    size = os.path.getsize(task.source) if os.path.isfile(task.source) else 0
    with remote.scratch.room(task.source, size) as room:
        yield _with_draft(task, room.folder), None


def _with_draft(task: Task, folder: Path) -> Task:
    return replace(task, draft=str(folder / "draft.xml"), target=str(folder / "model.xml"))


def _uploaded(done: Done, entry: StateEntry, local: Task, task: Task, remote: Remote, prefix: Location) -> Done:
    from mo_loop.batching.storage.transfers import upload_pair
    from mo_loop.batching.url_state import record_of, save

    pair = upload_pair(Path(local.draft), Location(task.target), is_new=remote.is_new)
    xml, data = replace(entry.xml, tag=pair.xml.tag), replace(entry.bin, tag=pair.bin.tag)
    entry = replace(entry, xml=xml, bin=data, warnings=done.warnings)
    record = record_of(remote.name, entry, is_local=not is_url(task.source))
    save(prefix, record, {"name": remote.name, **plain(entry)}, replaced=remote.records)
    return replace(done, entry=entry)


# -- failures


def _wanted_memory(error: BaseException) -> bool:
    """Whether the cause of `error` is a lack of memory."""

    def causes(each: BaseException) -> Iterator[BaseException]:
        return filter(None, (each.__cause__, each.__context__, *getattr(each, "errors", ())))

    return any(isinstance(each, MemoryError) for each in reached([error], causes))
