"""The files that an extension reads: those that it names itself, in a list that is not executed.

    MO_LOOP_FILES = ["table.json", "kernels"]        # in the extension: files and folders next to it

A cluster gets them with the extension, at the same relative place, and a batch converts again when one has changed.
"""

from __future__ import annotations

import ast
import os
from collections.abc import Iterator
from pathlib import Path

from mo_loop.errors import ExtensionError

NAME = "MO_LOOP_FILES"


def declared_files(extension: str) -> list[str]:
    """The files that an extension names, relative to its folder, sorted; those in folders one by one.

    Raises:
        ExtensionError: the list has other items than texts, or names a file that is missing or not in the folder of
            the extension.
        OSError: the extension cannot be read.
    """
    content = Path(extension).read_bytes()
    if NAME.encode() not in content:
        return []
    folder = Path(extension).parent
    files: set[str] = set()
    for name in _named(content, extension):
        if os.path.isabs(name) or ".." in Path(name).parts:
            raise _wrong(extension, f"{name!r} is not in the folder of the extension")
        if not (folder / name).exists():
            raise _wrong(extension, f"{name!r} does not exist")
        files.update(each.relative_to(folder).as_posix() for each in files_of(folder / name))
    return sorted(files)


def files_of(place: Path) -> Iterator[Path]:
    """The file, or all files below the folder; links to folders are not followed."""
    if not place.is_dir():
        yield place
        return
    for folder, _, names in os.walk(place):
        yield from (Path(folder, each) for each in names if Path(folder, each).is_file())


def _named(content: bytes, extension: str) -> list[str]:
    """The texts of the list; none if the extension is not Python, as its import will report."""
    try:
        module = ast.parse(content)
    except (SyntaxError, ValueError):
        return []
    for each in module.body:
        if not isinstance(each, ast.Assign | ast.AnnAssign) or each.value is None:
            continue
        targets = each.targets if isinstance(each, ast.Assign) else [each.target]
        if any(isinstance(target, ast.Name) and target.id == NAME for target in targets):
            return _texts(each.value, extension)
    return []


def _texts(value: ast.expr, extension: str) -> list[str]:
    try:
        names = ast.literal_eval(value)
    except (ValueError, TypeError):
        names = None
    if not isinstance(names, list | tuple) or not all(isinstance(each, str) and each for each in names):
        raise _wrong(extension, f"{NAME} is not a list of texts")
    return list(names)


def _wrong(extension: str, why: str) -> ExtensionError:
    return ExtensionError(
        f"the extension {extension} names files that cannot be used", why=why, code="ML261",
        hint=f'write {NAME} = ["table.json"], with paths of files or folders relative to the extension',
    )  # fmt: skip
