"""Which tensors share memory in the runtime, and who may write into it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mo_loop import ops
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.shape import is_static
from mo_loop.graph.types import f32, i32
from mo_loop.ops.base import Constant, Identity, Parameter, Result
from mo_loop.ops.control import Control
from transforms.replace import move_readers

IN_PLACE = frozenset({
    "Reshape", "Squeeze", "Unsqueeze", "Concat", "Split", "VariadicSplit", "Gather", "Transpose", "SoftMax", "Softmax",
    "MVN", "NormalizeL2", "GRN", "ScatterUpdate", "ScatterNDUpdate", "ScatterElementsUpdate",
})  # fmt: skip
"""Operations that write into the memory of their input, or whose output is a view of it."""

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

    def __init__(self, graph: Graph) -> None:
        self._places = {node: place for place, node in enumerate(graph.ordered())}
        views = {view.node for node in self._places for output in _control_outputs(node) for view in views_of(output)}
        self._nodes = [node for node in self._places if not has_own_memory(node) and node not in views]

    def may_follow(self, node: Node) -> bool:
        """Whether the runtime may execute one of them after `node`; its order may be another one than that here."""
        if not self._nodes:
            return False
        is_last = self._places[self._nodes[-1]] <= self._places[node]
        return not is_last or not node.graph.ancestors([node]).issuperset(self._nodes)


def _control_outputs(node: Node) -> Sequence[Value]:
    return node.outputs if isinstance(node, Control) else ()


def has_run_time_ends(node: Node) -> bool:
    """Whether a node is a Slice whose start or end is known only at run time, or becomes one."""
    if isinstance(node, ops.Barrier):
        return node.hides == "memory"
    ends = node.inputs[1:3] if isinstance(node, ops.Slice) else []
    return any(end is not None and not isinstance(end.node, Constant) for end in ends)


def views_of(output: Value) -> Iterator[Value]:
    """A Reshape or Squeeze that is the only reader of `output`, and the next one: they are the same memory."""
    use = output.only_use
    while use is not None and use.port == 0 and isinstance(use.node, ops.Reshape | ops.Squeeze | ops.AtLeast):
        yield use.node.output
        use = use.node.output.only_use


def hide_memory(output: Value) -> None:
    """Readers of `output` read a Barrier, which becomes such a Slice."""
    readers = output.uses
    move_readers(output, ops.Barrier(output, hides="memory").output, readers)
