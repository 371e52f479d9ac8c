"""The order of the nodes of a graph when an edge goes from a newer to an older node."""

from __future__ import annotations

import heapq
from collections.abc import Collection
from typing import TYPE_CHECKING

from mo_loop.errors import ModelError
from mo_loop.graph.node import Node

if TYPE_CHECKING:
    from mo_loop.graph.graph import Graph


def topological(graph: Graph, nodes: Collection[Node]) -> list[Node]:
    """The nodes of a graph, given by age, producers before consumers; of several possible ones the oldest first.

    ModelError for a cycle.
    """
    # One walk by age emits nodes that are ready; only nodes that become ready after the walk need a heap.
    waiting = {node: len(node.inputs) - node.inputs.count(None) for node in nodes}
    late: list[tuple[int, Node]] = []
    order: list[Node] = []
    for reached in nodes:
        if waiting[reached]:
            continue
        node = reached
        while True:
            order.append(node)
            for output in node.outputs:
                for consumer, _ in output.uses:
                    waiting[consumer] -= 1
                    if not waiting[consumer] and consumer.id < reached.id:
                        heapq.heappush(late, (consumer.id, consumer))
            if not late:
                break
            node = heapq.heappop(late)[1]
    if len(order) != len(waiting):
        from networkx import find_cycle

        cycle = " -> ".join(edge[0].path for edge in find_cycle(graph.nx))
        raise ModelError(f"the graph has a cycle: {cycle}", where=graph.origin, code="ML224")
    return order
