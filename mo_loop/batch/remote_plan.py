"""Finds the models of a batch at URLs.

    plan = planned_urls(["s3://zoo/**"], Location("s3://ir"))

A URL is a model, a prefix (every .onnx below it) or a glob. Of a listing only names, sizes and tags are kept. Names
that begin with a dot are skipped.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path

from mo_loop.batch.plan import ENDING, Plan, Planned, refuse_clashes
from mo_loop.errors import UsageError
from mo_loop.storage.locations import Location, is_url, location_of
from mo_loop.storage.stores import Info, find, fixed_part, listed

_NOT_ON_WINDOWS = '\\:*?"<>|'


def planned_urls(given: Sequence[str], folder: Path | Location) -> Plan:
    """The models of `given`, all of them URLs, by name, and the URL that their names are below.

    Raises:
        UsageError: a URL has no model, is not valid, or there is a local path among them.
        StorageError: a bucket or object does not exist or is refused, or the store fails.
    """
    local = next((text for text in given if not is_url(text)), None)
    if local is not None:
        raise UsageError(f"{local} is a local path, and other models are at URLs", hint="run one batch for each")
    found: dict[str, Info] = {}
    roots = []
    for text in given:
        where = location_of(text)
        root, count = fixed_part(where), len(found)
        if where.suffix.lower() == ENDING and root == where and (info := find(where)) is not None:
            root, found[where.url] = where.parent, info
        else:
            found.update((model.url, info) for model, info in _visible(where, root))
            if len(found) == count and not any(True for _ in _visible(where, root)):
                raise UsageError(f"there is no {ENDING} object at {where}", hint="check the URL, or quote the pattern")
        roots.append(root)
    top = _common(roots)
    start = len(top.url) + 1
    names = sorted((url[start:], url) for url in found)
    models = tuple(
        Planned(Location(url), folder / f"{os.path.splitext(name)[0]}.xml", name, found.pop(url)) for name, url in names
    )
    for model in models:
        _refuse_odd(model, folder)
    refuse_clashes(models)
    return Plan(models, top)


def _visible(where: Location, root: Location) -> Iterator[tuple[Location, Info]]:
    """The models below a URL without hidden ones."""
    start = len(root.url) + 1
    for model, info in listed(where, ENDING):
        if not any(part.startswith(".") for part in model.url[start:].split("/")):
            yield model, info


def _common(roots: Sequence[Location]) -> Location:
    """The URL that is above all others."""
    if len({(root.scheme, root.rest.partition("/")[0]) for root in roots}) > 1:
        shown = ", ".join(map(str, dict.fromkeys(roots)))
        raise UsageError(
            f"{shown} have no common prefix", why="they are several buckets", hint="run one batch for each"
        )
    common = roots[0].rest.split("/")
    for root in roots[1:]:
        same = zip(common, root.rest.split("/"), strict=False)
        common = [one for one, other in takewhile(lambda pair: pair[0] == pair[1], same)]
    return Location(f"{roots[0].scheme}://{'/'.join(common)}")


def _refuse_odd(model: Planned, folder: Path | Location) -> None:
    """Raise UsageError for a key that is no relative path: it would lead out of the folder of the outputs."""
    parts = model.name.split("/")
    is_odd = any(part in ("", ".", "..") for part in parts) or "\0" in model.name
    if is_odd or (
        isinstance(folder, Path) and sys.platform == "win32" and any(sign in model.name for sign in '\\:*?"<>|')
    ):
        raise UsageError(f"{model.source} has no name for its outputs", hint="rename the object")
