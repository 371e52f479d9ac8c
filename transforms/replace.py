"""Replacing values without losing what users know them by."""

from __future__ import annotations

from collections.abc import Iterable

from mo_loop.graph import Node, Value
from mo_loop.ops.base import Constant, Identity, Op, Parameter, Result


def replace_output(old: Value, new: Value) -> None:
    """Consumers of `old` read `new`; tensor names move along, and so does the name that a model output bears.

    A Result of `old` whose replacement already has a name of its own (it is an input, a constant, or another output)
    gets an Identity between, so that the node before a Result keeps bearing the model output's name.
    """
    for node, port in old.uses:
        if node is new.node:
            continue
        if isinstance(node, Result) and node.output_names and _is_taken(new):
            bridge = Identity(new, name=old.node.name)
            bridge.output.names = old.names
            node.graph.set_input(node, port, bridge.output)
        else:
            node.graph.set_input(node, port, new)
            if isinstance(node, Result) and node.output_names and isinstance(new.node, Op):
                new.node.name = old.node.name
                _move_names(old, new)
    if not _is_taken(new):
        _move_names(old, new)


def move_readers(old: Value, new: Value, readers: Iterable[tuple[Node, int]]) -> None:
    """The `readers` of `old`, taken before `new` was made of it, read `new`, and so do its names."""
    new.names, old.names = old.names, ()
    for node, port in readers:
        if isinstance(node, Result) and node.output_names:
            new.node.name = node.output_names[0]
        node.graph.set_input(node, port, new)


def _is_taken(value: Value) -> bool:
    return isinstance(value.node, Parameter | Constant) or any(
        isinstance(use.node, Result) and use.node.output_names for use in value.uses
    )


def _move_names(old: Value, new: Value) -> None:
    for name in old.names:
        new.add_name(name)
    old.names = ()
