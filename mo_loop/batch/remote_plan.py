"""Finds the models of a batch at URLs.

    plan = planned_urls(["s3://zoo/**"], Location("s3://ir"))

A URL is a model, a prefix (every .onnx below it) or a glob. An object whose name has the letters of a glob comes before
what the glob matches. Of a listing only names, sizes and tags are kept. Names that begin with a dot are skipped.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, takewhile
from pathlib import Path

from mo_loop.batch.local_plan import mixed
from mo_loop.batch.plan import ENDING, FoundModels, Plan
from mo_loop.batch.storage.locations import Location, is_url, location_of
from mo_loop.batch.storage.stores import Info, find_all, fixed_part, is_glob, listed
from mo_loop.batch.weights_of_models import refuse_weights
from mo_loop.errors import UsageError

AT_ONCE = 256
"""Lines of a list whose objects are asked for together."""


def planned_urls(given: Iterable[str], folder: Path | Location) -> Plan:
    """The models of `given`, all of them URLs, by name, and the URL that their names are below.

    Raises:
        UsageError: a URL has no model, is not valid, or there is a local path among them; or an output would overwrite
            weights of a model.
        StorageError: a bucket or object does not exist or is refused, or the store fails.
    """
    models = FoundModels()
    top: Location | None = None
    for where, info in _looked_up(given):
        if info is None:
            root = _add_below(where, models)
        else:
            root = where.parent
            models.add([(where.url, info)])
        top = root if top is None else _common(top, root)
    assert top is not None
    plan = models.plan(top, folder)
    refuse_weights(plan, folder)
    return plan


def _looked_up(given: Iterable[str]) -> Iterator[tuple[Location, Info | None]]:
    """The URLs, those of objects that are models with size and tag."""
    places = map(_location, given)
    while some := list(islice(places, AT_ONCE)):
        named = [each for each in some if each.suffix.lower() == ENDING]
        found = dict(zip(named, find_all(named), strict=True))
        yield from ((each, found.get(each)) for each in some)


def _location(text: str) -> Location:
    if not is_url(text):
        raise mixed(text)
    return location_of(text)


def _add_below(where: Location, models: FoundModels) -> Location:
    """Add what a glob matches or what is below a prefix; the URL that their names are below."""
    root = fixed_part(where)
    if models.add(_visible(listed(where, ENDING), root)):
        return root
    prefix = where.without_slash()
    if is_glob(where) and models.add(_visible(listed(prefix, ENDING, is_literal=True), prefix)):
        return prefix
    raise UsageError(f"there is no {ENDING} object at {where}", hint="check the URL, or quote the pattern")


def _visible(found: Iterable[tuple[Location, Info]], root: Location) -> Iterator[tuple[str, Info]]:
    """The models of a listing without hidden ones."""
    for model, info in found:
        if not any(part.startswith(".") for part in (model.relative_to(root) or "").split("/")):
            yield model.url, info


def _common(one: Location, other: Location) -> Location:
    """The URL that is above both."""
    if (one.scheme, one.rest.partition("/")[0]) != (other.scheme, other.rest.partition("/")[0]):
        raise UsageError(
            f"{one}, {other} have no common prefix", why="they are several buckets", hint="run one batch for each"
        )
    pairs = zip(one.rest.split("/"), other.rest.split("/"), strict=False)
    same = [part for part, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
    return Location(f"{one.scheme}://{'/'.join(same)}")
