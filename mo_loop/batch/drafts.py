"""drafts_in: the temporary folder of a batch in its output folder.

    with drafts_in(folder) as drafts:
        ...                                   # workers write below `drafts`

A batch holds a lock on its folder. A folder without one is of a batch that was killed, and the next batch removes it.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from mo_loop.batch.state import NAME
from mo_loop.errors import FileError
from mo_loop.support.files import reason_of
from mo_loop.support.locking import locked, locked_folder

_PREFIX = ".mo-loop-"


@contextmanager
def drafts_in(folder: Path) -> Iterator[str]:
    """The path of a new folder in `folder`, which is created if need be; the new folder is removed at the end.

    Raises:
        FileError: the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / NAME):  # nobody takes the new folder for one without a batch before it has its lock
            _remove_abandoned(folder)
            made = tempfile.mkdtemp(prefix=_PREFIX, dir=folder.absolute())
            descriptor = locked_folder(made)
    except OSError as error:
        raise FileError(
            f"{folder} cannot be written: {reason_of(error)}", code="ML219", hint="give another folder"
        ) from None
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)
        if descriptor is not None:
            os.close(descriptor)


def _remove_abandoned(folder: Path) -> None:
    for each in folder.glob(f"{_PREFIX}*"):
        descriptor = locked_folder(each)
        if descriptor is not None:
            shutil.rmtree(each, ignore_errors=True)
            os.close(descriptor)
