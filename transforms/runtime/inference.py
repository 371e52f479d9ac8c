"""The runtime: sizes that it infers, numbers computed from sizes, and values that it can compute before an inference;
tensors that share memory in it, and nodes that may write into it.
"""

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from mo_loop.graph.dimension import Dimension, high, low, now
from mo_loop.graph.types import f32, i32
from mo_loop.ops.control import Control, If, Iteration, Loop
from mo_loop.ops.port_map import Final, Invariant, Merged
from mo_loop.support.traversal import reached
from mo_loop.transforms.replace import insert_after
from mo_loop.transforms.vocabulary import Constant, F, Graph, Node, Op, Parameter, Result, Value, is_static, ops

UNKNOWN_TO_INFERENCE = (Control, ops.Barrier, ops.CumSum, ops.RandomUniform, ops.ReverseSequence)
"""Operations at which the runtime's inference of bounds stops."""


UNROLLED = range(2, 16)
"""Numbers of iterations of the loops that the GPU plugin writes out."""


# -- sizes


def has_hidden_sizes(value: Value) -> bool:
    return isinstance(value.node, ops.Barrier) and value.node.hides == "bounds"


def is_bound_tighter(value: Value) -> bool:
    """Whether the runtime may know bounds of `value` that inference here does not: those of an inner loop's Result.

    Here a state that grows has no bounds; the runtime uses those that the Result has by itself.
    """
    open_ = ((each, each.node) for each in reached([value], _sources_of_bounds) if not is_static(each.shape))
    return any(isinstance(node, Loop) and isinstance(node.output_map[each.index], Final) for each, node in open_)


def _sources_of_bounds(value: Value) -> Sequence[Value]:
    """The values from which the runtime infers bounds of a value."""
    node = value.node
    if has_hidden_sizes(value) or isinstance(node, Loop):
        return ()
    if isinstance(node, If):
        entry = node.output_map[value.index]
        return entry.then.value, entry.else_.value
    return node.operands


def is_bounded(dim: Dimension) -> bool:
    return high(dim) is not None or low(dim) > 0


def may_be_empty(dim: Dimension) -> bool:
    """Whether a size that is not known may be 0."""
    return not isinstance(dim, int) and low(dim) == 0


def may_be_empty_as_declared(dim: Dimension) -> bool:
    """Whether a size may be 0 that does not follow from declared sizes of inputs: a size of 0 is not what a caller
    gives in place of another one."""
    return may_be_empty(dim) and now(dim) is None


def has_constant_sizes(reader: Node) -> bool:
    """Whether a reader is a Reshape whose pattern holds all sizes of its output that are known."""
    pattern = reader.inputs[1] if isinstance(reader, ops.Reshape) else None
    if pattern is None or not isinstance(pattern.node, Constant):
        return False
    sizes = zip(reader.outputs[0].type.dims, pattern.type.integers or (), strict=False)
    return all(size == dim or not isinstance(dim, int) for dim, size in sizes)


def covers(wide: Dimension, narrow: Dimension) -> bool:
    if wide == narrow:
        return True
    hi_wide, hi_narrow = high(wide), high(narrow)
    return low(wide) <= low(narrow) and (hi_wide is None or (hi_narrow is not None and hi_narrow <= hi_wide))


# -- numbers


def has_bounds(node: Node, bounded: dict[Value, bool]) -> bool:
    """Whether the runtime infers bounds for the outputs of `node`: it reads only dimensions and constants."""
    if isinstance(node, UNKNOWN_TO_INFERENCE) or not node.inputs:
        return False
    if isinstance(node, ops.ShapeOf):
        return True
    return any(value in bounded for value in node.inputs) and all(
        value in bounded or is_known(value) for value in node.inputs
    )


def may_be_negative(node: Node, bounded: dict[Value, bool]) -> bool:
    """Whether an input of `node`, or the difference that it computes, may be negative."""
    if isinstance(node, ops.ShapeOf):
        return False
    return isinstance(node, ops.Subtract | ops.Negative) or any(
        bounded[value] if value in bounded else _has_negative(value) for value in node.operands
    )


def _has_negative(value: Value) -> bool:
    numbers = value.type.integers if value.constant is None else value.constant
    return bool(np.any(np.less(np.asarray(numbers), 0)))


def is_known(value: Value | None) -> bool:
    return value is None or isinstance(value.node, Constant) or value.type.integers is not None


def is_inferred(value: Value) -> bool:
    """Whether the runtime may infer numbers of `value`, or their bounds: it depends on constants and sizes alone."""
    known = Constant | ops.ShapeOf
    sources = reached([value], lambda each: () if isinstance(each.node, known) else each.node.operands)
    unknown = (Parameter, *UNKNOWN_TO_INFERENCE)
    return all(isinstance(x.node, known) or (x.node.inputs and not isinstance(x.node, unknown)) for x in sources)


def is_computable(value: Value, known: dict[Value, bool], *, of_sizes: bool = False) -> bool:
    """Whether a value depends only on constants and static shapes, or shapes that a reshape may make static.

    `known` caches the answers.
    """

    def alone(node: Node) -> bool | None:
        """The answer for a node whose inputs do not matter; None for others."""
        is_size = isinstance(node, ops.ShapeOf) and (of_sizes or is_static(node.operands[0].shape))
        if is_size or isinstance(node, Constant):
            return True
        return False if isinstance(node, Parameter | ops.RandomUniform) or _is_hidden(node) else None

    if value not in known:
        sources = reached([value], lambda x: () if x in known or alone(x.node) is not None else x.node.operands)
        known[value] = all(known.get(each, alone(each.node)) is not False for each in sources)
    return known[value]


def _is_hidden(node: Node) -> bool:
    return isinstance(node, ops.Barrier) and node.hides != "memory" and (node.hides == "value" or bool(node.axes))


IN_PLACE = frozenset({
    "Reshape", "Squeeze", "Unsqueeze", "Concat", "Split", "VariadicSplit", "Gather", "Transpose", "SoftMax", "Softmax",
    "MVN", "NormalizeL2", "GRN", "ScatterUpdate", "ScatterNDUpdate", "ScatterElementsUpdate",
})
"""Operations that write into the memory of their input, or whose output is a view of it."""

VIEWS = (ops.View, ops.AtLeast)
"""Operations whose output is the memory of their input, if nothing else reads that."""

UNCONVERTED = (f32, i32)
"""Element types that the runtime does not convert at a model output."""


def is_in_place(node: Node) -> bool:
    # A control-flow operation may return its input as its output.
    return isinstance(node, Control | ops.Identity) or getattr(node, "type", "") in IN_PLACE


def has_own_memory(node: Node) -> bool:
    """Whether all outputs of a node are static, or the node is a Parameter, or they are unconverted model outputs."""
    own = (is_static(output.shape) or _is_model_output(output) for output in node.outputs)
    return isinstance(node, Parameter) or all(own)


def _is_model_output(output: Value) -> bool:
    returned = output.graph.owner is None and any(isinstance(use.node, Result) for use in output.uses)
    return returned and output.dtype in UNCONVERTED


class Resized:
    """The nodes of a graph that may take memory of another tensor: their outputs have dynamic shapes, and no memory of
    their own."""

    def __init__(self, graph: Graph, copied: Iterable[Parameter]) -> None:
        """`copied` are Parameters after which a node will be inserted."""
        self._nodes = [node for node in graph.ordered() if not has_own_memory(node) and not _is_only_view(node)]
        self._nodes += [node for node in copied if not is_static(node.output.shape)]

    def may_overwrite(self, output: Value) -> bool:
        """Whether the runtime may resize the output of one of them in the memory of `output` before that is read.

        The nodes that `output` depends on are executed before. Those that read it take other memory, because its own is
        in use then. The order of execution may be another one than that here.
        """
        values = (output, *views_of(output))
        readers = {use.node for each in values for use in each.uses}
        before = output.graph.ancestors([output.node])
        return any(node not in readers and node not in before for node in self._nodes)


def _is_only_view(node: Node) -> bool:
    return isinstance(node, VIEWS) and node.operands[0].only_use is not None


def has_run_time_ends(node: Node) -> bool:
    """Whether a node is a Slice whose start or end is known only at run time, or becomes one."""
    if isinstance(node, ops.Barrier):
        return node.hides == "memory"
    ends = node.inputs[1:3] if isinstance(node, ops.Slice) else []
    return any(end is not None and not isinstance(end.node, Constant) for end in ends)


def views_of(output: Value) -> Iterator[Value]:
    """A view that is the only reader of `output`, and the next one."""
    use = output.only_use
    while use is not None and use.port == 0 and isinstance(use.node, VIEWS):
        yield use.node.output
        use = use.node.output.only_use


def hide_memory(output: Value) -> None:
    """Readers of `output` read a Barrier, which becomes such a Slice."""
    insert_after(output, lambda value: F.Barrier(value, hides="memory"))


def computed_from_constants(graph: Graph) -> dict[Node, None]:
    """The nodes that depend on constants alone, without the Constants, producers first."""
    found: dict[Node, None] = {}
    for node in graph.ordered():
        if isinstance(node, Constant):
            continue
        for each in node.inputs:
            if each is not None and not isinstance(each.node, Constant) and each.node not in found:
                break
        else:
            if _is_constant(node):
                found[node] = None
    return found


def _is_constant(node: Node) -> bool:
    if not isinstance(node, Op) or isinstance(node, Parameter | ops.ReadValue):
        return False
    if isinstance(node, ops.Barrier) and (node.hides != "bounds" or node.axes):  # that of bounds becomes a ReduceSum
        return False
    return bool(node.outputs) and not node.random


def overwritten(node: Iteration) -> list[Parameter]:
    """The Parameters of a body after which IsolateParameters inserts a copy."""
    states = {entry.result: entry.parameter for entry in node.back_edges}
    found: list[Parameter] = []
    changing = _changing(node)
    if isinstance(node, Loop) and node.iteration is not None and _reaches(node.body, [node.iteration], states):
        found.append(node.iteration)
    for entry in node.input_map:
        p: Parameter = entry.parameter
        readers = [use.node for use in p.output.uses]
        if isinstance(entry, Merged):
            others = {result: state for result, state in states.items() if result is not entry.result}
            views = [reader for reader in readers if is_in_place(reader)]
            passed_on = any(reader in others for reader in readers) or (entry.result in readers and views)
            if passed_on or _reaches(node.body, views, others):
                found.append(p)
        elif isinstance(entry, Invariant):
            if any(reader in states or _overwrites(reader, changing) for reader in readers):
                found.append(p)
        elif _reaches(node.body, [p], states):
            found.append(p)
    return found


def _overwrites(reader: Node, changing: set[Node]) -> bool:
    """Whether a reader may write into an invariant that it reads, or return a view that is written into."""
    if isinstance(reader, ops.Binary):
        views = [value for value in reader.operands if is_in_place(value.node)]
        return reader.output.rank == 0 and bool(views)
    return is_in_place(reader) and not _copies(reader, changing)


def _copies(reader: Node, changing: set[Node]) -> bool:
    """Whether a reader, or each of those that read its view, is a Gather whose index changes with the iteration."""
    if isinstance(reader, VIEWS):
        uses = reader.output.uses
        return bool(uses) and all(use.port == 0 and _copies(use.node, changing) for use in uses)
    return isinstance(reader, ops.Gather) and reader.operands[1].node in changing


def _changing(node: Iteration) -> set[Node]:
    """The nodes that depend on the number of the iteration, a state or a slice."""
    constant = {entry.parameter for entry in node.input_map if isinstance(entry, Invariant)}
    varying: set[Node] = {parameter for parameter in node.body.parameters if parameter not in constant}
    return node.body.descendants(varying)


def _reaches(body: Graph, starts: Sequence[Node], states: Iterable[Result]) -> bool:
    return not body.descendants(starts).isdisjoint(states)
