"""The base class of the passes that take work out of loops, and a loop as a loop over blocks of its steps.

for i in range(n): s = Y[i] = f(s, X[i])
->  for j in range(n // b):
        for i in range(b): s = Y[b j + i] = f(s, X[b j + i])
    for i in range(n % b): s = Y[n - n % b + i] = f(s, X[n - n % b + i])
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

from mo_loop.graph.types import boolean, i64
from mo_loop.ops.control import Iteration, Loop, TensorIterator
from mo_loop.ops.lengths import Length, as_value
from mo_loop.ops.port_map import Concatenated, Final, Invariant, Merged, Sliced
from mo_loop.transforms.function_pass import argument
from mo_loop.transforms.loops import pieces
from mo_loop.transforms.loops.outer import Draft
from mo_loop.transforms.loops.worth import BLOCKS, Bound
from mo_loop.transforms.port_maps import captured, is_one_after_another, reads_only_sizes, replace_by_loop
from mo_loop.transforms.replace import move_readers
from mo_loop.transforms.slice_reads import ends_by_trip_count
from mo_loop.transforms.vocabulary import F, FunctionPass, Graph, Node, Parameter, Result, Value, is_static


def has_no_blocks(node: Iteration) -> str:
    """Why the steps of a loop cannot be put into blocks, or empty."""
    if isinstance(node, Loop) and not ends_by_trip_count(node):
        return "it may not start"
    if node.body.name == BLOCKS:
        return "its steps are blocks"
    if reads_only_sizes(node):
        return pieces.SIZES
    states = {entry.result for entry in node.back_edges}
    for entry in node.output_map:
        if isinstance(entry, Final) and entry.result not in states and not isinstance(node.count, int):
            return "it returns a value of the last step that is not a state"
        if isinstance(entry, Concatenated):
            dims = entry.result.value.shape
            if dims is None or dims[entry.axis] != 1 or not is_one_after_another(entry):
                return "its outputs are not one piece after another"
            if not isinstance(node.count, int) and not is_static(dims):
                return "the sizes of its outputs are not known where there is no whole block"
    return ""


def in_blocks(node: Iteration, size: int) -> list[Iteration]:
    """Replace a loop; returns the loops over the steps of a block, and over those after the last block."""
    # The runtime ends the process for some tensors whose size is known to be 0: those of no blocks, or of no rest.
    known = node.count
    count = known if isinstance(known, int) else F.Barrier(pieces.number_of_steps(node), hides="value")
    rest = count % size
    whole = count - rest
    begun = {entry.result for entry in node.output_map if isinstance(entry, Final)}
    for entry in node.back_edges:  # each block gives its states to the next one
        if entry.result not in begun:
            node.output_map = (*node.output_map, Final(entry.result))
            node.graph.add_output(node, entry.result.value.type)
    loop, outputs, steps = _over_blocks(node, size, count, whole)
    if isinstance(rest, int) and rest == 0:
        pieces.put_in_place(node, loop, outputs)
        return [steps]
    pairs = list(zip(node.output_map, outputs, strict=True))
    states = {entry.result: value for entry, value in pairs if isinstance(entry, Final)}
    places = None
    if not isinstance(rest, int):  # slices have equal sizes if one range says which they are
        places = F.Range(as_value(0, node.graph), rest, as_value(1, node.graph), output_type=i64)
        rest = places.size(0)
    inputs = []
    for entry, value in node.fed:
        if isinstance(entry, Merged):
            value = states[entry.result]
        elif isinstance(entry, Sliced) and places is not None:
            value = F.Gather(value, places + whole if entry.stride > 0 else places, entry.axis)
        elif isinstance(entry, Sliced):
            value = pieces.part_of(value, entry, whole, count, count)
        inputs.append(value)
    after = _steps(node, node.graph, inputs, rest, as_value(whole, node.graph) if _index(node) else None)
    values = [
        F.Concat(*pieces.in_order([output, more], entry), axis=entry.axis)
        if isinstance(entry, Concatenated) else more
        for (entry, output), more in zip(pairs, after.outputs, strict=True)
    ]
    pieces.put_in_place(node, loop, values)
    return [steps, after]


def _over_blocks(node: Iteration, size: int, count: Length, whole: Length) -> tuple[Loop, list[Value], Iteration]:
    """The loop over all blocks with its outputs, and that over the steps of a block in its body."""
    body, graph = Graph(BLOCKS), node.graph
    index = Parameter(graph=body, dtype=i64, shape=()) if _index(node) else None
    parameters, inputs = [], []
    for entry, value in node.fed:
        type_ = entry.parameter.output.type if isinstance(entry, Merged) else value.type
        if isinstance(entry, Sliced):
            type_ = type_.with_size(entry.axis, size)
            value = pieces.part_of(value, entry, 0, whole, count)
        parameters.append(Parameter(graph=body, type=type_.without_known(), name=entry.parameter.name))
        inputs.append(value)
    first = None if index is None else index * size
    steps = _steps(node, body, [each.output for each in parameters], size, first)
    results = {
        entry.result: Result(value)
        for entry, value in zip(node.output_map, steps.outputs, strict=True) if isinstance(entry, Final)
    }
    input_map = tuple(
        replace(entry, parameter=parameter, stride=size * entry.stride, part_size=size) if isinstance(entry, Sliced)
        else Merged(parameter, results[entry.result]) if isinstance(entry, Merged) else Invariant(parameter)
        for (entry, _), parameter in zip(node.fed, parameters, strict=True)
    )
    output_map = tuple(
        pieces.one_piece(value, entry) if isinstance(entry, Concatenated) else Final(results[entry.result])
        for entry, value in zip(node.output_map, steps.outputs, strict=True)
    )
    loop = Loop(
        as_value(count // size, graph), F.Constant(True, graph=graph, dtype=boolean), *inputs, name=node.name,
        body=body, iteration=index, condition=Result(F.Constant(True, graph=body, dtype=boolean)),
        input_map=input_map, output_map=output_map,
    )
    outputs = [
        pieces.as_steps(value, entry, size) if isinstance(entry, Concatenated) else value
        for entry, value in zip(node.output_map, loop.outputs, strict=True)
    ]
    return loop, outputs, steps


def _steps(node: Iteration, graph: Graph, inputs: Sequence[Value], count: Length, first: Value | None) -> Iteration:
    """The same loop over `count` steps in another place; the first one has the number `first`."""
    head: list[Value] = []
    if isinstance(node, Loop):
        head = [as_value(count, graph), F.Constant(True, graph=graph, dtype=boolean)]
    values = dict(zip(node.operands, [*head, *inputs], strict=True))
    graph.adopt(node.graph, {node}, values)
    copy = values[node.outputs[0]].node
    assert isinstance(copy, Loop | TensorIterator)
    graph.set_inputs(copy, [*head, *inputs])
    for output in copy.outputs:
        output.names = output.origins = ()
    if isinstance(copy, Loop):
        copy.none_below_zero = copy.starts = False
    elif not isinstance(count, int):
        copy = replace_by_loop(copy)  # there may be no step
    if first is not None and isinstance(copy, Loop) and copy.iteration is not None:
        readers, number = copy.iteration.output.uses, copy.iteration.output
        move_readers(number, number + pieces.as_number(captured(copy.body, first), number), readers)
    graph.validate()
    return copy


def _index(node: Iteration) -> Parameter | None:
    """The iteration number that the body reads."""
    return node.iteration if isinstance(node, Loop) else None


class LoopPass(FunctionPass):
    """Rewrites loops, then removes unused nodes and updates types."""

    kinds: ClassVar[tuple[type[Node], ...]] = (Loop, TensorIterator)

    def run_on_graph(self, graph: Graph) -> bool:
        changed = super().run_on_graph(graph)
        if changed:
            graph.sweep()
            graph.validate()
        return changed


LEAST = 8
"""The least steps of a block: a step that touches so much memory that fewer steps fill a block is not faster in one."""


@dataclass(eq=False)
class AllStepsPass(LoopPass):
    """Computes something for all steps at once; for those of a block, if it takes too much memory.

    Args:
        exact_order: floats are added in the order of the steps.
        memory: the largest tensor of all steps, as a multiple of the size of the inputs and outputs of the loop. Above
            it the loop becomes one over blocks of steps.
    """

    exact_order: bool = False
    memory: float = argument(4.0, float)

    def rewrite(self, node: Iteration) -> bool:
        return self.rewrite_within(node, Bound.of(node, self.memory), may_split=True)

    def rewrite_within(self, node: Iteration, bound: Bound, *, may_split: bool) -> bool:
        """Rewrite a loop; `may_split` says whether it may become blocks."""
        raise NotImplementedError

    def exceeds(self, draft: Draft, values: Iterable[Value], bound: Bound, *, may_split: bool) -> bool | None:
        """None if the tensors that make `values` are within the bound; else the result of `rewrite`."""
        excess = bound.excess(draft.values_before(values), draft.steps.usual)
        if excess is None:
            return None
        node = draft.node
        size = excess.steps_of(node.count)
        if not may_split or size < LEAST or has_no_blocks(node):
            return self.refuse(node, str(excess))
        for loop in in_blocks(node, size):
            graph = loop.graph
            self.rewrite_within(loop, bound, may_split=False)
            graph.sweep()
        return self.accept(node, f"in blocks of {size} steps")
