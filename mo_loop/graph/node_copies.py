"""Copies of nodes, in the same graph or in another one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from mo_loop.graph.node import Node, Value

if TYPE_CHECKING:
    from mo_loop.graph.graph import Graph


def copy_nodes(source: Graph, target: Graph, values: dict[Value, Value], skip: Iterable[Node] = ()) -> dict[Node, Node]:
    """Copy the nodes of `source`, but for `skip`, into `target`; returns the copy of each.

    `values` maps the inputs that `skip` makes to values of `target`, and gets the outputs. Weights are shared, bodies
    are copied. Nodes that are marked for re-inference are so in the copy.
    """
    copies: dict[Node, Node] = {}
    skipped = set(skip)
    for node in [each for each in source.ordered() if each not in skipped]:  # the source may be the target
        copy: Any = object.__new__(type(node))
        if hasattr(node, "__dict__"):
            copy.__dict__.update(node.__dict__)
        copy.name = node.name
        if hasattr(node, "made"):
            copy.made = node.made
        if getattr(node, "_rt_info", None):
            copy.rt_info.update(node.rt_info)
        copy.inputs = tuple(None if value is None else values[value] for value in node.inputs)
        outputs = []
        for value in node.outputs:
            twin = Value(copy, value.index, value.type)
            twin.names, twin.origins = value.names, value.origins
            values[value] = twin
            outputs.append(twin)
        copy.outputs = tuple(outputs)
        target.add(copy)
        copy.origins = node.origins
        if node.bodies:
            copy.remap_bodies(lambda body: body.clone_with_map())
            for body in copy.bodies:
                body.owner = copy
        copies[node] = copy
        if source.is_marked(node):
            target.touch(copy)
    return copies
