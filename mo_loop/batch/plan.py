"""Finds the models of a batch and the paths of their outputs.

    planned(["models", "more/*.onnx"], Path("out"))

The outputs have the folder structure of the models below their common root: the given folder, the part of a glob
before its first wildcard, the folder of a given file. A folder means all .onnx files in it and its subfolders, a glob
the .onnx files that it matches; names that begin with a dot are skipped. A given file may have any suffix. Models at
URLs are found by `mo_loop.batch.remote_plan`.
"""

from __future__ import annotations

import glob
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from mo_loop.batch.places import read_bytes
from mo_loop.errors import UsageError
from mo_loop.storage.locations import Location, place_of

if TYPE_CHECKING:
    from mo_loop.storage.stores import Info

ENDING = ".onnx"


@dataclass(frozen=True, slots=True)
class Planned:
    """One model: its file, the .xml to write, and its path below the common root with `/` between folders.

    `found` is what a listing said about a model at a URL.
    """

    source: Path | Location
    target: Path | Location
    name: str
    found: Info | None = None

    @property
    def outputs(self) -> tuple[Path, Path]:
        """The .xml and the .bin, which are local files."""
        assert isinstance(self.target, Path)
        return self.target, self.target.with_suffix(".bin")

    @property
    def local_source(self) -> Path:
        """The .onnx, which is a local file."""
        assert isinstance(self.source, Path)
        return self.source

    @property
    def size(self) -> int:
        """The bytes of the .onnx. OSError if it is a local file that is gone."""
        return self.local_source.stat().st_size if self.found is None else self.found.size


@dataclass(frozen=True, slots=True)
class Plan:
    """All models, by name, and the folder that their names are below."""

    models: tuple[Planned, ...]
    root: Path | Location


def planned(given: Iterable[str], folder: Path | Location) -> Plan:
    """The models of `given` and their places in `folder`.

    Args:
        given: files, folders, globs, and `@file` for a list of them (`listed`).

    Raises:
        UsageError: a path does not exist or has no model, or two models have the same output.
    """
    found: dict[str, None] = {}
    roots = []
    for text in unlisted(given):
        root, files = _found(text)
        if not files:
            raise UsageError(f"there is no {ENDING} file in {text}", hint="check the path, or quote the pattern")
        roots.append(root)
        found.update(dict.fromkeys(files))
    if not roots:
        raise UsageError("there is no model to convert", hint="give files, folders or globs, or a list as @FILE")
    try:
        root = os.path.commonpath(roots)
    except ValueError:
        raise UsageError(f"{', '.join(roots)} have no common folder", hint="run one batch for each") from None
    models = tuple(_planned(path, root, folder) for path in sorted(found))
    refuse_clashes(models)
    if isinstance(folder, Path):
        _refuse_weights(models)
    return Plan(models, Path(root))


def _planned(path: str, root: str, folder: Path | Location) -> Planned:
    name = Path(os.path.relpath(path, root)).as_posix()
    return Planned(Path(path), folder / f"{os.path.splitext(name)[0]}.xml", name)


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
        raise UsageError(f"the list {name} cannot be read: {error.strerror or error}", hint="check the path") from None
    for line in data.decode("utf-8-sig", errors="surrogateescape").splitlines():
        text = line.strip()
        if text.startswith("@"):
            raise UsageError(f"the list {name} names the list {text}", hint="put its paths into this one")
        if text and not text.startswith("#"):
            yield text


def _found(text: str) -> tuple[str, list[str]]:
    """The root and the models of one file, folder or glob, as absolute paths. Symbolic links are not resolved."""
    if "\0" in text:
        raise UsageError(f"{text!r} is not a path")
    path = os.path.abspath(text)
    if os.path.isdir(path):
        return path, list(models_below(path))
    if os.path.isfile(path):
        return os.path.dirname(path), [path]
    if os.path.lexists(path):
        raise UsageError(f"{text} is neither a file nor a folder")
    if not glob.has_magic(text):
        raise UsageError(f"{text} does not exist", hint="check the path")
    matched = (os.path.abspath(each) for each in glob.iglob(text, recursive=True))
    return _fixed_part(text), [each for each in matched if _is_model(each) and os.path.isfile(each)]


def models_below(folder: str) -> Iterator[str]:
    """All .onnx files in a folder and its subfolders, without hidden ones."""
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        for name in files:
            if not name.startswith(".") and _is_model(name):
                yield os.path.join(place, name)


def _is_model(path: str) -> bool:
    return path.lower().endswith(ENDING)


def _fixed_part(pattern: str) -> str:
    """The folders of a glob before its first wildcard."""
    parts = Path(os.path.dirname(pattern) or ".").parts
    fixed = next((number for number, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return os.path.abspath(os.path.join(".", *parts[:fixed]))


# -- conflicts


def refuse_clashes(models: Iterable[Planned]) -> None:
    """Raise UsageError if two models have the same output, or an output of one is a folder of another."""
    taken: dict[str, Planned] = {}
    for model in models:
        other = taken.setdefault(_key(model), model)
        if other is not model:
            raise UsageError(
                f"{other.name} and {model.name} would both be written to {model.target}",
                hint="rename one, or convert them into different folders",
            )
    files = {f"{key}{ending}": model for key, model in taken.items() for ending in (".xml", ".bin")}
    for key, model in taken.items():
        parts = key.split("/")
        above = ("/".join(parts[:count]) for count in range(1, len(parts)))
        other = next((files[folder] for folder in above if folder in files), model)
        if other is not model:
            raise UsageError(
                f"{model.name} needs a folder in the place of an output of {other.name}",
                hint="rename one, or convert them into different folders",
            )


def _key(model: Planned) -> str:
    """The output path of a model without its suffix, equal for equal files."""
    text = os.path.splitext(model.name)[0]
    return text.casefold() if sys.platform in ("win32", "darwin") else text


def _refuse_weights(models: Sequence[Planned]) -> None:
    """Raise UsageError for a .bin without an .xml next to a model: it is probably external data of a model."""
    folders = {os.path.realpath(folder) for folder in {model.local_source.parent for model in models}}
    for model in models:
        xml, data = model.outputs
        if data.exists() and not xml.exists() and os.path.realpath(data.parent) in folders:
            raise UsageError(
                f"{data} is in a folder of models and can be the weights of one: {model.name} would overwrite it",
                hint="convert into another folder, or move the file if it is not needed",
            )
