"""Checks the files that a conversion reads and writes before it begins: a long one must not fail at its end."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

import click

from mo_loop.errors import FileError, UsageError
from mo_loop.storage.locations import Location, is_url, location_of

durable_option = click.option(
    "--durable", is_flag=True,
    help="Wait until the .xml and the .bin are on the disk, so that a power failure cannot damage them.",
)  # fmt: skip


@contextmanager
def opened(source: str) -> Iterator[str]:
    """The path of the model; standard input (`-`) is copied to a temporary file, a URL is staged.

    Raises:
        FileError: standard input is a terminal, the disk has no space for the file, or an object cannot be read.
    """
    if is_url(source):
        with _staged(location_of(source)) as path:
            yield path
        return
    if source != "-":
        yield source
        return
    if sys.stdin is None or sys.stdin.isatty():
        raise FileError(
            "standard input is not a model", why="it is a terminal", code="ML212",
            hint="write: mo-loop convert - -o model.xml < model.onnx",
        )  # fmt: skip
    with tempfile.TemporaryDirectory(prefix="mo-loop-") as folder:
        path = os.path.join(folder, "stdin")
        try:
            with open(path, "wb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file, 1 << 20)
        except OSError as error:
            reason = error.strerror or str(error)
            raise FileError(
                "standard input cannot be copied to a file", why=f"{folder}: {reason}", code="ML212",
                hint="set TMPDIR to a folder with more space",
            ) from None  # fmt: skip
        yield path


@contextmanager
def _staged(where: Location) -> Iterator[str]:
    if where.suffix in (".xml", ".json", ".txt"):
        raise UsageError(
            f"{where} cannot be read from a URL", why="only ONNX models are", code="ML287",
            hint="copy the .xml and the .bin to a local folder",
        )  # fmt: skip
    from mo_loop.storage.scratch import Scratch
    from mo_loop.storage.staging import staged

    with staged(where, Scratch()) as here:
        yield str(here.path)


def require_local(paths: dict[str, str | None]) -> None:
    """UsageError for a URL where only a local path is possible; `paths`: what it is -> path."""
    for what, path in paths.items():
        if path is not None and is_url(path):
            raise UsageError(
                f"{what} {Location(path)} is a URL", why="only a local path is possible here", code="ML287",
                hint="copy the files to a local folder, or from there",
            )  # fmt: skip


def require_places(source: str, target: str, others: dict[str, str | None]) -> None:
    """Refuse files that cannot be written, or that are the same as another one or the model; `others`: flag -> file.

    Raises:
        UsageError: two files are the same, or the name of the output does not end in .xml.
        FileError: the folder cannot be written.
    """
    if not target.endswith(".xml"):
        raise UsageError(
            f"the output {os.path.basename(target)!r} does not end in .xml", why="the .bin gets the same name",
            hint="name it, for example, model.xml",
        )  # fmt: skip
    data = target[: -len(".xml")] + ".bin"
    written = {target: "-o", data: "-o"}
    for each in [] if is_url(target) else written:
        if source != "-" and _same(source, each):
            raise UsageError(
                f"the output {each} is the model itself", why="the model would be lost", hint="give another name"
            )
        if os.path.exists(each) and not os.path.isfile(each):
            what = "a folder" if os.path.isdir(each) else "a device or a pipe"
            raise FileError(f"{each} cannot be written", why=f"it is {what}", hint="give another name", code="ML218")
    for flag, file in others.items():
        if file is None or is_url(file):
            continue
        for other in (*written, *([] if source == "-" else [source])):
            if _same(file, other):
                raise UsageError(
                    f"{flag} {file} is a file of the conversion itself", why=f"{other} would be overwritten",
                    hint="give another name",
                )  # fmt: skip
        written[file] = flag
        _require_folder(file, "ML219")
    if not is_url(target):
        _require_folder(target, "ML218")


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _require_folder(file: str, code: str) -> None:
    """FileError unless the folder of a file, or the lowest existing folder above it, can be written."""
    folder = os.path.dirname(os.path.abspath(file))
    while not os.path.lexists(folder) and os.path.dirname(folder) != folder:
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        why, hint = f"{folder} is not a folder", "give another path"
    elif not os.access(folder, os.W_OK | os.X_OK):
        why, hint = f"{folder} is not writable: Permission denied", "give another path, or change the permissions"
    else:
        return
    raise FileError(f"{file} cannot be written", why=why, hint=hint, code=code)
