"""What a pass is.

    class DropEmptyLoops(FunctionPass):
        \"\"\"a Loop that provably never runs  ->  its initial values\"\"\"
        bodies = "first"                       # bodies before the graph that holds them

        def run_on_graph(self, graph):         # one graph, not its bodies
            ...
            return changed

`run` walks the graph and its bodies as `bodies` says and tells whether anything changed. Types may be stale after it:
the Manager validates after every pass that changed something.
"""

from __future__ import annotations

from typing import ClassVar, Literal

from mo_loop.graph import Graph


class FunctionPass:
    """A pass over a whole graph.

    `bodies` says when the bodies of control-flow nodes are visited: `first` (before the graph that holds them), `last`
    (after it) or `never` (the pass descends by itself, or concerns the top level alone).
    """

    bodies: ClassVar[Literal["first", "last", "never"]] = "first"

    @property
    def name(self) -> str:
        return type(self).__name__

    def run_on_graph(self, graph: Graph) -> bool:
        """Rewrite one graph; True if anything changed."""
        raise NotImplementedError

    def run(self, graph: Graph) -> bool:
        """Rewrite the graph and its bodies; True if anything changed."""
        changed = False
        if self.bodies == "first":
            changed = self._run_on_bodies(graph)
        changed = self.run_on_graph(graph) or changed
        if self.bodies == "last":
            changed = self._run_on_bodies(graph) or changed
        return changed

    def _run_on_bodies(self, graph: Graph) -> bool:
        changed = False
        for node in graph.holders():
            if node in graph:
                for body in node.bodies:
                    changed = self.run(body) or changed
        return changed
