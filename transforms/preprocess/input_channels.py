"""--mean-values, --scale-values and --scale: arithmetic of an input with one number for each channel;
--reverse-input-channels, which is merged into the weights of the convolutions that read the channels:

    gather(x, [2, 1, 0], 1) - mean  ->  convolution with W
    x - mean[[2, 1, 0]]             ->  convolution with W[:, [2, 1, 0]]

Let y[c] = x[p[c]] be the Gather and q the inverse of p. The Gather moves towards the outputs, past operations that
treat all channels equally and operations with a constant per channel, where k[c] becomes k[q[c]]. It ends in
convolutions, which sum over channels: W[o, c] becomes W[o, q[c]]. A depthwise convolution has one filter per channel,
so its output keeps the order, in groups, and the Gather moves on. Every path has to end in a convolution, otherwise
nothing is changed.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from mo_loop.errors import UsageError
from mo_loop.graph import ArrayTensor, now
from mo_loop.preprocessing import BRACKETS, PerInput, layout_of
from mo_loop.transforms.preprocess import inputs
from mo_loop.transforms.replace import drop_dead, supersede
from mo_loop.transforms.vocabulary import Constant, F, FunctionPass, Graph, Identity, Node, Parameter, Use, Value, ops

Values = tuple[float, ...]


class ChannelValues(FunctionPass):
    """x  ->  x op values, with one value for each channel, or one for all

    It is computed in the element type of the input, which must be a floating-point type: with integers the subtraction
    of a mean would round, and the model itself converts the input later.
    """

    bodies = "never"

    operation: ClassVar[type[ops.Binary]]
    neutral: ClassVar[float]
    """The number that changes nothing."""
    step: ClassVar[str]
    """The name in the model's rt_info; with dashes, the flag."""

    def __init__(self, values: PerInput[Values] | Mapping[str, Sequence[float]] | None) -> None:
        self._flag = f"--{self.step.replace('_', '-')}"
        if isinstance(values, Mapping):
            values = PerInput.of(values, BRACKETS, tuple, self._flag)
        self._values: PerInput[Values] | None = values

    def run_on_graph(self, graph: Graph) -> bool:
        asked = [(each, values) for each, values in self.wanted(graph) if any(v != self.neutral for v in values)]
        if not asked:
            raise UsageError(f"{self._flag} changes nothing: every value is {self.neutral:g}")
        if not any(parameter.output.is_used for parameter, _ in asked):
            names = ", ".join(parameter.name for parameter, _ in asked)
            raise UsageError(f"{self._flag} changes nothing: no output depends on {names}")
        changed = False
        for parameter, values in asked:
            if not inputs.is_done(graph, self.step, parameter.name):
                changed = self._put(parameter, values)
        return changed

    def wanted(self, graph: Graph) -> list[tuple[Parameter, Values]]:
        """The inputs and their values."""
        assert self._values is not None
        return inputs.values_by_input(graph, self._values)

    def _put(self, parameter: Parameter, values: Values) -> bool:
        constant = self._constant(parameter, values)
        name = f"{parameter.name}/{self.step}"
        inputs.put_after(parameter, lambda x: self.operation(x, constant, name=name))
        inputs.mark_done(parameter.graph, self.step, parameter.name, ",".join(f"{value:.9g}" for value in values))
        return self.accept(parameter)

    def _constant(self, parameter: Parameter, values: Values) -> np.ndarray:
        """The values as a constant that broadcasts to the input: a scalar, or along the channels."""
        type_ = parameter.output.type
        if type_.dtype is None or not type_.dtype.is_float:
            raise UsageError(
                f"{self._flag}: the input {parameter.name!r} is of {type_}, not of floating-point numbers",
                hint=f"change its type, if the model allows it: --input '{parameter.name}{{f32}}'",
            )
        with np.errstate(over="ignore"):  # an overflow raises the error below
            found = np.array(values, np.float64).astype(type_.dtype.numpy)
        if not np.all(np.isfinite(found)) or np.any((found == 0) != (np.array(values) == 0)):
            raise UsageError(f"{self._flag}: {type_.dtype}, the type of {parameter.name!r}, cannot hold the values")
        if len(values) == 1:
            return found.reshape(())
        axis = inputs.channel_axis(parameter, len(values), self._flag)
        inputs.narrow(parameter, axis, len(values))
        return found.reshape([len(values) if each == axis else 1 for each in range(len(type_.dims))])


class SubtractMean(ChannelValues):
    """x  ->  x - mean"""

    operation = ops.Subtract
    neutral = 0.0
    step = "mean_values"


class DivideByScale(ChannelValues):
    """x  ->  x / scale"""

    operation = ops.Divide
    neutral = 1.0
    step = "scale_values"

    def __init__(
        self, values: PerInput[Values] | Mapping[str, Sequence[float]] | None = None, scale: float | None = None
    ) -> None:
        """Either `values` of some inputs, or one `scale` for every input of floating-point numbers."""
        super().__init__(values)
        self._scale = scale

    def wanted(self, graph: Graph) -> list[tuple[Parameter, Values]]:
        if self._scale is None:
            return super().wanted(graph)
        found = inputs.inputs_of(graph)
        floats = [each for each in found if each.output.dtype is not None and each.output.dtype.is_float]
        if not floats:
            raise UsageError("--scale changes nothing: no input is of floating-point numbers")
        return [(parameter, (self._scale,)) for parameter in floats]


FLAG = "--reverse-input-channels"
STEP = "reverse_input_channels"
CHANNELS = 3


class ReverseChannels(FunctionPass):
    """x  ->  gather(x, [2, 1, 0], C): RGB <-> BGR

    For every input with three channels: its layout has them, or it has no layout and four dimensions, of which exactly
    one after the first is 3.
    """

    bodies = "never"

    def run_on_graph(self, graph: Graph) -> bool:
        found = [(parameter, axis) for parameter in graph.parameters for axis in _channels(parameter)]
        if not found:
            raise UsageError(
                f"{FLAG} changes nothing: no input is known to have 3 channels",
                hint="that is an input of four dimensions, one of them 3; for others give it: --layout 'name(nhwc)'",
            )
        changed = False
        for parameter, axis in found:
            if inputs.is_done(graph, STEP, parameter.name):
                continue
            inputs.narrow(parameter, axis, CHANNELS)
            inputs.put_after(parameter, partial(_reversed, axis=axis, name=f"{parameter.name}/{STEP}"))
            inputs.mark_done(graph, STEP, parameter.name, axis)
            changed = self.accept(parameter)
        return changed


def _reversed(x: Value, axis: int, name: str) -> Node:
    return ops.Gather(x, np.arange(CHANNELS, dtype=np.int64)[::-1].copy(), axis, name=name)


def _channels(parameter: Parameter) -> list[int]:
    """The axis of the three channels, or nothing. UsageError where two dimensions could be them."""
    type_ = parameter.output.type
    if type_.shape is None:
        return []
    layout = layout_of(parameter.output)
    if layout is not None:
        axis = layout.axis("C", len(type_.shape))
        return [axis] if axis is not None and now(type_.shape[axis]) in (None, CHANNELS) else []
    axes = inputs.axes_of_size(type_, CHANNELS) if len(type_.shape) == 4 else []
    if len(axes) > 1:
        raise UsageError(
            f"{FLAG}: {len(axes)} dimensions of the input {parameter.name!r} are {CHANNELS}: {type_}",
            hint=f"name the channels: --layout '{parameter.name}(nchw)', or (????) if it is not an image",
        )
    return axes


LIMIT = 256
"""The order is followed through at most this number of values."""

CHANNEL = 1
"""The axis of the channels in the input of a convolution."""


class Ordered(NamedTuple):
    """A value whose channels along `axis` must come in the order `order`: wanted[c] = value[order[c]]."""

    value: Value
    axis: int
    order: np.ndarray[Any, Any]


@dataclass
class ChannelMerge:
    """The constants to replace: input `port` of a node, with the new values.

    `refused` is the reason if the order cannot be merged.
    """

    changes: list[tuple[Node, int, np.ndarray[Any, Any]]] = field(default_factory=list)
    refused: str = ""


class MergeChannelOrder(FunctionPass):
    """convolution(gather(x, [2, 1, 0], 1), W)  ->  convolution(x, W[:, [2, 1, 0]])

    Also past element-wise operations, Transpose, Pad and depthwise convolutions. Weights must be Constants; computed
    weights, such as quantised ones, stay, and so does the Gather. OpenVINO has ReverseInputChannelsFusion for this
    purpose.
    """

    bodies = "never"

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, ops.Gather, self._merge)

    def _merge(self, gather: ops.Gather) -> bool:
        start = _order_of(gather)
        if start is None:
            return self.refuse(gather, "it is not a constant permutation of all channels")
        plan = planned(start)
        if plan.refused:
            return self.refuse(gather, plan.refused)
        for node, port, array in plan.changes:
            old: Any = node.inputs[port]
            new = F.Constant(ArrayTensor(array, old.dtype), graph=gather.graph, name=old.node.name)
            gather.graph.set_input(node, port, new)
            drop_dead([old.node])
        assert gather.inputs[0] is not None
        supersede(gather, gather.inputs[0])
        return self.accept(gather)


def _order_of(gather: ops.Gather) -> Ordered | None:
    """The order of a Gather that only permutes channels, else None."""
    x, indices, axis = gather.operands
    where, order = axis.type.integers, indices.type.integers
    if gather.batch_dims or where is None or order is None or x.shape is None or indices.rank != 1:
        return None
    at = where[0] % len(x.shape)
    if sorted(order) != list(range(len(order))) or x.shape[at] != len(order):
        return None
    return Ordered(gather.output, at, np.array(order, np.int64))


def planned(start: Ordered) -> ChannelMerge:
    """The changes that move the order into the weights."""
    plan = ChannelMerge()
    pending, seen = [start], 0
    while pending and not plan.refused:
        at = pending.pop()
        seen += 1
        if seen > LIMIT:
            plan.refused = "more than 256 values depend on the channels"
        for use in at.value.uses:
            if not plan.refused:
                pending += _passed(use, at, plan)
    if not plan.changes and not plan.refused:
        plan.refused = "no convolution reads the channels"
    return plan


def _passed(use: Use, at: Ordered, plan: ChannelMerge) -> list[Ordered]:
    """One reader of ordered channels: its output and the order of the channels there."""
    node = use.node
    if isinstance(node, ops.GroupConvolution) and use.port == 0:
        return _grouped(node, at, plan)
    if type(node) is ops.Convolution and use.port == 0:
        return _absorbed(node, at, CHANNEL, plan)
    if isinstance(node, ops.Unary | Identity | ops.Convert | ops.Transpose) and at.axis in node.axis_map(use.port):
        return [at._replace(value=node.output, axis=node.axis_map(use.port).index(at.axis))]
    if isinstance(node, ops.Binary):
        return _with_constant(node, 1 - use.port, at, plan)
    pads = [node.integers(name) for name in ("begin", "end")] if isinstance(node, ops.Pad) and not use.port else []
    if pads and all(each and each[at.axis] == 0 for each in pads):
        return [at._replace(value=node.output)]
    plan.refused = f"{node.path} depends on the order of the channels"
    return []


def _absorbed(node: Node, at: Ordered, weight_axis: int, plan: ChannelMerge) -> list[Ordered]:
    """A convolution sums over the channels: its output does not depend on their order."""
    weights = _plain(node, 1, plan)
    if at.axis != CHANNEL:
        plan.refused = f"{node.path} has its channels in another dimension"
    if not plan.refused:
        assert weights is not None
        plan.changes.append((node, 1, np.take(weights.array, np.argsort(at.order), weight_axis)))
    return []


def _grouped(node: ops.GroupConvolution, at: Ordered, plan: ChannelMerge) -> list[Ordered]:
    """Filters are [groups, outputs, channels of a group, ...]; groups of one channel keep the order."""
    weights = _plain(node, 1, plan)
    if weights is None:
        return []
    groups, outputs, channels = weights.tensor.shape[:3]
    if groups == 1:
        return _absorbed(node, at, 2, plan)
    if channels != 1 or at.axis != CHANNEL:
        plan.refused = f"{node.path} mixes the channels in groups"
        return []
    plan.changes.append((node, 1, np.take(weights.array, np.argsort(at.order), 0)))
    order = (at.order[:, None] * outputs + np.arange(outputs)).reshape(-1)
    return [Ordered(node.output, CHANNEL, order)]


def _with_constant(node: ops.Binary, port: int, at: Ordered, plan: ChannelMerge) -> list[Ordered]:
    """An element-wise operation with a constant that has one value per channel or one for all."""
    constant = _plain(node, port, plan)
    if constant is None:
        return []
    rank, shape = at.value.rank, constant.tensor.shape
    assert rank is not None
    axis = at.axis - rank + len(shape)
    following = [at._replace(value=node.output)]
    if len(shape) > rank:
        plan.refused = f"{node.path} adds a dimension"
    elif axis >= 0 and shape[axis] == len(at.order):
        plan.changes.append((node, port, np.take(constant.array, np.argsort(at.order), axis)))
    return following if not plan.refused else []


def _plain(node: Node, port: int, plan: ChannelMerge) -> Constant | None:
    """The Constant at a port; None, and the plan is refused, if there is none."""
    value = node.inputs[port]
    if value is not None and isinstance(value.node, Constant):
        return value.node
    plan.refused = plan.refused or f"{node.path} has no Constant as its other input"
    return None
