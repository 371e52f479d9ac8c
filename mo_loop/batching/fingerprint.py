"""Hashes of files and options, which decide whether the .xml and .bin files of a model are up to date.

A file is read once, in blocks. The files are up to date if none of these has changed: the model, its external data, the
options, the extension files and the files that they name, the packages that extend conversions, the versions of mo_loop
and of onnx. Modules that an extension imports are not checked.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from importlib import metadata
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mo_loop.batching.declared_files import declared_files
from mo_loop.batching.entries import StateEntry
from mo_loop.batching.plan import Planned
from mo_loop.batching.storage.locations import PathOrUrl
from mo_loop.batching.storage.stamps import Info, Stamp
from mo_loop.errors import UsageError
from mo_loop.version import __version__

if TYPE_CHECKING:
    from mo_loop.graph.tensor import DataFile


def stamp(path: str | os.PathLike[str]) -> Stamp:
    """Read a file once. OSError if that fails."""
    with open(path, "rb", buffering=0) as file:
        return _stamp(file)


def stamp_of(file: DataFile) -> Stamp:
    """Read a file of external data once. FileError if it is not the one that was checked."""
    with file.open() as opened:
        return _stamp(opened)


def _stamp(file: FileIO) -> Stamp:
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Stamp(file.tell(), digest)


def of_options(options: Mapping[str, Any], extensions: Iterable[str], plugins: bool) -> str:
    """One hash of everything that determines the output except the model.

    Raises:
        UsageError: an extension file cannot be read.
    """
    facts = {
        "options": options,
        "extensions": [_content(path) for path in extensions],
        "plugins": _plugins() if plugins else [],
        "mo_loop": __version__,
        "onnx": metadata.version("onnx"),
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _content(path: str) -> str | list[str]:
    """The hash of an extension; with those of the files that it names, if it names some."""
    try:
        own, more = stamp(path).sha256, [stamp(Path(path).parent / each).sha256 for each in declared_files(path)]
        return [own, *more] if more else own
    except OSError as error:
        raise UsageError(f"the extension {path} cannot be read: {error.strerror or error}", code="ML261") from None


def _plugins() -> list[str]:
    """The packages that extend conversions, found without `mo_loop.extensions`, whose import loads onnx."""
    points = metadata.entry_points(group="mo_loop.passes")
    packages = ((entry, getattr(entry, "dist", None)) for entry in points)
    return sorted(
        f"{dist.name if dist else ''} {dist.version if dist else ''} {entry.name} {entry.value}"
        for entry, dist in packages
    )


def is_current(entry: StateEntry, model: Planned, options: str) -> bool:
    """Whether the .xml and .bin of `model` are unchanged and made from these inputs. The cheap checks come first.

    StorageError if a store fails.
    """
    if entry.options != options:
        return False
    files: list[tuple[PathOrUrl, Stamp, Info | None]] = [
        *((place, wanted, None) for place, wanted in zip(model.outputs, (entry.xml, entry.bin), strict=True)),
        (model.source, entry.source, model.listed),
        *((model.source.parent / name, wanted, None) for name, wanted in entry.external.items()),
    ]
    try:
        for place, wanted, _ in files:
            if isinstance(place, Path) and not (place.is_file() and place.stat().st_size == wanted.size):
                return False
        return all(_is_unchanged(*file) for file in files)
    except (OSError, ValueError):
        return False


def _is_unchanged(place: PathOrUrl, wanted: Stamp, listed: Info | None) -> bool:
    """Whether a file has its stamp; `listed` is the entry of an object in a listing."""
    if isinstance(place, Path):
        return stamp(place) == wanted
    from mo_loop.batching.storage.staging import is_unchanged

    return is_unchanged(place, wanted, listed)
