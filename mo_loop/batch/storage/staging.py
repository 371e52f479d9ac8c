"""staged: a model at a URL, brought to the local disk with the external data that it reads.

    with staged(Location("s3://zoo/model.onnx"), Scratch(limit=20 << 30)) as here:
        convert(here.path)                        # here.files: size, tag and SHA-256 of what was read

Of external data only the ranges that the model names are fetched, into a sparse file of the same size. Its names follow
the rules of `mo_loop.frontend.external_files`: below the folder of the model, never absolute, never through `..`, and
where the URL is a path of this machine (file://) not through a link.
"""

from __future__ import annotations

import errno
import hashlib
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mo_loop.batch.storage.filesystems import local_path
from mo_loop.batch.storage.locations import Location
from mo_loop.batch.storage.scratch import Room, Scratch
from mo_loop.batch.storage.stamps import Info, Ranges, Stamp
from mo_loop.batch.storage.stores import BLOCK, blocks, find, info, read_whole
from mo_loop.errors import FileError, StorageError, UsageError

if TYPE_CHECKING:
    from mo_loop.graph.data_file import DataFile

GAP = 64 << 10
"""Ranges that are closer than this are fetched as one."""

LONGEST_NAME = 200
"""Bytes of a name on the local disk. Most file systems allow 255, and drafts have some more than their files."""

_DRAFTS = "made"
_SOURCE = "model"


@dataclass(frozen=True, slots=True)
class Staged:
    """A model on the local disk: its path, a folder for what is made of it, and what was read.

    The names of external data in `external` are relative to the model.
    """

    where: Location
    path: Path
    drafts: Path
    source: Stamp
    external: Mapping[str, Stamp]

    @property
    def urls(self) -> tuple[str, ...]:
        """The URLs of the model and of its external data."""
        return self.where.url, *((self.where.parent / name).url for name in self.external)


@contextmanager
def staged(
    where: Location, scratch: Scratch, *, known: Info | None = None, with_outputs: bool = False
) -> Iterator[Staged]:
    """The model at `where` as a local file, removed at the end.

    `known` is what a listing said about it. With `with_outputs` there is room for an .xml and a .bin of its size too.

    Raises:
        StorageError: an object is missing or refused, the store fails, or the model needs more than the limit.
        FileError: the model is not ONNX, changed while it was read (ML270), or names data outside its folder.
    """
    _require_name(where)
    times = 2 if with_outputs else 1
    found = known or info(where)
    needed = found.size * times
    while True:
        with ExitStack() as stack:
            room = stack.enter_context(scratch.room(where, needed))
            staging = _Staging(where, room, found)
            staging.fetch_model()
            if known is not None and staging.found != known:
                found, known = staging.found, None
            total = (found.size + staging.external_size()) * times
            scratch.require(where, total)
            if total > needed and not room.grow(total):
                needed = total  # others have the rest: this room ends, so that they never wait for it
                continue
            yield staging.fetch_data()
            return


@contextmanager
def copied(files: Sequence[Location], scratch: Scratch) -> Iterator[list[Path]]:
    """Whole objects as local files of one folder, with their own names, removed at the end: an IR, a set of inputs.

    Raises:
        StorageError: an object is missing or refused, the store fails, or the files need more than the limit.
        FileError: an object changed while it was read (ML270).
    """
    found = {}
    for where in files:
        _require_name(where)
        found[where] = info(where)
    total = sum(each.size for each in found.values())
    scratch.require(files[0], total)
    with scratch.room(files[0], total) as room:
        paths = []
        for where, known in found.items():
            path = room.folder / local_name(where)
            _written(where, blocks(where, ((0, known.size),)), known.size, path)
            _require_same(where, known)
            paths.append(path)
        yield paths


def local_name(where: Location) -> str:
    """The name of the local copy of an object: its own, unless that is too long for a file. An .xml and its .bin have
    one stem."""
    if len(os.fsencode(where.name)) <= LONGEST_NAME:
        return where.name
    stem = hashlib.sha256(os.fsencode(where.stem)).hexdigest()[:32]
    return f"{stem}{where.suffix if len(where.suffix) < len('.onnx_data') else ''}"


def is_unchanged(where: Location, like: Stamp, now: Info | None = None) -> bool:
    """Whether an object has the content that was read: by its tag, or by size and SHA-256 if the store has none."""
    found = now or find(where)
    if found is None or found.size != like.size:
        return False
    if found.tag and like.tag:
        return found.tag == like.tag
    size = info(where).size  # it can have changed since it was listed
    digest = hashlib.sha256()
    for _, block in blocks(where, ((start, min(end, size)) for start, end in like.ranges or ((0, size),))):
        digest.update(block)
    return digest.hexdigest() == like.sha256


class _Staging:
    """The steps of one model in one room."""

    def __init__(self, where: Location, room: Room, found: Info) -> None:
        self.where = where
        self.found = found
        self.folder = room.folder / _SOURCE
        self.path = self.folder / local_name(where)
        self.drafts = room.folder / _DRAFTS
        self.folder.mkdir()
        self.drafts.mkdir()
        self._source: Stamp | None = None
        self._wanted: dict[str, Ranges] = {}
        self._infos: dict[str, Info] = {}
        self._files: dict[str, DataFile] = {}
        """The files of external data that are on this machine anyway."""

    def fetch_model(self) -> None:
        """The .onnx itself. One that a listing knows and that fits into one request is not asked for again."""
        try:
            self._source = self._fetched_model()
        except StorageError as error:
            if error.code not in ("ML270", "ML286"):
                raise
            self.found = info(self.where)  # it was replaced after it was listed
            self._source = self._fetched_model()
        if self.found.size > BLOCK:
            _require_same(self.where, self.found)

    def _fetched_model(self) -> Stamp:
        size = self.found.size
        parts = ((0, read_whole(self.where, size)),) if size <= BLOCK else blocks(self.where, ((0, size),))
        return Stamp(size, _written(self.where, parts, size, self.path), self.found.tag)

    def external_size(self) -> int:
        """The bytes of external data that the model reads."""
        if self.found.size <= BLOCK and b"location" not in self.path.read_bytes():
            return 0  # most models: they need not be parsed for that
        from mo_loop.frontend.external_data import external_ranges

        for given, ranges in external_ranges(self.path):
            _require_below(given)
            location = PurePosixPath(given).as_posix()
            if location == self.where.name:
                continue
            found = find(self.where.parent / location)
            if found is None:
                continue  # the conversion reports it, with the tensor that is in it
            self._infos[location] = found
            self._wanted[location] = _joined(ranges, found.size)
            if (folder := local_path(self.where.parent)) is not None:
                self._files[location] = _file_at(folder, location)
        return sum(end - start for ranges in self._wanted.values() for start, end in ranges)

    def fetch_data(self) -> Staged:
        external = {}
        for location, ranges in self._wanted.items():
            found, where = self._infos[location], self.where.parent / location
            file = self._files.get(location)
            parts = blocks(where, ranges) if file is None else _blocks_of(file, ranges)
            read = _written(where, parts, found.size, self.folder / location)
            external[location] = Stamp(found.size, read, found.tag, ranges)
            _require_same(where, found)
        if external:
            _require_same(self.where, self.found)
        assert self._source is not None
        return Staged(self.where, self.path, self.drafts, self._source, external)


def _file_at(folder: str, location: str) -> DataFile:
    """The file of external data of a model in a local folder. FileError if it is none that the model may name."""
    from mo_loop.frontend.external_files import ExternalFiles

    try:
        return ExternalFiles(folder).at(location, location)
    except FileError as error:
        hint = "put the file itself there, or give the path of the model instead of its URL, with --allow-external"
        raise error.at(hint=hint) from None


def _blocks_of(file: DataFile, ranges: Ranges) -> Iterator[tuple[int, bytes]]:
    """The same as `blocks`, from the open file that was checked. FileError (ML270) if it has changed."""
    with file.open() as data:
        for start, end in ranges:
            for place in range(start, end, BLOCK):
                data.seek(place)
                yield place, data.read(min(place + BLOCK, end) - place)
    file.require_unchanged()


def _require_same(where: Location, found: Info) -> None:
    """FileError unless an object is what was found before it was read."""
    if find(where) != found:
        raise FileError(
            f"{where} changed while it was read", why="its size or its tag is another one", code="ML270",
            hint="nothing was written: convert again when the files of the model are complete",
        )  # fmt: skip


def _written(where: Location, parts: Iterable[tuple[int, bytes]], size: int, path: Path) -> str:
    """Write parts of an object into a new file of its size; the SHA-256 of the parts."""
    digest = hashlib.sha256()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(path, "xb") as file:
            file.truncate(size)
            for place, block in parts:
                digest.update(block)
                file.seek(place)
                file.write(block)
    except OSError as error:
        is_long = error.errno == errno.ENAMETOOLONG
        raise FileError(
            f"{where} cannot be copied to the local disk", why=error.strerror or str(error), code="ML219",
            hint="give it a shorter name" if is_long else "make space there, or set TMPDIR to another folder",
        ) from None  # fmt: skip
    except StorageError:
        path.unlink(missing_ok=True)
        raise
    return digest.hexdigest()


def _joined(ranges: Sequence[tuple[int, int]], size: int) -> Ranges:
    """The ranges within a file, sorted, those close to each other as one."""
    found: list[tuple[int, int]] = []
    for start, end in sorted((max(0, start), min(end, size)) for start, end in ranges):
        if end <= start:
            continue
        if found and start <= found[-1][1] + GAP:
            found[-1] = (found[-1][0], max(found[-1][1], end))
        else:
            found.append((start, end))
    return tuple(found)


def _require_name(where: Location) -> None:
    if where.name in ("", ".", "..") or "\\" in where.name:
        raise UsageError(
            f"{where} is not the URL of a file", hint="write, for example, s3://bucket/model.onnx", code="ML287"
        )


def _require_below(location: str) -> None:
    """FileError if the location of external data leads out of the folder of the model."""
    parts = location.split("/")
    is_local = bool(location) and not any(each in ("", "..") for each in parts)
    if not is_local or "\\" in location or "\0" in location or ":" in parts[0] or "://" in location:
        raise FileError(
            f"external data {location!r} lies outside the model's folder", code="ML216",
            why="a model may name any object of the store, or file of this machine",
            hint="move the data file below the folder of the model",
        )  # fmt: skip
