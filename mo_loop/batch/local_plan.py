"""Finds the models of a batch in folders, and reads lists of paths.

    planned(["models", "more/*.onnx"], Path("out"))

The outputs have the folder structure of the models below their common root: the given folder, the part of a glob
before its first wildcard, the folder of a given file. A folder means all .onnx files in it and its subfolders, a glob
the .onnx files that it matches; names that begin with a dot are skipped. A given file may have any suffix. Models at
URLs are found by `mo_loop.batch.remote_plan`.
"""

from __future__ import annotations

import glob
import io
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from mo_loop.batch.places import read_bytes
from mo_loop.batch.plan import ENDING, FoundModels, Plan
from mo_loop.batch.storage.locations import Location, is_url, masked, place_of
from mo_loop.batch.weights_of_models import refuse_weights
from mo_loop.errors import UsageError


def planned(given: Iterable[str], folder: Path | Location) -> Plan:
    """The models of `given` and their places in `folder`.

    Args:
        given: files, folders, globs, and `@file` for a list of them (`listed`).

    Raises:
        UsageError: a path does not exist or has no model, two models have the same output, or one is at a URL.
    """
    models = FoundModels()
    root = last = ""
    for text in unlisted(given):
        if is_url(text):
            raise mixed(last)
        above, found = _found(text)
        root, last = _common(root, above), text
        if not models.add((path, None) for path in found):
            raise UsageError(f"there is no {ENDING} file in {text}", hint="check the path, or quote the pattern")
    if not root:
        raise UsageError("there is no model to convert", hint="give files, folders or globs, or a list as @FILE")
    plan = models.plan(Path(root), folder)
    refuse_weights(plan, folder)
    return plan


def mixed(local: object) -> UsageError:
    """The error of a local path beside models at URLs."""
    return UsageError(f"{local} is a local path, and other models are at URLs", hint="run one batch for each")


def _common(root: str, other: str) -> str:
    """The folder above both; `root` is empty at first."""
    try:
        return os.path.commonpath([root, other]) if root else other
    except ValueError:
        raise UsageError(f"{root}, {other} have no common folder", hint="run one batch for each") from None


# -- the given paths


def unlisted(given: Iterable[str]) -> Iterator[str]:
    """The given paths, with those of a list in the place of `@list`."""
    for text in given:
        if text.startswith("@"):
            yield from listed(text[1:])
        else:
            yield text


def listed(name: str) -> Iterator[str]:
    """The lines of a UTF-8 text file, or of standard input for `-`, without empty lines and lines that begin with #.

    Relative paths are relative to the working directory, not to the list.
    """
    try:
        data = sys.stdin.buffer.read() if name == "-" else read_bytes(place_of(name))
    except OSError as error:
        reason = error.strerror or error
        raise UsageError(f"the list {masked(name)} cannot be read: {reason}", hint="check the path") from None
    for line in io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", errors="surrogateescape"):
        text = line.strip()
        if text.startswith("@"):
            raise UsageError(
                f"the list {masked(name)} names the list {masked(text)}", hint="put its paths into this one"
            )
        if text and not text.startswith("#"):
            yield text


def _found(text: str) -> tuple[str, Iterable[str]]:
    """The root and the models of one file, folder or glob, as absolute paths. Symbolic links are not resolved."""
    if "\0" in text:
        raise UsageError(f"{text!r} is not a path")
    path = os.path.abspath(text)
    if os.path.isdir(path):
        return path, models_below(path)
    if os.path.isfile(path):
        return os.path.dirname(path), [path]
    if os.path.lexists(path):
        raise UsageError(f"{text} is neither a file nor a folder")
    if not glob.has_magic(text):
        raise UsageError(f"{text} does not exist", hint="check the path")
    matched = (os.path.abspath(each) for each in glob.iglob(text, recursive=True))
    return _fixed_part(text), (each for each in matched if _is_model(each) and os.path.isfile(each))


def models_below(folder: str) -> Iterator[str]:
    """All .onnx files in a folder and its subfolders, without hidden ones, in any order. Links to folders are not
    entered, and folders that cannot be read are left out."""
    folders = [folder]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for each in entries:
                if each.name.startswith("."):
                    continue
                if each.is_dir(follow_symlinks=False):
                    folders.append(each.path)
                elif _is_model(each.name) and not each.is_dir():
                    yield each.path


def _is_model(path: str) -> bool:
    return path.lower().endswith(ENDING)


def _fixed_part(pattern: str) -> str:
    """The folders of a glob before its first wildcard."""
    parts = Path(os.path.dirname(pattern) or ".").parts
    fixed = next((number for number, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return os.path.abspath(os.path.join(".", *parts[:fixed]))
