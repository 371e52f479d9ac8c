"""What is compared of objects at URLs: tags where the store has them, else sizes and SHA-256.

    made = with_outputs(with_source(entry.made, staged), uploaded)     # after a conversion
    is_source_current(made, model)                                     # before the next one
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from mo_loop.batch.fingerprint import Made, Stamp
from mo_loop.batch.plan import Planned
from mo_loop.batch.storage.locations import Location
from mo_loop.batch.storage.staging import Fetched, Staged, is_unchanged
from mo_loop.batch.storage.stores import Info
from mo_loop.batch.storage.uploading import Uploaded


def with_source(made: Made, staged: Staged) -> Made:
    """The same with the stamps of the objects that were staged."""
    return replace(
        made, source=_stamp(staged.source), external={name: _stamp(each) for name, each in staged.external.items()}
    )


def with_outputs(made: Made, uploaded: Uploaded) -> Made:
    """The same with the tags of the objects that were put."""
    return replace(made, xml=replace(made.xml, tag=uploaded.xml.tag), bin=replace(made.bin, tag=uploaded.bin.tag))


def is_source_current(made: Made, model: Planned) -> bool:
    """Whether the model at a URL, and its external data, are what the outputs were made from."""
    assert isinstance(model.source, Location)
    folder = model.source.parent
    if not is_stamp_current(model.source, made.source, model.found):
        return False
    return are_stamps_current((folder / name, wanted) for name, wanted in made.external.items())


def are_stamps_current(objects: Iterable[tuple[Location, Stamp]]) -> bool:
    """Whether objects are what their stamps say."""
    return all(is_stamp_current(where, wanted) for where, wanted in objects)


def is_stamp_current(where: Location, wanted: Stamp, found: Info | None = None) -> bool:
    """Whether an object is what its stamp says; `found` is what a listing says about it."""
    return is_unchanged(where, Fetched(Info(wanted.size, wanted.tag), wanted.sha256, wanted.ranges), found)


def _stamp(read: Fetched) -> Stamp:
    return Stamp(read.info.size, read.sha256, read.info.tag, read.ranges)
