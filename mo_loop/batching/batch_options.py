"""BatchOptions: the options of a batch, which `mo_loop.batch` and `mo-loop batch` share. Places: the files that it
reads and writes, at local paths and at URLs.

    options = BatchOptions(jobs=2, timeout=60)

A field is all that there is of an option: `batch` has an argument of its name, the command has its flag, the file of
`--config` has its key, and a report has the recorded ones. The module loads nothing else of a batch.
"""

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mo_loop.batching.storage.locations import Location, PathOrUrl, place_of
from mo_loop.errors import UsageError
from mo_loop.support.files import Content, write_whole
from mo_loop.support.flags import FILES, REPORTS, RUN, described, flag

if TYPE_CHECKING:
    from mo_loop.batching.storage.scratch import Scratch


@dataclass(frozen=True, kw_only=True)
class BatchOptions:
    """The options of a batch.

    Args:
    """

    jobs: int | None = flag(
        None, "The number of worker processes.  [default: one for each processor]", RUN, "-j", "--jobs", least=1,
        metavar="N", place=2,
    )
    timeout: float = flag(
        600.0, "End the conversion of a model that takes longer.", RUN, kind="number", above=0, most=1e6,
        show_default=True, metavar="SECONDS", place=2,
    )
    memory: int | None = flag(
        None, "The memory that a worker may allocate, for example 4G. It has no effect on Windows and macOS.", RUN,
        kind="size", metavar="SIZE", place=2,
        library="The memory that a worker may allocate, in bytes. It has no effect on Windows and macOS.",
    )
    scratch: int | None = flag(
        None, "The local disk space for models and outputs at URLs, for example 20G.  [default: no limit]", RUN,
        kind="size", metavar="SIZE", place=2, recorded=False,
        library="The local disk space for models and outputs at URLs, in bytes. None is no limit.",
    )
    keep_going: bool = flag(
        True, "Continue after a failure, which is the default, or begin no other model.", RUN,
        "--keep-going/--fail-fast",
        place=2, recorded=False, library="Continue after a failure. False: begin no other model.",
    )
    force: bool = flag(False, "Convert models that are up to date again.", RUN, place=2, recorded=False)
    durable: bool = flag(
        False, "Wait until the .xml and the .bin are on the disk, so that a power failure cannot damage them.", FILES,
        place=1, recorded=False,
    )
    baseline: str | os.PathLike[str] | None = flag(
        None, "The report of an earlier batch. Models that failed there do not count for the exit code.", REPORTS,
        kind="file", metavar="FILE", recorded=False,
        library="The report of an earlier batch. Models that failed there do not count for `passed`.",
    )

    @property
    def workers(self) -> int:
        """The number of worker processes."""
        return self.jobs or (len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1)

    def facts(self) -> dict[str, Any]:
        """The recorded options, as plain data."""
        return {each.name: getattr(self, each.name) for each in fields(BatchOptions) if each.metadata["recorded"]}


BatchOptions.__doc__ = f"{(BatchOptions.__doc__ or '').rstrip()}\n{described(BatchOptions, indent=8)}    "


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
    def of(cls, **given: str | os.PathLike[str] | None) -> "Places":
        """The places of these texts. UsageError for a URL that is not valid."""
        return cls(**{name: place_of(os.fspath(each)) for name, each in given.items() if each is not None})

    def scratch(self, root: PathOrUrl, limit: int | None) -> "Scratch | None":
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
            )
        from mo_loop.batching.storage.scratch import Scratch

        return Scratch(limit=limit).resolved()
