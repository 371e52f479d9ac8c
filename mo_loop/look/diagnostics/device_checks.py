"""Checks of the IR that is written for the device ARM or GPU: operations that OpenVINO computes wrongly there, that it
does not compile, or that are right only because the IR is for this device alone.

    for diagnostic in device_diagnostics(graph, "GPU"):
        print(diagnostic.place.path, diagnostic.message, diagnostic.help)

Each row of `FAULTS` is a fault, with the operations that show it. What a conversion for the device alone writes in
another form is not found in its graph: the explanations of the passes have it.
"""

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop import ops
from mo_loop.graph import Dimension, Graph, Node, Value, f32, f64, is_static, low, now, of_declared_sizes
from mo_loop.look.diagnostics.diagnostic import Diagnostic, NodePlace
from mo_loop.ops.base import Constant
from mo_loop.ops.control import Iteration
from mo_loop.ops.exact import is_not_negative
from mo_loop.ops.port_map import Concatenated, Invariant, Merged
from mo_loop.ops.recurrent import Recurrent
from mo_loop.ops.reduction import Reduction
from mo_loop.support.traversal import by_key
from mo_loop.target import ARM, GPU, Gap
from mo_loop.transforms.config import PassConfig
from mo_loop.transforms.pipelines import avoided_gaps
from mo_loop.transforms.runtime.inference import is_computable, is_inferred
from mo_loop.transforms.runtime.local.forms_for_devices import has_scales_of_columns, is_quantised_average, port_of_bias
from mo_loop.transforms.runtime.local.rule import is_declared
from mo_loop.transforms.runtime.zero_trips import sizes_of_states

ALONE = "convert for this device alone (--device ARM)"
IN_F32 = "set the property INFERENCE_PRECISION_HINT to f32 when you compile the model"
ANOTHER_DEVICE = "run the model on the CPU, or on HETERO:GPU,CPU"
EITHER = f"{ALONE}, or {IN_F32}"


@dataclass(frozen=True)
class DeviceFault:
    """A fault of the runtime on a device: its code, the classes of the operations, whether one of them shows it, the
    error, and the way out."""

    code: str
    kinds: tuple[type[Any], ...]
    shows: Callable[[Any], bool]
    message: str
    help: str


def device_diagnostics(graph: Graph, device: str) -> Iterator[Diagnostic]:
    """All faults of a device that are left in a finished graph, by kind."""
    for fault in FAULTS.get(device, ()):
        for node in (node for scope in graph.scopes() for node in scope.ordered()):
            if isinstance(node, fault.kinds) and fault.shows(node):
                yield Diagnostic(fault.code, f"on {device} {fault.message}", _place(node), help=fault.help)


def of_this_device_alone(device: str) -> dict[str, list[Gap]]:
    """The names of the passes that avoid errors of the device in an IR for it alone, and these errors."""
    return by_key((gap.rule, gap) for gap in avoided_gaps() if gap.alone and gap.device == device)


def changed_alone(config: PassConfig, device: str, known: Mapping[str, list[Gap]]) -> Iterator[Diagnostic]:
    """Notes on the operations that such passes have changed, as a conversion with explanations of them reports."""
    for each in config.explanations:
        if each.outcome == "changed" and each.pass_name in known:
            for gap in known[each.pass_name]:
                text = f"convert with --device {device}, because in an IR for any device {gap.sentence}"
                yield Diagnostic.of_code("ML572", text, each.origin)


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


def _ends_at_run_time(node: ops.Slice) -> bool:
    """Whether it has computed bounds of several axes of known sizes, and a size behind these is unknown."""
    x, starts, ends, *_ = node.operands
    axes = node.operands[4].type.integers if len(node.operands) > 4 else None
    if x.rank is None or axes is None or all(isinstance(each.node, ops.Constant) for each in (starts, ends)):
        return False
    dims = of_declared_sizes(x.shape) or ()
    known = [axis % len(dims) for axis in axes if isinstance(dims[axis], int)]
    return len(known) > 1 and not is_static(dims[max(known):])


def _empty_axes(*values: Value) -> set[int]:
    """The axes of unknown size along which one of several values may have no elements."""
    dims = (pair for each in values for pair in enumerate(each.shape or ()))
    return {axis for axis, dim in dims if not isinstance(dim, int) and low(dim) == 0}


def _has_nothing(node: Iteration) -> bool:
    """Whether the body reads the size of a state that keeps its size and may have no elements, which is then an old
    one; a state that changes its size may have none along two axes; or pieces may have no elements along an axis whose
    size is not that of such a state, or that is not cut, and so may a state that keeps its size, or an input of
    computed size, which then has no memory in the first inference."""
    merged = ((each.parameter.output, each.result.value, value) for each, value in node.fed if isinstance(each, Merged))
    states = [(old.shape == new.shape, _empty_axes(old, new, value)) for old, new, value in merged]
    if any(not keeps and len(axes) > 1 for keeps, axes in states):
        return True
    known = sizes_of_states(node)
    if _reads_size(node, known):
        return True
    read = [value for each, value in node.fed if isinstance(each, Invariant)]
    has_computed = any(value.type.dims[axis].has_fresh() for value in read for axis in _empty_axes(value))
    if not has_computed and not any(keeps and axes for keeps, axes in states):
        return False
    for each, output in node.returned:
        axes = _empty_axes(each.result.value) - {each.axis} if isinstance(each, Concatenated) else set()
        dims = [each.result.value.type.dims[axis] for axis in axes]
        if not known.keys() >= set(dims) or (dims and not _is_cut(output)):
            return True
    return False


def _reads_size(node: Iteration, known: Container[Dimension]) -> bool:
    """Whether a shape in the body, or a Concat along an axis of this size, depends on the size of such a state."""
    sizes = (each.operands[0].shape for each in node.body.of(ops.ShapeOf) if each.output.is_used)
    joined = ((value.shape or (1,))[each.axis] for each in node.body.of(ops.Concat) for value in each.operands)
    return any(dim in known for dims in (*sizes, joined) for dim in dims or ())


def _is_cut(output: Value) -> bool:
    """Whether each reader, also of an If in whose branch the loop is, is a Slice with computed ends."""
    def cuts(reader: Node) -> bool:
        owner = reader.graph.owner
        if isinstance(reader, ops.Result) and isinstance(owner, ops.If):
            return all(_is_cut(outer) for each, outer in owner.returned if reader in (each.then, each.else_))
        if isinstance(reader, ops.View):
            return _is_cut(reader.output)
        return isinstance(reader, ops.Slice) and not isinstance(reader.operands[2].node, ops.Constant)

    return all(cuts(use.node) for use in output.uses)


def _pools_at_run_time(node: ops.MaxPool8) -> bool:
    """Whether its sizes are unknown, or it has 8 bits and dilations or indices that are read."""
    if not all(map(is_declared, (*node.operands, node.outputs[0]))):
        return True
    return node.operands[0].dtype.bits == 8 and (set(node.dilations) != {1} or bool(node.outputs[1].uses))


def _returns_constant(node: ops.Result) -> bool:
    """Whether it returns numbers of f64 that depend on no input."""
    (x,) = node.operands
    return x.dtype is f64 and is_computable(x, {})


def _has_rounded_zero_point(node: ops.Subtract) -> bool:
    """Whether it subtracts zero points from compressed weights, and f16 has not all of them."""
    weights, zeros = (each.node for each in node.operands)
    if not isinstance(weights, ops.Convert) or not isinstance(zeros, Constant) or zeros.output.dtype is not f32:
        return False
    if not isinstance(weights.operands[0].node, Constant) or not weights.operands[0].dtype.is_integer:
        return False
    numbers = zeros.tensor.array()
    return not np.array_equal(numbers.astype(np.float16).astype(np.float32), numbers)


def _exceeds_f32(node: ops.Multiply) -> bool:
    """Whether it multiplies integers that are not sizes by 256 or more, and a sum or difference follows."""
    read = (isinstance(use.node, ops.Add | ops.Subtract) for use in node.output.uses)
    if not node.output.dtype.is_integer or not any(read) or is_inferred(node.output):
        return False
    return any(abs(each) >= 256 for value in node.operands for each in value.type.integers or ())


def _always(_: Any) -> bool:
    return True


_ON_ARM = (
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

_ON_GPU = (
    DeviceFault(
        "ML570", (ops.Slice,), _ends_at_run_time,
        "a Slice of two known sizes before an unknown one may have wrong numbers, because its bounds are computed",
        "declare all sizes of its input (--input), or make its bounds constant (--freeze)",
    ),
    DeviceFault("ML571", (ops.Inverse,), _always, "Inverse does not compile", ANOTHER_DEVICE),
    DeviceFault(
        "ML571", (ops.DeformableConvolution,), lambda node: not all(map(is_declared, (*node.operands, node.output))),
        "DeformableConvolution of unknown sizes does not compile", "declare the sizes of the inputs (--input)",
    ),
    DeviceFault(
        "ML571", (Reduction, ops.Transpose), lambda node: not isinstance(node.operands[1].node, ops.Constant),
        "a reduction along axes that are computed, and a Transpose in an order that is computed, do not compile",
        "make the axes constant (--freeze)",
    ),
    DeviceFault(
        "ML571", (ops.BitwiseNot,), _always, "BitwiseNot of unsigned numbers does not compile",
        "cast the numbers to a signed type before",
    ),
    DeviceFault(
        "ML570", (Iteration,), _has_nothing, "this loop is wrong, or ends the process, if a state or a piece of an "
        "output has no elements", "declare the sizes of the inputs (--input)",
    ),
    DeviceFault(
        "ML571", (ops.MaxPool8,), _pools_at_run_time, "MaxPool with dilations or indices does not compile if sizes are "
        "unknown or its numbers have 8 bits", "declare the sizes of the inputs (--input), and cast the numbers to f32",
    ),
    DeviceFault(
        "ML571", (ops.ScatterNDUpdate15,), lambda node: node.reduction != "none", "ScatterND with a reduction does not "
        "compile", ANOTHER_DEVICE,
    ),
    DeviceFault(
        "ML570", (ops.Result,), _returns_constant, "an output of f64 that depends on no input has other numbers",
        "cast the output to f32",
    ),
    DeviceFault(
        "ML570", (ops.Subtract,), _has_rounded_zero_point, "zero points of compressed weights are rounded to f16",
        "quantise the weights with zero points that are integers",
    ),
    DeviceFault(
        "ML570", (ops.Multiply,), _exceeds_f32, "sums of products of integers are computed in f32, which has not all "
        "integers above 2^24", ANOTHER_DEVICE,
    ),
    DeviceFault(
        "ML571", (ops.VariadicSplit,), lambda node: not isinstance(node.operands[2].node, ops.Constant),
        "a Split into computed lengths may not run", "make the lengths constant (--freeze)",
    ),
)

FAULTS = {ARM: _ON_ARM, GPU: _ON_GPU}
"""Device -> faults that the check reports: those that a conversion for it alone avoids, and those that are left."""
