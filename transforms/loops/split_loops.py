"""Work of a loop that is done before it, after it, or in its place, for all steps at once.

A loop of an unknown number of steps may stay for few of them, together with a form for many:

for t in range(T): ..    ->    if T < 16: for t in range(T): ..    else: all steps at once
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from mo_loop.graph.dimension import low
from mo_loop.ops.control import If, Iteration, Loop
from mo_loop.ops.lengths import as_value, dimension, scalar
from mo_loop.ops.port_map import Branched, Concatenated, Invariant, Merged, Selected, Sliced
from mo_loop.support.traversal import reached
from mo_loop.transforms.loops.lifting import Lifting
from mo_loop.transforms.loops.loop_pass import AllStepsPass
from mo_loop.transforms.loops.outer import (
    Draft,
    carried,
    may_be_carried,
    may_end,
    obstacle_of,
    obstacle_of_steps,
    output_of,
    replace_outputs,
    with_known_sizes,
)
from mo_loop.transforms.loops.pieces import FEW, number_of_steps, put_in_place
from mo_loop.transforms.loops.worth import Bound, is_too_much, is_work, is_worth
from mo_loop.transforms.port_maps import ENDLESS, add_input, captured, drop_unused_ports
from mo_loop.transforms.vocabulary import F, Graph, Node, Parameter, Result, Value, is_static, ops

STEPS = 16
"""As many steps in chunks are as fast as one after the other: each operation of unknown sizes takes its time."""


def keep_for_few_steps(draft: Draft, outputs: Sequence[Value]) -> None:
    """Replace the loop of a draft, which computes the same outputs, by an If with both."""
    node = draft.node
    outer = list(dict.fromkeys([*node.operands, *draft.outer]))
    few, many = Graph(FEW), Graph("many_steps")
    pairs = [[Parameter(graph=body, type=value.type.without_known()) for body in (few, many)] for value in outer]
    entries = [Branched(*pair) for pair in pairs]
    there, inside = ({value: pair[side].output for value, pair in zip(outer, pairs, strict=True)} for side in (0, 1))
    few.adopt(node.graph, {node}, there)
    for value in node.outputs:
        there[value].names = there[value].origins = ()
    made = draft.place(outputs, many, inside)
    results = [Selected(Result(there[output]), Result(other)) for output, other in zip(node.outputs, made, strict=True)]
    chosen = If(
        ops.Less(number_of_steps(node), STEPS), *outer, then_body=few, else_body=many, name=node.name,
        input_map=tuple(entries), output_map=tuple(results),
    )
    put_in_place(node, chosen, chosen.outputs)


@dataclass(eq=False)
class VectorizeLoops(AllStepsPass):
    """for i in range(T): Y[i] = f(X[i], v)  ->  Y = f(X, v)

    A loop over slices, or over its iteration number, becomes its body applied once to the whole tensors, which have the
    steps as one more dimension. Inner loops come first. transforms/loops/step_rules.py has the rule of each operation;
    a loop with an operation without a rule stays.

    A loop that may run zero times stays if its body has an operation that could fail: it would fail on values that the
    model does not compute.

    States vanish as well if their values in all steps have a closed form (transforms/loops/closed_forms.py): sums,
    extremes, counters, values of the step before. A sum of floats of which only the last is read may be added in
    another order. Linear attention of an unknown number of steps stays a loop where there are few of them.
    """

    def rewrite_within(self, node: Iteration, bound: Bound, *, may_split: bool) -> bool:
        obstacle = obstacle_of(node)
        if obstacle:
            return self.refuse(node, obstacle)
        draft = Draft(node, replaces=True)
        left = draft.solve(exact_order=self.exact_order)
        outputs = []
        for entry in node.output_map:
            made = output_of(draft, entry)
            if made is None:
                return self.refuse(node, draft.obstacle or f"{len(left)} of its states have no closed form")
            outputs.append(made)
        split = self.exceeds(draft, outputs, bound, may_split=may_split)
        if split is not None:
            return split
        if draft.has_chunks and not isinstance(node.count, int):
            keep_for_few_steps(draft, outputs)
            return self.accept(node, "except for few steps")
        replace_outputs(node, range(len(outputs)), draft.place(outputs))
        node.graph.remove(node)
        return self.accept(node)


@dataclass(eq=False)
class ComputeBehindLoops(AllStepsPass):
    """for t: s = S[t] = f(s, x[t]); Y[t] = g(s)  ->  for t: s = S[t] = f(s, x[t]); then Y = g(S)

    Operations on which no state depends are computed after the loop, from the values of all steps that the loop gives
    instead. They move only where the body loses more operations and outputs than it gets outputs, or a product of
    matrices. Operations without a rule for all steps (transforms/loops/step_rules.py) stay, with their inputs. A step
    may end the loop: all steps are those that it has executed.
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
            self.nodes = self._open({self.node.output_map[number].result for number in self.moved}, core)
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
            whole = value.type.with_shape((self.draft.length, *value.type.dims))
            self.carried[value] = Parameter(graph=self.draft.graph, type=whole)
            self.draft.lifting.put(value, self.carried[value].output)
        self.draft.lifting.lift_all(nodes)
        return {each for each in nodes if self.draft.lifting[each.outputs[0]] is None}


def _given(node: Iteration) -> dict[Value, Value]:
    """The values of the body that an output has for all steps, along a new first axis."""
    found = {}
    for entry, output in node.returned:
        made = entry.result.value.node
        is_first = isinstance(made, ops.Unsqueeze) and made.operands[1].type.integers == (0,)
        if is_first and isinstance(entry, Concatenated) and entry.axis == 0 and entry.stride > 0:
            found[made.operands[0]] = output
    return found


@dataclass(eq=False)
class ComputeBeforeLoops(AllStepsPass):
    """for t: s = f(s, g(x[t]))  ->  G = g(X); for t: s = f(s, G[t])

    Operations that do not depend on the states are computed before the loop, for all steps, and sliced; a state whose
    values have a closed form (transforms/loops/closed_forms.py) becomes a slice as well. They move only where the body
    loses more operations and inputs than it gets inputs, or a product of matrices. Where a step may end the loop, only
    operations move that cannot fail and take little time compared with reading the inputs.
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
            return self.refuse(node, "its work that does not depend on its states costs less than an input")
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
        return "its condition may end it, and its trip count is not a size of an input"
    if isinstance(limit, int) and not 0 <= limit < ENDLESS:
        return "only its condition ends it"
    return ""


def _take(node: Iteration, value: Value, whole: Value) -> None:
    """Readers of a value of the body read slices of the tensor of all steps."""
    dims = value.type.dims  # the runtime may not know the sizes of the tensor of all steps, which a body would read
    if may_end(node):  # it may have fewer steps than there are slices
        assert isinstance(node, Loop) and node.iteration is not None
        piece = F.Gather(captured(node.body, whole), scalar(node.iteration.output), 0)
    else:
        parameter = Parameter(graph=node.body, type=whole.type.with_size(0, 1))
        piece = parameter.output if is_static(dims) else F.Squeeze(parameter.output, [0])
        add_input(node, Sliced(parameter, 0), whole)
    value.replace_with(F.Reshape(piece, list(dims)) if is_static(dims) else piece)
