"""The order of channels, merged into the weights of what reads them.

    gather(x, [2, 1, 0], 1) - mean  ->  convolution with W
    x - mean[[2, 1, 0]]             ->  convolution with W[:, [2, 1, 0]]

Read y[c] = x[p[c]] for the gather. It moves towards the model's outputs through everything that treats channels alike
or with one constant for each, k[c] there becoming k[q[c]] with q the inverse of p, and ends in convolutions, which
sum over channels: W[o, c] becomes W[o, q[c]]. A depthwise convolution has a filter for each channel: it keeps the
order of its input, in groups, and the gather goes on behind it. All ways have to end in convolutions, or nothing is
changed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Node, Use, Value
from mo_loop.graph.tensor import ArrayTensor
from mo_loop.ops.arithmetic import Binary, Unary
from mo_loop.ops.base import Constant, Identity
from transforms.function_pass import FunctionPass
from transforms.replace import drop_dead, replace_output

LIMIT = 256
"""Values that the order is followed through before it is given up."""

CHANNEL = 1
"""The axis of the channels in what a convolution reads."""


class Ordered(NamedTuple):
    """A value whose channels along `axis` are to come in the order `order`: wanted[c] = value[order[c]]."""

    value: Value
    axis: int
    order: np.ndarray[Any, Any]


@dataclass
class Plan:
    """The constants to replace: input `port` of a node, with the new values. `refused` says what stands in the way."""

    changes: list[tuple[Node, int, np.ndarray[Any, Any]]] = field(default_factory=list)
    refused: str = ""


class MergeChannelOrder(FunctionPass):
    """convolution(gather(x, [2, 1, 0], 1), W)  ->  convolution(x, W[:, [2, 1, 0]])

    Also through element-wise operations, transposes, pads and depthwise convolutions; see above. Weights have to be
    plain constants: those that are computed (quantised ones are) stay, and so does the gather.
    """

    bodies = "never"

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, ops.Gather, self._merge)

    def _merge(self, gather: ops.Gather) -> bool:
        start = _order_of(gather)
        if start is None:
            return self.refuse(gather, "it is no constant order of all channels")
        plan = planned(start)
        if plan.refused:
            return self.refuse(gather, plan.refused)
        for node, port, array in plan.changes:
            old: Any = node.inputs[port]
            new = Constant(ArrayTensor(array, old.dtype), graph=gather.graph, name=old.node.name)
            gather.graph.set_input(node, port, new.output)
            drop_dead([old.node])
        assert gather.inputs[0] is not None
        replace_output(gather.output, gather.inputs[0])
        drop_dead([gather])
        return self.accept(gather)


def _order_of(gather: ops.Gather) -> Ordered | None:
    """What a Gather does, if it does nothing but order all channels anew."""
    x, indices, axis = gather.inputs
    assert x is not None and indices is not None and axis is not None
    where, order = axis.type.integers, indices.type.integers
    if gather.batch_dims or where is None or order is None or x.shape is None or indices.rank != 1:
        return None
    at = where[0] % len(x.shape)
    if sorted(order) != list(range(len(order))) or x.shape[at] != len(order):
        return None
    return Ordered(gather.output, at, np.array(order, np.int64))


def planned(start: Ordered) -> Plan:
    """What has to change where, so that the order is in the weights alone."""
    plan = Plan()
    pending, seen = [start], 0
    while pending and not plan.refused:
        at = pending.pop()
        seen += 1
        if seen > LIMIT:
            plan.refused = "the channels go to too many places"
        for use in at.value.uses:
            if not plan.refused:
                pending += _passed(use, at, plan)
    if not plan.changes and not plan.refused:
        plan.refused = "no convolution reads the channels"
    return plan


def _passed(use: Use, at: Ordered, plan: Plan) -> list[Ordered]:
    """One reader of ordered channels: what it makes of them, where they are in order again."""
    node = use.node
    if isinstance(node, ops.GroupConvolution) and use.port == 0:
        return _grouped(node, at, plan)
    if type(node) is ops.Convolution and use.port == 0:
        return _absorbed(node, at, CHANNEL, plan)
    if isinstance(node, Unary | Identity | ops.Convert) and len(node.inputs) == 1:
        return [at._replace(value=node.output)]
    if isinstance(node, Binary):
        return _with_constant(node, 1 - use.port, at, plan)
    if isinstance(node, ops.Transpose | ops.Pad) and use.port == 0:
        counts = [value.type.integers for value in node.inputs[1:3] if value is not None]
        if isinstance(node, ops.Transpose) and counts[0]:
            return [at._replace(value=node.output, axis=counts[0].index(at.axis))]
        if isinstance(node, ops.Pad) and all(each and each[at.axis] == 0 for each in counts):
            return [at._replace(value=node.output)]
    plan.refused = f"{node.path} reads the channels as well"
    return []


def _absorbed(node: Node, at: Ordered, weight_axis: int, plan: Plan) -> list[Ordered]:
    """A convolution sums over the channels: nothing is left of their order behind it."""
    weights = _plain(node, 1, plan)
    if at.axis != CHANNEL:
        plan.refused = f"{node.path} has its channels in another dimension"
    if not plan.refused:
        assert weights is not None
        plan.changes.append((node, 1, np.take(weights.array, np.argsort(at.order), weight_axis)))
    return []


def _grouped(node: ops.GroupConvolution, at: Ordered, plan: Plan) -> list[Ordered]:
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


def _with_constant(node: Binary, port: int, at: Ordered, plan: Plan) -> list[Ordered]:
    """An element-wise operation with a constant, which has one value for each channel or one for all."""
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


def _plain(node: Node, port: int, plan: Plan) -> Constant | None:
    """The Constant at a port; without one the order cannot be merged."""
    value = node.inputs[port]
    if value is not None and isinstance(value.node, Constant):
        return value.node
    plan.refused = plan.refused or f"{node.path} reads no plain constant beside the channels"
    return None
