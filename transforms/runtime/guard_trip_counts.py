"""Trip counts that mean something else in Loop-5 than in ONNX."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.graph.types import i64
from mo_loop.ops.base import Constant, Parameter
from mo_loop.ops.control import Loop
from mo_loop.ops.port_map import Concatenated, Invariant
from mo_loop.target import Gap
from mo_loop.transforms.function_pass import FunctionPass

I32_MAX = 2**31 - 1
PREALLOCATED = 1 << 16
"""Iterations for which the runtime may reserve the buffer of a concatenated output at once."""


class GuardTripCounts(FunctionPass):
    """Loop(M, none_below_zero)  ->  Loop(max(M, 0)): a negative M means 0 iterations in ONNX, and no limit in Loop-5

    A trip count of 2^31 - 1 or more becomes -1 (no limit) if the condition can end the loop, because the runtime counts
    in i32. The runtime reserves the buffer of a concatenated output for M iterations. A loop that may end early and
    whose M may be large therefore counts in its condition: trip count -1, condition' = condition and i + 1 < M. A loop
    without the attribute none_below_zero has the meaning of Loop-5 already: its trip count was omitted, or it was read
    from IR.
    """

    instead = "`max(M, 0)`"
    avoids = (
        Gap("negative-trip-count", "a trip count below 0 means an endless loop"),
        Gap(
            "huge-trip-count",
            "the buffer of a concatenated output is allocated for all of the trip count, although the body may stop "
            "before; if this number of bytes does not fit into 64 bits, the output is lost and memory is corrupted",
            "trip count -1 and `i + 1 < M` in the condition",
        ),
    )  # fmt: skip

    kinds = (Loop,)

    def rewrite(self, node: Loop) -> bool:
        if not node.none_below_zero:
            return self.refuse(node, "its trip count has the meaning of Loop-5 already")
        trip = _given(node)
        node.none_below_zero = False
        if trip is not None:
            node.graph.set_input(node, 0, trip)
        return self.accept(node)


def _given(node: Loop) -> Value | None:
    """The trip count for Loop-5; None if the present one has the same meaning."""
    trip = node.operands[0]
    known = trip.type.integers
    stops = not node.continues_always
    if known is not None:
        if known[0] < 0:
            return _constant(node, 0)
        if known[0] >= I32_MAX:
            return _endless(node) if stops else _constant(node, I32_MAX)
        if known[0] <= PREALLOCATED or not (stops and _concatenates(node)):
            return None
    elif trip.type.known is not None and trip.type.known.reshape(-1)[0].lo >= 0:
        return None  # a dimension is never negative, and the data has this length
    if stops and _concatenates(node):
        _count_in_condition(node, trip)
        return _endless(node)
    return ops.Maximum(trip, 0).output


def _concatenates(node: Loop) -> bool:
    return any(isinstance(entry, Concatenated) for entry in node.output_map)


def _constant(node: Loop, count: int) -> Value:
    return Constant(count, graph=node.graph, dtype=i64).output


def _endless(node: Loop) -> Value:
    return _constant(node, -1)


def _count_in_condition(node: Loop, trip: Value) -> None:
    """The trip count becomes an invariant input, and the condition compares the iteration number with it."""
    body, go = node.body, node.inputs[1]
    assert go is not None
    node.graph.set_input(node, 1, ops.LogicalAnd(go, ops.Greater(trip, 0)).output)
    if node.iteration is None:
        node.iteration = Parameter(graph=body, dtype=i64, shape=())
    limit = Parameter(graph=body, type=trip.type)
    within = ops.Less(ops.Add(node.iteration, 1), limit).output
    body.set_input(node.condition, 0, ops.LogicalAnd(node.condition.value, within).output)
    node.input_map = (*node.input_map, Invariant(limit))
    node.graph.set_inputs(node, [*node.inputs, trip])
