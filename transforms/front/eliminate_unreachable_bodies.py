"""Bodies that no run goes through: they read an element of a sequence that is always empty, or are decided against."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.ops.control import Control, Final, If, Loop, Merged
from mo_loop.ops.sequences import OptionalGetElement
from transforms.function_pass import FunctionPass
from transforms.replace import drop_dead, replace_node, replace_output

READING = (ops.SequenceAt, ops.ConcatFromSequence, OptionalGetElement)


class EliminateUnreachableBodies(FunctionPass):
    """If(c, then: s[0], else: x) with s = []  ->  x     a loop whose body reads s[0]  ->  its initial values

    No run that succeeds goes through such a body. An If whose condition is known becomes its branch.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for node in self.candidates(graph, Control):
            dead = _never_taken(node) or [_reads_nothing(body) for body in node.bodies]
            if not any(dead):
                continue
            if isinstance(node, If):
                changed = self._settle(node, dead) or changed
            elif isinstance(node, Loop):
                changed = self._drop(node) or changed
        return changed

    def _settle(self, node: If, dead: list[bool]) -> bool:
        if all(dead):
            return self.refuse(node, "both branches read what is not there")
        take_branch(node, taken=not dead[0])
        return self.accept(node)

    def _drop(self, node: Loop) -> bool:
        pairs = list(zip(node.output_map, node.outputs, strict=True))
        collected = _lists_of([output for entry, output in pairs if not isinstance(entry, Final)])
        if collected is None:
            return self.refuse(node, "what it concatenates has a shape that nothing tells")
        for each in collected:
            replace_node(each, ops.SequenceEmpty(graph=node.graph, dtype=each.dtype))
        initial = {entry.result: value for entry, value in node.fed if isinstance(entry, Merged)}
        for entry, output in pairs:
            if isinstance(entry, Final):
                replace_output(output, initial[entry.result])
        drop_dead([node])
        return self.accept(node)


def _lists_of(outputs: list[Value]) -> list[ops.StackedSequence] | None:
    """The lists that some tensors are put in, be it in another shape; None where anything else becomes of them."""
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


def take_branch(node: If, taken: bool) -> None:
    """The nodes of one branch in place of the If."""
    body = node.then_body if taken else node.else_body
    fed: dict[object, Value] = {}
    for entry, value in node.fed:
        fed |= {entry.then: value, entry.else_: value}
    made = node.graph.inline(body, [fed[parameter] for parameter in body.parameters])
    results = dict(zip(body.results, made, strict=True))
    for entry, output in zip(node.output_map, node.outputs, strict=True):
        replace_output(output, results[entry.then if taken else entry.else_])
    node.graph.remove(node)


def _never_taken(node: Control) -> list[bool]:
    """Which branches of an If a known condition rules out; nothing for other nodes.

    Its outputs are typed as those of the branch that is taken, which says nothing of the other. The runtime runs an If
    of constants when it compiles, and has no memory for what it returns.
    """
    if not isinstance(node, If):
        return []
    condition = node.inputs[0]
    assert condition is not None
    known = condition.type.integers
    return [] if known is None else [not known[0], bool(known[0])]


def _reads_nothing(body: Graph) -> bool:
    return any(_is_empty(node.inputs[0]) for kind in READING for node in body.of(kind))


def _is_empty(value: Value | None) -> bool:
    type_ = None if value is None else value.type
    return bool(getattr(type_, "is_empty", False)) or getattr(type_, "present", None) is False
