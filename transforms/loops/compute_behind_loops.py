"""Outputs of a loop that are computed after it, for all steps at once."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from mo_loop import ops
from mo_loop.graph import Node, Value
from mo_loop.graph.dimension import low
from mo_loop.ops.base import Parameter, Result
from mo_loop.ops.control import Iteration, Loop
from mo_loop.ops.lengths import as_value, dimension
from mo_loop.ops.port_map import Concatenated
from mo_loop.transforms.loops.loop_pass import AllStepsPass
from mo_loop.transforms.loops.memory_bound import Bound
from mo_loop.transforms.loops.outer import (
    Draft,
    carried,
    may_be_carried,
    obstacle_of_steps,
    output_of,
    replace_outputs,
    with_known_sizes,
)
from mo_loop.transforms.loops.worth import is_work, is_worth
from mo_loop.transforms.port_maps import drop_unused_ports


@dataclass(eq=False)
class ComputeBehindLoops(AllStepsPass):
    """for t: s = S[t] = f(s, x[t]); Y[t] = g(s)  ->  for t: s = S[t] = f(s, x[t]); then Y = g(S)

    Operations on which no state depends are computed after the loop, from the values of all steps that the loop gives
    instead. They move only where the body loses more operations and outputs than it gets outputs, or a product of
    matrices. Operations without a form for all steps (transforms/loops/step_rules.py) stay, with their inputs. A step
    may end the loop: all steps are those that it has executed.

    Args:
        exact_order: floats are added in the order of the steps.
        memory: the largest tensor of all steps, as a multiple of the size of the inputs and outputs of the loop. Above
            it the loop becomes one over blocks of steps.
    """

    def rewrite_within(self, node: Iteration, bound: Bound, *, may_split: bool) -> bool:
        obstacle = obstacle_of_steps(node)
        if obstacle:
            return self.refuse(node, obstacle)
        draft = Draft(node)
        draft.solve(exact_order=self.exact_order)
        choice = _Choice(draft)
        if not choice.moved or (draft.executed is not None and not choice.carried):
            return self.refuse(node, "its outputs are values of states, or moved and no longer computed")
        ports = sum(value not in choice.given for value in choice.carried)
        if not is_worth(choice.nodes, len(choice.moved), ports):
            return self.refuse(node, f"it would need {ports} more outputs to compute {len(choice.moved)} after it")
        values = [output_of(draft, node.output_map[number]) for number in choice.moved]
        made = [value for value in values if value is not None]
        split = self.exceeds(draft, made, bound, may_split=may_split)
        if split is not None:
            return split
        wholes = {value: choice.given.get(value) or carried(node, value) for value in choice.carried}
        for value, parameter in choice.carried.items():
            draft.bind(parameter, with_known_sizes(node, wholes[value], value.type.dims))
        if draft.executed is not None:
            draft.bind(draft.executed, as_value(dimension(next(iter(wholes.values())), 0), node.graph))
        replace_outputs(node, choice.moved, draft.place(made))
        drop_unused_ports(node)
        return self.accept(node, f"{len(made)} outputs")


class _Choice:
    """The part of a loop that is computed after it.

    `moved` are the numbers of outputs, `nodes` those that the body no longer computes for them, `carried` the values of
    the body that are read from all steps, with their Parameters in the draft; `given` are those that are outputs
    already.
    """

    def __init__(self, draft: Draft) -> None:
        self.draft, self.node, self.body = draft, draft.node, draft.node.body
        self.lifted = {each for each in self.body.ordered() if each.outputs and draft.lifting[each.outputs[0]]}
        self.carried: dict[Value, Parameter] = {}
        self.given = _given(self.node)
        stays: set[Node] = {entry.result for entry in self.node.back_edges if entry.result not in draft.last}
        stays |= {self.node.condition} if isinstance(self.node, Loop) else set()
        before = draft.lifting.mark()
        while True:
            draft.lifting.restore(before)
            core = {each for each in self.body.ancestors(stays) if each not in self.lifted}
            self.moved = [n for n, out in enumerate(self.node.outputs) if out.is_used and self._may_move(n, core)]
            results = {self.node.output_map[number].result for number in self.moved}
            self.nodes = self._open(results, core)
            stuck = self._stuck()
            if not stuck:
                break
            stays |= stuck

    def _may_move(self, number: int, core: set[Node]) -> bool:
        entry = self.node.output_map[number]
        if self.draft.executed is not None and not isinstance(entry, Concatenated):
            return False
        if entry.result in self.draft.last:
            return True
        opened = self._open({entry.result}, core)
        if entry.result.value.node in self.lifted:
            return isinstance(entry, Concatenated) or low(self.node.count) > 0
        return isinstance(entry, Concatenated) and entry.result not in core and is_work(opened)

    def _open(self, results: Iterable[Node], core: set[Node]) -> set[Node]:
        """The nodes on which results depend, without those that are lifted or computed in the loop in any case."""
        inside = self.lifted | core
        return {each for each in self.body.ancestors(results) if each not in inside and not isinstance(each, Parameter)}

    def _stuck(self) -> set[Node]:
        """Lift `nodes` from values that the loop gives; returns those that are not lifted, or read a value that cannot
        be given."""
        self.carried = {}
        nodes = [each for each in self.body.ordered() if each in self.nodes and not isinstance(each, Result)]
        for value in dict.fromkeys(value for each in nodes for value in each.operands):
            if value.node in self.nodes or value.node in self.lifted:
                continue
            if not may_be_carried(self.node, value):
                return {use.node for use in value.uses if use.node in self.nodes}
            whole = value.type.with_shape((self.draft.length, *value.type.dims)).without_known()
            self.carried[value] = Parameter(graph=self.draft.graph, type=whole)
            self.draft.lifting.put(value, self.carried[value].output)
        self.draft.lifting.lift_all(nodes)
        return {each for each in nodes if self.draft.lifting[each.outputs[0]] is None}


def _given(node: Iteration) -> dict[Value, Value]:
    """The values of the body that an output has for all steps, along a new first axis."""
    found = {}
    for entry, output in zip(node.output_map, node.outputs, strict=True):
        made = entry.result.value.node
        is_first = isinstance(made, ops.Unsqueeze) and made.operands[1].type.integers == (0,)
        if is_first and isinstance(entry, Concatenated) and entry.axis == 0 and entry.stride > 0:
            found[made.operands[0]] = output
    return found
