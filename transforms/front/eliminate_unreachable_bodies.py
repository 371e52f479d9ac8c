"""Bodies that are never executed: their condition is known, or they read an element of an empty sequence."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.ops.control import Control, If, Loop
from mo_loop.ops.port_map import Final, Merged
from mo_loop.ops.sequences import OptionalGetElement
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.port_maps import take_branch
from mo_loop.transforms.replace import drop_dead, replace_node, replace_output

READING = (ops.SequenceAt, ops.ConcatFromSequence, OptionalGetElement)


class EliminateUnreachableBodies(FunctionPass):
    """If(c, then: s[0], else: x) with s = []  ->  x     a loop whose body reads s[0]  ->  its initial values

    No inference that succeeds executes such a body. An If with a known condition becomes its branch.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for node in self.candidates(graph, Control):
            dead = _never_taken(node) or [_reads_empty_sequence(body) for body in node.bodies]
            if not any(dead):
                continue
            if isinstance(node, If):
                changed = self._take_other_branch(node, dead) or changed
            elif isinstance(node, Loop):
                changed = self._drop(node) or changed
        return changed

    def _take_other_branch(self, node: If, dead: list[bool]) -> bool:
        if all(dead):
            return self.refuse(node, "both branches read an element of an empty sequence")
        take_branch(node, taken=not dead[0])
        return self.accept(node)

    def _drop(self, node: Loop) -> bool:
        pairs = list(zip(node.output_map, node.outputs, strict=True))
        collected = _lists_of([output for entry, output in pairs if not isinstance(entry, Final)])
        if collected is None:
            return self.refuse(node, "the shape of a concatenated output is unknown")
        for each in collected:
            replace_node(each, ops.SequenceEmpty(graph=node.graph, dtype=each.dtype))
        initial = {entry.result: value for entry, value in node.fed if isinstance(entry, Merged)}
        for entry, output in pairs:
            if isinstance(entry, Final):
                replace_output(output, initial[entry.result])
        drop_dead([node])
        return self.accept(node)


def _lists_of(outputs: list[Value]) -> list[ops.StackedSequence] | None:
    """The sequences that some tensors become, also after a change of shape; None if they are used otherwise."""
    found: dict[ops.StackedSequence, None] = {}
    pending = list(outputs)
    while pending:
        for use in pending.pop().uses:
            if isinstance(use.node, ops.StackedSequence) and use.node.dtype is not None:
                found[use.node] = None
            elif isinstance(use.node, ops.ShapeOf | ops.Gather | ops.Multiply | ops.Concat | ops.Reshape):
                pending.extend(use.node.outputs)
            else:
                return None
    return list(found)


def _never_taken(node: Control) -> list[bool]:
    """For each branch of an If whether its condition excludes it; empty for other nodes and for unknown conditions.

    The outputs have the types of the branch that is taken, not those of the other branch. The runtime
    evaluates an If of constants when it compiles the model, and has no memory for its outputs.
    """
    if not isinstance(node, If):
        return []
    condition = node.operands[0]
    known = condition.type.integers
    return [] if known is None else [not known[0], bool(known[0])]


def _reads_empty_sequence(body: Graph) -> bool:
    return any(_is_empty(node.inputs[0]) for kind in READING for node in body.of(kind))


def _is_empty(value: Value | None) -> bool:
    type_ = None if value is None else value.type
    return bool(getattr(type_, "is_empty", False)) or getattr(type_, "present", None) is False
