"""Body Parameters that the runtime would corrupt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from mo_loop import ops
from mo_loop.graph import Graph, Node
from mo_loop.graph.types import boolean, string
from mo_loop.ops.arithmetic import Binary
from mo_loop.ops.base import Identity, Parameter, Result
from mo_loop.ops.control import Control, Invariant, Iteration, Loop, Merged
from transforms.function_pass import FunctionPass

IN_PLACE = frozenset({
    "Reshape", "Squeeze", "Unsqueeze", "Concat", "Split", "VariadicSplit", "Gather", "Transpose", "SoftMax", "Softmax",
    "MVN", "NormalizeL2", "GRN", "ScatterUpdate", "ScatterNDUpdate", "ScatterElementsUpdate",
})  # fmt: skip
"""Operations that work in place: they write, or hand on a view of, a body Parameter's memory."""


class IsolateParameters(FunctionPass):
    """p  ->  max(p, p), which the runtime neither removes nor computes in place

    Back edges are copied one after another, after the new slices and the new iteration number, so a view of one
    Parameter can be overwritten before it is read as the next value of another. With A the in-place operations, a
    Parameter p of a Loop or TensorIterator is isolated when

    - p is the Result of another state; or p is a state, an A reads it, and another state's Result is reachable from it;
    - p is sliced or the iteration number, and a state's Result is reachable from it;
    - p is invariant, and an A or a state's Result reads it. A Gather is none whose index changes with the iteration:
      it copies, and isolating p would copy all of it every time. An element-wise operation of two scalars is one as
      well if the other one is what an A returns: the runtime lets it write into p then, not into the view.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for node in self.candidates(graph, Iteration):
            isolated = [_isolate(parameter) for parameter in _endangered(node)]
            if any(isolated):
                changed = self.accept(node)
            else:
                self.refuse(node, "isolated already" if isolated else "nothing overwrites its Parameters")
        return changed


def _endangered(node: Iteration) -> list[Parameter]:
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
            views = [reader for reader in readers if _is_in_place(reader)]
            passed_on = any(reader in others for reader in readers) or (entry.result in readers and views)
            if passed_on or _reaches(node.body, views, others):
                found.append(p)
        elif isinstance(entry, Invariant):
            if any(reader in states or _overwrites(reader, changing) for reader in readers):
                found.append(p)
        elif _reaches(node.body, [p], states):
            found.append(p)
    return found


def _is_in_place(node: Node) -> bool:
    # A control-flow operation may hand its input on as its output.
    return isinstance(node, Control | Identity) or getattr(node, "type", "") in IN_PLACE


def _overwrites(reader: Node, changing: set[Node]) -> bool:
    """Whether a reader may write into an invariant that it reads, or hand on a view that is written into."""
    if isinstance(reader, Binary):
        views = [value for value in reader.inputs if value is not None and _is_in_place(value.node)]
        return reader.output.rank == 0 and bool(views)
    return _is_in_place(reader) and not _copies(reader, changing)


def _changing(node: Iteration) -> set[Node]:
    """What depends on the number of the iteration, a state or a slice."""
    constant = {entry.parameter for entry in node.input_map if isinstance(entry, Invariant)}
    varying: set[Node] = {parameter for parameter in node.body.parameters if parameter not in constant}
    return node.body.descendants(varying)


def _copies(reader: Node, changing: set[Node]) -> bool:
    index = reader.inputs[1] if isinstance(reader, ops.Gather) else None
    return index is not None and index.node in changing


def _reaches(body: Graph, starts: Sequence[Node], states: Iterable[Result]) -> bool:
    return not body.descendants(starts).isdisjoint(states)


def _isolate(parameter: Parameter) -> bool:
    readers = parameter.output.uses
    if parameter.output.dtype is string or not readers or all(_is_isolator(node) for node, _ in readers):
        return False
    cls = ops.LogicalOr if parameter.output.dtype is boolean else ops.Maximum
    copy = cls(parameter.output, parameter.output).output
    for node, port in readers:
        if not _is_isolator(node):
            parameter.graph.set_input(node, port, copy)
    return True


def _is_isolator(node: Node) -> bool:
    return isinstance(node, ops.Maximum | ops.LogicalOr) and len(node.inputs) == 2 and node.inputs[0] is node.inputs[1]
