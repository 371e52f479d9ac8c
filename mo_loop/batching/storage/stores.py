"""Operations on objects: sizes and tags, listings, ranges, writing and deleting, by the file systems of fsspec.

    for where, size_and_tag in listed(Location("s3://zoo/**"), ".onnx"): ...    # every .onnx below, page by page
    size = info(where).size                                             # and the tag of this content
    for place, block in blocks(where, [(0, size)]): ...                 # bytes, and where they begin

Each call is tried again after a fault that passes, and ends with a StorageError after one that does not. Nothing is
kept between calls, so the functions may be used from several threads and processes.
"""

import re
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

from mo_loop.batching.storage.filesystems import Fault, called, coded, fault_of, filesystem_of, matcher
from mo_loop.batching.storage.locations import Info, Location
from mo_loop.errors import StorageError

BLOCK = 8 << 20
"""The most bytes of one request, and that a download holds in memory."""

WHOLE = 32 << 20
"""Files up to this size are put in one request, larger ones in parts where the store has them."""

ASKED_AT_ONCE = 32
"""Objects of a list that are looked up at the same time: most of the time is waiting for the store."""

_TAGS = ("ETag", "etag", "md5Hash", "content_md5", "Content-MD5", "sha256", "Digest")
_AT_ONCE = ("s3", "s3a", "gs", "gcs", "az", "abfs", "abfss", "adl", "memory", "oci", "oss")
"""Stores whose objects appear when they are complete. Elsewhere a file is written under another name and renamed."""

_IF_NEW = ("s3", "s3a", "gs", "gcs")
"""Stores that put an object on the condition that it does not exist."""

_PARTS = {"s3": {"chunksize": WHOLE // 2}, "s3a": {"chunksize": WHOLE // 2}}
_MAGIC = re.compile(r"[*?\[]")
_DRAFT_NAME = ".mo-loop-{}.part"
_DRAFT = re.compile(r"\.mo-loop-[0-9a-f]{16}\.part")


def info(where: Location) -> Info:
    """Size and tag of an object. StorageError if it does not exist, or is a folder."""
    known = find(where)
    if known is None:
        raise StorageError(f"{where} does not exist", hint="check the bucket and the name", code="ML282")
    return known


def find(where: Location) -> Info | None:
    """The same; None if there is no such object."""
    return _asked(where, *filesystem_of(where))


def find_all(places: Sequence[Location]) -> list[Info | None]:
    """The same for several objects, which are looked up at the same time if the package of the store can do that."""
    # One file system for all: otherwise each thread would open its own connections.
    opened = [filesystem_of(where) for where in places]
    if len(places) < 2 or not all(getattr(system, "async_impl", False) for system, _ in opened):
        return [_asked(where, *of) for where, of in zip(places, opened, strict=True)]
    threads = ThreadPoolExecutor(ASKED_AT_ONCE)
    try:
        return list(threads.map(lambda where, of: _asked(where, *of), places, opened))
    finally:
        threads.shutdown(cancel_futures=True)


def _asked(where: Location, system: Any, path: str) -> Info | None:
    entry = called(where, "read", lambda: _unless_missing(lambda: system.info(path)))
    return None if entry is None or entry.get("type") == "directory" else _info(entry)


def listed(where: Location, ending: str = "", *, is_literal: bool = False) -> Iterator[tuple[Location, Info]]:
    """The objects that a glob matches, or that are below a prefix, with names that end in `ending`, in any order.

    With `is_literal` the wildcards of a prefix are letters like all others. Pages are given on as they come; nothing of
    the listing is kept. A bucket that does not exist is a StorageError; a prefix without objects has none.
    """
    root = where.without_slash() if is_literal else fixed_part(where)
    pattern = re.compile(matcher(where.rest[len(root.rest) + 1 :])) if not is_literal and is_glob(where) else None
    for name, entry in _below(root):
        if not name or (ending and not name.lower().endswith(ending)):
            continue
        if pattern is None or pattern.match(name):
            yield root / name, _info(entry)


def fixed_part(where: Location) -> Location:
    """The folders of a glob before its first wildcard; the URL itself without / at the end if it is not a glob."""
    parts = where.rest.split("/")
    fixed = next((number for number, part in enumerate(parts) if _MAGIC.search(part)), None)
    if fixed is None:
        return where.without_slash()
    if fixed == 0:
        raise StorageError(f"{where} has a wildcard in the place of the bucket", hint="name it", code="ML286")
    return Location(f"{where.scheme}://{'/'.join(parts[:fixed])}")


def is_glob(where: Location) -> bool:
    """Whether a URL has wildcards."""
    return _MAGIC.search(where.rest) is not None


def read(where: Location, start: int, end: int) -> bytes:
    """The bytes from `start` to before `end`. StorageError if there are fewer."""
    if end <= start:
        return b""
    system, path = filesystem_of(where)
    data: bytes = called(where, "read", lambda: system.cat_file(path, start=start, end=end))
    return _exactly(where, data, start, end - start)


def _exactly(where: Location, data: bytes, start: int, count: int) -> bytes:
    if len(data) != count:
        raise StorageError(
            f"{where} changed while it was read", why=f"it no longer has {count} bytes at {start}", code="ML270",
            hint="nothing was written: convert again when the files of the model are complete",
        )
    return data


def read_whole(where: Location, size: int | None = None) -> bytes:
    """A small object: a list, a report, a model. StorageError (ML270) if it no longer has `size` bytes."""
    system, path = filesystem_of(where)
    if size is None:
        whole: bytes = called(where, "read", lambda: system.cat_file(path))
        return whole
    if size == 0:
        return b""  # no store gives a range of it
    data: bytes = called(where, "read", lambda: system.cat_file(path, start=0, end=size + 1))
    return _exactly(where, data, 0, size)


def blocks(where: Location, ranges: Iterable[tuple[int, int]]) -> Iterator[tuple[int, bytes]]:
    """The bytes of some ranges, in blocks, each with its place."""
    for start, end in ranges:
        yield from ((place, read(where, place, min(place + BLOCK, end))) for place in range(start, end, BLOCK))


def put(where: Location, data: bytes) -> Info:
    """Write an object: all of it becomes visible, or none."""
    system, path = filesystem_of(where)
    return _put(where, system, path, lambda to: system.pipe_file(to, data), len(data))


def put_file(where: Location, file: Path) -> Info:
    """Write an object from a file, in parts where the store has them: all of it becomes visible, or none."""
    size = file.stat().st_size
    if size <= WHOLE:
        return put(where, file.read_bytes())
    system, path = filesystem_of(where)
    more = _PARTS.get(where.scheme, {})
    return _put(where, system, path, lambda to: system.put_file(str(file), to, **more), size)


def put_new(where: Location, file: Path) -> Info | None:
    """The same if there is no such object; None if there is one, or the store has no such condition."""
    if where.scheme not in _IF_NEW or file.stat().st_size > WHOLE:
        return None
    system, path = filesystem_of(where)
    data = file.read_bytes()
    try:
        return _put(where, system, path, lambda to: system.pipe_file(to, data, mode="create"), len(data))
    except StorageError as error:
        # It exists, another process is writing it, or an attempt whose answer was lost has written it.
        if error.code in ("ML281", "ML282", "ML283", "ML284"):
            raise
        return None


def delete(where: Location) -> None:
    """Remove an object, if it exists."""
    system, path = filesystem_of(where)
    called(where, "removed", lambda: _unless_missing(lambda: system.rm_file(path)))


@dataclass(frozen=True, slots=True)
class Upload:
    """An upload in parts that has not ended: its object, its age in seconds, and its id in the store."""

    where: Location
    age: float
    name: str


def uploads(folder: Location) -> list[Upload]:
    """The uploads in parts that have not ended, of the bucket of a URL. They are invisible, but stores charge for them.

    Stores that clean up by themselves have no such list.
    """
    system, _ = filesystem_of(folder)
    if not (hasattr(system, "list_multipart_uploads") and hasattr(system, "abort_mpu")):
        return []
    bucket = folder.rest.partition("/")[0]
    unfinished = called(folder, "listed", lambda: system.list_multipart_uploads(bucket))
    now = datetime.now(UTC)
    return [
        Upload(Location(f"{folder.scheme}://{bucket}/{each['Key']}"), _age(each["Initiated"], now), each["UploadId"])
        for each in unfinished
    ]


def abort(upload: Upload) -> None:
    """End an upload in parts, if it has not ended."""
    system, _ = filesystem_of(upload.where)
    bucket, _, object_key = upload.where.rest.partition("/")
    end = system.abort_mpu
    called(upload.where, "written", lambda: _unless_missing(lambda: end(bucket, object_key, upload.name)))


def drafts(folder: Location) -> Iterator[tuple[Location, float]]:
    """The temporary files below a folder that killed processes did not rename, each with its age in seconds. Only
    stores that write a file under another name first have them."""
    if folder.scheme in _AT_ONCE:
        return
    now = datetime.now(UTC)
    for name, entry in _below(folder):
        changed = entry.get("mtime")
        if changed is not None and _DRAFT.fullmatch(name.rpartition("/")[2]):
            yield folder / name, _age(changed, now)


# -- within


def _put(where: Location, system: Any, path: str, write: Callable[[str], Any], size: int) -> Info:
    if where.scheme in _AT_ONCE:
        answer = called(where, "written", lambda: write(path))
        tag = _tag(answer) if isinstance(answer, dict) else ""
        return Info(size, tag) if tag else info(where)
    folder, slash, _ = path.rpartition("/")
    # No two processes have one draft, and nobody can put a link in its place.
    draft = f"{folder}{slash}{_DRAFT_NAME.format(secrets.token_hex(8))}"
    try:
        called(where, "written", lambda: write(draft))
        called(where, "written", lambda: system.mv(draft, path))
    except BaseException:
        with suppress(Exception):  # the store may be down: the error that led here reports it, with its code
            system.rm_file(draft)
        raise
    return info(where)


def _unless_missing(call: Callable[[], Any], default: Any = None) -> Any:
    try:
        return call()
    except Exception as error:
        if fault_of(error) is Fault.MISSING:
            return default
        raise


def _info(entry: dict[str, Any]) -> Info:
    return Info(int(entry.get("size") or 0), _tag(entry))


def _tag(entry: dict[str, Any]) -> str:
    return next((str(entry[key]).strip('"') for key in _TAGS if entry.get(key)), "")


def _age(changed: datetime | float, now: datetime) -> float:
    """The seconds since a time that a store gives; one without a zone is in UTC."""
    if not isinstance(changed, datetime):
        return now.timestamp() - changed
    return (now - (changed if changed.tzinfo else changed.replace(tzinfo=UTC))).total_seconds()


def _below(root: Location) -> Iterator[tuple[str, dict[str, Any]]]:
    """The files below a folder, with their names relative to it."""
    system, base = filesystem_of(root)
    # fsspec removes every / at the end, but s3://zoo/a// and s3://zoo/a are two folders.
    base = base.rstrip("/") + "/" * (len(root.rest) - len(root.rest.rstrip("/")))
    head = f"{base}/".lstrip("/")
    for entry in _entries(system, base, root):
        name = str(entry["name"]).lstrip("/")
        if name.startswith(head):
            yield name[len(head) :], entry


def _entries(system: Any, base: str, root: Location) -> Iterator[dict[str, Any]]:
    """The files below a folder of a file system."""
    if hasattr(system, "_iterdir") and hasattr(system, "loop"):
        yield from _pages(system, base, root)
        return
    if "/" not in root.rest:  # a bucket that does not exist is an error: other file systems list nothing then
        called(root, "listed", lambda: system.info(base))
    folders = [base or "/"]
    while folders:
        folder = partial(system.ls, folders.pop(), detail=True)
        for entry in called(root, "listed", partial(_unless_missing, folder, [])):  # none if it does not exist
            if entry.get("type") != "directory":
                yield entry
            elif not entry.get("islink"):  # a link to a folder above would have no end
                folders.append(entry["name"])


def _pages(system: Any, base: str, root: Location) -> Iterator[dict[str, Any]]:
    """The objects of s3fs, whose own listing would keep all of them: a thousand at a time."""
    from fsspec.asyn import sync

    bucket, _, prefix = base.partition("/")
    source = system._iterdir(bucket, delimiter="", prefix=f"{prefix}/" if prefix else "")

    async def page() -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = []
        async for entry in source:
            entries.append(entry)
            if len(entries) == 1000:
                break
        return entries

    while True:
        try:
            entries = sync(system.loop, page)
        except Exception as error:  # each page was tried again by s3fs
            raise coded(root, "listed", error) from error
        yield from entries
        if len(entries) < 1000:
            return
