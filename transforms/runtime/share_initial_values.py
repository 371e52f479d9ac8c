"""Initial values of variables that grow."""

from __future__ import annotations

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.ops.base import Constant, Parameter
from transforms.function_pass import FunctionPass
from transforms.predicates import consumed_by
from transforms.replace import insert_before


class ShareInitialValues(FunctionPass):
    """ReadValue(0[N,0]) -> Concat(past, new) -> Assign  becomes  Concat(past, new, 0[N,0]) -> Assign

    The runtime makes what computes an initial value a part of its ReadValue if nothing else reads it. If the variable
    grows, such a model does not compile, or a reset keeps the length of the sequence before. The Concat that makes the
    next value reads the initial value, too, which has no elements. Two variables with one initial value need nothing,
    and neither do attention operations that hold their caches.
    """

    bodies = "never"  # variables are in the main graph

    def run_on_graph(self, graph: Graph) -> bool:
        assigned = {node.variable_id: node for node in graph.of(ops.Assign)}
        changed = False
        for node in self.candidates(graph, ops.ReadValue):
            initial = node.inputs[0] if node.inputs else None
            assign = assigned.get(node.variable_id)
            axis = None if initial is None else _empty_axis(initial)
            if initial is None or assign is None or axis is None:
                self.refuse(node, "its initial value is not computed, or has elements")
            elif initial.only_use is None:
                self.refuse(node, "something else reads its initial value")
            else:
                changed = self._share(node, assign, initial, axis) or changed
        return changed

    def _share(self, node: ops.ReadValue, assign: ops.Assign, initial: Value, axis: int) -> bool:
        value = assign.inputs[0]
        assert value is not None
        source = value.node
        if isinstance(source, ops.Concat) and source.axis % len(value.type.dims) == axis:
            if _reaches_attention(value):
                return self.refuse(node, "an attention operation holds it")
            node.graph.set_inputs(source, [*source.inputs, _hidden(initial, axis)])
        else:
            insert_before(assign, 0, lambda value: ops.Concat(value, _hidden(initial, axis), axis=axis))
        return self.accept(node)


def _reaches_attention(cache: Value) -> bool:
    """Whether attention reads it, also among others, directly or through what repeats and moves its heads."""
    is_read = consumed_by(ops.ScaledDotProductAttention)
    reached, pending = {cache}, [cache]
    while pending:
        value = pending.pop()
        if is_read(value):
            return True
        moving = (ops.Unsqueeze, ops.Broadcast, ops.Multiply, ops.Reshape, ops.Transpose)
        new = [use.node.outputs[0] for use in value.uses if isinstance(use.node, moving)]
        pending += [each for each in dict.fromkeys(new) if each not in reached]
        reached.update(new)
    return False


def _hidden(initial: Value, axis: int) -> Value:
    """The initial value; the runtime would remove an input that it knows to be empty."""
    dims = initial.shape
    is_known = dims is not None and isinstance(dims[axis], int)
    return ops.Barrier(initial, hides="bounds", axes=(axis,)).output if is_known else initial


def _empty_axis(initial: Value) -> int | None:
    """The axis along which a computed value has no elements: of size 0, or of one that is 0 when it is computed."""
    node = initial.node
    if isinstance(node, Constant | Parameter) or initial.shape is None:
        return None
    known = next((axis for axis, dim in enumerate(initial.shape) if isinstance(dim, int) and dim == 0), None)
    if known is not None or not isinstance(node, ops.Broadcast):
        return known
    axis = 0
    sizes = node.inputs[1]
    for part in sizes.node.inputs if sizes is not None and isinstance(sizes.node, ops.Concat) else ():
        if part is None or part.shape is None or not isinstance(part.shape[0], int):
            return None
        if isinstance(part.node, ops.Divide) and _is_huge(part.node.inputs[1]):
            return axis
        axis += part.shape[0]
    return None


def _is_huge(value: Value | None) -> bool:
    """Whether sizes divided by it are 0 (transforms/states/initial.py)."""
    from transforms.states.initial import HUGE  # conversions without variables do not load it

    return value is not None and value.type.integers == (HUGE,)
