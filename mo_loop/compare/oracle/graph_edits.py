"""Edits of a GraphProto that cutting and reducing a model share."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

from mo_loop.frontend.names_read import NamesRead


def replace_entries(field: Any, entries: Sequence[Any]) -> None:
    """Give a repeated field these messages, which may be its own."""
    kept = [copy.deepcopy(each) for each in entries]
    del field[:]
    field.extend(kept)


def sweep(graph: Any) -> set[str]:
    """Remove the nodes that no output needs; returns the names that the outputs and the other nodes read."""
    names, needed, kept = NamesRead(), {entry.name for entry in graph.output}, []
    for node in reversed(graph.node):  # ONNX orders the nodes
        if needed.intersection(node.output):
            kept.append(node)
            needed |= names.of_node(node)
    replace_entries(graph.node, list(reversed(kept)))
    return needed
