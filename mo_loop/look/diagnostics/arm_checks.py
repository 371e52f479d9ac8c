"""Checks of the converted graph: what the runtime computes wrongly on ARM, or does not compile there.

    for diagnostic in arm_diagnostics(graph):
        print(diagnostic.place.path, diagnostic.message, diagnostic.help)

Each row of `ARM_FAULTS` is a fault, with the operations that show it. What a conversion for ARM alone writes in another
form is not found in its graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from mo_loop import ops
from mo_loop.graph import Graph, Node
from mo_loop.graph.dimension import now
from mo_loop.graph.shape import is_static
from mo_loop.graph.types import f32
from mo_loop.look.diagnostics.diagnostic import Diagnostic, NodePlace
from mo_loop.ops.exact import is_not_negative
from mo_loop.ops.recurrent import Recurrent
from mo_loop.transforms.runtime.local.forms_for_devices import (
    has_scales_of_columns,
    is_quantised_average,
    port_of_bias,
)

ALONE = "convert for this device alone (--device ARM)"
IN_F32 = "set the property INFERENCE_PRECISION_HINT to f32 when you compile the model"
EITHER = f"{ALONE}, or {IN_F32}"


@dataclass(frozen=True)
class DeviceFault:
    """A fault of the runtime on ARM: its code, the classes of the operations, whether one of them shows it, what goes
    wrong, and the way out."""

    code: str
    kinds: tuple[type[Any], ...]
    shows: Callable[[Any], bool]
    message: str
    help: str

    def of(self, graph: Graph) -> Iterator[Diagnostic]:
        """The diagnostics of a graph and of all bodies."""
        for scope in graph.scopes():
            for node in scope.ordered():
                if isinstance(node, self.kinds) and self.shows(node):
                    yield Diagnostic(self.code, f"on ARM {self.message}", _place(node), help=self.help)


def arm_diagnostics(graph: Graph) -> Iterator[Diagnostic]:
    """All faults on ARM that are left in a finished graph, by kind."""
    for fault in ARM_FAULTS:
        yield from fault.of(graph)


def _place(node: Node) -> NodePlace:
    return NodePlace(node=node.name, operator=type(node).__name__) if node.origin is None else NodePlace.of(node.origin)


def _is_overwritten(node: ops.If) -> bool:
    """Whether the model returns an output of it in f32, of a size that is known only at run time."""
    dynamic = [each for each in node.outputs if each.dtype is f32 and not is_static(each.shape)]
    return node.graph.owner is None and any(isinstance(use.node, ops.Result) for each in dynamic for use in each.uses)


def _is_quantised_with_zeros(node: ops.Convolution) -> bool:
    """Whether its weights have zero points, and a FakeQuantize follows."""
    weights, readers = node.operands[1].node, [use.node for use in node.output.uses]
    if not isinstance(weights, ops.Multiply) or not isinstance(weights.operands[0].node, ops.Subtract):
        return False
    while len(readers) == 1 and isinstance(readers[0], ops.Add | ops.ReLU | ops.Clamp):
        readers = [use.node for use in readers[0].outputs[0].uses]
    return any(isinstance(each, ops.FakeQuantize) for each in readers)


def _compares_bits(node: ops.TopK) -> bool:
    x = node.operands[0]
    return x.dtype.is_integer and (x.dtype.bits < 32 or not is_not_negative(x))


def _may_grow(node: ops.RNNSequence) -> bool:
    """Whether it may have one step, and a batch size that changes."""
    x = node.operands[0]
    if x.shape is None:
        return True
    batch, steps, _ = x.shape
    return not isinstance(batch, int) and (now(steps) is None or now(steps) == 1)


def _always(_: Any) -> bool:
    return True


ARM_FAULTS = (
    DeviceFault(
        "ML570", (ops.If,), _is_overwritten,
        "this output of an If may be overwritten in f16 before it is returned in f32", EITHER,
    ),
    DeviceFault(
        "ML570", (ops.TopK,), _compares_bits,
        "the largest or smallest integers are chosen by their bits, which is wrong for numbers below 0",
        "cast the numbers to f32 before, if they are below 2^24",
    ),
    DeviceFault(
        "ML570", (ops.RNNSequence,), _may_grow,
        "an RNN of one step is wrong after an inference with a smaller batch",
        "declare the batch size (--input), or compile the model for each batch size",
    ),
    DeviceFault(
        "ML570", (ops.MatMul,), has_scales_of_columns,
        "the product of quantised activations and weights with a scale for each column is wrong, because the number of "
        "rows is not known", f"{ALONE}, or declare the sizes of the inputs (--input)",
    ),
    DeviceFault(
        "ML570", (ops.AvgPool,), is_quantised_average,
        "the average of quantised numbers is rounded to their steps", ALONE,
    ),
    DeviceFault("ML570", (ops.SoftPlus,), _always, "SoftPlus is off by up to 0.0005", ALONE),
    DeviceFault(
        "ML571", (ops.Add, ops.Subtract, Recurrent), lambda node: port_of_bias(node) is not None,
        "a product of two operands that are not constant, plus a constant row, does not compile in f16", EITHER,
    ),
    DeviceFault(
        "ML571", (ops.Convolution,), _is_quantised_with_zeros,
        "a quantised convolution whose weights have a zero point may not compile",
        "quantise the weights symmetrically, or convert with --quantization exact",
    ),
)
