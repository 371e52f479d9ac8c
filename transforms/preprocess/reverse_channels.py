"""--reverse-input-channels."""

from __future__ import annotations

from functools import partial

import numpy as np

from mo_loop import ops
from mo_loop.errors import UsageError
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.dimension import now
from mo_loop.graph.types import TensorType
from mo_loop.ops.base import Parameter
from mo_loop.preprocessing.layout import layout_of
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.preprocess.inputs import axes_of_size, is_done, mark_done, narrow, put_behind

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
            if is_done(graph, STEP, parameter.name):
                continue
            narrow(parameter, axis, CHANNELS)
            put_behind(parameter, partial(_reversed, axis=axis, name=f"{parameter.name}/{STEP}"))
            mark_done(graph, STEP, parameter.name, axis)
            changed = self.accept(parameter)
        return changed


def _reversed(x: Value, axis: int, name: str) -> Node:
    return ops.Gather(x, np.arange(CHANNELS, dtype=np.int64)[::-1].copy(), axis, name=name)


def _channels(parameter: Parameter) -> list[int]:
    """The axis of the three channels, or nothing. UsageError where two dimensions could be them."""
    type_ = parameter.output.type
    if not isinstance(type_, TensorType) or type_.shape is None:
        return []
    layout = layout_of(parameter.output)
    if layout is not None:
        axis = layout.axis("C", len(type_.shape))
        return [axis] if axis is not None and now(type_.shape[axis]) in (None, CHANNELS) else []
    axes = axes_of_size(type_, CHANNELS) if len(type_.shape) == 4 else []
    if len(axes) > 1:
        raise UsageError(
            f"{FLAG}: {len(axes)} dimensions of the input {parameter.name!r} are {CHANNELS}: {type_}",
            hint=f"name the channels: --layout '{parameter.name}(nchw)', or (????) if it is not an image",
        )
    return axes
