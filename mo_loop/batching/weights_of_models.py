"""Refuses a batch that would overwrite weights of its models.

    refuse_weights(plan, Outputs(Path("models")))

A .bin without an .xml, in a folder of models, is probably external data of one of them. If a model has its outputs
there, nothing is converted.
"""

from __future__ import annotations

import os
from pathlib import Path

from mo_loop.batching.outputs import Outputs
from mo_loop.batching.plan import BatchPlan
from mo_loop.batching.storage.locations import Location, PathOrUrl
from mo_loop.errors import UsageError

_OF_ONE_STORE = {"s3a": "s3", "gcs": "gs", "abfss": "abfs"}
"""Schemes that are other names of one."""


def refuse_weights(plan: BatchPlan, outputs: Outputs) -> None:
    """Raise UsageError if a model has its .bin in the place of one that can be the weights of a model."""
    above, below = sorted((_folder(plan.root), _folder(outputs.place)), key=len)
    if "://" in above + below and not f"{below}/".startswith(f"{above}/"):
        return  # no output is in a folder of models
    folders: set[str] = set()
    for model in plan.models:
        if not outputs.has_lone_data(model):
            continue
        folders = folders or {_folder(each.source.parent) for each in plan.models}
        data = model.outputs[1]
        if _folder(data.parent) in folders:
            raise UsageError(
                f"{data} is in a folder of models and can be the weights of one: {model.name} would overwrite it",
                hint="convert into another folder, or move the file if it is not needed",
            )


def _folder(place: PathOrUrl) -> str:
    """The same text for the same folder: without links for one of this machine, which may be that of a file:// URL."""
    if isinstance(place, Location) and place.scheme in ("file", "local"):
        from mo_loop.batching.storage.filesystems import local_path

        place = Path(local_path(place) or "")
    if isinstance(place, Path):
        return os.path.realpath(place)
    return f"{_OF_ONE_STORE.get(place.scheme, place.scheme)}://{place.rest}"
