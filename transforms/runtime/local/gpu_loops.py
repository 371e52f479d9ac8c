"""Loops and branches of the GPU device: inputs and outputs that have the memory or the size of other tensors."""

from mo_loop.graph.dimension import now
from mo_loop.graph.types import f16, f32, i32, string
from mo_loop.ops.control import Control, Iteration
from mo_loop.ops.movement import END
from mo_loop.ops.port_map import Final, Merged, Sliced
from mo_loop.support.traversal import reached
from mo_loop.target import ERROR, GPU
from mo_loop.transforms.pattern import wrap_type
from mo_loop.transforms.runtime.inference import UNROLLED
from mo_loop.transforms.runtime.local.rule import both_orders, is_declared, maximum_rule, rule, source_outside
from mo_loop.transforms.vocabulary import (
    Constant,
    F,
    Gap,
    Node,
    Parameter,
    Result,
    Use,
    Value,
    is_static,
    ops,
    source_of,
)


@maximum_rule(wrap_type(Iteration), "`max(x, x)` in the outer loop", Gap(
    "slice-for-inner-loop", "an inner loop reads the slice of the first iteration, or a view of it, where a loop runs "
    "over slices of a tensor of unknown shape", device=GPU,
), Gap(
    "gpu-state-for-inner-loop", "an inner loop whose number of iterations is not known, and whose state begins with a "
    "state of the outer loop or a view of one, reads that of another iteration", device=GPU,
))
def MaximumBeforeInnerLoop(node: Iteration) -> Use | None:
    """In a loop over slices x of a : [N,3], Loop(x) or Loop(Squeeze(x))  ->  Loop(max(x, x))
    In a loop with the state s, also in a branch of If, Loop(n, s) or Loop(n, Squeeze(s))  ->  Loop(n, max(s, s))

    The plugin gives each slice other memory, and a state the memory of two in turn. The inner loop keeps what it got
    first.
    """
    if node.graph.owner is None:
        return None
    for port, (entry, value) in enumerate(node.fed, node.first_data_port):
        source = source_outside(value)
        owner = source.graph.owner
        fed = {each.parameter: (each, outer) for each, outer in owner.fed} if isinstance(owner, Iteration) else {}
        outside, given = fed.get(source.node, (None, None))
        is_state = isinstance(outside, Merged) and isinstance(entry, Merged) and not isinstance(node.count, int)
        is_slice = isinstance(outside, Sliced) and given is not None and not is_declared(given)
        if (is_state or is_slice) and value.dtype is not string:
            return Use(node, port)
    return None


@maximum_rule(wrap_type((ops.Add, ops.Subtract)), "`max(x, x)`", Gap(
    "gpu-constant-plus-later-output",
    "an output of known size of a loop or `If`, plus a constant, does not compile (\"Count is called for dynamic "
    "shape\") if the first output has an unknown size", severity=ERROR, device=GPU,
))
def MaximumOfLaterOutput(node: ops.Add | ops.Subtract) -> Use | None:
    """_, y = Loop(x) with a first output [?], y + c  ->  max(y, y) + c

    The plugin reads the size of the first output.
    """
    for port, (c, y) in enumerate(both_orders(node)):
        is_later = isinstance(y.node, Control) and y.index > 0 and not is_declared(y.node.outputs[0])
        if is_later and is_declared(y) and isinstance(c.node, Constant):
            return Use(node, 1 - port)
    return None


@maximum_rule(wrap_type(Control), "`max(x, x)`", Gap(
    "gpu-joined-input", "a loop or branch reads a tensor of known size, which a `Concat` reads too, at a place in the "
    "result of the Concat: it reads other numbers, or fails", device=GPU,
))
def MaximumOfJoinedInput(node: Control) -> Use | None:
    """Concat(x, y), Loop(x)  ->  Concat(x, y), Loop(max(x, x)), if no other node reads x"""
    for use in [Use(node, port) for port, value in enumerate(node.inputs) if value is not None]:
        x = use.node.operands[use.port]
        while isinstance(x.node, ops.View):
            use, x = Use(x.node, 0), x.node.operands[0]
        if _is_placed(x) and len(x.uses) == 2 and any(_is_joined_in_place(each.node) for each in x.uses):
            return use
    return None


def _is_joined_in_place(node: Node) -> bool:
    return isinstance(node, ops.Concat) and all(map(_is_placed, node.operands))


def _is_placed(value: Value) -> bool:
    """Whether the plugin may write a value into a part of a larger tensor."""
    is_input = isinstance(value.node, Parameter)
    is_converted = is_input and value.graph.owner is None and value.dtype not in (f32, f16, i32)
    kinds = (ops.Elementwise, ops.Concat, ops.Transpose, ops.Split, ops.VariadicSplit, ops.Slice)
    return is_declared(value) and value.dtype is not string and (is_converted or isinstance(value.node, kinds))


@maximum_rule(wrap_type(Iteration), "`max(y, y)` before the output", Gap(
    "gpu-output-beside-view", "the second inference fails if the model returns an output of a loop that has a state "
    "which only the body reads, and whose next value is a view of a `Concat` or `Slice`", severity=ERROR, device=GPU,
))
def MaximumBehindLoop(node: Iteration) -> Use | None:
    """y = Loop(s, t), where the next t is Unsqueeze(Concat(t, a))  ->  the model returns max(y, y)

    An output that the model returns gives memory to all states, also to a view of a tensor of another shape.
    """
    entries = zip(node.output_map, node.outputs, strict=True)
    read = {entry.result for entry, y in entries if isinstance(entry, Final) and y.is_used}
    new = [entry.result.value for entry in node.back_edges if entry.result not in read]
    views = [source_of(each, ops.View) for each in new if isinstance(each.node, ops.View) and not is_static(each.shape)]
    if node.graph.owner is not None or all(isinstance(each.node, ops.Elementwise) for each in views):
        return None
    uses = (use for y in node.outputs if y.dtype is not string for use in y.uses)
    return next((use for use in uses if isinstance(use.node, Result)), None)


@rule(wrap_type(ops.ShapeOf), "the sizes after `Unsqueeze`", Gap(
    "gpu-sizes-of-concat", "an inference fails (\"allocated output memory is necessary\") if only the sizes of a "
    "`Concat` are read, and it has an unknown size and an operand of known size", severity=ERROR, device=GPU,
))
def ReadSizesOfView(node: ops.ShapeOf) -> Node | None:
    """ShapeOf(Concat(x : [?,2], Abs(y) : [1,2]))  ->  ShapeOf(Unsqueeze(Concat(x, Abs(y)), 0))[1:]

    The plugin writes out loops of few iterations: then nothing reads the last value of a state that is not returned,
    and only ShapeOf the one before.
    """
    (x,) = node.operands
    joined = _read_by_sizes(x)
    if joined is None or not any(_is_known(each) for each in joined.operands) or is_declared(joined.output):
        return None
    sizes = ops.ShapeOf(F.Unsqueeze(x, [0]), output_type=node.output_type)
    return ops.Slice(sizes, [1], [END], [1], [0])


def _is_known(value: Value) -> bool:
    is_given = isinstance(value.node, Constant) or (isinstance(value.node, Parameter) and value.graph.owner is None)
    return is_declared(value) and not is_given


def _read_by_sizes(x: Value) -> ops.Concat | None:
    """The Concat that `x` is, or is after the last of few iterations of a loop, if nothing reads its elements then."""
    made, ends = source_of(x, ops.Unary), list[Result]()
    read = [made]
    if isinstance(x.node, Iteration | Parameter):
        owner = x.node if isinstance(x.node, Iteration) else x.graph.owner
        if not isinstance(owner, Iteration) or now(owner.count) not in UNROLLED:
            return None
        finals = [*zip(owner.output_map, owner.outputs, strict=True)]
        ends = [each.result for each in owner.back_edges if each.parameter is x.node]
        ends += [entry.result for entry, y in finals if y is x and isinstance(entry, Final)]
        if not ends:
            return None
        made = ends[0].value
        read += [y for entry, y in finals if entry.result is ends[0]]
    if not isinstance(made.node, ops.Concat):
        return None
    readers = {use.node for value in reached(read, _outputs_of_readers) for use in value.uses}
    return None if any(isinstance(each, Result) and each not in ends for each in readers) else made.node


def _outputs_of_readers(value: Value) -> list[Value]:
    return [each for use in value.uses if not isinstance(use.node, ops.ShapeOf) for each in use.node.outputs]
