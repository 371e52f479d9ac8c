"""Destination: where `mo-loop convert` puts the .xml and .bin, a local path or a URL.

    with destination("s3://ir/model.xml", "model.onnx") as place:
        save_model(model, place.local)          # a draft on the local disk
        place.upload()                          # nothing for a local path
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mo_loop.batch.storage.locations import Location, is_url, location_of
from mo_loop.errors import UsageError
from mo_loop.support.files import is_among, keep_sources


@dataclass(frozen=True)
class Destination:
    """The path of the .xml to write, and its URL if it has one."""

    local: str
    url: Location | None = None

    @property
    def shown(self) -> str:
        """The name that people see."""
        return self.local if self.url is None else str(self.url)

    def require_kept(self, source: str, path: str, read: Iterable[str]) -> None:
        """UsageError if an object of the model at the URL `source` would be overwritten.

        `path` is its local copy, `read` are the local copies of all that was read. `save_model` compares local outputs.
        """
        if self.url is None or not is_url(source):
            return
        base, folder = location_of(source).parent, os.path.realpath(os.path.dirname(path))
        own = [base / os.path.relpath(each, folder) for each in map(os.path.realpath, read)]
        keep_sources((self.url, self.url.with_suffix(".bin")), own, "give the output another name")

    def upload(self) -> None:
        """Put the pair at its URL. StorageError if the store refuses or fails."""
        if self.url is not None:
            from mo_loop.batch.storage.uploading import upload_pair

            upload_pair(Path(self.local), self.url)


@contextmanager
def destination(target: str, source: str) -> Iterator[Destination]:
    """The place of the .xml `target`. UsageError if the .xml or the .bin is the model itself, at a URL."""
    if not is_url(target):
        yield Destination(target)
        return
    where = location_of(target)
    if is_among(source, (where, where.with_suffix(".bin"))):
        raise UsageError(f"the output {where} is the model itself", why="it would be lost", hint="give another name")
    from mo_loop.batch.storage.scratch import Scratch
    from mo_loop.batch.storage.staging import local_name

    with Scratch().room(where, 0) as room:
        yield Destination(str(room.folder / local_name(where)), where)


def pair_sizes(xml: str) -> tuple[int, int]:
    """The bytes of an .xml and of its .bin."""
    return os.stat(xml).st_size, os.stat(os.path.splitext(xml)[0] + ".bin").st_size


def named(source: str) -> str:
    """The model as the summary and the default name of the output have it: a URL without credentials."""
    return str(location_of(source)) if is_url(source) else source


def as_folder(target: str | None) -> str | None:
    """A bucket without a name in it is a folder: s3://ir means s3://ir/."""
    if target is not None and is_url(target) and "/" not in Location(target).rest:
        return f"{target}/"
    return target
