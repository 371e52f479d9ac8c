"""Files of a user that reach the workers: extensions, inputs of a comparison.

    files = read_files(["trouble.py"])                  # here
    places = written(files, folder)                     # there: {"trouble.py": "<folder>/0/trouble.py"}
    task = with_places(task, places)                    # the task that names the files there
    answer = with_given_paths(answer, texts)               # and the answer that names those here
"""

from __future__ import annotations

import dataclasses
import hashlib
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from mo_loop.batch.task import Task
from mo_loop.errors import ClusterError, FileError, UsageError

LARGEST = 256 << 20
"""The most bytes of all files together: each worker gets them."""


@dataclass(frozen=True)
class SentFile:
    """A file as its path was given, its content and its hash."""

    given: str
    sha256: str
    content: bytes


def read_files(paths: Iterable[str]) -> tuple[SentFile, ...]:
    """Read files that are sent.

    Raises:
        UsageError: they are too large.
        FileError: one of them cannot be read.
    """
    found = []
    total = 0
    for path in dict.fromkeys(paths):
        try:
            total += os.path.getsize(path)
            if total > LARGEST:
                raise UsageError(
                    f"{path} is too large to be sent to the workers", why=f"all files may have {LARGEST} bytes together"
                )
            content = Path(path).read_bytes()
        except OSError as error:
            raise FileError(f"{path} cannot be read: {error.strerror or error}", code="ML212") from None
        found.append(SentFile(path, hashlib.sha256(content).hexdigest(), content))
    return tuple(found)


def written(files: Iterable[SentFile], folder: str) -> dict[str, str]:
    """Write the files into a folder of their own each: given path -> path there.

    Raises:
        ClusterError: a file did not arrive as it was sent.
    """
    places = {}
    for number, each in enumerate(files):
        if hashlib.sha256(each.content).hexdigest() != each.sha256:
            raise ClusterError(f"{each.given} did not arrive as it was sent", code="ML297", hint="run the batch again")
        path = Path(folder, str(number), os.path.basename(each.given))
        path.parent.mkdir()
        path.write_bytes(each.content)
        places[each.given] = str(path)
    return places


def with_places(task: Task, places: Mapping[str, str]) -> Task:
    """The task with other paths of extensions and inputs."""
    work = task.work
    given = work.options.extensions or ()
    paths = tuple(places.get(each, each) for each in ((given,) if isinstance(given, str) else given))
    comparing = work.comparing
    if comparing is not None:
        comparing = replace(comparing, inputs=tuple(places.get(each, each) for each in comparing.inputs))
    return replace(task, work=replace(work, options=replace(work.options, extensions=paths), comparing=comparing))


def with_given_paths(value: Any, texts: Mapping[str, str]) -> Any:
    """The same value with texts replaced in all of its strings: tuples, lists, dicts and dataclasses are followed."""
    if isinstance(value, str):
        for there, here in texts.items():
            value = value.replace(there, here)
        return value
    if isinstance(value, tuple | list):
        return type(value)(with_given_paths(each, texts) for each in value)
    if isinstance(value, dict):
        return {key: with_given_paths(each, texts) for key, each in value.items()}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {each.name: with_given_paths(getattr(value, each.name), texts) for each in dataclasses.fields(value)}
        return replace(value, **fields)
    return value
