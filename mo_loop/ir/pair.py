"""new_pair: writes the .xml and .bin files together or not at all.

    with new_pair(Path("model.xml")) as (data, xml):
        XmlWriter(xml, Weights(data)).write(graph)

Both are written under other names in the same folder and renamed at the end. After an error, older files are unchanged.
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
    """The open .bin and .xml files to write into. Missing folders above `path` are created.

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
            raise FileError(f"{source} cannot be read", why=reason, hint="no file was changed", code="ML212") from None
        raise _unwritable(path, reason) from None
    finally:
        for draft in drafts:
            with contextlib.suppress(OSError, ValueError):
                draft.unlink()


def move_pair(draft: Path, path: Path) -> None:
    """Rename the .xml `draft` and its .bin to `path`. Raises FileError as `new_pair` does."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _swap((draft.with_suffix(".bin"), draft), (path.with_suffix(".bin"), path))
    except OSError as error:
        raise _unwritable(path, error.strerror or str(error)) from None


def _unwritable(path: Path, why: str) -> FileError:
    hint = "no file was changed; make space there, or give another path"
    return FileError(f"{path} cannot be written", why=why, hint=hint, code="ML218")


def _swap(drafts: tuple[Path, ...], targets: tuple[Path, ...]) -> None:
    """Rename both drafts; if the second cannot be renamed, the first change is undone."""
    for target in targets:
        if target.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), os.fspath(target))
    weights, xml = targets
    kept = drafts[0].with_suffix(".old")
    had_weights = weights.exists()
    try:
        if had_weights:
            os.replace(weights, kept)
        os.replace(drafts[0], weights)  # the .bin first: a new .xml never refers to older weights
        os.replace(drafts[1], xml)
    except BaseException:
        if not drafts[1].exists():  # a signal came after both were renamed
            kept.unlink(missing_ok=True)
        elif kept.exists():
            os.replace(kept, weights)
        elif not had_weights:
            weights.unlink(missing_ok=True)
        raise
    kept.unlink(missing_ok=True)
