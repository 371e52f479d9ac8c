"""Refuses a batch that would overwrite weights of its models.

    refuse_weights(plan, Path("models"))

A .bin without an .xml, in a folder of models, is probably external data of one of them. If a model has its outputs
there, nothing is converted. At a URL a worker that was killed can have left it too: then the model has a record.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from mo_loop.batch.plan import Plan, Planned
from mo_loop.batch.storage.locations import Location
from mo_loop.errors import UsageError
from mo_loop.support.disk_table import DiskTable, key

if TYPE_CHECKING:
    from mo_loop.batch.storage.remote_state import RemoteState

_OF_ONE_STORE = {"s3a": "s3", "gcs": "gs", "abfss": "abfs"}
"""Schemes that are other names of one."""


def refuse_weights(plan: Plan, folder: Path | Location) -> None:
    """Raise UsageError if a model has its .bin in the place of one that can be the weights of a model.

    Raises:
        UsageError: the same.
        StorageError: the outputs are in a folder of models at a URL, which cannot be listed.
    """
    converted = _Converted(folder)
    if _is_local(plan.root) and _is_local(folder):
        _refuse_files(plan, converted)
    elif isinstance(plan.root, Location) and isinstance(folder, Location):
        _refuse_objects(plan, plan.root, folder.without_slash(), converted)


class _Converted:
    """The models that earlier batches have converted into a prefix. Its records are listed when one is asked for."""

    def __init__(self, folder: Path | Location) -> None:
        self._prefix = folder.without_slash() if isinstance(folder, Location) else None
        self._state: RemoteState | None = None

    def __contains__(self, model: Planned) -> bool:
        if self._prefix is None:
            return False
        if self._state is None:
            from mo_loop.batch.storage.remote_state import RemoteState

            self._state = RemoteState(self._prefix)
            self._state.load()
        return bool(self._state.records(_url(model.target).relative_to(self._prefix) or ""))


def _refuse_files(plan: Plan, converted: _Converted) -> None:
    folders: set[str] = set()
    for model in plan.models:
        xml = _path(model.target)
        data = os.path.splitext(xml)[0] + ".bin"
        if not os.path.exists(data) or os.path.exists(xml):
            continue
        folders = folders or {_folder(_path(each.source)) for each in plan.models}
        if _folder(data) in folders and model not in converted:
            raise _overwritten(data, model)


def _refuse_objects(plan: Plan, root: Location, prefix: Location, converted: _Converted) -> None:
    above, below = sorted((_canonical(root), _canonical(prefix)), key=len)
    if not f"{below}/".startswith(f"{above}/"):
        return  # no output is in a folder of models
    folders = {_canonical(_url(each.source).parent) for each in plan.models}
    lone = _Lone(prefix)
    for model in plan.models:
        target = _url(model.target)
        is_lone = _canonical(target.parent) in folders and target.with_suffix("") in lone
        if is_lone and model not in converted:
            raise _overwritten(target.with_suffix(".bin"), model)


class _Lone:
    """The .bin objects below a prefix that have no .xml, without their suffix."""

    def __init__(self, prefix: Location) -> None:
        from mo_loop.batch.storage.stores import listed

        self._table = DiskTable("CREATE TABLE files (stem BLOB, ending TEXT, PRIMARY KEY (stem, ending)) WITHOUT ROWID")

        def rows() -> Iterator[tuple[bytes, str]]:
            for where, _ in listed(prefix, is_literal=True):
                if where.suffix in (".xml", ".bin"):
                    yield key(where.with_suffix("").url), where.suffix

        self._table.run_all("INSERT OR REPLACE INTO files VALUES (?, ?)", rows())

    def __contains__(self, stem: Location) -> bool:
        found = {ending for (ending,) in self._table.rows("SELECT ending FROM files WHERE stem = ?", key(stem.url))}
        return found == {".bin"}


def _overwritten(data: object, model: Planned) -> UsageError:
    return UsageError(
        f"{data} is in a folder of models and can be the weights of one: {model.name} would overwrite it",
        hint="convert into another folder, or move the file if it is not needed",
    )


def _folder(path: str) -> str:
    return os.path.realpath(os.path.dirname(path))


def _is_local(place: Path | Location) -> bool:
    return isinstance(place, Path) or place.scheme in ("file", "local")


def _path(place: Path | Location) -> str:
    """The path of a place on this machine; it may be that of a file:// URL."""
    if isinstance(place, Path):
        return str(place)
    from mo_loop.batch.storage.filesystems import local_path

    return local_path(place) or ""


def _url(place: Path | Location) -> Location:
    assert isinstance(place, Location)
    return place


def _canonical(where: Location) -> str:
    return f"{_OF_ONE_STORE.get(where.scheme, where.scheme)}://{where.rest}"
