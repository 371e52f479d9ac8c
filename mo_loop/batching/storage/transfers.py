"""staged: a model at a URL, brought to the local disk with the external data that it reads.

    with staged(Location("s3://zoo/model.onnx"), Scratch(limit=20 << 30)) as here:
        convert(here.path)                        # here.files: size, tag and SHA-256 of what was read

Of external data only the ranges that the model names are fetched, into a sparse file of the same size. Its names follow
the rules of `mo_loop.frontend.external_files`: below the folder of the model, never absolute, never through `..`, and
where the URL is a path of this machine (file://) not through a link.

upload_pair: puts the .xml and .bin of a model at URLs, so that no .xml is ever without its .bin.

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

import errno
import hashlib
import os
import random
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from mo_loop.batching.storage import stores
from mo_loop.batching.storage.filesystems import local_path
from mo_loop.batching.storage.locations import Info, Location, Ranges, Stamp
from mo_loop.batching.storage.scratch import Room, Scratch
from mo_loop.errors import FileError, StorageError, UsageError
from mo_loop.support.files import Content, pieces_of, reason_of, write_whole
from mo_loop.support.traversal import by_key

if TYPE_CHECKING:
    from mo_loop.graph.tensor import DataFile


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
        placed_data = stores.put_new(data, draft_data) if is_new and not attempt else None
        if placed_data is None:
            stores.delete(target)
            placed_data = stores.put_file(data, draft_data)
        try:
            placed = Uploaded(stores.put_file(target, draft), placed_data)
            if stores.find(data) == placed_data:
                return placed
        except BaseException:
            _withdraw(target)
            raise
        _withdraw(target)
        time.sleep(random.uniform(0, 0.2 * 2**attempt))
    raise StorageError(
        f"{target} cannot be written", why="another process writes a different model there", code="ML286",
        hint="write each model with one set of options, or give another prefix",
    )


def put_text(where: Location, content: Content) -> Info:
    """A report, a mapping or a list as one object. StorageError if it cannot be written."""
    if isinstance(content, str | bytes):
        return stores.put(where, b"".join(pieces_of(content)))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "text"
        write_whole(file, content)
        return stores.put_file(where, file)


class StaleUploads:
    """The incomplete uploads below a prefix that killed processes have left.

    Raises:
        StorageError: the store refuses to list uploads, or fails.
    """

    def __init__(self, prefix: Location) -> None:
        for where, age in stores.drafts(prefix):
            if age > STALE:
                stores.delete(where)
        self._left = by_key((each.where, each) for each in stores.uploads(prefix) if each.age > STALE)

    def end(self, target: Location) -> None:
        """End those in parts of the pair of an .xml: others in the bucket may be of other programs. StorageError if
        that fails."""
        for where in (target, target.with_suffix(".bin")) if self._left else ():
            for each in self._left.pop(where, ()):
                stores.abort(each)


def _withdraw(target: Location) -> None:
    """Remove an .xml that may not belong to its .bin. If that fails too, the first error counts."""
    with suppress(StorageError):
        stores.delete(target)


GAP = 64 << 10
"""Ranges that are closer than this are fetched as one."""

LONGEST_NAME = 200
"""Bytes of a name on the local disk. Most file systems allow 255, and drafts have some more than their files."""

_DRAFTS = "made"
_SOURCE = "model"


@dataclass(frozen=True, slots=True)
class Staged:
    """A model on the local disk: its path, a folder for its outputs, and the files that were read.

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

    `known` is its entry in a listing. With `with_outputs` there is room for an .xml and a .bin of its size too.

    Raises:
        StorageError: an object is missing or refused, the store fails, or the model needs more than the limit.
        FileError: the model is not ONNX, changed while it was read (ML270), or names data outside its folder.
    """
    _require_name(where)
    times = 2 if with_outputs else 1
    expected = known or stores.info(where)
    needed = expected.size * times
    while True:
        with ExitStack() as stack:
            room = stack.enter_context(scratch.room(where, needed))
            staging = _Staging(where, room, expected)
            staging.fetch_model()
            expected = staging.known  # the model can have been replaced after it was listed
            total = (expected.size + staging.external_size()) * times
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
    infos = {}
    for where in files:
        _require_name(where)
        infos[where] = stores.info(where)
    total = sum(known.size for known in infos.values())
    scratch.require(files[0], total)
    with scratch.room(files[0], total) as room:
        paths = []
        for where, known in infos.items():
            path = room.folder / local_name(where)
            _written(where, stores.blocks(where, ((0, known.size),)), known.size, path)
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
    known = now or stores.find(where)
    if known is None or known.size != like.size:
        return False
    if known.tag and like.tag:
        return known.tag == like.tag
    size = stores.info(where).size  # it can have changed since it was listed
    digest = hashlib.sha256()
    for _, block in stores.blocks(where, ((start, min(end, size)) for start, end in like.ranges or ((0, size),))):
        digest.update(block)
    return digest.hexdigest() == like.sha256


class _Staging:
    """The steps of one model in one room."""

    def __init__(self, where: Location, room: Room, known: Info) -> None:
        self.where = where
        self.known = known
        self.folder = room.folder / _SOURCE
        self.path = self.folder / local_name(where)
        self.drafts = room.folder / _DRAFTS
        self.folder.mkdir()
        self.drafts.mkdir()
        self._source: Stamp | None = None
        self._external: dict[str, tuple[Info, Ranges, DataFile | None]] = {}
        """External data: its size and tag, the ranges that are read, and the file if it is on this machine already."""

    def fetch_model(self) -> None:
        """The .onnx itself. If a listing has it and it fits into one request, it is not looked up again."""
        try:
            self._source = self._fetched_model()
        except StorageError as error:
            if error.code not in ("ML270", "ML286"):
                raise
            self.known = stores.info(self.where)  # it was replaced after it was listed
            self._source = self._fetched_model()
        if self.known.size > stores.BLOCK:
            _require_same(self.where, self.known)

    def _fetched_model(self) -> Stamp:
        size = self.known.size
        is_one = size <= stores.BLOCK
        parts = ((0, stores.read_whole(self.where, size)),) if is_one else stores.blocks(self.where, ((0, size),))
        return Stamp(size, _written(self.where, parts, size, self.path), self.known.tag)

    def external_size(self) -> int:
        """The bytes of external data that the model reads."""
        if self.known.size <= stores.BLOCK and b"location" not in self.path.read_bytes():
            return 0  # most models: they need not be parsed for that
        from mo_loop.frontend.onnx_graphs import external_ranges

        folder = local_path(self.where.parent)
        for name, ranges in external_ranges(self.path):
            _require_below(name)
            location = PurePosixPath(name).as_posix()
            known = None if location == self.where.name else stores.find(self.where.parent / location)
            if known is not None:  # the conversion reports a missing one, with the tensor that is in it
                file = None if folder is None else _file_at(folder, location)
                self._external[location] = (known, _joined(ranges, known.size), file)
        return sum(end - start for _, ranges, _ in self._external.values() for start, end in ranges)

    def fetch_data(self) -> Staged:
        external = {}
        for location, (known, ranges, file) in self._external.items():
            where = self.where.parent / location
            parts = stores.blocks(where, ranges) if file is None else _blocks_of(file, ranges)
            sha256 = _written(where, parts, known.size, self.folder / location)
            external[location] = Stamp(known.size, sha256, known.tag, ranges)
            _require_same(where, known)
        if external:
            _require_same(self.where, self.known)
        assert self._source is not None
        return Staged(self.where, self.path, self.drafts, self._source, external)


def _file_at(folder: str, location: str) -> "DataFile":
    """The file of external data of a model in a local folder. FileError if the model may not name it."""
    from mo_loop.frontend.external_files import ExternalFiles

    try:
        return ExternalFiles(folder).at(location, location)
    except FileError as error:
        hint = "put the file itself there, or give the path of the model instead of its URL, with --allow-external"
        raise error.at(hint=hint) from None


def _blocks_of(file: "DataFile", ranges: Ranges) -> Iterator[tuple[int, bytes]]:
    """The same as `blocks`, from the open file that was checked. FileError (ML270) if it has changed."""
    with file.open() as data:
        for start, end in ranges:
            for place in range(start, end, stores.BLOCK):
                data.seek(place)
                yield place, data.read(min(place + stores.BLOCK, end) - place)
    file.require_unchanged()


def _require_same(where: Location, known: Info) -> None:
    """FileError if an object has changed since it was read."""
    if stores.find(where) != known:
        raise FileError(
            f"{where} changed while it was read", why="its size or its tag is different now", code="ML270",
            hint="nothing was written: convert again when the files of the model are complete",
        )


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
            f"{where} cannot be copied to the local disk", why=reason_of(error), code="ML219",
            hint="give it a shorter name" if is_long else "make space there, or set TMPDIR to another folder",
        ) from None
    except StorageError:
        path.unlink(missing_ok=True)
        raise
    return digest.hexdigest()


def _joined(ranges: Sequence[tuple[int, int]], size: int) -> Ranges:
    """The ranges within a file, sorted, those close to each other as one."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted((max(0, start), min(end, size)) for start, end in ranges):
        if end <= start:
            continue
        if joined and start <= joined[-1][1] + GAP:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return tuple(joined)


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
        )
