"""Passes for the tests of the Manager and its configuration: each makes one change to every Negative or Add."""

from mo_loop import ops
from mo_loop.graph import Graph
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.pattern import Match, any_input, wrap_type
from mo_loop.transforms.predicates import consumers_count
from mo_loop.transforms.rewrite import MatcherPass


class Notes(FunctionPass):
    """Records that it ran, under its name."""

    def __init__(self, log: list[str], name: str = "Notes", changes: bool = False) -> None:
        self.log = log
        self.called = name
        self.changes = changes

    @property
    def name(self) -> str:
        return self.called

    def run(self, graph: Graph) -> bool:
        self.log.append(self.called)
        return self.changes


class NegativeToAbs(FunctionPass):
    """Negative(x)  ->  Abs(x), unless it has a name"""

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for node in self.candidates(graph, ops.Negative):
            if node.name:
                self.refuse(node, "it has a name")
                continue
            node.output.replace_with(ops.Abs(node.inputs[0]).output)
            graph.remove(node)
            changed = self.accept(node)
        return changed


class AbsToReLU(MatcherPass):
    """Abs(x) with one consumer  ->  ReLU(x)"""

    x = any_input()
    pattern = wrap_type(ops.Abs, x, when=consumers_count(1))

    def matched(self, match: Match) -> bool:
        return self.replace(match, ops.ReLU(match[self.x]))


class ReLUToTanh(MatcherPass):
    """ReLU(x)  ->  Tanh(x), if it is enabled"""

    enabled_by_default = False

    x = any_input()
    pattern = wrap_type(ops.ReLU, x)

    def matched(self, match: Match) -> bool:
        return self.replace(match, ops.Tanh(match[self.x]))
