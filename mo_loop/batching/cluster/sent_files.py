"""Files of a user that reach the workers: extensions with the files that they name, inputs of a comparison.

    files = read_files(["trouble.py", "sets"])          # here; a folder with all that is in it
    places = written(files, folder)                     # there: {"trouble.py": "<folder>/0/trouble.py", ...}
    task = with_places(task, places)                    # the task that names the files there
    answer = with_given_paths(answer, texts)            # and the answer that names those here
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from mo_loop.batching.assignment import Answer
from mo_loop.batching.declared_files import declared_files, files_of
from mo_loop.batching.task import Task
from mo_loop.errors import ClusterError, FileError, UsageError
from mo_loop.printable import with_texts

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
            raise FileError(f"{given} cannot be read: {error.strerror or error}", code="ML212") from None
    return tuple(found)


def _with_places(given: str) -> Iterator[tuple[Path, str]]:
    """The files that are sent with a path, and the place of each relative to it."""
    path = Path(given)
    for each in sorted(files_of(path)):
        yield each, (Path(_name(given)) / each.relative_to(path)).as_posix()
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
    given = work.options.extensions or ()
    paths = tuple(places.get(each, each) for each in ((given,) if isinstance(given, str) else given))
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
