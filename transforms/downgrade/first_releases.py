"""The features of a graph that the oldest supported release lacks, and the first release that has each.

    for each in newer_uses(graph):
        print(each.text, each.release, each.origin)          # a conversion to u2, (2026, 4), Origin("y")

Measured on the CPU device of all releases of `mo_loop.target`. Passes lower features that have an older form
(`transforms/downgrade`, `WidenTwoBitConstants`); these remain.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mo_loop.graph.types import ElementType, TensorType, f4e2m1, f8e4m3, f8e5m2, f8e8m0, i4, u2, u4
from mo_loop.ops.arithmetic import Convert
from mo_loop.origin import Origin
from mo_loop.target import OLDEST, Release
from mo_loop.transforms.vocabulary import Constant, Graph, Node, Op, Parameter, Result

OPSETS: dict[Release, int] = {(2024, 6): 15, (2026, 0): 16}
"""Release -> its newest opset, where it has changed."""

INPUTS: dict[ElementType, Release] = {
    f8e4m3: (2025, 0), f8e5m2: (2025, 0), f4e2m1: (2025, 2), f8e8m0: (2025, 2), u2: (2026, 0),
}  # fmt: skip
"""Element type -> the first release that runs a model with an input of this type."""

CONSTANTS: dict[ElementType, Release] = {u2: (2025, 3)}
"""Element type -> the first release that reads constants of this type; the ones before permute the elements."""

RETURNED_CONSTANTS: dict[ElementType, Release] = {i4: (2026, 0), u4: (2026, 0), u2: (2026, 0)}
"""Element type -> the first release that returns constants of this type; the ones before permute the elements."""

_NEWER_CONSTANTS = CONSTANTS.keys() | RETURNED_CONSTANTS.keys()

CONVERSIONS: dict[ElementType, Release] = {u2: (2026, 4)}
"""Element type -> the first release that converts to this type."""


@dataclass(frozen=True)
class NewerUse:
    """A part of a graph that runs on `release` and later ones only."""

    text: str
    release: Release
    origin: Origin


def newer_uses(graph: Graph) -> Iterator[NewerUse]:
    """Everything in the graph and its bodies that OLDEST does not run."""
    for scope in graph.scopes():
        classes = frozenset(filter(_may_be_newer, scope.classes))
        for node in scope.ordered():
            if type(node) not in classes or (type(node) is Constant and node.tensor.dtype not in _NEWER_CONSTANTS):
                continue
            for text, release in _needs(node):
                if release > OLDEST:
                    yield NewerUse(text, release, node.origin)


def _may_be_newer(cls: type[Node]) -> bool:
    return issubclass(cls, (Parameter, Constant, Convert)) or (issubclass(cls, Op) and cls.opset > OPSETS[OLDEST])


def _needs(node: Node) -> Iterator[tuple[str, Release]]:
    if isinstance(node, Op) and node.opset > OPSETS[OLDEST]:
        found = next((release for release, opset in OPSETS.items() if opset >= node.opset), None)
        if found is not None:
            yield f"{node.type} of opset {node.opset}", found
    if isinstance(node, Parameter) and node.graph.owner is None:
        yield from _listed("an input of", node, INPUTS)
    elif isinstance(node, Constant):
        yield from _listed("a constant of", node, CONSTANTS)
        if any(isinstance(use.node, Result) for use in node.output.uses):
            yield from _listed("a returned constant of", node, RETURNED_CONSTANTS)
    elif isinstance(node, Convert):
        yield from _listed("a conversion to", node, CONVERSIONS)


def _listed(text: str, node: Node, releases: dict[ElementType, Release]) -> Iterator[tuple[str, Release]]:
    type_ = node.outputs[0].type
    if isinstance(type_, TensorType) and type_.dtype in releases:
        yield f"{text} {type_.dtype}", releases[type_.dtype]
