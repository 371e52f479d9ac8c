"""The parts of an IR that were made for a node of the ONNX model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np

from mo_loop.compare.layers.heat import Distance, distance
from mo_loop.compare.layers.ir_side import IrFrame, IrSide, Key
from mo_loop.compare.layers.onnx_side import OnnxFrame
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.origin import Origin
from mo_loop.ops.base import Constant, Parameter
from mo_loop.ops.control import Control, If

Wanted = Callable[[Control], bool]


def counterpart(ir: IrFrame, origin: Origin, wanted: Wanted) -> tuple[IrFrame, Any] | None:
    """A wanted node that was not driven yet, with its frame: `ir`, the branches taken in it, or a frame around it.

    It can be in a branch of an If that the conversion made for it: then the If is entered.
    """
    frame: IrFrame | None = ir
    while frame is not None:
        found = _in_frame(frame, origin, wanted)
        if found is not None:
            return found
        frame = frame.outer
    return None


def _in_frame(frame: IrFrame, origin: Origin, wanted: Wanted) -> tuple[IrFrame, Control] | None:
    def rank(node: Node) -> int:
        """The place of the origin among those of a node: its own comes first, merged ones follow."""
        return next(place for place, each in enumerate(node.origins) if each[:2] == origin[:2])

    controls: list[Any] = frame.side.controls(frame.graph)
    nodes = [node for node in controls if is_for(node, origin) and node not in frame.driven]
    guards = []
    for node in sorted(nodes, key=rank):
        if wanted(node):
            return frame, node
        if isinstance(node, If) and any(wanted(each) for body in node.bodies for each in controls_for(body, origin)):
            guards.append(node)
    branches = (*map(frame.enter, guards), *frame.branches.values())
    found = (_in_frame(branch, origin, wanted) for branch in branches)
    return next((each for each in found if each is not None), None)


def controls_for(graph: Graph, origin: Origin) -> Iterator[Control]:
    """The nodes with bodies that were made for an ONNX node, in a graph and its bodies."""
    nodes: Iterator[Any] = (node for each in graph.scopes() for node in each.nodes_with_bodies())
    return (node for node in nodes if is_for(node, origin))


def is_for(node: Node, origin: Origin) -> bool:
    """Whether a layer was made for an ONNX node."""
    return any(each[:2] == origin[:2] for each in node.origins)


def layers_of(graph: Graph, origin: Origin) -> list[str]:
    """The layers that were made for an ONNX node, without constants."""
    return [
        f"{node.path} ({getattr(node, 'type', type(node).__name__)})"
        for each in graph.scopes()
        for node in each.ordered()
        if not isinstance(node, Constant) and node.outputs and is_for(node, origin)
    ]


def other_weights(
    frame: OnnxFrame, names: Iterable[str], graph: Graph, side: IrSide, tolerances: tuple[float | None, float | None]
) -> Iterator[tuple[Key, Value, Distance]]:
    """The constants of the IR that hold an initializer or Constant node among `names` with other values."""
    for name in names:
        held = frame.constant(name)
        if held is None:
            continue
        key, expected = (held[0].scope, name), held[0].array(name)
        for value in (value for each in graph.scopes() for value in side.index(each).get(key, ())):
            if not isinstance(value.node, Constant) or np.shape(expected) != np.shape(value.node.array):
                continue  # a constant of another shape was prepared for another layer
            found = distance(expected, value.node.array.astype(expected.dtype), *tolerances)
            if found.worst > 1:
                yield key, value, found


def as_element(value: Value, array: Any, expected: Any) -> Any:
    """The array of a body Parameter as the tensor of ONNX.

    A slice has an axis of one element more than the element that Scan gives, and a value that a loop slices or carries
    can have one more leading dimension of 1 (AddLeadingDimension).
    """
    shape, wanted = np.shape(array), np.shape(expected)
    if len(shape) <= len(wanted) or not isinstance(value.node, Parameter):
        return array
    longer = [dim for dim in shape if dim != 1] == [dim for dim in wanted if dim != 1]
    return np.reshape(array, wanted) if longer else array
