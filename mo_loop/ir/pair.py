"""new_pair: writes the .xml and .bin files together or not at all.

    with new_pair(Path("model.xml")) as (data, xml):
        XmlWriter(xml, Weights(data)).write(graph)

Both are written under other names in the same folder and renamed at the end. After an error, older files are unchanged.
At every moment the folder has the old pair, the new pair, or no .xml:

    model.xml  -> .model.xml.old       from here on there is no .xml
    model.bin  -> .model.bin.old
    the new .bin -> model.bin
    the new .xml -> model.xml          from here on there is the new pair
    .model.xml.old and .model.bin.old are removed

If a process is killed in between, the next one that writes this pair restores the files that were set aside. A lock
keeps processes that write one pair apart.
"""

import errno
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, NamedTuple, TextIO

from mo_loop.errors import FileError, UsageError
from mo_loop.support.files import lock_of, locked, new_file, reason_of, remove


class _Pair(NamedTuple):
    """The paths of the two files of a model."""

    data: Path
    xml: Path

    @classmethod
    def at(cls, path: Path) -> "_Pair":
        return cls(path.with_suffix(".bin"), path)

    def beside(self, ending: str) -> "_Pair":
        """Hidden files in the same folder."""
        return _Pair(*(each.with_name(f".{each.name}{ending}") for each in self))


@contextmanager
def new_pair(path: Path, *, durable: bool = False) -> Iterator[tuple[BinaryIO, TextIO]]:
    """The open .bin and .xml files to write into. Missing folders above `path` are created.

    With `durable` the pair is on the disk at the end: after a power failure too there is the old pair, the new one, or
    no .xml.

    Raises:
        UsageError: `path` does not end in .xml.
        FileError: the files cannot be written, or what is written into them cannot be read.
    """
    if path.suffix != ".xml":
        raise UsageError(f"the output {path.name!r} does not end in .xml", hint="name it, for example, model.xml")
    target = _Pair.at(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path) as mark:
            _recover(target)
            drafts = target.beside(f"{mark}.tmp")
            try:
                with new_file(drafts.data) as data, _text_into(new_file(drafts.xml)) as xml:
                    yield data, xml
                _swap(drafts, target, durable)
            finally:
                remove(drafts.data)
                remove(drafts.xml)
    except (OSError, ValueError) as error:
        if isinstance(error, ValueError) and "null byte" not in str(error):
            raise
        raise _failed(error, target) from None


@contextmanager
def draft_pair(path: Path) -> Iterator[tuple[BinaryIO, TextIO]]:
    """The open .bin and .xml of a pair with hidden names, in a folder that exists; for `move_pair`.

    Raises FileError as `new_pair` does. A pair that is not complete is removed.
    """
    draft = _Pair.at(path)
    try:
        with new_file(draft.data) as data, _text_into(new_file(draft.xml)) as xml:
            yield data, xml
    except BaseException as error:
        remove_draft(path)
        if isinstance(error, OSError):
            raise _failed(error, draft) from None
        raise


def move_pair(draft: Path, path: Path, *, durable: bool = False) -> None:
    """Rename the .xml `draft` and its .bin to `path`. Raises FileError as `new_pair` does."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path):
            _recover(_Pair.at(path))
            _swap(_Pair.at(draft), _Pair.at(path), durable)
    except OSError as error:
        raise _unwritable(path, reason_of(error)) from None


def remove_draft(path: Path) -> None:
    """Remove the .xml `path` and its .bin, if they are there."""
    for each in _Pair.at(path):
        remove(each)


def restore_pair(path: Path, *, is_new: bool = False) -> None:
    """Restore the pair that a killed process set aside and did not replace, and remove its lock.

    With `is_new` there was no .bin before it: one without an .xml is removed. Raises FileError as `new_pair` does.
    """
    target = _Pair.at(path)
    is_half = is_new and target.data.exists() and not target.xml.exists()
    if not is_half and not any(map(os.path.lexists, (*target.beside(".old"), lock_of(path)))):
        return
    try:
        with locked(path):
            _recover(target)
            if is_half and not target.xml.exists():
                remove(target.data)
    except OSError as error:
        raise _unwritable(path, reason_of(error)) from None


def _text_into(file: BinaryIO) -> TextIO:
    return io.TextIOWrapper(file, encoding="utf-8", newline="\n")


def _is_ours(file: str, target: _Pair) -> bool:
    """Whether a file that an error names is an output, not a source of its contents."""
    folder = target.xml.parent
    if Path(file) in (folder, *folder.parents, *target):
        return True
    return Path(file).parent == folder and Path(file).name.startswith(tuple(f".{each.name}." for each in target))


def _failed(error: Exception, target: _Pair) -> FileError:
    """The error of a system call: about a file that is written into the pair, or about the pair."""
    source = getattr(error, "filename", None)
    if source is not None and not _is_ours(os.fspath(source), target):
        return FileError(f"{source} cannot be read", why=reason_of(error), hint="no file was changed", code="ML212")
    return _unwritable(target.xml, reason_of(error))


def _unwritable(path: Path, why: str) -> FileError:
    hint = "no file was changed; make space there, or give another path"
    return FileError(f"{path} cannot be written", why=why, hint=hint, code="ML218")


# -- replacing a pair, with the lock held


def _swap(drafts: _Pair, target: _Pair, durable: bool) -> None:
    """Put the drafts in the place of the pair; after an error or a signal the old pair is there again."""
    for each in target:
        _require_replaceable(each)
    old = target.beside(".old")
    if durable:
        for each in drafts:
            _sync(each)
    has_data = target.data.exists()
    try:
        _set_aside(old, target)
        if durable:
            _sync(target.xml.parent)
        os.replace(drafts.data, target.data)
        if durable:
            _sync(target.xml.parent)
        os.replace(drafts.xml, target.xml)
        if durable:
            _sync(target.xml.parent)
    except BaseException:
        _recover(target)  # if the signal came after the last step, this drops the old pair
        if not has_data and drafts.xml.exists():
            remove(target.data)
        raise
    _drop(old)


def _set_aside(old: _Pair, target: _Pair) -> None:
    """Rename the files of the pair that exist, the .xml first: without it the folder has no model."""
    has_xml = os.path.lexists(target.xml)
    if has_xml and not os.path.lexists(target.data):
        # Otherwise `_recover` could not decide whether a .bin without an .xml belongs to the old pair.
        new_file(old.data).close()
    if has_xml:
        os.replace(target.xml, old.xml)
    if os.path.lexists(target.data):
        os.replace(target.data, old.data)


def _recover(target: _Pair) -> None:
    """Restore the files that were set aside and not replaced, drop those that were replaced. After any step it can
    begin again."""
    old = target.beside(".old")
    if os.path.lexists(target.xml):
        _drop(old)
        return
    if os.path.lexists(old.data):
        os.replace(old.data, target.data)
    if os.path.lexists(old.xml):
        os.replace(old.xml, target.xml)


def _drop(old: _Pair) -> None:
    """Remove the old pair, the .xml first: an old .bin alone never counts as a pair."""
    old.xml.unlink(missing_ok=True)
    old.data.unlink(missing_ok=True)


def _require_replaceable(file: Path) -> None:
    """OSError if a folder, a device or a pipe is in the place of a file."""
    try:
        mode = file.stat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(file))
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "it is a device or a pipe", os.fspath(file))


def _sync(path: Path) -> None:
    """Wait until the content of a file or folder is on the disk; some systems cannot open folders."""
    if path.is_dir() and not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
