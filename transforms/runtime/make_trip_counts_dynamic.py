"""Trip counts of inner loops that the runtime infers once and keeps."""

from __future__ import annotations

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.types import i64
from mo_loop.ops.base import Constant, Parameter
from mo_loop.ops.control import Concatenated, Loop
from transforms.function_pass import FunctionPass
from transforms.runtime.unfoldable import zero_from_outside


class MakeTripCountsDynamic(FunctionPass):
    """Loop(len(s)) with a concatenated output, in a loop that makes s grow  ->  Loop(len(s) + min(i, 0))

    The runtime infers the types of an outer body under the initial shapes of the states, and again under wider ones. It
    keeps the trip count that it found for an inner loop the first time, and the length of its concatenated outputs. It
    finds no trip count for a sum with a number that is known only at run time.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, Loop, self._make_dynamic)

    def _make_dynamic(self, node: Loop) -> bool:
        trip = node.inputs[0]
        assert trip is not None
        if node.graph.owner is None:
            return self.refuse(node, "it is not in a body")
        if isinstance(trip.node, Constant) or trip.type.integers is not None:
            return self.refuse(node, "its trip count is a constant")
        if not any(isinstance(entry, Concatenated) for entry in node.output_map):
            return self.refuse(node, "it has no concatenated output")
        if isinstance(trip.node, ops.Add) and _is_zero(trip.node.inputs[1]):
            return self.refuse(node, "its trip count is dynamic already")
        zero = ops.Reshape(_zero(node.graph), np.zeros(trip.type.rank, np.int64) + 1)
        if trip.dtype is not i64:
            zero = ops.Convert(zero, destination_type=trip.dtype)
        node.graph.set_input(node, 0, ops.Add(trip, zero).output)
        return self.accept(node)


def _zero(graph: Graph) -> Value:
    owner = graph.owner
    if not isinstance(owner, Loop):
        return zero_from_outside(graph)
    if owner.iteration is None:
        owner.iteration = Parameter(graph=graph, dtype=i64, shape=())
    return ops.Minimum(owner.iteration, 0).output


def _is_zero(value: Value | None) -> bool:
    """Whether a value is a zero that this pass inserted."""
    while value is not None and isinstance(value.node, ops.Reshape | ops.Convert):
        value = value.node.inputs[0]
    return value is not None and isinstance(value.node, ops.Minimum | ops.ReverseSequence | Parameter)
