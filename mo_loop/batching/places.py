"""Files at local paths and at URLs: those that a batch reads and writes, and small ones of all commands."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mo_loop.batching.storage.locations import Location, PathOrUrl, place_of
from mo_loop.errors import UsageError
from mo_loop.support.files import Content, write_whole

if TYPE_CHECKING:
    from mo_loop.batching.storage.scratch import Scratch


def read_bytes(place: PathOrUrl) -> bytes:
    """The content of a file. OSError for a local one that cannot be read, StorageError for an object."""
    if isinstance(place, Path):
        return place.read_bytes()
    from mo_loop.batching.storage.stores import read_whole

    return read_whole(place)


def write_content(place: PathOrUrl, content: Content) -> None:
    """Write a file whole or not at all. FileError if it cannot be written, StorageError for an object."""
    if isinstance(place, Path):
        write_whole(place, content)
        return
    from mo_loop.batching.storage.transfers import put_text

    put_text(place, content)


@dataclass(frozen=True)
class Places:
    """The folder of the outputs, the reports, and the report of an earlier batch."""

    folder: PathOrUrl
    report: PathOrUrl | None = None
    junit: PathOrUrl | None = None
    summary: PathOrUrl | None = None
    baseline: PathOrUrl | None = None

    @classmethod
    def of(cls, **given: str | os.PathLike[str] | None) -> Places:
        """The places of these texts. UsageError for a URL that is not valid."""
        return cls(**{name: place_of(os.fspath(each)) for name, each in given.items() if each is not None})

    def scratch(self, root: PathOrUrl, limit: int | None) -> Scratch | None:
        """Room for models below `root` and outputs at URLs; None if there are none.

        Raises:
            UsageError: they are in the memory of this process, which no worker can read.
        """
        urls = [each for each in (self.folder, root) if isinstance(each, Location)]
        if not urls:
            return None
        memory = next((each for each in urls if each.scheme == "memory"), None)
        if memory is not None:
            raise UsageError(
                f"{memory} is in the memory of one process", why="other processes convert the models", code="ML287",
                hint="give a folder, or the URL of a store",
            )  # fmt: skip
        from mo_loop.batching.storage.scratch import Scratch

        return Scratch(limit=limit).resolved()
