"""Hashes of files and options, which decide whether the .xml and .bin files of a model are up to date.

A file is read once, in blocks. The files are up to date if none of these has changed: the model, its external data, the
options, the extension files and the files that they name, the packages that extend conversions, the code of mo_loop and
the version of onnx. Modules that an extension imports are not checked.

An extension names the files that it reads itself, in a list that is not executed:

    MO_LOOP_FILES = ["table.json", "kernels"]        # in the extension: files and folders next to it

A cluster gets them with the extension, at the same relative place, and a batch converts again when one has changed.
"""

import ast
import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping
from importlib import metadata
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mo_loop.batching.plan import Planned
from mo_loop.batching.result import StateEntry
from mo_loop.batching.storage.locations import Info, PathOrUrl, Stamp
from mo_loop.errors import ExtensionError, UsageError
from mo_loop.revision import package_digest
from mo_loop.support.files import reason_of

if TYPE_CHECKING:
    from mo_loop.graph.tensor import DataFile


FILES_NAME = "MO_LOOP_FILES"


def declared_files(extension: str) -> list[str]:
    """The files that an extension names, relative to its folder, sorted; those in folders one by one.

    Raises:
        ExtensionError: the list has other items than texts, or names a file that is missing or not in the folder of
            the extension.
        OSError: the extension cannot be read.
    """
    content = Path(extension).read_bytes()
    if FILES_NAME.encode() not in content:
        return []
    folder = Path(extension).parent
    files: set[str] = set()
    for name in _named_files(content, extension):
        if os.path.isabs(name) or ".." in Path(name).parts:
            raise _unusable_files(extension, f"{name!r} is not in the folder of the extension")
        if not (folder / name).exists():
            raise _unusable_files(extension, f"{name!r} does not exist")
        files.update(each.relative_to(folder).as_posix() for each in files_of(folder / name))
    return sorted(files)


def files_of(place: Path) -> Iterator[Path]:
    """The file, or all files below the folder; links to folders are not followed."""
    if not place.is_dir():
        yield place
        return
    for folder, _, names in os.walk(place):
        yield from (Path(folder, each) for each in names if Path(folder, each).is_file())


def _named_files(content: bytes, extension: str) -> list[str]:
    """The texts of the list; none if the extension is not Python, as its import will report."""
    try:
        module = ast.parse(content)
    except (SyntaxError, ValueError):
        return []
    for each in module.body:
        if not isinstance(each, ast.Assign | ast.AnnAssign) or each.value is None:
            continue
        targets = each.targets if isinstance(each, ast.Assign) else [each.target]
        if any(isinstance(target, ast.Name) and target.id == FILES_NAME for target in targets):
            return _texts_of(each.value, extension)
    return []


def _texts_of(value: ast.expr, extension: str) -> list[str]:
    try:
        names = ast.literal_eval(value)
    except (ValueError, TypeError):
        names = None
    if not isinstance(names, list | tuple) or not all(isinstance(each, str) and each for each in names):
        raise _unusable_files(extension, f"{FILES_NAME} is not a list of texts")
    return list(names)


def _unusable_files(extension: str, why: str) -> ExtensionError:
    return ExtensionError(
        f"the extension {extension} names files that cannot be used", why=why, code="ML261",
        hint=f'write {FILES_NAME} = ["table.json"], with paths of files or folders relative to the extension',
    )


def stamp(path: str | os.PathLike[str]) -> Stamp:
    """Read a file once. OSError if that fails."""
    with open(path, "rb", buffering=0) as file:
        return _stamp(file)


def stamp_of(file: "DataFile") -> Stamp:
    """Read a file of external data once. FileError if it is not the one that was checked."""
    with file.open() as opened:
        return _stamp(opened)


def _stamp(file: FileIO) -> Stamp:
    digest = hashlib.file_digest(file, "sha256").hexdigest()
    return Stamp(file.tell(), digest)


def of_options(options: Mapping[str, Any], extensions: Iterable[str], plugins: bool) -> str:
    """One hash of everything that determines the output except the model.

    Raises:
        UsageError: an extension file cannot be read.
    """
    facts = {
        "options": options,
        "extensions": [_content(path) for path in extensions],
        "plugins": _plugins() if plugins else [],
        "mo_loop": package_digest(),
        "onnx": metadata.version("onnx"),
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()


def _content(path: str) -> str | list[str]:
    """The hash of an extension; with those of the files that it names, if it names some."""
    try:
        own, more = stamp(path).sha256, [stamp(Path(path).parent / each).sha256 for each in declared_files(path)]
        return [own, *more] if more else own
    except OSError as error:
        raise UsageError(f"the extension {path} cannot be read: {reason_of(error)}", code="ML261") from None


def _plugins() -> list[str]:
    """The packages that extend conversions, found without `mo_loop.extensions`, whose import loads onnx."""
    points = metadata.entry_points(group="mo_loop.passes")
    packages = ((entry, getattr(entry, "dist", None)) for entry in points)
    return sorted(
        f"{dist.name if dist else ''} {dist.version if dist else ''} {entry.name} {entry.value}"
        for entry, dist in packages
    )


def is_current(entry: StateEntry, model: Planned, options: str) -> bool:
    """Whether the .xml and .bin of `model` are unchanged and made from these inputs. The cheap checks come first.

    StorageError if a store fails.
    """
    if entry.options != options:
        return False
    files: list[tuple[PathOrUrl, Stamp, Info | None]] = [
        *((place, wanted, None) for place, wanted in zip(model.outputs, (entry.xml, entry.bin), strict=True)),
        (model.source, entry.source, model.listed),
        *((model.source.parent / name, wanted, None) for name, wanted in entry.external.items()),
    ]
    try:
        for place, wanted, _ in files:
            if isinstance(place, Path) and not (place.is_file() and place.stat().st_size == wanted.size):
                return False
        return all(_is_unchanged(*file) for file in files)
    except (OSError, ValueError):
        return False


def _is_unchanged(place: PathOrUrl, wanted: Stamp, listed: Info | None) -> bool:
    """Whether a file has its stamp; `listed` is the entry of an object in a listing."""
    if isinstance(place, Path):
        return stamp(place) == wanted
    from mo_loop.batching.storage.transfers import is_unchanged

    return is_unchanged(place, wanted, listed)
