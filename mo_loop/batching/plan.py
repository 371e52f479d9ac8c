"""The plan of a batch: its models and the places of their outputs, on disk.

    models = FoundModels()
    models.add([("/models/a.onnx", None)])                     # any number of them, in any order
    plan = models.plan(Path("/models"), Path("ir"))
    for model in plan.models: ...                             # by name

`mo_loop.batching.finding` finds models in folders and at URLs.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mo_loop.batching.storage.locations import Location, PathOrUrl
from mo_loop.batching.storage.stamps import Info
from mo_loop.errors import StorageError, UsageError
from mo_loop.support.disk_table import DiskSequence, DiskTable, key, text_of

ENDING = ".onnx"
_LONGEST = 255
"""Bytes of the name of a file, in most file systems."""

_NOT_ON_WINDOWS = '\\:*?"<>|'


@dataclass(frozen=True, slots=True)
class Planned:
    """One model: its file, the .xml to write, and its path below the common root with `/` between folders.

    `listed` is the entry of a model at a URL in a listing.
    """

    source: PathOrUrl
    target: PathOrUrl
    name: str
    listed: Info | None = None

    @property
    def outputs(self) -> tuple[PathOrUrl, PathOrUrl]:
        """The .xml and the .bin."""
        return self.target, self.target.with_suffix(".bin")

    @property
    def size(self) -> int:
        """The bytes of the .onnx. OSError if it is a local file that is gone."""
        if self.listed is not None:
            return self.listed.size
        assert isinstance(self.source, Path)
        return self.source.stat().st_size


@dataclass(frozen=True, slots=True)
class BatchPlan:
    """All models, by name, and the folder that their names are below."""

    models: Sequence[Planned]
    root: PathOrUrl


class FoundModels:
    """The models that were found so far, each once."""

    def __init__(self) -> None:
        self._table = DiskTable("CREATE TABLE found (place BLOB PRIMARY KEY, size INTEGER, tag TEXT) WITHOUT ROWID")

    def add(self, places: Iterable[tuple[str, Info | None]]) -> int:
        """Add models: an absolute path, or a URL with the facts of its listing. Returns their number."""
        count = 0

        def rows() -> Iterator[tuple[bytes, int | None, str | None]]:
            nonlocal count
            for place, info in places:
                count += 1
                yield (key(place), None, None) if info is None else (key(place), info.size, info.tag)

        self._table.run_all("INSERT OR REPLACE INTO found VALUES (?, ?, ?)", rows())
        return count

    def plan(self, root: PathOrUrl, folder: PathOrUrl) -> BatchPlan:
        """The plan of all of them, with names below `root` and outputs below `folder`.

        Raises:
            UsageError: two models have the same output, or an output of one is a folder of another.
        """
        folder = folder.without_slash() if isinstance(folder, Location) else folder
        models = PlannedModels(folder, isinstance(root, Location))
        for place, size, tag in self._table.rows("SELECT * FROM found ORDER BY place"):
            text = text_of(place)
            models.append(text, _name_of(text, root), size, tag)
        for model in models:
            models.refuse_clash(model)
        return BatchPlan(models, root)


class PlannedModels(DiskSequence[Planned]):
    """Models in the order of their places, with outputs below a folder."""

    def __init__(self, folder: PathOrUrl, are_remote: bool) -> None:
        self._folder = folder
        self._are_remote = are_remote
        self._count = 0
        self._table = DiskTable(
            "CREATE TABLE models (number INTEGER PRIMARY KEY, place BLOB, name BLOB, size INTEGER, tag TEXT, "
            "stem BLOB UNIQUE)"
        )

    def append(self, place: str, name: str, size: int | None, tag: str | None) -> None:
        """Add a model. UsageError if another one has its outputs."""
        stem = key(stem_of(name))
        other = self._table.row("SELECT * FROM models WHERE stem = ?", stem)
        if other is not None:
            raise UsageError(
                f"{self._made(other).name} and {name} would both be written to {self._target(name)}",
                hint="rename one, or convert them into different folders",
            )
        values = (self._count, key(place), key(name), size, tag, stem)
        self._table.run("INSERT INTO models VALUES (?, ?, ?, ?, ?, ?)", *values)
        self._count += 1

    def refuse_clash(self, model: Planned) -> None:
        """Raise UsageError if a folder of the model has the name of an output of another model."""
        folder = stem_of(model.name)
        while folder := folder.rpartition("/")[0]:
            if not folder.endswith((".xml", ".bin")):
                continue
            other = self._table.row("SELECT * FROM models WHERE stem = ?", key(folder[: -len(".xml")]))
            if other is not None:
                raise UsageError(
                    f"{model.name} needs a folder in the place of an output of {self._made(other).name}",
                    hint="rename one, or convert them into different folders",
                )

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Planned]:
        return map(self._made, self._table.rows("SELECT * FROM models ORDER BY number"))

    def _at(self, place: int) -> Planned:
        row = self._table.row("SELECT * FROM models WHERE number = ?", place)
        assert row is not None
        return self._made(row)

    def _made(self, row: tuple[Any, ...]) -> Planned:
        _, place, name, size, tag, _ = row
        text, path = text_of(name), text_of(place)
        if self._are_remote:
            return Planned(Location(path), self._target(text), text, Info(size, tag))
        return Planned(Path(path), self._target(text), text)

    def _target(self, name: str) -> PathOrUrl:
        return self._folder / f"{os.path.splitext(name)[0]}.xml"


def _name_of(place: str, root: PathOrUrl) -> str:
    """The path of a model below the root; without the query of a URL, which may be a signature."""
    if isinstance(root, Location):
        return Location(place).relative_to(root) or ""
    return Path(os.path.relpath(place, root)).as_posix()


def has_name(model: Planned) -> bool:
    """Whether a model can have outputs of its name.

    A key of a store need not be a relative path: outputs of `../m.onnx` would be outside the folder, those of
    `a//m.onnx` in the place of those of `a/m.onnx`.
    """
    return not _oddity(model)


def require_name(model: Planned) -> None:
    """StorageError unless a model can have outputs of its name."""
    why = _oddity(model)
    if why:
        raise StorageError(
            f"{model.source} has no name for its outputs", why=why, hint="rename the object", code="ML287"
        )


def _oddity(model: Planned) -> str:
    parts = model.name.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\0" in model.name:
        return f"{model.name!r} is not a relative path"
    if not isinstance(model.target, Path):
        return ""
    if sys.platform == "win32" and any(sign in model.name for sign in _NOT_ON_WINDOWS):
        return f"Windows has no file {model.name!r}"
    is_long = any(len(os.fsencode(part)) > _LONGEST for part in parts)
    return f"a name of a local file has at most {_LONGEST} bytes" if is_long else ""


def stem_of(name: str) -> str:
    """The output path of a model without its suffix, equal for equal files."""
    text = os.path.splitext(name)[0]
    return text.casefold() if sys.platform in ("win32", "darwin") else text
