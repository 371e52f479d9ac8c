"""Shapes that are known at conversion and not to the runtime, and outputs of If that it does not copy."""

from math import gcd

import numpy as np

from mo_loop.graph.dimension import Dimension, high, low
from mo_loop.graph.shape import element_count
from mo_loop.graph.types import boolean, string
from mo_loop.ops.base import Identity
from mo_loop.ops.control import If
from mo_loop.ops.port_map import Selected
from mo_loop.target import GPU
from mo_loop.transforms import port_maps
from mo_loop.transforms.function_pass import node_pass
from mo_loop.transforms.replace import move_readers, replace_output
from mo_loop.transforms.runtime.barriers import pattern, reshaped
from mo_loop.transforms.runtime.inference import has_constant_sizes, is_inferred
from mo_loop.transforms.runtime.zero_trips import is_cut
from mo_loop.transforms.total_operations import ELEMENTWISE, is_safe
from mo_loop.transforms.vocabulary import (
    Constant,
    F,
    FunctionPass,
    Gap,
    Graph,
    Node,
    Parameter,
    Result,
    Use,
    Value,
    is_static,
    ops,
)

FREE = (Constant, Parameter, Result)

MOST = 16
"""Operations of one element in both branches, which take the runtime no longer than an If (measured)."""

VECTORS = {
    ops.Reshape: (1,), ops.Broadcast: (1,), ops.Tile: (1,), ops.Pad: (1, 2), ops.Pad12: (1, 2), ops.Slice: (1, 2),
}
"""Operations whose sizes are numbers of inputs, and the ports of these inputs."""


class InsertKnownSizes(FunctionPass):
    """Pad(x, end: Concat(k, [0])) of x : [N,3]  ->  Reshape(Pad(...), [0,3]), where 0 keeps a size

    The runtime infers either all numbers of a vector or none. The passes that search dynamic shapes would not recognise
    shapes that only the runtime does not know.
    """

    instead = "`Reshape` to the size"
    avoids = (Gap(
        "vector-of-unknown-number",
        "if one number of a vector of sizes is known only at run time, none is inferred, and rules for static shapes "
        "do not help",
        until="2026.1.0",
    ),)

    kinds = tuple(VECTORS)

    def run_on_graph(self, graph: Graph) -> bool:
        """Does nothing without control flow, which alone depends on dynamic shapes."""
        has_control_flow = graph.owner is not None or bool(graph.nodes_with_bodies())
        return has_control_flow and super().run_on_graph(graph)

    def rewrite(self, node: Node) -> bool:
        output = node.output
        if output.dtype is string or not _has_hidden_size(node):
            return self.refuse(node, "no size is known, or the runtime infers it")
        readers = [use for use in output.uses if not has_constant_sizes(use.node)]
        if not readers:
            return self.refuse(node, "all its readers are Reshapes to constant sizes")
        dims = output.type.dims
        sizes = [dim if isinstance(dim, int) else 0 for dim in dims]
        move_readers(output, F.Reshape(output, sizes, special_zero=not is_static(dims)), readers)
        return self.accept(node)


def _has_hidden_size(node: Node) -> bool:
    """Whether a size is known that follows from a vector whose numbers the runtime does not infer."""
    shape, data = node.output.shape, node.operands[0].shape
    vectors = [node.inputs[port] for port in VECTORS[type(node)] if port < len(node.inputs)]
    if shape is None or all(vector is None or is_inferred(vector) for vector in vectors):
        return False
    if isinstance(node, ops.Slice):  # the runtime keeps the sizes of other axes; InsertStaticShapes says static shapes
        assert data is not None
        sizes = zip(shape, data, strict=True)
        return not is_static(shape) and any(isinstance(dim, int) and dim != old for dim, old in sizes)
    return any(isinstance(dim, int) for dim in shape)


@node_pass((ops.Concat, ops.Slice), "`Reshape` to the size", Gap(
    "differences-of-symbols",
    "a size that follows from differences of symbols is not inferred, and rules for static shapes do not help",
))
def InsertStaticShapes(node: Node) -> str:
    """Concat(x[:p], x[p + 1:]) of x : [3]  ->  Reshape(Concat(...), [2])

    Differences of symbols prove the size of such a Concat or Slice; the runtime only knows bounds. The passes that
    search dynamic shapes would not recognise shapes that are dynamic to the runtime.
    """
    output = node.output
    readers = [use for use in output.uses if not has_constant_sizes(use.node)]
    if not is_static(output.shape) or output.dtype is string or not _is_open(node):
        return "its shape is unknown, or the runtime infers it from its inputs"
    if is_cut(node):
        return "it has no elements if its loop did not run"
    if not readers:
        return "all its readers are Reshapes to constant shapes"
    move_readers(output, F.Reshape(output, list(output.type.dims)), readers)
    return ""


def _is_open(node: Node) -> bool:
    """Whether the runtime cannot infer a size from the inputs."""
    data = node.inputs if isinstance(node, ops.Concat) else node.inputs[:1]
    bounds = [] if isinstance(node, ops.Concat) else node.inputs[1:]
    open_sizes = any(value is not None and not is_static(value.shape) for value in data)
    return open_sizes or any(value is not None and not isinstance(value.node, Constant) for value in bounds)


PADDING = 2
"""Elements that are appended: one would be the shape [1, 1] for both branches if they return no elements."""


DISTINGUISHED = "`[1, size]` from one branch, `[size, 1]` from the other, reshaped outside"


@node_pass(
    (If,), DISTINGUISHED,
    Gap(
        "if-output-of-same-shape",
        "an output of dynamic shape is not copied if the other branch has given it the same shape before",
        until="2026.1.0",
    ),
    Gap(
        "if-readers", "a reader of an output of dynamic shape reads the result of the other branch", device=GPU,
    ),
)
def DistinguishBranchShapes(node: If) -> str:
    """y = If(c, then: a : [?,3], else: b : [?,3])  ->  Reshape(If(c, then: a as [?,1], else: b), [-1,3])

    One branch returns a size of 1 where that of the other one is never 1. If any size may be 1, one branch returns
    [1, size + 2] and the other one [size + 2, 1]; a Slice removes the additional elements. If more than one dimension
    is unknown, the shape is an output too. A Result of static shape is always copied.

    A kernel of the GPU plugin gets the memory of its inputs only where a shape or a memory of the same node has
    changed, or an input reports a change. An If has the memory of the branch that ran, and does not report it.
    """
    return _distinguish(node, [entry for entry in node.output_map if _may_be_lost(entry)])


@node_pass((If,), DISTINGUISHED, Gap(
    "static-if-readers", "a reader of an output of static shape reads the result of the other branch", device=GPU,
))
def DistinguishStaticShapes(node: If) -> str:
    """y = If(c, then: a : [2,3], else: b : [2,3])  ->  Reshape(If(c, then: a as [6,1], else: b), [2,3])

    As DistinguishBranchShapes, where a kernel reads y. Reshapes cost nothing.
    """
    return _distinguish(node, [entry for entry in _kept(node) if not _is_padded(entry)])


@node_pass((If,))
def SelectElements(node: If) -> str:
    """y = If(c, then: x + 1, else: 2)  ->  Select(c, x + 1, 2), if all tensors in it have one element
    y, z = If(c, then: (1, a), else: (2, b))  ->  y = Select(c, 1, 2), z = If(c, then: a, else: b)

    Both branches must be elementwise and cannot fail, but for an output of constants. On a GPU a reader of such an If,
    also a state of a loop, may have the result of the other branch.
    """
    reason = _refusal(node)
    if reason:
        return "" if _select_constants(node) else reason
    condition = _scalar(node.operands[0])
    branches = (port_maps.inlined(node, taken) for taken in (True, False))
    for output, one, other in zip(node.outputs, *branches, strict=True):
        chosen = F.Select(condition, one, other)
        chosen.node.name = node.name if len(node.outputs) == 1 else ""
        replace_output(output, chosen)
    node.graph.remove(node)
    return ""


def _refusal(node: If) -> str:
    """Why an If cannot become Selects; empty if it can."""
    computed = [each for body in node.bodies for each in body.ordered() if not isinstance(each, FREE)]
    allowed = (*ELEMENTWISE, ops.View)
    if len(computed) > MOST or not all(isinstance(each, allowed) and is_safe(each) for each in computed):
        return "a branch has other operations, or many"
    results = [(entry.then.value, entry.else_.value) for entry in node.output_map]
    groups = [node.operands[:1], *results, *((*each.operands, *each.outputs) for each in computed)]
    if not all(_is_element(value) for values in groups for value in values):
        return "a tensor has more elements than one"
    if any(one.shape != other.shape for one, other in results):
        return "the branches return other shapes"
    if node.operands[0].rank and any(output.dtype is boolean for output in node.outputs):
        # The runtime converts a condition of Select to another type than booleans, also through a view.
        return "booleans are chosen by a condition that is no scalar"
    return ""


def _select_constants(node: If) -> bool:
    """Choose outputs that kernels read, and that are constants of one element, outside, if the If has others."""
    condition, found = node.operands[0], list[tuple[Value, Constant, Constant]]()
    for entry, output in node.returned:
        one, other = entry.then.value.node, entry.else_.value.node
        is_chosen = isinstance(one, Constant) and isinstance(other, Constant) and _is_element(one.output)
        if is_chosen and one.output.shape == other.output.shape and not (output.dtype is boolean and condition.rank):
            found += [(output, one, other)] if any(map(_keeps_memory, output.uses)) else []
    if not found or len(found) == sum(output.is_used for output in node.outputs):
        return False
    condition = _scalar(condition)
    for output, *constants in found:
        values = (Constant(each.tensor, graph=node.graph) for each in constants)
        replace_output(output, F.Select(condition, *values))
    port_maps.drop_unused_outputs(node)
    return True


def _scalar(condition: Value) -> Value:
    return condition if condition.rank == 0 else condition.reshape([])


def _is_element(value: Value) -> bool:
    return value.dtype is not string and element_count(value.shape) == 1


@node_pass((If,), DISTINGUISHED, Gap(
    "if-readers-of-element", "a reader of an output of one element reads the result of the other branch",
    device=GPU, alone=True,
))
def DistinguishElements(node: If) -> str:
    """As DistinguishStaticShapes, for outputs of one element, which need more elements."""
    return _distinguish(node, [entry for entry in _kept(node) if _is_padded(entry)])


def _kept(node: If) -> list[Selected]:
    """The outputs of static shape whose memory a kernel keeps."""
    kept = [output for output in node.outputs if is_static(output.shape) and any(map(_keeps_memory, output.uses))]
    return [entry for entry in (node.output_map[output.index] for output in kept) if _may_share(entry)]


def _keeps_memory(use: Use) -> bool:
    """Whether a node is a kernel that reads a tensor; the numbers of a pattern are read where shapes are inferred.

    An If reads its inputs anew, also through the view that WidenBranchInputs makes; so does what OrBehindIf
    returns, and an output that has a name of its own.
    """
    is_pattern = use.port == 1 and isinstance(use.node, ops.Reshape)
    is_widened = isinstance(use.node, ops.Unsqueeze) and all(isinstance(each.node, If) for each in use.node.output.uses)
    is_or = isinstance(use.node, ops.LogicalOr) and len({*use.node.inputs}) == 1
    is_result = isinstance(use.node, ops.Reshape) and isinstance(use.node.graph.owner, If)  # as _distinguish makes it
    is_returned = (is_or or is_result or isinstance(use.node, Identity)) and all(
        isinstance(each.node, Result) for each in use.node.output.uses
    )
    return not (is_pattern or is_widened or is_returned or isinstance(use.node, Result | If | ops.ShapeOf))


def _distinguish(node: If, lossy: list[Selected]) -> str:
    """Let both branches return different shapes for some outputs; the reason if there are none."""
    if not lossy:
        return "no output has the same shape in both branches"
    entries: list[Selected] = []
    for entry, output in node.returned:
        entries += _distinguished(entry, output) if entry in lossy else [entry]
    # Of one output, the node that restores the shape has the name.
    new = ops.If(
        *node.inputs, graph=node.graph, name="" if len(node.outputs) == len(lossy) == 1 else node.name,
        then_body=node.then_body, else_body=node.else_body, input_map=node.input_map, output_map=tuple(entries),
    )
    new.rt_info.update(node.rt_info)
    outputs = iter(new.outputs)
    for entry, old in node.returned:
        value = next(outputs)
        if entry in lossy:
            if _is_padded(entry):
                value = value.reshape([-1])[:-PADDING]
            if is_static(old.shape):
                value = F.Reshape(value, np.array(old.type.dims, np.int64))
            else:
                value = reshaped(value, old.type.dims, lambda: next(outputs))
        names = old.names
        replace_output(old, value)
        if names and entry in lossy and len(node.outputs) > 1:  # the name of the node means all of its outputs
            value.node.name = names[0]
    node.graph.remove(node)
    kept = set(_results(entries))
    for result in dict.fromkeys(_results(lossy)):
        if result not in kept:
            result.graph.remove(result)
    return ""


def _may_be_lost(entry: Selected) -> bool:
    """Whether the Results have dynamic shapes, which may agree, and elements."""
    return _may_share(entry) and not all(is_static(each.value.shape) for each in (entry.then, entry.else_))


def _may_share(entry: Selected) -> bool:
    """Whether the Results have shapes that may agree, and elements."""
    a, b = entry.then.value, entry.else_.value
    if a.shape is None or b.shape is None or a.rank != b.rank or a.dtype is string or 0 in (*a.shape, *b.shape):
        return False
    return all(map(_may_agree, a.shape, b.shape))


def _may_agree(one: Dimension, other: Dimension) -> bool:
    return not (_is_below(one, other) or _is_below(other, one)) and _may_be(one, other) and _may_be(other, one)


def _is_below(one: Dimension, other: Dimension) -> bool:
    top = high(one)
    return top is not None and top < low(other)


def _may_be(dim: Dimension, number: Dimension) -> bool:
    """False if `number` is one that the factors in `dim` exclude: 3N is never 1. Both are of different inferences, so
    that symbols in both have different values."""
    if isinstance(dim, int) or not isinstance(number, int):
        return True
    return (number - dim.const) % gcd(*(factor for _, factor in dim.terms)) == 0


def _longer_axis(entry: Selected) -> tuple[Result, int] | None:
    """A Result, and an axis along which its size is never 1."""
    for result in (entry.else_, entry.then):
        dims = result.value.type.dims
        axes = [axis for axis, dim in enumerate(dims) if len(dims) > 1 and not _may_agree(dim, 1)]
        if axes:
            return result, axes[-1]
    return None


def _distinguished(entry: Selected, output: Value) -> list[Selected]:
    """The values of both branches in shapes that differ, and the shape if it does not follow from the size."""
    found = _longer_axis(entry)
    if found is None:
        more = PADDING if _is_padded(entry) else 0
        changed = [_in_line(entry.then.value, 1, more), _in_line(entry.else_.value, 0, more)]
    else:
        longer, axis = found
        changed = [each.value if each is longer else _with_one(each.value, axis) for each in (entry.then, entry.else_)]
    entries = [Selected(*(Result(value) for value in changed))]
    if pattern(output.type.dims) is None:
        entries.append(Selected(*(Result(each.value.sizes) for each in (entry.then, entry.else_))))
    return entries


def _with_one(value: Value, axis: int) -> Value:
    """`value` with a size of 1 along an axis, and all elements along another one."""
    sizes = [1] * value.type.rank
    sizes[0 if axis else 1] = -1
    return F.Reshape(value, sizes, special_zero=False)


def _is_padded(entry: Selected) -> bool:
    """Whether only additional elements make the shapes of both branches differ."""
    dims = entry.then.value.type.dims
    return _longer_axis(entry) is None and not (is_static(entry.then.value.shape) and np.prod(dims) > 1)


def _in_line(value: Value, axis: int, number: int) -> Value:
    """All elements along one of two axes, and so many more."""
    sizes, more = [1, 1], [1, 1]
    sizes[axis], more[axis] = -1, number
    elements = F.Reshape(value, sizes, special_zero=False)
    if not number:
        return elements
    padding = F.Constant(np.zeros(more, value.dtype.numpy), graph=value.graph, dtype=value.dtype)
    return F.Concat(elements, padding, axis=axis)


def _results(entries: list[Selected]) -> list[Result]:
    return [result for entry in entries for result in (entry.then, entry.else_)]
