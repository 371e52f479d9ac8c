"""Branches of an If that always run."""

from __future__ import annotations

from mo_loop.graph import Value
from mo_loop.ops.control import If
from transforms.replace import replace_output


def take_branch(node: If, taken: bool) -> None:
    """Replace an If by the nodes of one of its branches."""
    body = node.then_body if taken else node.else_body
    fed: dict[object, Value] = {}
    for entry, value in node.fed:
        fed |= {entry.then: value, entry.else_: value}
    made = node.graph.inline(body, [fed[parameter] for parameter in body.parameters])
    results = dict(zip(body.results, made, strict=True))
    for entry, output in zip(node.output_map, node.outputs, strict=True):
        replace_output(output, results[entry.then if taken else entry.else_])
    node.graph.remove(node)
