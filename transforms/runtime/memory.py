"""Which tensors share memory in the runtime, and who may write into it."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Node, Value
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


def has_run_time_end(node: Node) -> bool:
    """Whether a node is a Slice whose end is known only at run time, or becomes one."""
    if isinstance(node, ops.Barrier):
        return node.hides == "memory"
    end = node.inputs[2] if isinstance(node, ops.Slice) else None
    return end is not None and not isinstance(end.node, Constant)


def hide_memory(output: Value) -> None:
    """Readers of `output` read a Barrier, which becomes such a Slice."""
    readers = output.uses
    move_readers(output, ops.Barrier(output, hides="memory").output, readers)
