"""Extends an ONNX branch with copies of nodes of the enclosing graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from mo_loop.frontend.names_read import NamesRead, all_names_in, names_defined_in
from mo_loop.frontend.onnx_graphs import body_protos


def extended(
    branch: Any, outputs: Sequence[str], nodes: Sequence[Any], wanted: Sequence[str], names_read: NamesRead
) -> tuple[dict[str, str], Any]:
    """`branch` with copies of `nodes` after its own nodes, and with the outputs `wanted`.

    `nodes` belong to the enclosing graph and read the outputs of the branch under the names `outputs`. Their outputs
    are renamed if the branch has the same names. The dictionary maps names in the result to outer names that the
    branch hides.
    """
    copy = type(branch)()
    copy.CopyFrom(branch)
    taken = all_names_in(branch)
    inner = {name: entry.name for name, entry in zip(outputs, branch.output, strict=False) if name}
    made = {name for node in nodes for name in node.output if name}
    inner.update({name: _fresh(name, taken) for name in made})
    aliases: dict[str, str] = {}
    read = {name for node in nodes for name in names_read.of_node(node)}
    for name in sorted(read - inner.keys()):
        if name in taken:
            inner[name] = _fresh(name, taken)
            aliases[inner[name]] = name
    copy.node.extend(renamed(node, inner) for node in nodes)
    del copy.output[:]
    for name in wanted:
        copy.output.add().name = inner[name]
    return aliases, copy


def renamed(node: Any, names: Mapping[str, str]) -> Any:
    """A copy of a NodeProto with its outputs renamed, and the names that it and its bodies read."""
    copy = type(node)()
    copy.CopyFrom(node)
    _rename(copy, names)
    return copy


def _rename(node: Any, names: Mapping[str, str]) -> None:
    node.input[:] = [names.get(name, name) for name in node.input]
    node.output[:] = [names.get(name, name) for name in node.output]
    for body in body_protos(node):
        _rename_captures(body, names)


def _rename_captures(graph: Any, names: Mapping[str, str]) -> None:
    """Rename the values that a body reads from outside. A name that the body defines itself means another value, and
    stays."""
    own = names_defined_in(graph)
    captured = {name: other for name, other in names.items() if name not in own}
    for node in graph.node:
        _rename(node, captured)
    for entry in graph.output:
        entry.name = captured.get(entry.name, entry.name)


def _fresh(name: str, taken: set[str]) -> str:
    """`name`, with a number where it is in use already; the result is added to the names in use."""
    found, number = name, 1
    while found in taken:
        found, number = f"{name}.{number}", number + 1
    taken.add(found)
    return found
