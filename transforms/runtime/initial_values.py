"""Initial values of variables that the runtime shares, overwrites or does not compile."""

from collections.abc import Iterator

import numpy as np

from mo_loop.graph.types import i64
from mo_loop.support.traversal import reached
from mo_loop.target import ERROR, NEVER, Processor
from mo_loop.transforms.predicates import consumed_by
from mo_loop.transforms.replace import insert_before
from mo_loop.transforms.runtime.inference import is_in_place
from mo_loop.transforms.vocabulary import (
    F,
    FunctionPass,
    Gap,
    Graph,
    Node,
    Use,
    Value,
    is_static,
    node_pass,
    ops,
    source_of,
)

GIVEN = (ops.Constant, ops.Parameter)
"""Nodes whose values are not computed."""


class ShareInitialValues(FunctionPass):
    """ReadValue(0[N,0]) -> Concat(past, new) -> Assign  becomes  Concat(past, new, 0[N,0]) -> Assign
       ReadValue(first) -> Concat(past, new) -> Assign  becomes  Concat(past, new, first[:, :0]) -> Assign

    The runtime makes the nodes that compute an initial value a part of its ReadValue if nothing else reads it. So the
    Concat that makes the next value reads the initial value, too, or an empty slice of it if it may have elements. Two
    variables with one initial value need nothing, and neither do attention operations that hold their caches.
    """

    instead = "no elements of the initial value are an input of a `Concat` before the `Assign`"
    avoids = (
        Gap(
            "initial-value-of-one-variable",
            "a variable that grows and alone reads its computed initial value does not compile, or keeps its length "
            "at a reset",
            "the initial value, without elements, is an input of the `Concat` as well", ERROR, since="2025.0.0",
        ),
        Gap(
            "initial-rows-of-one-variable",
            "if a variable that grows alone reads its computed initial value, which has elements, the variable has "
            "another shape after a reset, or the inference fails", since="2025.0.0",
        ),
        Gap(
            "initial-value-read-late",
            "a variable that alone reads its computed initial value, and whose next value does not depend on all "
            "of its readers, has this next value already after some resets", since="2025.0.0",
        ),
    )

    bodies = "never"  # variables are in the main graph

    def run_on_graph(self, graph: Graph) -> bool:
        assigned = {node.variable_id: node for node in graph.of(ops.Assign)}
        changed = False
        for node in self.candidates(graph, ops.ReadValue):
            initial = node.inputs[0] if node.inputs else None
            assign = assigned.get(node.variable_id)
            if initial is None or assign is None or isinstance(initial.node, GIVEN):
                self.refuse(node, "its initial value is not computed")
            elif initial.only_use is None:
                self.refuse(node, "something else reads its initial value")
            else:
                changed = self._share(node, assign, initial) or changed
        return changed

    def _share(self, node: ops.ReadValue, assign: ops.Assign, initial: Value) -> bool:
        value = assign.operands[0]
        axis = _empty_axis(initial)
        axes = _growing(node, initial, value) if axis is None else [axis]
        if not axes and not _may_be_read_later(node, value):
            return self.refuse(node, "it does not grow, and is read before its next value is computed")
        source = source_of(value, ops.Convert).node
        if isinstance(source, ops.Concat) and _reaches_attention(source.output):
            return self.refuse(node, "an attention operation holds it")
        if len(axes) != 1:
            insert_before(assign, 0, lambda value: _appended_flat(value, initial))
        elif isinstance(source, ops.Concat) and source.axis % len(value.type.dims) == axes[0]:
            nothing = _nothing_of(initial, axes[0]).astype(source.output.dtype)
            node.graph.set_inputs(source, [*source.inputs, nothing])
        else:
            insert_before(assign, 0, lambda value: ops.Concat(value, _nothing_of(initial, axes[0]), axis=axes[0]))
        return self.accept(node)


def _growing(node: ops.ReadValue, initial: Value, value: Value) -> list[int]:
    """The axes along which the next value may have another size than the initial one.

    A Barrier that MakeAssignedShapesDynamic has put after the value hides its sizes.
    """
    value = source_of(value, ops.Barrier)
    if initial.shape is None or value.shape is None:
        return []
    sizes = enumerate(zip(node.variable_shape, initial.shape, value.shape, strict=True))
    return [axis for axis, (stored, first, next_) in sizes if not isinstance(stored, int) and first != next_]


def _may_be_read_later(node: ops.ReadValue, value: Value) -> bool:
    """Whether a node on which the next value does not depend reads the variable, or a view of it."""
    before = {value.node, *node.graph.ancestors([value.node])}
    reached = [node.output]
    for each in reached:
        for reader, _ in each.uses:
            if reader not in before and not isinstance(reader, ops.ShapeOf):
                return True
            copies = isinstance(reader, ops.Concat) and not is_static(reader.output.shape)
            if (is_in_place(reader) and not copies) or isinstance(reader, ops.Convert):
                reached += reader.outputs
    return False


def _appended_flat(value: Value, initial: Value) -> Node:
    """The value with nothing appended to all its elements, where not just one of its sizes changes."""
    flat, first = (each.reshape([-1]) for each in (value, initial))
    return ops.Reshape(F.Concat(flat, _nothing_of(first, 0), axis=0), value.sizes)


def _reaches_attention(cache: Value) -> bool:
    """Whether attention reads it, directly or through operations that repeat and move its heads."""
    is_read = consumed_by(ops.ScaledDotProductAttention)
    moving = (ops.View, ops.Broadcast, ops.Multiply, ops.Transpose)
    return any(map(is_read, reached(
        [cache], lambda value: [use.node.outputs[0] for use in value.uses if isinstance(use.node, moving)]
    )))


def _nothing_of(initial: Value, axis: int) -> Value:
    """No elements of the initial value along an axis. The runtime would remove an input that it knows to be empty."""
    if _empty_axis(initial) != axis:
        none = F.Constant(np.zeros(1, np.int64), graph=initial.graph, dtype=i64)
        return F.Slice(initial, [0], F.Barrier(none, hides="value"), [1], [axis])
    if not isinstance(initial.type.dims[axis], int):
        return initial
    # A Barrier of a size of 0 would not read the initial value; a Tile by an unknown number does.
    once = F.Constant(np.ones(initial.type.rank, np.int64), graph=initial.graph, dtype=i64)
    return F.Tile(initial, F.Barrier(once, hides="value"))


def _empty_axis(initial: Value) -> int | None:
    """The axis along which a computed value has no elements: of size 0, or of one that is 0 when it is computed."""
    node = source_of(initial, ops.Convert).node
    if isinstance(node, GIVEN) or initial.shape is None:
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
    """Whether sizes divided by it are 0 (transforms/states/rewriting.py)."""
    from mo_loop.transforms.states.rewriting import HUGE  # conversions without variables do not load it

    return value is not None and value.type.integers == (HUGE,)


@node_pass(
    (ops.ReadValue,), "`Reshape` to its own shape, or a copy, between them",
    Gap(
        "concatenation-with-variable",
        "a concatenation with a variable whose initial value is computed does not compile (\"Invalid graph status\")",
        severity=ERROR, since="2025.0.0",
    ),
    bodies="never",
)
def SeparateReadValues(node: ops.ReadValue) -> str:
    """Concat(ReadValue(x), y)  ->  Concat(Reshape(ReadValue(x), [0, 0, ..]), y)     if x is computed

    The runtime computes x inside the ReadValue if nothing else reads it. The Reshape copies nothing. Of a variable with
    one unknown size the runtime would remove it: there a Barrier, which copies, separates the two.
    """
    initial = node.inputs[0] if node.inputs else None
    if initial is None or isinstance(initial.node, GIVEN):
        return "its initial value is not computed"
    if initial.only_use is None:
        return "something else reads its initial value"
    readers = list(_concats(node.output))
    rank = node.output.rank
    if not readers or not rank:
        return "no Concat reads it"
    unknown = sum(not isinstance(dim, int) for dim in node.output.type.dims)
    for reader, port in readers:
        if unknown > 1:
            insert_before(reader, port, lambda value: ops.Reshape(value, [0] * rank, special_zero=True))
        else:
            insert_before(reader, port, lambda value: ops.Barrier(value, hides="memory"))
    return ""


def _concats(value: Value) -> Iterator[Use]:
    """The ports of Concats that read a value, or conversions of it."""
    for use in value.uses:
        if isinstance(use.node, ops.Concat):
            yield use
        elif isinstance(use.node, ops.Convert):
            yield from _concats(use.node.output)


class CopyInitialConstants(FunctionPass):
    """ReadValue(f(x, c)), ReadValue(g(x, c)), h(c)  ->  ReadValue(f(x, copy of c)), ReadValue(g(x, copy of c)), h(c)

    The runtime computes an initial value inside its ReadValue if nothing else reads it. A constant that other nodes
    read too is then an input of the ReadValue: its size is unknown there, or the runtime fails when it describes the
    memory a second time.
    """

    instead = "each initial value reads a constant of its own"
    avoids = (
        Gap(
            "constant-of-initial-values",
            "two variables whose computed initial values read one constant: the inference fails (\"Cannot get dims "
            "for non static shape\"), or the process ends", severity=ERROR, since="2025.0.0",
        ),
        Gap(
            "state-of-recurrent-layer",
            "a state of an `RNNSequence` or a `GRUSequence` whose computed initial value reads a constant that other "
            "operations read: the inference fails (\"Memory descriptor may not be modified\")",
            severity=ERROR, since="2025.4.1", on={Processor.AVX512_CORE: NEVER, Processor.AVX2: NEVER},
        ),
    )

    bodies = "never"  # variables are in the main graph
    kinds = (ops.ReadValue,)

    def rewrite(self, read: ops.ReadValue) -> bool:
        inside = dict.fromkeys(_inside(read))
        copies: dict[Value, Value] = {}
        for node in inside:
            for port, value in enumerate(node.inputs):
                if value is None or not isinstance(value.node, ops.Constant):
                    continue
                if value not in copies:
                    if all(use.node in inside for use in value.uses):
                        continue
                    copies[value] = F.Constant(value.node.tensor, graph=read.graph)
                read.graph.set_input(node, port, copies[value])
        return self.accept(read) if copies else self.refuse(read, "nothing else reads constants of its initial value")


def _inside(read: Node) -> Iterator[ops.Op]:
    """The nodes that only the initial value of a variable needs, from the last one on."""
    inside: set[Node] = {read}
    pending = [value.node for value in read.operands]
    while pending:
        node = pending.pop()
        if node in inside or not isinstance(node, ops.Op) or isinstance(node, (*GIVEN, ops.ReadValue)):
            continue
        if all(use.node in inside for output in node.outputs for use in output.uses):
            inside.add(node)
            yield node
            pending += [value.node for value in node.operands]
