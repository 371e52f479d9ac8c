"""Finds the models of a batch at URLs.

    plan = planned_urls(["s3://zoo/**"], Location("s3://ir"))

A URL is a model, a prefix (every .onnx below it) or a glob. Of a listing only names, sizes and tags are kept. Names
that begin with a dot are skipped.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from itertools import takewhile
from pathlib import Path

from mo_loop.batch.local_plan import mixed
from mo_loop.batch.plan import ENDING, FoundModels, Plan, Planned
from mo_loop.errors import UsageError
from mo_loop.storage.locations import Location, is_url, location_of
from mo_loop.storage.stores import Info, find, fixed_part, listed

_NOT_ON_WINDOWS = '\\:*?"<>|'


def planned_urls(given: Iterable[str], folder: Path | Location) -> Plan:
    """The models of `given`, all of them URLs, by name, and the URL that their names are below.

    Raises:
        UsageError: a URL has no model, is not valid, or there is a local path among them.
        StorageError: a bucket or object does not exist or is refused, or the store fails.
    """
    models = FoundModels()
    top: Location | None = None
    for text in given:
        if not is_url(text):
            raise mixed(text)
        where = location_of(text)
        root = fixed_part(where)
        if where.suffix.lower() == ENDING and root == where and (info := find(where)) is not None:
            root = where.parent
            models.add([(where.url, info)])
        elif not models.add((model.url, found) for model, found in _visible(where, root)):
            raise UsageError(f"there is no {ENDING} object at {where}", hint="check the URL, or quote the pattern")
        top = root if top is None else _common(top, root)
    assert top is not None
    return models.plan(top, folder, lambda model: _refuse_odd(model, folder))


def _visible(where: Location, root: Location) -> Iterator[tuple[Location, Info]]:
    """The models below a URL without hidden ones."""
    start = len(root.url) + 1
    for model, info in listed(where, ENDING):
        if not any(part.startswith(".") for part in model.url[start:].split("/")):
            yield model, info


def _common(one: Location, other: Location) -> Location:
    """The URL that is above both."""
    if (one.scheme, one.rest.partition("/")[0]) != (other.scheme, other.rest.partition("/")[0]):
        raise UsageError(
            f"{one}, {other} have no common prefix", why="they are several buckets", hint="run one batch for each"
        )
    pairs = zip(one.rest.split("/"), other.rest.split("/"), strict=False)
    same = [part for part, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
    return Location(f"{one.scheme}://{'/'.join(same)}")


def _refuse_odd(model: Planned, folder: Path | Location) -> None:
    """Raise UsageError for a key that is no relative path: it would lead out of the folder of the outputs."""
    parts = model.name.split("/")
    is_odd = any(part in ("", ".", "..") for part in parts) or "\0" in model.name
    if is_odd or (
        isinstance(folder, Path) and sys.platform == "win32" and any(sign in model.name for sign in _NOT_ON_WINDOWS)
    ):
        raise UsageError(f"{model.source} has no name for its outputs", hint="rename the object")
