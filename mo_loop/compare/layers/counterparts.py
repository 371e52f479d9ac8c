"""The node of the IR that a Loop, Scan, If or SequenceMap of ONNX became."""

from __future__ import annotations

from mo_loop.compare.layers.ir_side import IrFrame
from mo_loop.graph import Graph, Node
from mo_loop.graph.origin import Origin
from mo_loop.ops.control import Control, If, Iteration


def counterpart(
    ir: IrFrame, origin: Origin, kind: type[Control], *, several: bool = False
) -> tuple[IrFrame, Control] | None:
    """A node that was not driven yet, with its frame: `ir`, the branches taken in it, or a frame around it.

    With `several` it is a loop with several steps in each iteration, else one with one.

    A loop can be in a branch of an If that the conversion made for it: then the If is entered.
    """
    frame: IrFrame | None = ir
    while frame is not None:
        found = _in_frame(frame, origin, kind, several)
        if found is not None:
            return found
        frame = frame.outer
    return None


def _in_frame(
    frame: IrFrame, origin: Origin, kind: type[Control], several: bool
) -> tuple[IrFrame, Control] | None:
    guards = []
    for node in sorted(frame.side.controls(frame.graph), key=lambda each: _rank(each, origin)):
        if node in frame.driven or not is_for(node, origin):
            continue
        if isinstance(node, kind) and _has_steps(node, several):
            return frame, node
        if isinstance(node, If) and any(_holds(body, origin, kind, several) for body in node.bodies):
            guards.append(node)
    for branch in (*map(frame.enter, guards), *frame.branches.values()):
        found = _in_frame(branch, origin, kind, several)
        if found is not None:
            return found
    return None


def loops_for(graph: Graph, origin: Origin) -> int:
    """The number of loops that were made for an ONNX node."""
    nodes = (node for each in graph.scopes() for node in each.nodes_with_bodies())
    return sum(isinstance(node, Iteration) and is_for(node, origin) for node in nodes)


def is_for(node: Node, origin: Origin) -> bool:
    """Whether a layer was made for an ONNX node."""
    return any(each.scope == origin.scope and each.node == origin.node for each in node.origins)


def _rank(node: Node, origin: Origin) -> int:
    """The place of an origin among those of a node: its own comes first, merged ones follow."""
    own = (place for place, each in enumerate(node.origins) if each[:2] == origin[:2])
    return next(own, len(node.origins))


def _holds(graph: Graph, origin: Origin, kind: type[Control], several: bool) -> bool:
    """Whether a graph or a body in it has a node of the kind for an ONNX node."""
    nodes = (node for each in graph.scopes() for node in each.nodes_with_bodies())
    return any(isinstance(node, kind) and _has_steps(node, several) and is_for(node, origin) for node in nodes)


def _has_steps(node: Control, several: bool) -> bool:
    """Whether an iteration is one of the model, or has several."""
    return not isinstance(node, Iteration) or (node.steps > 1) == several
