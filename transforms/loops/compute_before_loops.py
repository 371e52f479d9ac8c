"""Work of a loop that is done before it, for all steps at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mo_loop import ops
from mo_loop.graph import Node, Value
from mo_loop.graph.shape import is_static
from mo_loop.ops.base import Parameter
from mo_loop.ops.control import Iteration, Loop
from mo_loop.ops.lengths import scalar
from mo_loop.ops.port_map import Invariant, Merged, Sliced
from mo_loop.support.reached import reached
from mo_loop.transforms.loops.lifting import Lifting
from mo_loop.transforms.loops.loop_pass import AllStepsPass
from mo_loop.transforms.loops.memory_bound import Bound
from mo_loop.transforms.loops.outer import Draft, may_end, obstacle_of_steps
from mo_loop.transforms.loops.worth import is_too_much, is_work, is_worth
from mo_loop.transforms.port_maps import ENDLESS, drop_unused_ports


@dataclass(eq=False)
class ComputeBeforeLoops(AllStepsPass):
    """for t: s = f(s, g(x[t]))  ->  G = g(X); for t: s = f(s, G[t])

    Operations that do not depend on the states are computed before the loop, for all steps, and sliced; a state whose
    values have a closed form (transforms/loops/closed_forms.py) becomes a slice as well. They move only where the body
    loses more operations and inputs than it gets inputs, or a product of matrices. Where a step may end the loop, only
    operations move that cannot fail and take little time compared with reading the inputs.

    Args:
        exact_order: floats are added in the order of the steps.
        memory: the largest tensor of all steps, as a multiple of the size of the inputs and outputs of the loop. Above
            it the loop becomes one over blocks of steps.
    """

    def rewrite_within(self, node: Iteration, bound: Bound, *, may_split: bool) -> bool:
        ends = may_end(node)
        obstacle = obstacle_of_steps(node) or (_no_limit(node) if ends else "")
        if obstacle:
            return self.refuse(node, obstacle)
        draft = Draft(node, at_most=ends)
        draft.solve(exact_order=self.exact_order)
        chosen = _chosen(draft)
        gone = _gone(node, chosen)
        read = (Invariant, Merged) if ends else (Sliced, Merged)
        ports = sum(isinstance(each, read) and each.parameter in gone for each in node.input_map)
        if not chosen or not is_worth(gone, ports, len(chosen)):
            return self.refuse(node, "what does not depend on its states is not worth an input")
        values = [draft.steps.each(lifted) for each in chosen if (lifted := draft.lifting[each]) is not None]
        if ends and is_too_much(draft.graph.ancestors(each.node for each in values), node.operands, self.memory):
            return self.refuse(node, "a step may end it, and computing all steps before it takes too long")
        split = self.exceeds(draft, values, bound, may_split=may_split)
        if split is not None:
            return split
        for value, whole in zip(chosen, draft.place(values), strict=True):
            _take(node, value, whole)
        drop_unused_ports(node)
        return self.accept(node, f"{len(chosen)} tensors")


def _chosen(draft: Draft) -> list[Value]:
    """The values that are known for all steps and that something reads which is not, in order."""
    node, lifting = draft.node, draft.lifting
    solved: set[Node] = {entry.parameter for entry in node.back_edges if entry.result in draft.last}
    found: dict[Value, None] = {}
    for each in node.body.ordered():
        if each.outputs and lifting[each.outputs[0]] is not None:
            continue
        for value in each.operands:
            lifted = lifting[value]
            if lifted is None or not lifted.varies or value in found or not each.outputs:
                continue
            made = node.body.ancestors({value.node})
            if made & solved or is_work(made):
                found[value] = None
    return _joined(found, lifting)


PIECES = (ops.Split, ops.VariadicSplit, ops.Slice, ops.Gather, ops.View, ops.Convert)
"""Operations that take a part of a tensor, or another shape: other movements make it larger, or take time."""


def _joined(values: Iterable[Value], lifting: Lifting) -> list[Value]:
    """The values, but one in place of several that are only pieces of it: the loop then gets one input."""
    parts: dict[Value, list[Value]] = {}
    for value in values:
        whole = value
        while isinstance(whole.node, PIECES) and is_work(whole.graph.ancestors({whole.node.operands[0].node})):
            source = lifting[whole.node.operands[0]]
            if source is None or not source.varies:
                break
            whole = whole.node.operands[0]
        parts.setdefault(whole, []).append(value)
    return [each for whole, pieces in parts.items() for each in ([whole] if len(pieces) > 1 else pieces)]


def _gone(node: Iteration, chosen: list[Value]) -> set[Node]:
    """The nodes of the body that only `chosen` needs."""
    results: list[Node] = list(node.body.results)
    live = set(reached(results, lambda each: [value.node for value in each.operands if value not in chosen]))
    return {each for each in node.body.ancestors({value.node for value in chosen}) if each not in live}


def _no_limit(node: Iteration) -> str:
    """Why it is not known how many steps the loop may have, or empty."""
    known = node.operands[0].type.known
    limit = None if known is None else known.reshape(-1)[0]
    dims = {dim for value in node.operands for dim in value.shape or ()}
    if limit is None or (limit not in dims and not isinstance(limit, int)):
        return "its condition may end it, and its trip count is no size of an input"
    if isinstance(limit, int) and not 0 <= limit < ENDLESS:
        return "only its condition ends it"
    return ""


def _take(node: Iteration, value: Value, whole: Value) -> None:
    """Readers of a value of the body read slices of the tensor of all steps."""
    dims = value.type.dims  # the runtime may not know the sizes of the tensor of all steps, which a body would read
    type_ = whole.type.without_known()
    if may_end(node):  # it may have fewer steps than there are slices
        assert isinstance(node, Loop) and node.iteration is not None
        parameter = Parameter(graph=node.body, type=type_)
        piece = ops.Gather(parameter.output, scalar(node.iteration.output), 0).output
        entry: Sliced | Invariant = Invariant(parameter)
    else:
        parameter = Parameter(graph=node.body, type=type_.with_shape((1, *type_.dims[1:])))
        piece = parameter.output if is_static(dims) else ops.Squeeze(parameter.output, [0]).output
        entry = Sliced(parameter, 0)
    value.replace_with(ops.Reshape(piece, list(dims)).output if is_static(dims) else piece)
    node.input_map = (*node.input_map, entry)
    node.graph.set_inputs(node, [*node.inputs, whole])
