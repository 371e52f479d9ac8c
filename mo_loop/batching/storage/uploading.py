"""upload_pair: puts the .xml and .bin of a model at URLs, so that no .xml is ever without its .bin.

    pair = upload_pair(Path("draft/model.xml"), Location("s3://ir/model.xml"))     # sizes and tags of both

Stores have no rename and no change of two objects at once. So the order is

    the old .xml is removed     from here on there is no model
    the .bin is put
    the .xml is put             from here on there is the new model

and each put shows all of an object or nothing. Where a .bin can be put on the condition that there is none, nothing
has to be removed first: without a .bin there is no .xml. A process that is killed in between leaves an .xml less, never
a wrong one. Afterwards the .bin is looked at: if another process has put a different one meanwhile, all is done again.
Two processes that write the same model with the same options write the same bytes and do not disturb each other.
"""

from __future__ import annotations

import random
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from mo_loop.batching.storage.locations import Location
from mo_loop.batching.storage.stamps import Info
from mo_loop.batching.storage.stores import Upload, abort, delete, drafts, find, put, put_file, put_new, uploads
from mo_loop.errors import StorageError
from mo_loop.support.files import Content, pieces_of, write_whole

ATTEMPTS = 6
"""The number of times that a pair is put while others replace it by different ones."""

STALE = 3600.0
"""Seconds after which an upload in parts that has not ended is taken for one of a killed process."""


@dataclass(frozen=True, slots=True)
class Uploaded:
    """Sizes and tags of a pair."""

    xml: Info
    bin: Info


def upload_pair(draft: Path, target: Location, *, is_new: bool = False) -> Uploaded:
    """Put the .xml `draft`, and the .bin of the same name, at `target` and the same name with .bin.

    `is_new` means that a listing had neither of them: if there still is no .bin, there is no .xml to be removed.

    Raises:
        StorageError: the store refuses or fails; then there is no .xml, except the old one if nothing was removed yet.
    """
    data, draft_data = target.with_suffix(".bin"), draft.with_suffix(".bin")
    for attempt in range(ATTEMPTS):
        placed_data = put_new(data, draft_data) if is_new and not attempt else None
        if placed_data is None:
            delete(target)
            placed_data = put_file(data, draft_data)
        try:
            placed = Uploaded(put_file(target, draft), placed_data)
            if find(data) == placed_data:
                return placed
        except BaseException:
            _withdraw(target)
            raise
        _withdraw(target)
        time.sleep(random.uniform(0, 0.2 * 2**attempt))
    raise StorageError(
        f"{target} cannot be written", why="another process writes a different model there", code="ML286",
        hint="write each model with one set of options, or give another prefix",
    )  # fmt: skip


def put_text(where: Location, content: Content) -> Info:
    """A report, a mapping or a list as one object. StorageError if it cannot be written."""
    if isinstance(content, str | bytes):
        return put(where, b"".join(pieces_of(content)))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "text"
        write_whole(file, content)
        return put_file(where, file)


class StaleUploads:
    """The incomplete uploads below a prefix that killed processes have left.

    Raises:
        StorageError: the store refuses to list uploads, or fails.
    """

    def __init__(self, prefix: Location) -> None:
        for where, age in drafts(prefix):
            if age > STALE:
                delete(where)
        self._left: dict[Location, list[Upload]] = {}
        for each in uploads(prefix):
            if each.age > STALE:
                self._left.setdefault(each.where, []).append(each)

    def end(self, target: Location) -> None:
        """End those in parts of the pair of an .xml: others in the bucket may be of other programs. StorageError if
        that fails."""
        for where in (target, target.with_suffix(".bin")) if self._left else ():
            for each in self._left.pop(where, ()):
                abort(each)


def _withdraw(target: Location) -> None:
    """Remove an .xml that may not belong to its .bin. If that fails too, the first error counts."""
    try:
        delete(target)
    except StorageError:
        return
