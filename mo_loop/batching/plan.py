"""The plan of a batch: finds its models in folders and at URLs, reads lists of paths, and keeps models and the places
of their outputs on disk.

    plan = planned(["models", "more/*.onnx"], Path("out"))
    plan = planned(["s3://zoo/**"], Location("s3://ir"))
    for model in plan.models: ...                              # by name

The outputs have the folder structure of the models below their common root: the given folder, the part of a glob before
its first wildcard, the folder of a given file. A folder or a prefix means all .onnx files in it and its subfolders, a
glob the .onnx files that it matches; names that begin with a dot are skipped. A given file may have any suffix. An
object whose name has glob characters takes precedence over the matches of the glob. The modules for URLs are loaded
only if there is one.
"""

import glob
import io
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice, takewhile
from pathlib import Path
from typing import Any

from mo_loop.batching.batch_options import read_bytes
from mo_loop.batching.storage.locations import Info, Location, PathOrUrl, is_url, location_of, masked, place_of
from mo_loop.errors import FileError, StorageError, UsageError
from mo_loop.support.disk_table import DiskSequence, DiskTable, key, text_of
from mo_loop.support.files import reason_of

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
        return f"Windows does not allow the name {model.name!r}"
    is_long = any(len(os.fsencode(part)) > _LONGEST for part in parts)
    return f"a name of a local file has at most {_LONGEST} bytes" if is_long else ""


def stem_of(name: str) -> str:
    """The output path of a model without its suffix, equal for equal files."""
    text = os.path.splitext(name)[0]
    return text.casefold() if sys.platform in ("win32", "darwin") else text


AT_ONCE = 256
"""Lines of a list whose objects are looked up together."""


def planned(given: Iterable[str], folder: PathOrUrl) -> BatchPlan:
    """The models of `given`, by name, and their places below `folder`.

    Args:
        given: files, folders and globs, or URLs of the same; and `@file` for a list of them (`lines_of`).

    Raises:
        FileError: a path does not exist.
        UsageError: a path or URL has no model, two models have the same output, or some are local and some at URLs.
        StorageError: a bucket does not exist or is refused, or the store fails.
    """
    texts = unlisted(given)
    first = next(texts, None)
    if first is None:
        raise UsageError("there is no model to convert", hint="give files, folders or globs, or a list as @FILE")
    models = FoundModels()
    add = _add_urls if is_url(first) else _add_paths
    root: PathOrUrl | None = None
    for above in add(chain([first], texts), models):
        root = above if root is None else _common(root, above)
    assert root is not None
    return models.plan(root, folder)


def _mixed(local: object) -> UsageError:
    return UsageError(f"{local} is a local path, and other models are at URLs", hint="run one batch for each")


def _common(one: PathOrUrl, other: PathOrUrl) -> PathOrUrl:
    """The folder or the prefix that is above both."""
    if isinstance(one, Location) and isinstance(other, Location):
        if (one.scheme, one.rest.partition("/")[0]) != (other.scheme, other.rest.partition("/")[0]):
            raise UsageError(
                f"{one}, {other} have no common prefix", why="they are in several buckets",
                hint="run one batch for each",
            )
        pairs = zip(one.rest.split("/"), other.rest.split("/"), strict=False)
        same = [part for part, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
        return Location(f"{one.scheme}://{'/'.join(same)}")
    try:
        return Path(os.path.commonpath([str(one), str(other)]))
    except ValueError:
        raise UsageError(f"{one}, {other} have no common folder", hint="run one batch for each") from None


# -- lists


def unlisted(given: Iterable[str]) -> Iterator[str]:
    """The given paths, with `@list` replaced by the paths of the list."""
    for text in given:
        if text.startswith("@"):
            yield from lines_of(text[1:])
        else:
            yield text


def lines_of(name: str) -> Iterator[str]:
    """The lines of a UTF-8 text file, or of standard input for `-`, without empty lines and lines that begin with #.

    Relative paths are relative to the working directory, not to the list.
    """
    try:
        data = sys.stdin.buffer.read() if name == "-" else read_bytes(place_of(name))
    except OSError as error:
        raise UsageError(f"the list {masked(name)} cannot be read: {reason_of(error)}", hint="check the path") from None
    for line in io.TextIOWrapper(io.BytesIO(data), "utf-8-sig", errors="surrogateescape"):
        text = line.strip()
        if text.startswith("@"):
            raise UsageError(
                f"the list {masked(name)} names the list {masked(text)}", hint="put its paths into this one"
            )
        if text and not text.startswith("#"):
            yield text


# -- paths


def _add_paths(texts: Iterable[str], models: FoundModels) -> Iterator[Path]:
    """Add the models of each text; the folder that their names are below."""
    last = ""
    for text in texts:
        if is_url(text):
            raise _mixed(last)
        root, paths = _found(text)
        if not models.add((path, None) for path in paths):
            raise UsageError(f"there is no {ENDING} file in {text}", hint="check the path, or quote the pattern")
        yield Path(root)
        last = text


def _found(text: str) -> tuple[str, Iterable[str]]:
    """The root and the models of one file, folder or glob, as absolute paths. Symbolic links are not resolved."""
    if "\0" in text:
        raise UsageError(f"{text!r} is not a path")
    path = os.path.abspath(text)
    root = path if os.path.isdir(path) else os.path.dirname(path) if os.path.isfile(path) else ""
    if not root and os.path.lexists(path):
        raise UsageError(f"{text} is neither a file nor a folder")
    if not root and not glob.has_magic(text):
        raise FileError(f"{text} does not exist", hint="check the path", code="ML210")
    return root or _fixed_part(text), map(os.path.abspath, local_models(text))


def local_models(text: str) -> Iterator[str]:
    """The models of a folder or a glob, in any order, or one file, which need not exist; relative if the text is."""
    if os.path.isdir(text):
        return _models_below(text)
    if os.path.lexists(text) or not glob.has_magic(text):
        return iter((text,))
    return (match for match in glob.iglob(text, recursive=True) if _is_model(match) and os.path.isfile(match))


def _models_below(folder: str) -> Iterator[str]:
    """All .onnx files in a folder and its subfolders, without hidden ones, in any order. Links to folders are not
    entered, and folders that cannot be read are left out."""
    folders = [folder]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as entries:
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif _is_model(entry.name) and not entry.is_dir():
                    yield entry.path


def _is_model(path: str) -> bool:
    return path.lower().endswith(ENDING)


def _fixed_part(pattern: str) -> str:
    """The folders of a glob before its first wildcard."""
    parts = Path(os.path.dirname(pattern) or ".").parts
    return os.path.abspath(os.path.join(".", *takewhile(lambda part: not glob.has_magic(part), parts)))


# -- URLs


def _add_urls(texts: Iterable[str], models: FoundModels) -> Iterator[Location]:
    """Add the models of each URL; the URL that their names are below."""
    from mo_loop.batching.storage.stores import find_all

    def location(text: str) -> Location:
        if not is_url(text):
            raise _mixed(text)
        return location_of(text)

    places = map(location, texts)
    while some := list(islice(places, AT_ONCE)):
        named = [where for where in some if where.suffix.lower() == ENDING]
        infos = dict(zip(named, find_all(named), strict=True))
        for where in some:
            info = infos.get(where)
            if info is None:
                yield _add_below(where, models)
            else:
                models.add([(where.url, info)])
                yield where.parent


def _add_below(where: Location, models: FoundModels) -> Location:
    """Add the matches of a glob, or the objects below a prefix; returns the URL that their names are below."""
    from mo_loop.batching.storage.stores import fixed_part, is_glob, listed

    root = fixed_part(where)
    if models.add(_visible(listed(where, ENDING), root)):
        return root
    prefix = where.without_slash()
    if is_glob(where) and models.add(_visible(listed(prefix, ENDING, is_literal=True), prefix)):
        return prefix
    raise UsageError(f"there is no {ENDING} object at {where}", hint="check the URL, or quote the pattern")


def _visible(objects: Iterable[tuple[Location, Info]], root: Location) -> Iterator[tuple[str, Info]]:
    """The models of a listing without hidden ones."""
    for model, info in objects:
        if not any(part.startswith(".") for part in (model.relative_to(root) or "").split("/")):
            yield model.url, info
