"""The requirements of a batch on a worker of a cluster, checked on the worker; and the reply of one that does not meet
them.

    lacking = requirements.missing()                  # in the setup of a worker: an error, or None
    lacking = requirements.missing(with_writing=True) # after the store has refused a model of it

A missing requirement is never the result of a model: other workers convert the models.

Files of a user that reach the workers: extensions with the files that they name, inputs of a comparison.

    files = read_files(["trouble.py", "sets"])          # here; a folder with all that is in it
    places = written(files, folder)                     # there: {"trouble.py": "<folder>/0/trouble.py", ...}
    task = with_places(task, places)                    # the task that names the files there
    answer = with_given_paths(answer, texts)            # and the answer that names those here
"""

import hashlib
import os
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mo_loop.batching.cluster.connecting import own_versions, versions_text
from mo_loop.batching.engine import Answer, Task
from mo_loop.batching.fingerprint import declared_files, files_of
from mo_loop.batching.result import RECORDS
from mo_loop.batching.storage.locations import Location
from mo_loop.errors import ClusterError, FileError, MoLoopError, UsageError
from mo_loop.printable import with_texts
from mo_loop.support.files import reason_of

OF_WORKERS = ("ML280", "ML281")
"""Codes of failures of a model whose cause can be its worker: no package for the URL, no credentials."""


@dataclass(frozen=True)
class Unable:
    """The answer of a worker that cannot convert the models of a batch: its address, and its error as texts."""

    worker: str
    code: str
    message: str
    why: str = ""
    hint: str = ""

    @classmethod
    def by(cls, worker: str, error: BaseException) -> "Unable":
        """Because of an exception on the worker."""
        if isinstance(error, MoLoopError):
            return cls(worker, error.code, error.message, error.why, error.hint)
        why = f"{type(error).__name__}: {error}"
        return cls(worker, "ML297", "the worker cannot convert models", why, "see the log of the worker")

    @property
    def error(self) -> ClusterError:
        """The error of a package that is missing."""
        return ClusterError(f"{self.message} (worker {self.worker})", why=self.why, hint=self.hint, code=self.code)


@dataclass(frozen=True)
class Requirements:
    """The versions of packages, the local folders that have to be there, and an object and a prefix of a store: the
    first model and its output."""

    versions: Mapping[str, str | None]
    folders: tuple[str, ...] = ()
    model: Location | None = None
    output: Location | None = None

    def missing(self, *, with_writing: bool = False) -> MoLoopError | None:
        """The error for the first requirement that this process does not meet; None if it meets all. A store that does
        not answer, or a missing model, is not an error here."""
        own = own_versions()
        if own != self.versions:
            lists = f"of the batch: {versions_text(self.versions)}\n         of the worker: {versions_text(own)}"
            return ClusterError(
                "the worker has other versions", why=lists, code="ML293", hint="install the same versions everywhere"
            )
        blind = next((each for each in self.folders if not os.path.isdir(each)), None)
        if blind is not None:
            return ClusterError(
                f"the worker does not see {blind}", code="ML296", hint="use a folder that all workers share, or URLs"
            )
        try:
            self._access(with_writing)
        except MoLoopError as error:
            return error if error.code in OF_WORKERS else None
        return None

    def _access(self, with_writing: bool) -> None:
        if self.model is None and self.output is None:
            return
        from mo_loop.batching.storage.stores import delete, find, listed, put

        if self.model is not None:
            find(self.model)
        if self.output is None:
            return
        next(iter(listed(self.output)), None)
        if with_writing:
            mark = self.output / f"{RECORDS}/access-{uuid.uuid4().hex[:12]}"
            put(mark, b"")
            delete(mark)


def is_of_worker(answer: Answer) -> bool:
    """Whether a model failed for a cause that can be its worker."""
    done = getattr(answer.result, "value", None)
    return any(each.code in OF_WORKERS for each in getattr(done, "errors", ()))


LARGEST = 256 << 20
"""The most bytes of all files together: each worker gets them."""


@dataclass(frozen=True)
class SentFile:
    """A file that is sent with a given path: that path, its place relative to it, its content and its hash."""

    given: str
    place: str
    sha256: str
    content: bytes


def read_files(paths: Iterable[str]) -> tuple[SentFile, ...]:
    """Read files that are sent, and folders.

    Raises:
        UsageError: they are too large.
        FileError: one of them cannot be read.
        ExtensionError: an extension names files that are not in its folder.
    """
    found = []
    total = 0
    for given in dict.fromkeys(paths):
        try:
            for path, place in _with_places(given):
                total += os.path.getsize(path)
                if total > LARGEST:
                    raise UsageError(
                        f"{path} is too large to be sent to the workers",
                        why=f"all files may have {LARGEST} bytes together",
                    )
                content = path.read_bytes()
                found.append(SentFile(given, place, hashlib.sha256(content).hexdigest(), content))
        except OSError as error:
            raise FileError(f"{given} cannot be read: {reason_of(error)}", code="ML212") from None
    return tuple(found)


def _with_places(given: str) -> Iterator[tuple[Path, str]]:
    """The files that are sent with a path, and the place of each relative to it."""
    path = Path(given)
    yield from ((each, (Path(_name(given)) / each.relative_to(path)).as_posix()) for each in sorted(files_of(path)))
    if path.suffix == ".py":
        yield from ((path.parent / each, each) for each in declared_files(given))


def _name(given: str) -> str:
    return os.path.basename(os.path.abspath(given))


def written(files: Iterable[SentFile], folder: str) -> dict[str, str]:
    """Write the files, those of each given path into a folder of their own: given path -> path there.

    Raises:
        ClusterError: a file did not arrive as it was sent.
    """
    places: dict[str, str] = {}
    for each in files:
        if hashlib.sha256(each.content).hexdigest() != each.sha256:
            raise ClusterError(f"{each.given} did not arrive as it was sent", code="ML297", hint="run the batch again")
        own = os.path.dirname(places[each.given]) if each.given in places else os.path.join(folder, str(len(places)))
        places[each.given] = os.path.join(own, _name(each.given))
        path = Path(own, each.place)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(each.content)
    return places


def with_places(task: Task, places: Mapping[str, str]) -> Task:
    """The task with other paths of extensions and inputs."""
    work = task.work
    paths = tuple(places.get(each, each) for each in work.options.extension_sources)
    comparing = work.comparing
    if comparing is not None:
        comparing = comparing.with_inputs(tuple(places.get(each, each) for each in comparing.inputs))
    return replace(task, work=replace(work, options=replace(work.options, extensions=paths), comparing=comparing))


def with_given_paths(answer: Answer, texts: Mapping[str, str]) -> Answer:
    """The answer with texts replaced in all of its strings."""

    def replaced(text: str) -> str:
        for there, here in texts.items():
            text = text.replace(there, here)
        return text

    return with_texts(answer, replaced)
