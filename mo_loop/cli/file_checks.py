"""Checks the files that a conversion reads and writes before it begins: a long one must not fail at its end."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager

from mo_loop.batching.storage.locations import Location, is_url, location_of
from mo_loop.errors import ConversionErrors, FileError, MoLoopError, UsageError
from mo_loop.support.files import is_among


@contextmanager
def fetched(source: str) -> Iterator[str]:
    """The path of a model, or of an IR with its .bin; files at a URL are staged.

    Raises:
        FileError: an object cannot be read.
    """
    if not is_url(source):
        yield source
        return
    where = location_of(source)
    with _staged(where) as path, _errors_naming(path, where):
        yield path


@contextmanager
def opened(source: str) -> Iterator[str]:
    """The same, where standard input (`-`) is copied to a temporary file.

    Raises:
        FileError: standard input is a terminal, the disk has no space for the file, or an object cannot be read.
    """
    if source != "-":
        with fetched(source) as path:
            yield path
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
    from mo_loop.batching.storage.scratch import Scratch
    from mo_loop.batching.storage.transfers import copied, staged

    if where.suffix not in (".xml", ".json", ".txt"):
        with staged(where, Scratch()) as here:
            yield str(here.path)
        return
    from mo_loop.batching.storage.stores import find

    files = [where]
    if where.suffix == ".xml" and find(data := where.with_suffix(".bin")) is not None:
        files.append(data)
    with copied(files, Scratch()) as paths:
        yield str(paths[0])


@contextmanager
def _errors_naming(path: str, where: Location) -> Iterator[None]:
    """Errors in the block name the URL instead of the local copy of the object."""
    try:
        yield
    except ConversionErrors:  # they name nodes, no files
        raise
    except MoLoopError as error:
        message, why, hint = (each.replace(path, str(where)) for each in (error.message, error.why, error.hint))
        raise error.at(message=message, why=why, hint=hint) from error.__cause__


@contextmanager
def opened_inputs(given: Iterable[str]) -> Iterator[list[tuple[str, str]]]:
    """Inputs of a comparison, FILE or NAME=FILE: the text with a local file, and the text to show. Errors as
    of `fetched`."""
    with ExitStack() as stack:
        found = []
        for text in given:
            name, equals, file = ("", "", text) if is_url(text) else text.partition("=")
            if not is_url(file):
                found.append((text, text))
                continue
            from mo_loop.batching.storage.scratch import Scratch
            from mo_loop.batching.storage.transfers import copied

            where = location_of(file)
            (path,) = stack.enter_context(copied([where], Scratch()))
            stack.enter_context(_errors_naming(str(path), where))
            found.append((f"{name}{equals}{path}", f"{name}{equals}{where}"))
        yield found


def named(source: str) -> str:
    """A model as the summary and the default name of the output have it: a URL without credentials."""
    return str(location_of(source)) if is_url(source) else source


def sources_of(model: str, path: str, read: Iterable[str]) -> tuple[str, ...]:
    """The files that were read: with a model at a URL, the URLs of their local copies; `path` is that of the model."""
    if not is_url(model):
        return tuple(read)
    base, folder = location_of(model).parent, os.path.realpath(os.path.dirname(path))
    return tuple((base / os.path.relpath(each, folder)).url for each in map(os.path.realpath, read))


def require_local(paths: Mapping[str, str | Iterable[str] | None]) -> None:
    """UsageError for a URL where only a local path is possible; `paths`: option -> FILE or NAME=FILE, or several."""
    for what, given in paths.items():
        texts = [given] if isinstance(given, str) else given or ()
        for url in (part for text in texts for part in (text, text.partition("=")[2]) if is_url(part)):
            raise UsageError(
                f"{what} {Location(url)} is a URL", why="only a local path is possible here", code="ML287",
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
    named(target)  # UsageError for a URL that is not valid
    data = target[: -len(".xml")] + ".bin"
    written = {target: "-o", data: "-o"}
    for each in written:
        if source != "-" and is_among(source, [each]):
            hint = "give an .onnx file: an IR needs no conversion" if source == target else "give another name"
            raise UsageError(f"the output {named(each)} is the model itself", why="the model would be lost", hint=hint)
        if not is_url(target) and os.path.exists(each) and not os.path.isfile(each):
            what = "a folder" if os.path.isdir(each) else "a device or a pipe"
            raise FileError(f"{each} cannot be written", why=f"it is {what}", hint="give another name", code="ML218")
    for flag, file in others.items():
        if file is None or is_url(file):
            continue
        for other in (*written, *([] if source == "-" else [source])):
            if is_among(file, [other]):
                raise UsageError(
                    f"{flag} {file} is a file of the conversion itself", why=f"{other} would be overwritten",
                    hint="give another name",
                )  # fmt: skip
        written[file] = flag
        _require_folder(file, "ML219")
    if not is_url(target):
        _require_folder(target, "ML218")


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
