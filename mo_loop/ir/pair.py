"""model.xml and model.bin are written together or not at all.

    with new_pair(Path("model.xml")) as (data, xml):
        XmlWriter(xml, Weights(data)).write(graph)

Both grow under other names beside their places and are moved there at the end: an error leaves an older pair as it was.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, TextIO

from mo_loop.errors import FileError, UsageError


@contextmanager
def new_pair(path: Path) -> Iterator[tuple[BinaryIO, TextIO]]:
    """The .bin and the .xml to write into, open. Folders above `path` are made.

    Raises:
        UsageError: `path` does not end in .xml.
        FileError: the files cannot be written, or what is written into them cannot be read.
    """
    if path.suffix != ".xml":
        raise UsageError(f"the output {path.name!r} does not end in .xml", hint="name it, for example, model.xml")
    targets = (path.with_suffix(".bin"), path)
    drafts = tuple(target.with_name(f".{target.name}.{os.getpid()}.tmp") for target in targets)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with open(drafts[0], "wb") as data, open(drafts[1], "w", encoding="utf-8", newline="\n") as xml:
            yield data, xml
        _swap(drafts, targets)
    except (OSError, ValueError) as error:
        if isinstance(error, ValueError) and "null byte" not in str(error):
            raise
        reason = getattr(error, "strerror", None) or str(error)
        source = getattr(error, "filename", None)
        ours = {os.fspath(each) for each in (*drafts, *targets, *path.parents)}
        if source is not None and os.fspath(source) not in ours:
            raise FileError(f"{source} cannot be read", why=reason, hint="nothing was changed", code="ML212") from None
        raise _unwritable(path, reason) from None
    finally:
        for draft in drafts:
            with contextlib.suppress(OSError, ValueError):
                draft.unlink()


def move_pair(draft: Path, path: Path) -> None:
    """Move the pair of the .xml `draft` to its place beside `path`, on the same file system. FileError as above."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _swap((draft.with_suffix(".bin"), draft), (path.with_suffix(".bin"), path))
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from None


def _unwritable(path: Path, why: str) -> FileError:
    hint = "nothing was changed; make room there, or give another place"
    return FileError(f"{path} cannot be written", why=why, hint=hint, code="ML218")


def _swap(drafts: tuple[Path, ...], targets: tuple[Path, ...]) -> None:
    """Move both drafts to their places; if the second cannot be moved, the first is taken back."""
    for target in targets:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(target))
    weights, xml = targets
    kept = drafts[0].with_suffix(".old")
    had_weights = weights.exists()
    try:
        if had_weights:
            os.replace(weights, kept)
        os.replace(drafts[0], weights)  # the .bin first: an .xml never stands beside older weights
        os.replace(drafts[1], xml)
    except BaseException:
        if not drafts[1].exists():  # a signal came when both were in their places
            kept.unlink(missing_ok=True)
        elif kept.exists():
            os.replace(kept, weights)
        elif not had_weights:
            weights.unlink(missing_ok=True)
        raise
    kept.unlink(missing_ok=True)
