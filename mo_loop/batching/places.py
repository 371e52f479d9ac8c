"""Small files at local paths and at URLs: lists, reports, mappings."""

from __future__ import annotations

from pathlib import Path

from mo_loop.batching.storage.locations import PathOrUrl
from mo_loop.support.files import Content, write_whole


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
    from mo_loop.batching.storage.uploading import put_text

    put_text(place, content)
