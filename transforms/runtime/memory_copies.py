"""Tensors that the runtime overwrites, or whose memory it reuses or frees too early: they are copied."""

from collections.abc import Iterable, Iterator
from typing import ClassVar

from mo_loop.graph.shape import element_count, is_static, of_declared_sizes
from mo_loop.graph.types import f32, string
from mo_loop.ops.control import Control, If, Iteration, Loop
from mo_loop.support.traversal import reached
from mo_loop.target import ARM, CRASH, ERROR
from mo_loop.transforms.replace import move_readers
from mo_loop.transforms.runtime import inference
from mo_loop.transforms.runtime.barriers import BarrierPass, HiddenPort
from mo_loop.transforms.vocabulary import F, FunctionPass, Gap, Graph, Node, Use, Value, node_pass, ops, source_of

REMOVED = (ops.Convert, ops.Slice, ops.Tile, ops.Broadcast, ops.Pad, ops.Reduction)
"""Operations that the runtime removes, or makes a view of, where they change nothing but the shape or the type."""


class CopyAssignedInputs(BarrierPass):
    """Assign(view(x))  ->  Assign(view(Barrier(x, memory))), where x is an input of the model, or constant

    The runtime gives a variable and the value assigned to it one memory, and a view the memory of its input. An
    operation makes a view if it works in place, or if it may do nothing. A Concat works in place if all its sizes are
    known.
    """

    instead = "`max(x, x)` after the input, `x or x` for booleans"
    avoids = (
        Gap(
            "assigned-input",
            "a variable that becomes an input, or a view of one (Squeeze, Reshape, Concat of known sizes), holds the "
            "numbers that the caller writes into that memory later",
        ),
        Gap(
            "assigned-constant",
            "a variable that becomes a constant, or a view of one, has the contents of other memory from then on",
            "`Tile` of the constant by a number known only at run time",
        ),
    )

    bodies = "never"  # variables are in the main graph

    kinds, hides = (ops.Assign,), "memory"

    def run_on_graph(self, graph: Graph) -> bool:
        self.constant = set(inference.computed_from_constants(graph)) if graph.of(ops.Assign) else set()
        return super().run_on_graph(graph)

    def places(self, node: ops.Assign) -> list[HiddenPort] | str:
        return [(use, ()) for use in _shared(node, self.constant)] or "it is not a view of an input or a constant"


def _shared(assign: ops.Assign, constant: set[Node]) -> Iterator[Use]:
    """The readers, and their ports, of inputs and constants whose memory the variable would have."""

    def is_end(node: Node) -> bool:
        return isinstance(node, ops.Parameter | ops.Constant) or node in constant

    def viewed(use: Use) -> list[Use]:
        value = use.node.operands[use.port]
        return [] if is_end(value.node) else [Use(value.node, port) for port in _viewed(value)]

    return (use for use in reached([Use(assign, 0)], viewed) if is_end(use.node.operands[use.port].node))


def _viewed(value: Value) -> Iterable[int]:
    """The ports of nodes that have the memory of a value."""
    node = value.node
    if isinstance(node, ops.Concat):
        return range(len(node.inputs)) if is_static(of_declared_sizes(value.shape)) else ()
    if isinstance(node, Control):  # what it returns is a copy
        return ()
    is_view = inference.is_in_place(node) or (isinstance(node, REMOVED) and _may_have_as_many(value, node.inputs[0]))
    return (0,) if is_view else ()


def _may_have_as_many(value: Value, source: Value | None) -> bool:
    """Whether two values may have one number of elements."""
    if source is None or not is_static(value.shape) or not is_static(source.shape):
        return True
    return element_count(value.shape) == element_count(source.shape)


KINDS: tuple[type[Control], ...] = (If, Loop)


class CopyControlOutputs(FunctionPass):
    """y = If(c), or an output of a Loop  ->  Barrier(y, memory)

    The runtime divides a graph into sections; each ends at a node whose output shape depends on values. It computes the
    shapes of all outputs of a section before it executes the first node. Memory that two sections share is kept apart,
    except for the outputs of If and Loop: a node of dynamic shape later in the next section may get the same memory,
    and resizing it destroys the contents before a reader has read them. A Slice whose end is known only at run time
    ends a section, and its output is kept.

    A model output has memory of its own, unless its type is converted at the output. If all nodes of dynamic shape that
    y does not depend on are such outputs or read y themselves, nothing can take its memory. The memory of a returned
    output is another one in each request, which another Loop does not notice.
    """

    instead = "`Slice` to its own length"
    avoids: ClassVar[tuple[Gap, ...]] = (
        Gap(
            "loop-output-memory",
            "a final value or a concatenated output of dynamic shape is overwritten by a later node before it is read",
        ),
        Gap(
            "if-output-memory", "an output of If of dynamic shape is overwritten by a later node before it is read",
            "`Slice` with an end that depends on the condition", since="2025.1.0",
        ),
        Gap(
            "returned-output-of-another-request",
            "a Loop that reads an output of dynamic shape of another Loop reads that of another inference request, if "
            "the model returns it too",
        ),
    )

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        while self._copy_all(graph):  # a copy takes memory as well
            changed = True
        return changed

    def _copy_all(self, graph: Graph) -> bool:
        if not any(graph.of(kind) for kind in KINDS):
            return False
        owner = graph.owner
        resized = inference.Resized(graph, inference.overwritten(owner) if isinstance(owner, Iteration) else ())
        found = [self.rewrite_each(graph, kind, lambda node: self._copy(node, resized)) for kind in KINDS]
        return any(found)

    def _copy(self, node: Control, resized: inference.Resized) -> bool:
        exposed = [output for output in node.outputs if self._is_exposed(output, resized)]
        if not exposed:
            return self.refuse(node, "no output can lose its memory to a later node")
        for output in exposed:
            inference.hide_memory(output)
        return self.accept(node)

    def _is_exposed(self, output: Value, resized: inference.Resized) -> bool:
        if not _is_read_late(output):
            return False
        if isinstance(output.node, Iteration) and _is_of_request(output):
            return True
        # Without a later node a conversion of the type at an output takes memory; then so does the copy of that output.
        if not (_may_be_converted(output) or resized.may_overwrite(output)):
            return False
        return not _is_returned(output) or (isinstance(output.node, If) and _may_be_converted(output))


class CopyReturnedOutputs(CopyControlOutputs):
    """y = If(c)  ->  Barrier(y, memory), where y has f32 and is an output of the model

    As CopyControlOutputs, where the precision of inference is f16: the runtime converts each output of f32.
    """

    avoids: ClassVar[tuple[Gap, ...]] = (
        Gap(
            "if-output-in-f16",
            "an output of If that the model returns in f32 is overwritten by a later node before it is converted from "
            "f16", "`Slice` with an end that depends on the condition", device=ARM, alone=True,
        ),
    )

    def _is_exposed(self, output: Value, resized: inference.Resized) -> bool:
        is_converted = isinstance(output.node, If) and output.graph.owner is None and output.dtype is f32
        return is_converted and _is_returned(output) and _is_read_late(output)


def _is_read_late(output: Value) -> bool:
    """Whether it is of dynamic shape, and a node that is not in its own section reads its contents."""
    if output.rank is None or is_static(output.shape) or output.dtype is string:
        return False
    *_, last = (output, *inference.views_of(output))
    readers = [use.node for use in last.uses if not isinstance(use.node, ops.ShapeOf)]  # it reads no contents
    return not all(inference.has_run_time_ends(reader) for reader in readers)


def _is_of_request(output: Value) -> bool:
    """Whether the model returns `output`, so that each request has other memory for it, and a loop reads it."""
    kinds = [kind for each in _readers(output) for kind in (ops.Result, Iteration) if isinstance(each, kind)]
    return output.graph.owner is None and len(set(kinds)) == 2


def _readers(value: Value) -> Iterator[Node]:
    """The readers of `value` and of its views."""
    for use in value.uses:
        yield use.node
        if isinstance(use.node, ops.View):
            yield from _readers(use.node.output)


def _may_be_converted(output: Value) -> bool:
    """Whether a model output of this type is converted."""
    return output.graph.owner is None and output.dtype not in inference.UNCONVERTED


def _is_returned(output: Value) -> bool:
    """Whether a Result reads `output`, or a view of it: its memory is not used for other tensors then."""
    return any(isinstance(use.node, ops.Result) for each in (output, *inference.views_of(output)) for use in each.uses)


@node_pass(
    (Iteration,), "`max(p, p)` after the body Parameter, `p or p` for booleans",
    Gap(
        "swapped-states",
        "back edges are copied one after another: a state that becomes another state already has its new value",
    ),
    Gap(
        "view-of-state",
        "a view of one state (Reshape, Squeeze, Gather with a constant index) becomes another state too late",
    ),
    Gap("previous-slice", "a state that is a slice of the iteration before is the slice of the current one"),
    Gap("iteration-number-as-state", "a state that is the number of the iteration before is that of the current one"),
    Gap("captured-tensor-overwritten", "a captured tensor that a scatter reads is overwritten in place"),
    Gap(
        "captured-scalar-overwritten",
        "an elementwise operation of a captured scalar and a view of a slice overwrites the scalar: the results are "
        "running sums or products",
    ),
    Gap(
        "captured-tensor-as-state", "a state that becomes a captured tensor and is read elsewhere does not compile",
        severity=ERROR,
    ),
)
def IsolateParameters(node: Iteration) -> str:
    """p  ->  Barrier(p, memory)

    After an iteration the runtime copies the new slices, the new iteration number and then the back edges, one after
    another. A view of one Parameter can thus be overwritten before it is copied to another. Let A be the operations of
    IN_PLACE, control flow and Identity. A Parameter p of a Loop or TensorIterator is isolated if

    - p is the Result of another state;
    - p is a state, an A reads it, and the Result of another state depends on that A;
    - p is sliced or the iteration number, and the Result of a state depends on it;
    - p is invariant, and an A or the Result of a state reads it. A Gather whose index changes with the iteration does
      not count, nor does a view that only such a Gather reads: it copies, and isolation would copy the whole of p in
      every iteration. An element-wise operation on two scalars counts if the other scalar is the output of an A: then
      the runtime lets it write into p.
    """
    isolated = [_isolate(parameter) for parameter in inference.overwritten(node)]
    if any(isolated):
        return ""
    return "they are isolated already" if isolated else "nothing overwrites its Parameters"


def _isolate(parameter: ops.Parameter) -> bool:
    readers = parameter.output.uses
    if parameter.output.dtype is string or not readers or all(isinstance(node, ops.Barrier) for node, _ in readers):
        return False
    copy = F.Barrier(parameter.output, hides="memory")
    for node, port in readers:
        if not isinstance(node, ops.Barrier):
            parameter.graph.set_input(node, port, copy)
    return True


class ReshapeReturnedInputs(FunctionPass):
    """x -> Identity -> output  ->  x -> Reshape to its own shape -> output

    An Identity is written as a Convert to the same type, which the runtime removes. It does not remove a Reshape in
    these places, and the Reshape copies nothing. Strings, which have no Convert, are reshaped wherever they are from.
    """

    instead = "`Reshape` that copies every dimension"
    avoids = (
        Gap(
            "returned-input",
            "an input of dynamic shape that is returned unchanged is freed memory: the values are wrong, or the "
            "process crashes", severity=CRASH,
        ),
        Gap(
            "returned-reshape",
            "an input that is reshaped by a pattern known only at run time, and returned, keeps its largest shape, or "
            "the process crashes", since="2025.4.1",
        ),
        Gap(
            "returned-slice",
            "after a `Convert` to the same type an output concatenated from a view may get the shape of another output",
        ),
    )

    bodies = "never"

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for result in graph.results:
            changed = (not self.leaves(result) and self._replace(result)) or changed
        self.at = None
        if changed:
            graph.sweep()
        return changed

    def _replace(self, result: ops.Result) -> bool:
        old, source = result.value, source_of(result.value, ops.Identity)
        is_text = source.dtype is string
        is_end = is_text or isinstance(source.node, ops.Parameter | Control) or _is_reshaped_input(source.node)
        if source is old or not is_end:
            return self.refuse(result, "it does not return an input or an output of control flow through an Identity")
        if source.rank is None or (is_static(source.shape) and not is_text):
            return self.refuse(result, "the shape is static, or its rank is unknown")
        new = F.Reshape(source, [0] * source.type.rank, special_zero=True)
        move_readers(old, new, [(result, 0)])
        return self.accept(result)


def _is_reshaped_input(node: Node) -> bool:
    return isinstance(node, ops.Reshape) and isinstance(source_of(node.operands[0], ops.Identity).node, ops.Parameter)
