"""Movement of data that the runtime computes wrongly, or does not compile."""

from collections.abc import Iterable

import numpy as np

from mo_loop.graph.dimension import high
from mo_loop.graph.shape import assume_fixed, normalise_axis, of_declared_sizes
from mo_loop.graph.tensor import ArrayTensor
from mo_loop.graph.types import boolean, string, u2, u4
from mo_loop.ops.control import Iteration
from mo_loop.ops.movement import END, FAR
from mo_loop.target import CRASH, ERROR, GPU, NEVER, Gap, Processor
from mo_loop.transforms.pattern import any_input, wrap_type
from mo_loop.transforms.predicates import is_constant, type_matches
from mo_loop.transforms.replace import drop_dead, replace_node
from mo_loop.transforms.runtime.inference import may_be_empty, views_of
from mo_loop.transforms.runtime.local.rule import LocalRule, is_declared, is_static_there, maximum_rule, rule
from mo_loop.transforms.vocabulary import (
    Constant,
    F,
    Node,
    Parameter,
    Result,
    Use,
    Value,
    integers,
    is_static,
    ones_among,
    ops,
    order_of,
)


@rule(
    wrap_type(ops.Reduction, attributes={"keep_dims": False}),
    "the reduction before the `Transpose`, along the axes that move there",
    Gap(
        "reduction-of-transpose",
        "a reduction of a `Transpose` to a scalar or vector, without kept dimensions, reads and writes memory that "
        "does not belong to the tensors", until="2025.2.0",
    ),
)
def ReduceBeforeTranspose(node: ops.Reduction) -> Node | None:
    """Reduce(Transpose(x, order), axes)  ->  Transpose of what is left of Reduce(x, order[axes]), if its order changes

    The runtime does this itself, past a Convert too, and its own Transpose is wrong if at most one dimension is left.
    """
    data, gone = node.operands[0], node.along
    convert = data.node if isinstance(data.node, ops.Convert) else None
    transpose = (convert.operands[0] if convert else data).node
    order = order_of(transpose) if isinstance(transpose, ops.Transpose) else None
    if order is None or gone is None or transpose.operands[0].rank is None:
        return None
    x = transpose.operands[0]
    left = [axis for place, axis in enumerate(order) if place not in gone]
    if convert:
        x = F.Convert(x, destination_type=convert.destination_type)
    reduced = type(node)(x, sorted(order[place] for place in gone), keep_dims=False)
    return reduced if left == sorted(left) else ops.Transpose(reduced, [sorted(left).index(axis) for axis in left])


class ReduceBeforeUnsqueeze(LocalRule):
    """Reduce(Unsqueeze(x : [2,3], [1]), [0], keep_dims)  ->  Unsqueeze(Reduce(x, [0], keep_dims), [1])"""

    instead = "the reduction before the inserted dimensions"
    avoids = (Gap(
        "reduction-of-inserted-axis",
        "a reduction of a tensor of static shape after an `Unsqueeze`, or a `Reshape` that inserts dimensions of 1, "
        "reduces other dimensions, has them at other places, or does not compile",
    ),)

    pattern = wrap_type(ops.Reduction, wrap_type((ops.Unsqueeze, ops.Reshape)), any_input(is_constant()))

    def form(self, node: ops.Reduction) -> Node | None:
        data, gone = node.operands[0], node.along
        x, inserted = data.node.operands[0], _inserted_axes(data.node)
        if not inserted or not gone:
            return None
        kept = [axis for axis in range(len(data.type.dims)) if axis not in inserted]
        reduced = [place for place, axis in enumerate(kept) if axis in gone]
        if reduced:
            x = self.register_new_node(type(node)(x, reduced, keep_dims=True)).output  # `x` may have inserted ones, too
        elif isinstance(node, ops.ReduceL1 | ops.ReduceL2):
            x = F.Abs(x)
        if node.output.rank == 0:  # as one view (see MergeReshapes)
            return ops.Reshape(x, np.array([], np.int64))
        restored = ops.Unsqueeze(x, inserted)
        return restored if node.keep_dims else ops.Squeeze(restored, sorted(gone))


def _inserted_axes(node: ops.Unsqueeze | ops.Reshape) -> list[int] | None:
    """The axes of the dimensions of 1 that `node` inserts; None if it does something else, or they are not known."""
    x, y = node.operands[0], node.outputs[0]
    if x.rank is None or y.rank is None or y.rank <= x.rank:
        return None
    if isinstance(node, ops.Unsqueeze):
        return [axis for axis, own in enumerate(node.axis_map(0)) if own is None] if node.integers("axes") else None
    return ones_among(y.shape, x.shape) or None


MOVES = (ops.View, ops.Transpose)
"""Operations that may change only the shape."""


@rule(wrap_type(MOVES), "a reduction that keeps its dimensions, and `Squeeze`", Gap(
    "reshaped-reduction",
    "a `Reshape` to as many dimensions, or a `Transpose` that moves only dimensions of 1, after a reduction that does "
    "not keep its dimensions, is left out",
))
def SqueezeReducedDimensions(node: Node) -> Node | None:
    """Reshape(Reduce(x : [2,5,3], [1]), [6,1])  ->  Reshape(Squeeze(Reduce(x, [1], keep_dims), [1]), [6,1])

    The runtime mistakes a Reshape to as many dimensions, or an operation that becomes one, for the one that restores
    the reduced dimensions.
    """
    source = node.operands[0]
    while _is_reshape(source.node):
        source = source.node.operands[0]
    reduction = source.node
    if not isinstance(reduction, ops.Reduction) or reduction.keep_dims or not source.rank or not _is_reshape(node):
        return None
    data, axes = reduction.operands
    moved = node.outputs[0]
    if axes.type.integers is None or moved.rank not in (None, source.rank) or moved.shape == source.shape:
        return None
    replace_node(reduction, ops.Squeeze(type(reduction)(data, axes, keep_dims=True), axes))
    return node


def _is_reshape(node: Node) -> bool:
    """Whether the runtime computes `node` as a Reshape: also a Transpose that moves only dimensions of 1."""
    if isinstance(node, ops.Transpose):
        order, dims = order_of(node), node.operands[0].shape
        long = [axis for axis in order or () if dims is not None and dims[axis] != 1]
        return order is not None and dims is not None and long == sorted(long)
    return isinstance(node, MOVES)


@rule(wrap_type(ops.Transpose), "`Squeeze` and `Unsqueeze`", Gap(
    "transpose-of-ones",
    "a `Transpose` that moves only dimensions of 1 becomes a `Reshape` to the current sizes, in which a size of 0 is "
    "misread",
))
def TransposeToSqueezeUnsqueeze(node: ops.Transpose) -> Node | None:
    """Transpose(x : [1,N,2], [1, 2, 0])  ->  Unsqueeze(Squeeze(x, 0), 2), where N may be 0"""
    x, places = node.operands[0], order_of(node)
    if x.shape is None or places is None:
        return None
    for dims in (x.shape, of_declared_sizes(x.shape) or ()):
        ones = [axis for axis, dim in enumerate(dims) if dim == 1]
        others = [axis for axis in places if axis not in ones]
        if ones and others == sorted(others) and any(may_be_empty(dims[axis]) for axis in others):
            break
    else:
        return None
    assume_fixed(x.shape[axis] for axis in ones)
    return ops.Unsqueeze(F.Squeeze(x, ones), [place for place, axis in enumerate(places) if axis in ones])


VIEWS = (*MOVES, Parameter)  # WriteSizes places a Reshape after a Parameter


@rule(
    wrap_type(ops.Squeeze, wrap_type(ops.Binary, wrap_type(VIEWS), wrap_type(VIEWS)), any_input()),
    "the `Squeeze` before the element-wise operation",
    Gap(
        "squeezed-binary",
        "a `Squeeze` after an element-wise operation with an `Unsqueeze`, a `Reshape` or an operation that becomes "
        "one removes a dimension of the other input too, if this input is another tensor with fewer dimensions",
    ),
)
def MoveSqueezeBeforeBinary(node: ops.Squeeze) -> Node | None:
    """Squeeze(f(x : [1,M,N], y : [M,1]), 0)  ->  f(Squeeze(x, 0), y), for an element-wise f of two views

    The runtime does this itself, and counts the axes of the Squeeze from the front in each of the views.
    """
    data, axes = node.operands[0], node.along
    views = data.node.operands
    if axes is None or data.rank is None or len({each.type.rank for each in views}) == 1:
        return None
    operands = [_squeezed(each, [axis + each.type.rank - data.rank for axis in axes]) for each in views]
    return type(data.node)(*operands, **data.node.attribute_values())


def _squeezed(value: Value, axes: Iterable[int]) -> Value:
    """`value` without the `axes`; those below 0 are not in it."""
    gone, node = sorted(axis for axis in axes if axis >= 0), value.node
    if isinstance(node, ops.Unsqueeze) and _inserted_axes(node) == gone:
        return node.operands[0]
    return F.Squeeze(value, gone) if gone else value


@rule(wrap_type(ops.Slice), "an end of 2^31 - 1, which the runtime reads as no end", Gap(
    "slice-within-bounds",
    "a `Slice` of the last elements, to an end below the upper bound of the dimension, is empty: a tensor that is "
    "reversed has an upper bound",
))
def EndSliceBehindBounds(node: ops.Slice) -> Node | None:
    """x[-3 : 2^30]  ->  x[-3 : 2^31 - 1], where inference allows x more than 2^30 elements along the axis"""
    x, _, end, *_ = node.operands
    ends, axes = integers(node, 2), integers(node, 4)
    if ends is None or axes is None or x.rank is None or not isinstance(end.node, Constant):
        return None
    tops = [high(x.type.dims[normalise_axis(axis, x.rank)]) for axis in axes]
    far = [abs(stop) == FAR and (top or 0) > FAR for stop, top in zip(ends, tops, strict=True)]
    if not any(far):
        return None
    new = [(END if stop > 0 else -END) if is_far else stop for stop, is_far in zip(ends, far, strict=True)]
    node.graph.set_input(node, 2, F.Constant(np.array(new), graph=node.graph, dtype=end.dtype))
    return node


@rule(wrap_type(ops.Slice, wrap_type(ops.Slice, ...), ...), "axes that are counted from the front", Gap(
    "slices-of-one-axis",
    "two `Slice` along one axis, which one of them counts from the end, become one `Slice` that names the axis twice",
    severity=ERROR, until="2025.2.0",
))
def CountAxesFromFront(node: ops.Slice) -> Node | None:
    """x[:, 1:][:, 2:] of axes -1 and 1  ->  the same of axes 1 and 1"""
    changed = False
    for each in (node, node.operands[0].node):
        rank, axes = each.operands[0].rank, integers(each, 4)
        if rank is not None and axes and min(axes) < 0:
            counted = np.array([normalise_axis(axis, rank) for axis in axes])
            each.graph.set_input(each, 4, F.Constant(counted, graph=each.graph, dtype=each.operands[4].dtype))
            changed = True
    return node if changed else None


@rule(wrap_type(ops.Transpose), "a `Transpose` of six dimensions", Gap(
    "dynamic-groups",
    "a `Reshape` or `Unsqueeze` from four dimensions with only the first dynamic to four or five with the second "
    "dynamic, then a `Transpose` and a `Reshape`, `Squeeze` or `Unsqueeze`, is taken for a shuffle of channels, and "
    "the model does not compile", severity=ERROR,
))
def MoveWithSixDimensions(node: ops.Transpose) -> Node | None:
    """Reshape(Transpose(Reshape(x : [N,1,3,2], [1, -1, 3, 1, 2]), order), shape)  ->  the same with [1, 1, -1, 3, 1, 2]

    The runtime reads the second of four or five dimensions as the number of groups. It merges successive operations
    that only change the shape, Squeeze and Unsqueeze too.
    """
    x, places = node.operands[0], order_of(node)
    if places is None or x.rank not in (4, 5) or isinstance(x.type.dims[1], int):
        return None
    if not _has_channels(x) or not any(isinstance(use.node, ops.View) for use in node.output.uses):
        return None
    ones = list(range(6 - x.rank))
    return ops.Squeeze(F.Transpose(F.Unsqueeze(x, ones), [*ones, *(place + len(ones) for place in places)]), ones)


def _has_channels(x: Value) -> bool:
    """Whether `x` is another shape of a tensor of four dimensions of which only the first may be dynamic."""
    while isinstance(x.node, ops.View):
        x = x.node.operands[0]
        if x.rank == 4 and is_static(of_declared_sizes(x.type.dims[1:])):
            return True
    return False


@rule(wrap_type(ops.Tile), "a `Tile` of six dimensions", Gap(
    "tile-of-one-channel",
    "a `Tile` by constants of a tensor of four or five dimensions, not all static, with one channel or with one "
    "element for each channel, repeats other elements, depending on what computes the tensor", since="2026.1.0",
))
def TileWithSixDimensions(node: ops.Tile) -> Node | None:
    """Tile(x : [N,1,2,3], [1, 2, 2, 1])  ->  Squeeze(Tile(Unsqueeze(x, [0, 1]), [1, 1, 1, 2, 2, 1]), [0, 1])

    Of one channel, and of one element for each channel, channels first and channels last are the same order.
    """
    x, times = node.operands[0], node.operands[1].type.integers
    if times is None or x.rank not in (4, 5) or len(times) != x.rank or is_static(x.shape):
        return None
    if max(times) < 2 or (x.type.dims[1] != 1 and any(dim != 1 for dim in x.type.dims[2:])):
        return None
    ones = list(range(6 - x.rank))
    return ops.Squeeze(F.Tile(F.Unsqueeze(x, ones), [*(1 for _ in ones), *times]), ones)


@rule(wrap_type((ops.Interpolate, ops.Interpolate11)), "an `Interpolate` of four dimensions", Gap(
    "line-between-elements",
    "`Interpolate` of at most three dimensions in the modes `linear` and `linear_onnx` gives wrong numbers",
    on={Processor.AVX512_CORE: NEVER, Processor.AVX2: NEVER},
))
def InterpolateWithFourDimensions(node: ops.Interpolate | ops.Interpolate11) -> Node | None:
    """Interpolate(x : [N,3,W], sizes, scales, 2)  ->  Squeeze(Interpolate(Unsqueeze(x, 2), sizes, scales, 3), 2)

    In linear modes. Where only the last dimension is resized, a dimension of 1 before it takes the least time.
    """
    place_of_axes = 3 if isinstance(node, ops.Interpolate) else 2
    x, *sizes = node.operands[:place_of_axes]
    if node.mode not in ("linear", "linear_onnx") or x.rank not in (1, 2, 3):
        return None
    axes = integers(node, place_of_axes) if len(node.operands) > place_of_axes else tuple(range(x.rank))
    if axes is None:
        return None
    ones = [*range(3 - x.rank), 2] if axes == (x.rank - 1,) else list(range(4 - x.rank))
    kept = [axis for axis in range(4) if axis not in ones]
    wide = type(node)(F.Unsqueeze(x, ones), *sizes, [kept[axis] for axis in axes], **node.attribute_values())
    wide.pads_begin, wide.pads_end = _spread(node.pads_begin, kept), _spread(node.pads_end, kept)
    return ops.Squeeze(wide, ones)


def _spread(pads: tuple[int, ...], axes: list[int]) -> tuple[int, ...]:
    """The padding of four dimensions; that of `axes`, as far as it is given, is `pads`, that of the others 0."""
    by_axis = dict(zip(axes, pads, strict=False))
    return tuple(by_axis.get(axis, 0) for axis in range(4))


@rule(
    wrap_type((ops.Convert, ops.Dequantize), any_input(is_constant() & type_matches(u2)), ...),
    "a constant of four bits",
    Gap(
        "two-bit-constants", "the elements of a constant of two bits are read in reverse order within each byte",
        until="2025.2.0",
    ),
)
def WidenTwoBitConstants(node: ops.Convert | ops.Dequantize) -> Node:
    """Convert(Constant : u2)  ->  Convert(Constant : u4), and so for the constants of a Dequantize"""
    for port, each in enumerate(node.inputs):
        if each is not None and each.dtype is u2 and isinstance(each.node, Constant):
            wide = ArrayTensor(each.node.array.astype(u4.numpy), u4)
            node.graph.set_input(node, port, F.Constant(wide, graph=node.graph))
            drop_dead([each.node])
    return node


@maximum_rule(wrap_type(ops.View), "`max(y, y)` before the output", Gap(
    "returned-view-of-second-output", "a view of the second output of a node, or a `Reshape` to it, that is returned "
    "and read elsewhere reads the first one", severity=ERROR, device=GPU,
))
def MaximumBeforeOutput(node: ops.View) -> Use | None:
    """y = Reshape(a, b), where b is the second output of a node  ->  an output returns max(y, y), others read y

    The plugin makes a second view for the output, of the nodes of the inputs without their ports.
    """
    results = [use for use in node.output.uses if isinstance(use.node, Result)]
    if node.graph.owner is not None or node.output.dtype is string or not any(each.index for each in node.operands):
        return None
    return results[0] if 0 < len(results) < len(node.output.uses) else None


@maximum_rule(wrap_type(ops.TopK), "`max(x, x)`", Gap(
    "returned-values-of-top-k", "a `TopK` of unknown sizes ends the process if its values are returned, and nothing "
    "else reads its outputs", severity=CRASH, device=GPU,
))
def MaximumBehindTopK(node: ops.TopK) -> Value | None:
    """x, _ = TopK(a : [?,4]) where x is only returned  ->  max(x, x). A vector needs none."""
    x, places = node.outputs
    if node.graph.owner is not None or places.is_used or x.rank == 1 or is_declared(x):
        return None
    return x if all(isinstance(use.node, Result) for use in x.uses) else None


@maximum_rule(
    wrap_type((ops.Gather, ops.Unary, ops.Binary, ops.Select), when=type_matches(boolean)), "`x or x`", Gap(
        "returned-boolean", "a model output of booleans of known shape, computed from a tensor of unknown shape, has "
        "another type than the plugin expects", severity=ERROR, device=GPU,
    ), Gap(
        "boolean-result", "a boolean result of static shape that is computed from dynamic tensors does not run",
        severity=ERROR, device=GPU,
    ),
)
def OrBehindBoolean(node: Node) -> Value | None:
    """y = Less(a : [N,M], b) of shape [2,3]  ->  y or y, if y or a view of it is returned

    The plugin returns booleans as u8, and gives the memory of such a node to the output without a conversion.
    """
    y = node.output
    if not is_static_there(node) or all(is_declared(each) for each in node.operands):
        return None
    is_returned = any(isinstance(use.node, Result) for each in (y, *views_of(y)) for use in each.uses)
    return y if is_returned and node.graph.owner is None else None


@maximum_rule(wrap_type((ops.If, Iteration)), "`x or x`", *(
    Gap(f"returned-boolean-of-{kind.lower()}", f"a boolean output of `{kind}` of known shape that a model of unknown "
        "shapes returns has another type than the plugin expects", severity=ERROR, device=GPU)
    for kind in ("If", "Loop")
))
def OrBehindIf(node: ops.Control) -> Use | None:
    """y = If(c) or Loop(c) of booleans, of known shape  ->  y or y, where y is returned. See OrBehindBoolean.

    Other readers read y: a kernel whose result another If reads as well keeps the memory of the branch that ran before.
    """
    found = [y for y in node.outputs if y.dtype is boolean and is_declared(y) and node.graph.owner is None]
    if isinstance(node, Iteration) and all(map(is_declared, (*node.operands, *node.outputs))):
        return None
    return next((use for y in found for use in y.uses if isinstance(use.node, Result)), None)
