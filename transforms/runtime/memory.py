"""Tensors that share memory in the runtime, and nodes that may write into it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from mo_loop.graph.types import f32, i32
from mo_loop.ops.control import Control, Iteration, Loop
from mo_loop.ops.port_map import Invariant, Merged
from mo_loop.transforms.replace import move_readers
from mo_loop.transforms.vocabulary import Constant, Graph, Identity, Node, Op, Parameter, Result, Value, is_static, ops

IN_PLACE = frozenset({
    "Reshape", "Squeeze", "Unsqueeze", "Concat", "Split", "VariadicSplit", "Gather", "Transpose", "SoftMax", "Softmax",
    "MVN", "NormalizeL2", "GRN", "ScatterUpdate", "ScatterNDUpdate", "ScatterElementsUpdate",
})  # fmt: skip
"""Operations that write into the memory of their input, or whose output is a view of it."""

VIEWS = (ops.View, ops.AtLeast)
"""Operations whose output is the memory of their input, if nothing else reads that."""

UNCONVERTED = (f32, i32)
"""Element types that the runtime does not convert at a model output."""


def is_in_place(node: Node) -> bool:
    # A control-flow operation may return its input as its output.
    return isinstance(node, Control | Identity) or getattr(node, "type", "") in IN_PLACE


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
        self._nodes = [node for node in graph.ordered() if _takes_memory(node)]
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


def _takes_memory(node: Node) -> bool:
    if isinstance(node, VIEWS) and node.operands[0].only_use is not None:
        return False
    return not has_own_memory(node)


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
    readers = output.uses
    move_readers(output, ops.Barrier(output, hides="memory").output, readers)


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
    if not isinstance(node, Op) or isinstance(node, Parameter | ops.Barrier | ops.ReadValue):
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
