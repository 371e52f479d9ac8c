"""Computation in a body that gives the same result in every iteration."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Node, Use, Value
from mo_loop.graph.dimension import low
from mo_loop.graph.types import TensorType, string
from mo_loop.ops.base import Constant, Op, Parameter, Result
from mo_loop.ops.control import Control, Iteration
from mo_loop.ops.port_map import Invariant
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.port_maps import drop_unused_inputs
from mo_loop.transforms.total_operations import is_total

STAY = (ops.Parameter, ops.Result, Control, ops.Barrier, ops.Failed, ops.Opaque, ops.ReadValue)

ENLARGE = (ops.Broadcast, ops.Tile)
"""Operations that are cheap and have large results."""


class HoistInvariants(FunctionPass):
    """body(s, v): s + f(v), where v is invariant  ->  w = f(v) before the loop; body(s, w): s + w

    Nodes that depend only on invariant inputs and constants are computed before the loop; the result becomes an
    invariant input. Inner bodies come first, so that a node can leave several loops. Random operations, control flow
    and constants stay.

    If a loop may run zero times, only nodes that cannot fail on any data are moved: element-wise operations (except
    integer division), matrix products, reductions, and changes of shape, order and type, if the shapes are proven to
    fit. Indices, and patterns or axes known only at run time, stay.

    Some nodes are not moved as the last ones before the body, because that would save nothing: Broadcast and Tile,
    arithmetic on shapes (inference uses their values in the body), and values that leave the body directly.
    """

    kinds = (Iteration,)

    def rewrite(self, node: Iteration) -> bool:
        moved = _invariant_nodes(node)
        border = _border(moved)
        if not border:
            return self.refuse(node, "no node that could be moved out of the body is invariant")
        _move(node, moved, border)
        return self.accept(node)


def _invariant_nodes(node: Iteration) -> dict[Node, bool]:
    """The nodes that could be computed before the loop, in order; True for those that read an invariant input."""
    entries = {entry.parameter for entry in node.input_map if isinstance(entry, Invariant)}
    may_not_run = low(node.count) < 1
    found: dict[Node, bool] = {}
    for each in node.body.ordered():
        if isinstance(each, Constant):
            found[each] = False
            continue
        if not isinstance(each, Op) or isinstance(each, STAY) or each.random or each.is_kept or not each.inputs:
            continue
        producers = [value.node for value in each.operands]
        if not all(producer in entries or producer in found for producer in producers):
            continue
        if not may_not_run or is_total(each):
            found[each] = any(producer in entries or found.get(producer, False) for producer in producers)
    return found


def _border(moved: dict[Node, bool]) -> dict[Value, list[Use]]:
    """The values that enter the body, with their readers there.

    Nodes that are not worth moving are removed from `moved`, unless another moved node reads them: then they are
    computed in both places, as constants are.
    """
    border: dict[Value, list[Use]] = {}
    staying: set[Node] = set()
    for node, depends in reversed(list(moved.items())):
        inside = any(use.node in moved for output in node.outputs for use in output.uses)
        left = [use for output in node.outputs for use in output.uses if use.node not in moved or use.node in staying]
        if depends and (not left or _is_worth_an_input(node, left)):
            readers = {output: [use for use in output.uses if use in left] for output in node.outputs}
            border |= {output: uses for output, uses in readers.items() if uses}
            continue
        staying.add(node)
        if not inside:
            del moved[node]
    return dict(reversed(border.items()))


def _is_worth_an_input(node: Node, readers: list[Use]) -> bool:
    if isinstance(node, ENLARGE) or any(isinstance(reader, Result) for reader, _ in readers):
        return False
    types = [output.type for output in node.outputs if output.is_used]
    return all(
        isinstance(each, TensorType) and each.shape is not None and each.dtype is not string and each.known is None
        for each in types
    )


def _move(node: Iteration, moved: dict[Node, bool], border: dict[Value, list[Use]]) -> None:
    outer, body = node.graph, node.body
    values: dict[Value, Value] = {
        entry.parameter.output: value for entry, value in node.fed if isinstance(entry, Invariant)
    }
    outer.adopt(body, moved, values)
    entries = []
    for output, readers in border.items():
        parameter = Parameter(graph=body, type=output.type)
        for reader, port in readers:
            body.set_input(reader, port, parameter.output)
        entries.append(Invariant(parameter))
    node.input_map = (*node.input_map, *entries)
    outer.set_inputs(node, [*node.inputs, *(values[output] for output in border)])
    body.sweep()
    drop_unused_inputs(node)
