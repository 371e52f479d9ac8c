"""Several steps of a loop in one iteration."""

from dataclasses import dataclass

from mo_loop.graph.dimension import high, least
from mo_loop.graph.types import string
from mo_loop.ops.control import If, Iteration, Loop, TensorIterator
from mo_loop.ops.port_map import Concatenated, Final, Sliced
from mo_loop.ops.recurrent import Recurrent
from mo_loop.transforms.folding import fold_constants
from mo_loop.transforms.function_pass import argument
from mo_loop.transforms.loops import repeating
from mo_loop.transforms.loops.pieces import ANY_SIZES, FEW, SIZES, ends_always, loops_in, unrolled
from mo_loop.transforms.loops.slice_axes import keep_slice_axes
from mo_loop.transforms.loops.worth import UNTIL_ENDED, USUAL, StepCost, has_known_shapes, numbers_touched, step_nodes
from mo_loop.transforms.port_maps import ENDLESS, is_one_after_another, reads_only_sizes
from mo_loop.transforms.total_operations import is_safe
from mo_loop.transforms.vocabulary import FunctionPass, Graph, Value, is_static, ops


@dataclass(eq=False)
class StepsPerIteration(FunctionPass):
    """for i in range(n): s = f(s, X[i])  ->  for i in range(n / k): s = f(f(s, X[k i]), X[k i + 1])

    The runtime needs as long for an iteration as for about ten small operations, and more where a port of the loop has
    a dynamic shape, whatever is in the body. With a number of steps that is known, k divides it, or the last steps
    follow the loop. Otherwise steps beyond the last one are computed from the last slice, and states whose final values
    are read keep their values there: state' = Select(step < n, f(state), state). So a step must not fail for any
    numbers. A while loop has its condition in place of step < n.

    Args:
        nodes: the most nodes of an iteration.
        steps: the most steps of an iteration.
        numbers: the most numbers that a step may touch; above it, an iteration costs little compared with its steps.
    """

    nodes: int = argument(160, int)
    steps: int = argument(16, int)
    numbers: int = argument(40_000, int)

    kinds = (TensorIterator, Loop)

    def run_on_graph(self, graph: Graph) -> bool:
        if not super().run_on_graph(graph):
            return False
        graph.validate()
        fold_constants(graph)  # iteration numbers are constants after a loop, and states that start as such
        graph.sweep()
        return True

    def rewrite(self, node: Iteration) -> bool:
        size = step_nodes(node.body)
        reason = _obstacle(node) or self._is_large(node, size)
        if reason:
            return self.refuse(node, reason)
        finals = len(repeating.final_results(node))
        if ends_always(node) and isinstance(node.count, int):
            return self._known_number(node, node.count, min(self.steps, self.nodes // size))
        reason = SIZES if reads_only_sizes(node) else _uncertain(node)
        if reason:
            return self.refuse(node, reason)
        most, cost = min(self.steps, self.nodes // (size + finals)), StepCost.of(node.body, finals)
        # The steps after the last one are computed, but not used.
        ends = not ends_always(node)
        if ends:
            most = min(most, self.steps // 2)
        reads = repeating.reads_of_index(node)
        # The runtime infers unknown shapes in each step, which costs more than an iteration.
        if not has_known_shapes(node.body, reads) or node.graph.name == FEW:
            most = min(most, self.steps // 4)
        largest = high(node.count)
        if largest is not None and largest < 2:
            return self.refuse(node, "it has no second step")
        most = most if largest is None else min(most, largest)
        if most < 2:
            return self.refuse(node, f"two steps have more than {self.nodes} nodes")
        powers = [1 << each for each in range(most.bit_length())]  # the division of a large trip count by one is exact
        count = min(USUAL, largest or USUAL) if not ends else UNTIL_ENDED
        steps = min(powers, key=lambda each: cost.total(count, each))
        if steps == 1:
            return self.refuse(node, cost.text(count, 2))
        repeating.read_as_slices(node, reads)
        has_limit = isinstance(node, TensorIterator) or not _is_endless(node.operands[0])
        repeating.repeat_while_active(node, steps, has_limit=has_limit)
        return self.accept(
            node, f"{steps} steps in each iteration; states keep their values after the last step; "
            f"{cost.text(count, steps)}"
        )

    def _known_number(self, node: Iteration, count: int, most: int) -> bool:
        if count < 1:
            return self.refuse(node, "it does not run")
        cost = StepCost.of(node.body)
        steps = min(range(1, most + 1), key=lambda each: cost.total(count, each))
        if count < 2 * steps:
            graph, before = node.graph, set(node.graph)
            unrolled(node, count)
            keep_slice_axes(graph, [each for each in graph.ordered() if each not in before])
            return self.accept(node, f"{count} steps are one iteration, which needs no loop")
        if steps == 1:
            return self.refuse(node, cost.text(count, 2))
        if reads_only_sizes(node):
            return self.refuse(node, SIZES)
        repeating.repeat(node, steps, count)
        return self.accept(
            node, f"{steps} steps in each iteration, {count % steps} after the loop; {cost.text(count, steps)}"
        )

    def _is_large(self, node: Iteration, size: int) -> str:
        if 2 * size > self.nodes:
            return f"two steps have more than {self.nodes} nodes"
        if numbers_touched(node.body) > self.numbers:
            return f"a step touches more than {self.numbers} numbers: an iteration costs little compared with it"
        return ""


# -- reasons against it


def _obstacle(node: Iteration) -> str:
    body = node.body
    if node.steps > 1:
        return "its iterations have several steps already"
    every = [each for scope in body.scopes() for each in scope]
    if any(isinstance(each, Iteration) for each in every):
        return "its body has loops, whose iterations cost more"
    owner = node.graph.owner
    if node.graph.name == ANY_SIZES and isinstance(owner, If) and not loops_in(owner.then_body):
        return "the form for the declared sizes has no loop, and would wait for the compilation of this one"
    stay = (ops.Failed, ops.Opaque, Recurrent)
    if body.acts or any(isinstance(each, stay) or getattr(each, "random", False) for each in every):
        return "its body draws random numbers, assigns variables, or has recurrent cells"
    if any(isinstance(each, ops.Round | ops.FakeQuantize) for each in every):
        return "a step rounds, which enlarges the last bits: with other operations near it the runtime computes others"
    if any(not is_one_after_another(each) for each in (*node.input_map, *node.output_map) if _is_in_pieces(each)):
        return "its slices are not one after another"
    if any(each.parameter.output.dtype is string for each in node.back_edges):
        return "a state is a string"
    for entry in node.back_edges:
        if entry.parameter.output.shape is None or entry.parameter.output.shape != entry.result.value.shape:
            return f"a state changes its shape, {entry.parameter.output.type} to {entry.result.value.type}"
    for entry in node.output_map:
        if isinstance(entry, Concatenated):
            shape = entry.result.value.shape
            if shape is None or shape[entry.axis] != 1 or entry.result.value.dtype is string:
                return "a piece of a concatenated output is not known to have the size 1"
    return ""


def _is_in_pieces(entry: object) -> bool:
    return isinstance(entry, Sliced | Concatenated)


def _uncertain(node: Iteration) -> str:
    """The reason why steps that do not run cannot be computed; empty if they can."""
    if node.count == 0:
        return "it does not run"
    unsafe = next((each for each in node.body.ordered() if not is_safe(each)), None)
    if unsafe is not None:
        return f"a step after the last one might fail: {type(unsafe).__name__}"
    states = {each.result for each in node.back_edges}
    for entry in node.output_map:
        if isinstance(entry, Final) and entry.result not in states and not is_static(entry.result.value.shape):
            return "the size of a final value is unknown"
    if isinstance(node, TensorIterator):
        return "" if _are_lengths(node, node.count) else "its inputs are not proven to be of equal length"
    known = node.operands[0].type.known
    count = None if known is None else known.reshape(-1)[0]
    if not _are_lengths(node, count):
        return "its trip count is not proven to be the length of its slices"
    if ends_always(node):
        return ""
    if any(isinstance(entry, Concatenated) and entry.stride < 0 for entry in node.output_map):
        return "its condition may end it, and it has an output in reverse order"
    has_meaning = isinstance(node, Loop) and node.none_below_zero  # of ONNX
    if not (has_meaning or _is_endless(node.operands[0]) or (count is not None and least(count) >= 0)):
        return "its trip count may be below 0, which means no limit"
    return ""


def _are_lengths(node: Iteration, count: object) -> bool:
    return all(value.type.dims[entry.axis] == count for entry, value in node.fed if isinstance(entry, Sliced))


def _is_endless(trip: Value) -> bool:
    known = trip.type.integers
    return known is not None and not 0 <= known[0] < ENDLESS
