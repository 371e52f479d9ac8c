"""Merges two nodes that compute the same value."""

from __future__ import annotations

from mo_loop.ops.base import Op
from mo_loop.support.ordered_union import union


def absorb(survivor: Op, twin: Op) -> None:
    """Readers, names, origins and rt_info of `twin` move to `survivor`, which keeps its own; `twin` is removed."""
    for old, new in zip(twin.outputs, survivor.outputs, strict=True):
        old.replace_with(new)
        new.copy_names(old)
    survivor.name = survivor.name or twin.name
    survivor.origins = union(survivor.origins, twin.origins)
    for key, value in twin.rt_info.items():
        survivor.rt_info.setdefault(key, value)
    twin.graph.remove(twin)
