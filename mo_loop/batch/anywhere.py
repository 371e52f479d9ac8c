"""A plan and its outputs, at local paths or at URLs: what is at URLs is loaded only for those.

plan = planned_anywhere(["s3://zoo/**"], place_of("s3://ir"))
outputs = outputs_for(place_of("s3://ir"), Scratch(limit=20 << 30))
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING

from mo_loop.batch.local_plan import planned, unlisted
from mo_loop.batch.outputs import LocalOutputs, Outputs
from mo_loop.batch.plan import Plan
from mo_loop.batch.storage.locations import Location, is_url

if TYPE_CHECKING:
    from mo_loop.batch.storage.scratch import Scratch


def planned_anywhere(given: Iterable[str], folder: Path | Location) -> Plan:
    """The models of `given` (paths, folders, globs, `@lists`; or URLs of the same) and their places below `folder`.

    Raises:
        UsageError: a path or URL has no model, two models have the same output, or some are local and some at URLs.
        StorageError: a bucket does not exist or is refused, or the store fails.
    """
    texts = unlisted(given)
    first = list(islice(texts, 1))
    if not any(map(is_url, first)):
        return planned(chain(first, texts), folder)
    from mo_loop.batch.remote_plan import planned_urls

    return planned_urls(chain(first, texts), folder)


def outputs_for(folder: Path | Location, scratch: Scratch | None = None) -> Outputs:
    """The outputs of a batch below a folder or a URL. `scratch` is needed where something is at a URL.

    Raises:
        StorageError: the store cannot be listed.
    """
    if isinstance(folder, Path):
        return LocalOutputs(folder, scratch)
    from mo_loop.batch.remote_outputs import RemoteOutputs
    from mo_loop.batch.storage.scratch import Scratch

    return RemoteOutputs(folder, scratch or Scratch())
