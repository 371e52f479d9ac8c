"""Finds the nodes that the outputs of an ONNX graph need, and the order in which to translate them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from itertools import chain
from typing import Any

from mo_loop.errors import ModelError
from mo_loop.graph.origin import Origin
from mo_loop.support.producers_first import producers_first
from mo_loop.support.reached import reached


def needed(
    made: Sequence[Sequence[str]], outputs: Iterable[str], given: Collection[str], reads: Sequence[Collection[str]]
) -> list[int]:
    """Positions of the nodes that `outputs` depend on; the nodes may have any order. Names in `given` need no node.

    `made` holds the outputs of each node, `reads` the names that it and its bodies read.
    """
    makers = {name: place for place, names in enumerate(made) for name in names if name}

    def making(names: Iterable[str]) -> list[int]:
        return [makers[name] for name in names if name not in given and name in makers]

    return sorted(reached(making(outputs), lambda place: making(reads[place])))


def in_order(made: Sequence[Sequence[str]], reads: Sequence[Collection[str]]) -> bool:
    """Whether every node comes after the nodes whose outputs it reads."""
    later = set(chain.from_iterable(made))
    later.discard("")
    for outputs, names in zip(made, reads, strict=True):
        if not later.isdisjoint(names):
            return False
        later.difference_update(outputs)
    return True


def listed_order(nodes: Sequence[Any], reads: Sequence[Collection[str]], path: tuple[str, ...]) -> list[int]:
    """A topological order (captures are dependencies), as close as possible to the order of the list."""
    producer = {name: i for i, node in enumerate(nodes) for name in node.output if name}
    order = producers_first([{producer[name] for name in names if name in producer} for names in reads])
    if len(order) < len(nodes):
        left = sorted(set(range(len(nodes))) - set(order))
        names = ", ".join(nodes[i].name or next(iter(nodes[i].output), nodes[i].op_type) for i in left[:6])
        raise ModelError(f"nodes depend on each other in a cycle: {names}", code="ML224", where=Origin(path))
    return order
