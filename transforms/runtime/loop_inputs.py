"""Inputs and outputs of loops that the runtime reads, removes or evaluates wrongly while it reads the model."""


from mo_loop.graph.dimension import low
from mo_loop.graph.types import boolean
from mo_loop.ops.control import Control, Loop, TensorIterator
from mo_loop.ops.port_map import Concatenated, Sliced
from mo_loop.target import CRASH, ERROR, ReleaseRange, without_avx512
from mo_loop.transforms import port_maps
from mo_loop.transforms.function_pass import node_pass
from mo_loop.transforms.runtime.barriers import iterations, zero_from_outside
from mo_loop.transforms.runtime.inference import is_computable
from mo_loop.transforms.vocabulary import Constant, F, FunctionPass, Gap, Graph, Op, Parameter, Value, is_static


@node_pass(
    (Control,), "a copy of the constant in the bodies",
    Gap(
        "constant-input-of-if",
        "a constant that is an input of If, Loop or TensorIterator, and is read elsewhere, crashes the process",
        severity=CRASH, since="2026.2.1",
    ),
    bodies="last",
)
def PushConstantToSubgraph(node: Control) -> str:
    """an invariant input that is a Constant  ->  the same Constant in the body

    The runtime crashes on some models that pass constants as inputs of a control-flow operation. Axes and shapes are
    also easier to see where they are used. The file holds the data once in any case. Outer graphs come first, so one
    run moves a constant through all levels.
    """
    if not port_maps.push_inputs(node, lambda value: isinstance(value.node, Constant), _copy_inside):
        return "no invariant input is a Constant"
    return ""


def _copy_inside(parameter: Parameter, value: Value) -> None:
    constant = value.node
    assert isinstance(constant, Constant)
    copy = Constant(constant.tensor, graph=parameter.graph, name=constant.name)
    copy.origins = constant.origins
    copy.output.copy_names(parameter.output)
    parameter.output.replace_with(copy.output)


class EliminateUnreadSlices(FunctionPass):
    """TensorIterator over X that reads no slice  ->  Loop with the length of X; over X and Y that reads X  ->  over X

    The runtime removes inputs that the body does not read.
    """

    instead = "`Loop`"
    avoids = (Gap("unread-slice", "a TensorIterator whose body reads no slice runs once"),)

    kinds = (TensorIterator,)

    def run_on_graph(self, graph: Graph) -> bool:
        is_swept = graph.sweep() > 0  # readers without readers do not count
        return super().run_on_graph(graph) or is_swept

    def rewrite(self, node: TensorIterator) -> bool:
        sliced = {entry: entry.parameter.output.is_used for entry in node.input_map if isinstance(entry, Sliced)}
        if all(sliced.values()):
            return self.refuse(node, "its body reads all its slices")
        if any(sliced.values()):
            kept = [number for number, entry in enumerate(node.input_map) if sliced.get(entry, True)]
            port_maps.keep_inputs(node, kept)
            return self.accept(node)
        new = port_maps.replace_by_loop(node)
        port_maps.drop_unused_inputs(new)
        return self.accept(new)


class PreventLoopFolding(FunctionPass):
    """Loop(M, C, constants)  ->  Loop(Barrier(M, value), Barrier(C, value), ...)

    The runtime evaluates a loop while it infers shapes if all inputs are constants or can be computed from constants
    and sizes, and where only the trip count or the condition can be computed, and it may be 0 or false. Where the
    evaluation succeeds with a wrong result, a 0 that cannot be folded is added in the body, so that known shapes stay
    known.
    """

    instead = "trip count plus a zero that cannot be folded"
    avoids = (
        Gap(
            "constant-loop-idle-inner",
            "a loop of constants is evaluated while the model is read, which fails if an inner loop does not run",
            severity=ERROR,
        ),
        Gap(
            "constant-loop-with-branches",
            "a loop of constants is evaluated while the model is read, which fails if its body holds an If or a "
            "TensorIterator", severity=ERROR, until="2026.2.1",
        ),
        Gap(
            "constant-loop-unknown-length",
            "a loop of constants is evaluated while the model is read, which fails if its body decides how often it "
            "runs", severity=ERROR,
        ),
        Gap(
            "constant-loop-counter",
            "a loop of constants is evaluated while the model is read, which fails if an iteration number of one "
            "dimension decides in the body whether the loop continues", severity=ERROR,
        ),
        Gap(
            "constant-loop-reversed",
            "a loop of constants is evaluated while the model is read, with reversed outputs in forward order",
            "a zero that cannot be folded in the body",
        ),
        Gap(
            "constant-loop-random", "a loop of constants with random numbers draws them once for all inferences",
            "a zero that cannot be folded in the body",
        ),
        Gap(
            "computed-trip-count",
            "a trip count of 0 that can be computed while the model is read crashes the process, or returns old values",
            severity=CRASH, on=without_avx512(ReleaseRange(until="2026.3.1")),
        ),
        Gap(
            "computed-condition",
            "a condition that is false and can be computed while the model is read makes the result empty, or an old "
            "one", "`or 0 > 0`, with a zero that cannot be folded",
        ),
    )

    kinds = (Loop,)

    def run_on_graph(self, graph: Graph) -> bool:
        self.known: dict[Value, bool] = {}
        self.known_of_sizes: dict[Value, bool] = {}
        return super().run_on_graph(graph)

    def rewrite(self, node: Loop) -> bool:
        trip, go = node.operands[:2]
        computed = all(is_computable(value, self.known_of_sizes, of_sizes=True) for value in node.operands)
        idle = low(iterations(node)) < 1
        if computed and not idle and _is_static(node) and not _holds_refused(node):
            return self._feed_zero(node)
        hides_trip = computed or (idle and not isinstance(trip.node, Constant) and is_computable(trip, self.known))
        hides_go = idle and not isinstance(go.node, Constant) and is_computable(go, self.known)
        if not hides_trip and not hides_go:
            return self.refuse(node, "the runtime cannot evaluate it, or evaluates it correctly")
        for port, value, hidden in ((0, trip, hides_trip), (1, go, hides_go)):
            if hidden:
                node.graph.set_input(node, port, F.Barrier(value, hides="value"))
        return self.accept(node)

    def _feed_zero(self, node: Loop) -> bool:
        """Add the 0 to a reverse-concatenated Result, or to the first one if random numbers matter."""
        joined = (each for each in node.output_map if isinstance(each, Concatenated))
        result = next((each.result for each in joined if each.stride < 0), None)
        if result is None and _draws(node):
            result = node.output_map[0].result
        if result is None:
            return self.refuse(node, "the runtime evaluates it correctly")
        none = port_maps.captured(node.body, zero_from_outside(node.graph)).reshape([])
        value = result.value
        if value.dtype is boolean:
            made = value | F.Greater(none, 0)
        else:
            made = F.Convert(none, destination_type=value.dtype) + value  # the Convert first: see ConvertFirst
        node.body.set_input(result, 0, made)
        return self.accept(node)


def _draws(node: Loop) -> bool:
    """Whether a node in the body draws random numbers."""
    return any(isinstance(each, Op) and each.random for scope in node.body.scopes() for each in scope)


def _holds_refused(node: Loop) -> bool:
    """Whether the body has a node that the evaluation of a runtime refuses: a loop that may run zero times, an If, a
    TensorIterator, or an iteration number of one dimension."""
    if node.iteration is not None and node.iteration.output.rank != 0:
        return True
    inner = (each for scope in node.body.scopes() for each in scope.of(Control))
    return any(not isinstance(each, Loop) or low(iterations(each)) < 1 for each in inner)


def _is_static(node: Loop) -> bool:
    inner = (each for scope in node.body.scopes() for each in scope)
    return all(is_static(output.shape) for each in (node, *inner) for output in each.outputs)


@node_pass((Loop,), "the order of the steps, and a `Slice` with a step of -1 after the loop", Gap(
    "reversed-output-of-sizes",
    "a `Loop` with an output in reverse order does not compile if the sizes of an input follow from those of others, "
    "and its numbers are not read", severity=ERROR, since="2025.4.1",
))
def ReverseBehindLoops(node: Loop) -> str:
    """Y[n - 1 - i] = f(shape(x)) for each step i  ->  Z[i] = f(shape(x)); Y = Z[::-1]

    Where the same size is read in another place, x is an input that the runtime removes.
    """
    turned = [entry for entry in node.output_map if isinstance(entry, Concatenated) and entry.stride == -1]
    if not turned or not port_maps.reads_only_sizes(node):
        return "no output is reversed, or the numbers of all inputs are read"
    port_maps.order_forwards(node)
    return ""
