"""Bodies that never run, ports without effect and the order of the others; loops with few iterations are unrolled."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from mo_loop.conversion_limits import budget
from mo_loop.graph import UNKNOWN, ArrayTensor, assume_fixed, normalise_axis
from mo_loop.graph.dimension import Dimension, low, now, open_symbols
from mo_loop.ops.control import Control, If, Iteration, Loop
from mo_loop.ops.port_map import Concatenated, Final, Invariant, Merged, Sliced
from mo_loop.target import CRASH, ERROR, ReleaseRange, without_avx512
from mo_loop.transforms.folding import fold_constants
from mo_loop.transforms.loops.pieces import is_cut_evenly, unrolled
from mo_loop.transforms.port_maps import drop_unused_inputs, drop_unused_outputs, invariant_source, take_branch
from mo_loop.transforms.replace import drop_dead, replace_node, replace_output
from mo_loop.transforms.vocabulary import F, FunctionPass, Gap, Graph, Node, Parameter, Result, Value, node_pass, ops


@node_pass(
    (Iteration,), "the initial values, and empty constants",
    Gap(
        "trip-count-of-zero", "a constant trip count of 0 crashes the process, or returns old values", severity=CRASH,
        on=without_avx512(ReleaseRange(until="2026.3.1")),
    ),
    Gap("condition-of-false", "a constant condition that is false does not compile", severity=ERROR),
    bodies="last",
)
def EliminateEmptyLoops(node: Iteration) -> str:
    """a loop of 0 iterations  ->  its initial values, and empty tensors for its concatenated outputs"""
    if node.count != 0:
        return "it may run at least once"
    if any(output.type is UNKNOWN for output in node.outputs):
        return "its body reads an element of an empty sequence"
    initial: dict[object, Value] = {entry.result: value for entry, value in node.fed if isinstance(entry, Merged)}
    for entry, output in node.returned:
        value = initial.get(entry.result) if isinstance(entry, Final) else None
        if value is None:
            if output.is_used:
                assume_fixed(output.type.dims)  # 0 is the size of those that the file does not declare
            declared = (entry.declared if isinstance(entry, Concatenated) else ()) or (0,) * output.type.rank
            pairs = zip(output.type.dims, declared, strict=True)
            shape = tuple(dim if isinstance(dim, int) else max(size, 0) for dim, size in pairs)
            value = F.Constant(ArrayTensor(np.zeros(shape, output.dtype.numpy), output.dtype), graph=node.graph)
        replace_output(output, value)
    node.graph.remove(node)
    return ""


READING = (ops.SequenceAt, ops.ConcatFromSequence, ops.OptionalGetElement)


class EliminateUnreachableBodies(FunctionPass):
    """If(c, then: s[0], else: x) with s = []  ->  x     a loop whose body reads s[0]  ->  its initial values

    No inference that succeeds executes such a body. An If with a known condition becomes its branch.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for node in self.candidates(graph, Control):
            dead = _never_taken(node) or [
                any(_is_empty(each.inputs[0]) for kind in READING for each in body.of(kind)) for body in node.bodies
            ]
            if not any(dead):
                continue
            if isinstance(node, If):
                changed = self._take_other_branch(node, dead) or changed
            elif isinstance(node, Loop):
                changed = self._drop(node) or changed
        return changed

    def _take_other_branch(self, node: If, dead: list[bool]) -> bool:
        if all(dead):
            return self.refuse(node, "both branches read an element of an empty sequence")
        take_branch(node, taken=not dead[0])
        return self.accept(node)

    def _drop(self, node: Loop) -> bool:
        pairs = list(node.returned)
        collected = _lists_of([output for entry, output in pairs if not isinstance(entry, Final)])
        if collected is None:
            return self.refuse(node, "the shape of a concatenated output is unknown")
        for each in collected:
            replace_node(each, ops.SequenceEmpty(graph=node.graph, dtype=each.dtype))
        initial = {entry.result: value for entry, value in node.fed if isinstance(entry, Merged)}
        for entry, output in pairs:
            if isinstance(entry, Final):
                replace_output(output, initial[entry.result])
        drop_dead([node])
        return self.accept(node)


def _lists_of(outputs: list[Value]) -> list[ops.StackedSequence] | None:
    """The sequences that some tensors become, also after a change of shape; None if they are used otherwise."""
    found: dict[ops.StackedSequence, None] = {}
    pending = list(outputs)
    while pending:
        for use in pending.pop().uses:
            if isinstance(use.node, ops.StackedSequence) and use.node.dtype is not None:
                found[use.node] = None
            elif isinstance(use.node, ops.ShapeOf | ops.Gather | ops.Multiply | ops.Concat | ops.Reshape):
                pending.extend(use.node.outputs)
            else:
                return None
    return list(found)


def _never_taken(node: Control) -> list[bool]:
    """For each branch of an If whether its condition excludes it; empty for other nodes and for unknown conditions.

    The outputs have the types of the branch that is taken, not those of the other branch. The runtime
    evaluates an If of constants when it compiles the model, and has no memory for its outputs.
    """
    if not isinstance(node, If):
        return []
    known = node.operands[0].type.integers
    return [] if known is None else [not known[0], bool(known[0])]


def _is_empty(value: Value | None) -> bool:
    type_ = None if value is None else value.type
    return bool(getattr(type_, "is_empty", False)) or getattr(type_, "present", None) is False


class EliminateUnusedPorts(FunctionPass):
    """outputs and inputs without readers, and states that only they themselves read  ->  removed

    The pass visits bodies itself: outputs are removed from the outermost graph inwards, inputs from the innermost
    outwards.
    """

    bodies = "never"

    def run_on_graph(self, graph: Graph) -> bool:
        changed = graph.sweep() > 0
        loops = [node for node in graph.ordered() if isinstance(node, Control)] if graph.has(Control) else []
        for node in reversed(loops):
            is_free = not self.leaves(node)
            if is_free and not node.acts and not any(output.is_used for output in node.outputs):
                graph.remove(node)  # its last reader has been removed
                changed = self.accept(node)
                continue
            dropped = is_free and drop_unused_outputs(node)
            for body in node.bodies:
                changed = self.run_on_graph(body) or changed
            dropped = (is_free and drop_unused_inputs(node)) or dropped
            if dropped:
                changed = self.accept(node)
            elif is_free:
                self.refuse(node, "all its ports are read")
        self.at = None
        return (graph.sweep() > 0) or changed


@node_pass((Iteration,))
def EliminateLoopInputsOutputs(node: Iteration) -> str:
    """state' = state  ->  an invariant input; readers of its final value read its initial value"""
    constant = {
        entry.result: value
        for entry, value in node.fed
        if isinstance(entry, Merged) and entry.result.value is entry.parameter.output
    }
    if not constant:
        return "every state changes"
    node.input_map = tuple(
        Invariant(entry.parameter) if isinstance(entry, Merged) and entry.result in constant else entry
        for entry in node.input_map
    )
    for entry, output in node.returned:
        if isinstance(entry, Final) and entry.result in constant:
            replace_output(output, constant[entry.result])
    return ""


@node_pass((Iteration, If), "the tensor itself, outside", Gap(
    "invariant-result-reversed",
    "a final value that is a captured tensor fails if another output is concatenated in reverse", severity=ERROR,
))
def EliminateInvariantOutputs(node: Iteration | If) -> str:
    """the final value of an invariant input, at least one iteration  ->  the outer tensor itself
    an input that both branches of an If return  ->  the outer tensor itself

    The runtime does the first and rebuilds the loop for it. That fails if an output is concatenated in reverse.
    """
    if isinstance(node, Iteration) and low(node.count) < 1:
        return "it may run zero times"
    changed = False
    for entry, output in node.returned:
        value = invariant_source(node, entry) if output.is_used else None
        if value is not None:
            replace_output(output, value)
            changed = True
    return "" if changed else "no output is an input that stays as it is"


_INPUT_RANK = {Merged: 0, Sliced: 1, Invariant: 2}
_OUTPUT_RANK = {Final: 0, Concatenated: 1}


class PortRenumbering(FunctionPass):
    """ports in any order  ->  inputs: merged, sliced, invariant; outputs: final, concatenated; bodies likewise

    The trip count and the execution condition of a Loop come first. Ports of one kind keep their order.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for node in self.candidates(graph, Iteration):
            moved = [_order_inputs(node), _order_outputs(node), _order_body(node)]
            changed = self._report(node, any(moved)) or changed
        for branch in self.candidates(graph, If):
            changed = self._report(branch, _order_branches(branch)) or changed
        return changed

    def _report(self, node: Control, moved: bool) -> bool:
        return self.accept(node) if moved else self.refuse(node, "its ports are in order already")


def _order_inputs(node: Iteration) -> bool:
    order = sorted(range(len(node.input_map)), key=lambda i: _INPUT_RANK[type(node.input_map[i])])
    if order == list(range(len(order))):
        return False
    first = node.first_data_port
    data = node.inputs[first:]
    node.input_map = tuple(node.input_map[i] for i in order)
    node.graph.set_inputs(node, [*node.inputs[:first], *(data[i] for i in order)])
    return True


def _order_outputs(node: Iteration) -> bool:
    order = sorted(range(len(node.output_map)), key=lambda i: _OUTPUT_RANK[type(node.output_map[i])])
    if order == list(range(len(order))):
        return False
    node.output_map = tuple(node.output_map[i] for i in order)
    node.graph.drop_outputs(node, order)
    return True


def _order_body(node: Iteration) -> bool:
    parameters: list[Parameter] = [entry.parameter for entry in node.input_map]
    results: list[Result] = [entry.result for entry in node.back_edges]
    results += [entry.result for entry in node.output_map]
    if isinstance(node, Loop):
        parameters = ([] if node.iteration is None else [node.iteration]) + parameters
        results = [node.condition, *results]
    return _reorder(node.body, parameters, results)


def _order_branches(node: If) -> bool:
    changed = False
    for body, side in ((node.then_body, "then"), (node.else_body, "else_")):
        parameters = [getattr(entry, side) for entry in node.input_map if getattr(entry, side) is not None]
        changed = _reorder(body, parameters, [getattr(entry, side) for entry in node.output_map]) or changed
    return changed


def _reorder(body: Graph, parameters: Sequence[Parameter], results: Sequence[Result]) -> bool:
    """Put the Parameters and Results of a body into the given order; those that no port map names come last."""
    before = (list(body.parameters), list(body.results))
    body.parameters[:] = dict.fromkeys([*parameters, *body.parameters])
    body.results[:] = dict.fromkeys([*results, *body.results])
    return before != (body.parameters, body.results)


MOST_NODES = 20_000
"""The copies of one body have at most this number of nodes together."""


@dataclass(eq=False)
class UnrollLoops(FunctionPass):
    """for i in range(3): s = f(s, X[i])  ->  f(f(f(s, X[0]), X[1]), X[2])

    Unrolls a Loop with constant trip count and a condition that is always true, and a TensorIterator or Scan of known
    length. The body is copied once per iteration. The iteration number becomes a constant, a slice a Slice (or a Gather
    if the axis disappears), and a concatenated output one Concat. For nested loops the product of their iterations
    counts: either all are unrolled, or none. Constants are folded afterwards, so that the trip counts of other loops
    may become known. OpenVINO's UnrollTensorIterator does the same without a limit, and not for Scan.

    Sizes of the model's inputs from which the number of iterations of such a loop follows are assumed to stay.

    Args:
        limit: the largest number of iterations, multiplied over nested loops; 0 unrolls nothing.
        keeps_steps: whether loops of one iteration with states stay, for LowLatency2: they are steps of a sequence.
    """

    bodies = "never"  # a body is unrolled before its loop, and again after it has been copied

    limit: int = 0
    keeps_steps: bool = field(default=False, kw_only=True)

    def run_on_graph(self, graph: Graph) -> bool:
        if self.limit <= 0:
            return False
        changed = self._unroll(graph, 1)
        has_effect = changed or any(self._is_step(node) for each in graph.scopes() for node in each.nodes_with_bodies())
        self.without_effect = "" if has_effect else f"no loop runs a known number of times, at most {self.limit}"
        return changed

    def _is_step(self, node: Node) -> bool:
        """Whether LowLatency2 replaces the loop by its body, as this pass would."""
        if not self.keeps_steps or not isinstance(node, Iteration):
            return False
        from mo_loop.transforms.states.recurrences import length_of  # only for LowLatency2, which loads it as well

        return length_of(node) == 1

    def _unroll(self, graph: Graph, around: int) -> bool:
        """Unroll the possible loops of a graph whose outer loops have `around` iterations together."""
        changed = False
        pending = graph.nodes_with_bodies()
        while pending:
            node = pending.pop(0)
            inner = around * self._factor(node)
            if any([self._unroll(body, inner) for body in node.bodies]):
                changed = True
                graph.validate()
            if not isinstance(node, Iteration) or self.leaves(node) or not self._is_short(node, around):
                continue
            before = set(graph.nodes_with_bodies())
            budget().unroll(_count(node) * sum(len(scope) for scope in node.body.scopes()))
            unrolled(node, _count(node))
            changed = self.accept(node)
            graph.validate()
            for each in graph.of(If):  # a branch that does not run in this iteration may refuse the types in it
                condition = each.inputs[0]
                if condition is not None and condition.type.integers is not None:
                    take_branch(each, taken=bool(condition.type.integers[0]))
            graph.validate()
            fold_constants(graph)
            graph.sweep()
            graph.validate()
            pending = [each for each in graph.nodes_with_bodies() if each in pending or each not in before]
        self.at = None
        return changed

    def _factor(self, node: Node) -> int:
        """The number of copies, 1 if the limit does not allow any."""
        count = _count(node) if isinstance(node, Iteration) else 1
        return count if 1 <= count <= self.limit else 1

    def _deepest(self, node: Node) -> int:
        """The number of copies of `node` and the loops nested in it."""
        within = [self._deepest(each) for body in node.bodies for each in body.nodes_with_bodies()]
        return self._factor(node) * max(within, default=1)

    def _is_short(self, node: Iteration, around: int) -> bool:
        count = _count(node)
        if self._is_step(node):
            return self.refuse(node, "LowLatency2 replaces it by one step, with states that keep their values")
        if count < 1:
            return self.refuse(node, "its number of iterations is unknown or 0")
        if count > self.limit or around * self._deepest(node) > self.limit:
            return self.refuse(node, f"together with outer and inner loops it has more than {self.limit} iterations")
        if count * sum(len(scope) for scope in node.body.scopes()) > MOST_NODES:
            return self.refuse(node, f"its copies would have more than {MOST_NODES} nodes")
        draws = [each for scope in node.body.scopes() for each in scope.of(ops.RandomUniform)]
        if any(each.global_seed or each.op_seed for each in draws):
            return self.refuse(node, "it draws random numbers from a seed: every copy would draw the same ones")
        assume_fixed(_lengths(node))
        if any(isinstance(each, Sliced) and not is_cut_evenly(each, value) for each, value in node.fed):
            return self.refuse(node, "the length of a sliced input is unknown, or its slices have other sizes than 1")
        return True


def _count(node: Iteration) -> int:
    """The number of iterations for the declared sizes of inputs; 0 if it is unknown."""
    count = node.count
    return count if isinstance(count, int) else now(count) or 0 if open_symbols([count]) else 0


def _lengths(node: Iteration) -> Iterator[Dimension]:
    """The number of iterations, and the lengths of sliced inputs."""
    yield node.count
    for entry, value in node.fed:
        if isinstance(entry, Sliced) and value.shape is not None:
            yield value.shape[normalise_axis(entry.axis, len(value.shape))]
