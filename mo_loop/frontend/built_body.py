"""BuiltBody: the body of a Loop that a translator makes of operations, around the nodes of a graph attribute.

body = BuiltBody(decoder, scope, states=2, outputs=0, make=make)
loop(trip_count, condition, *initial, body=body, node=node)

def make(scope, iteration, states):                        # called for each assumed type of the states
    logits, cache = decoder.within(scope).inline(states)   # the nodes of the attribute, in the body
    limit = scope["limit"]                                 # a value of the enclosing graph, captured
    return [condition, *next_states, *scan_outputs]
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mo_loop.frontend.carried_types import require_one_rank
from mo_loop.frontend.context import Body, TranslatedBody
from mo_loop.frontend.scope import Scope
from mo_loop.graph import Graph, Value
from mo_loop.graph.types import UNKNOWN
from mo_loop.ops.base import Parameter, Result

Make = Callable[[Scope, Value, list[Value]], Sequence[Value]]


class BuiltBody(Body):
    """A body without a GraphProto of its own: `make` builds its nodes."""

    def __init__(self, part: Body, scope: Scope, states: int, outputs: int, make: Make) -> None:
        """`part` is the graph attribute that the body contains, `scope` encloses the body."""
        super().__init__(part._translation, part.proto, scope, part.origin)
        self._inputs = ["iteration", "condition", *(f"state {place}" for place in range(states))]
        self._outputs = [*self._inputs[1:], *(f"output {place}" for place in range(outputs))]
        self._make = make

    @property
    def inputs(self) -> list[str]:
        return self._inputs

    @property
    def outputs(self) -> list[str]:
        return self._outputs

    def declared(self, index: int) -> Any:
        """Nothing is declared."""
        return UNKNOWN

    def declared_output(self, index: int) -> Any:
        """Nothing is declared."""
        return UNKNOWN

    def translate(self, types: Sequence[Any], least: Sequence[int | None] = ()) -> TranslatedBody:
        """The body with its inputs of these types."""
        graph = Graph(self.origin.operator or "body")
        graph.scope = self.origin.scope
        scope = Scope(graph, self.scope, self.origin.scope)
        scope.require_depth(self.origin)
        parameters = [Parameter(graph=graph, type=each) for each in types]
        for each, rank in zip(parameters, least, strict=False):
            scope.set_least_rank(each.output, rank)
            require_one_rank("a loop carries a value", each.output, scope)
        iteration, _, *states = (each.output for each in parameters)
        results = [Result(each) for each in self._make(scope, iteration, states)]
        return TranslatedBody(graph, parameters, results, scope)
