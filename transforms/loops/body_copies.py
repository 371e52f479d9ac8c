"""Copies of a loop's body after each other.

    copies = BodyCopies(loop, graph, {x: whole})       # invariant Parameters of the body, and their values in `graph`
    first = copies.add({s: start, piece: x0})          # a copy; returns the values of the Results, by Result
    second = copies.add({s: first[next_s], piece: x1})
"""

from __future__ import annotations

from collections.abc import Mapping

from mo_loop.graph import Graph, Node, Value
from mo_loop.ops.base import Constant, Parameter, Result
from mo_loop.ops.control import Iteration

Results = dict[Node, Value]
"""The values of the Results of a body, by Result."""


class BodyCopies:
    """Copies the nodes of a body into a graph, constants once. A name means one tensor, so the copies have none."""

    def __init__(self, node: Iteration, graph: Graph, fixed: Mapping[Node, Value]) -> None:
        self._body, self._graph, self._fixed = node.body, graph, fixed
        inner = [each for each in self._body.ordered() if not isinstance(each, Parameter | Result)]
        self._constants: dict[Value, Value] = {}
        graph.adopt(self._body, dict.fromkeys(each for each in inner if isinstance(each, Constant)), self._constants)
        self._nodes = dict.fromkeys(each for each in inner if not isinstance(each, Constant))

    def add(self, bindings: Mapping[Node, Value]) -> Results:
        """One more copy; `bindings` are the values of the Parameters that are not the same in every copy."""
        bound = {**self._fixed, **bindings}
        values = self._constants | {parameter.output: value for parameter, value in bound.items()}
        self._graph.adopt(self._body, self._nodes, values)
        for each in self._nodes:
            for output in each.outputs:
                values[output].names = values[output].origins = ()
        for parameter in bound:
            for reader in [use.node for use in parameter.output.uses if use.node in self._nodes]:
                self._graph.touch(values[reader.outputs[0]].node)
        return {result: values[result.value] for result in self._body.results}
