"""History: an observer that records which passes made or removed the layers of each ONNX node.

history = History()
graph = Conversion(options, [history]).run("model.onnx")
history.passes_of(Origin((), "add", "Add"))          # ("LoopToTI", "ConstantFolding")
"""

from __future__ import annotations

from typing import Any

from mo_loop.graph import Graph, Node
from mo_loop.graph.origin import Origin
from mo_loop.transforms.manager import Phase, Step

Place = tuple[tuple[str, ...], str]


class History:
    """An observer of one conversion. It can be pickled."""

    def __init__(self) -> None:
        self._passes: dict[Place, dict[str, None]] = {}
        self._nodes: dict[Node, None] = {}

    def __call__(self, event: Step | Phase) -> None:
        if isinstance(event, Phase):
            if event.name == "translating" and event.graph is not None:
                self._nodes = _all_nodes(event.graph)
            elif event.name == "passes" and event.seconds is not None:
                self._nodes = {}
            return
        if not event.changed:
            return
        now = _all_nodes(event.graph)
        name = _name(event)
        for node in (
            *(each for each in now if each not in self._nodes),
            *(each for each in self._nodes if each not in now),
        ):
            for origin in node.origins:
                self._passes.setdefault((origin.scope, origin.node), {})[name] = None
        self._nodes = now

    def passes_of(self, origin: Origin) -> tuple[str, ...]:
        """The passes that made, replaced or removed a layer of an ONNX node, in the order in which they ran."""
        return tuple(self._passes.get((origin.scope, origin.node), ()))

    def __getstate__(self) -> dict[str, Any]:
        return {"_passes": self._passes, "_nodes": {}}


def _name(step: Step) -> str:
    """The name of the pass; of a pass that contains others, with those that changed something, if they are few."""
    inner = [name for name, count in step.matchers if count]
    return f"{step.name} ({', '.join(inner)})" if 0 < len(inner) <= 3 else step.name


def _all_nodes(graph: Graph) -> dict[Node, None]:
    return {node: None for each in graph.scopes() for node in each.ordered()}
