"""Operations that the GPU device computes wrongly, or does not compile."""

import numpy as np

from mo_loop.graph.dimension import fresh, now
from mo_loop.graph.shape import assume_fixed, normalise_axis, of_declared_sizes
from mo_loop.graph.types import ElementType, boolean, i8, i32, i64, u8
from mo_loop.ops.exact import is_not_negative
from mo_loop.ops.movement import END, FAR
from mo_loop.ops.reduction import Reduction
from mo_loop.target import ERROR, GPU
from mo_loop.transforms.pattern import any_input, wrap_type
from mo_loop.transforms.predicates import is_constant
from mo_loop.transforms.replace import insert_after
from mo_loop.transforms.runtime.inference import is_computable
from mo_loop.transforms.runtime.local.rule import (
    both_orders,
    is_declared,
    is_one_element,
    is_static_model,
    is_static_there,
    is_weights,
    maximum_rule,
    rule,
)
from mo_loop.transforms.vocabulary import Constant, F, Gap, Node, Op, Result, Use, Value, integers, ops, source_of


@rule(wrap_type(ops.FloorMod), "`Mod`, twice where the signs may differ", Gap(
    "floor-mod-of-negative", "`FloorMod` has the sign of the dividend", device=GPU,
))
def FloorModToMod(node: ops.FloorMod) -> Node | None:
    """FloorMod(a, b)  ->  Mod(a, b), where neither is below 0, or the result is only compared with 0
    FloorMod(a, b)  ->  Mod(Mod(a, b) + b, b), where b is a constant above 0
    FloorMod(a, b)  ->  Select(r * Sign(b) < 0, r + b, r), where r is Mod(a, b)

    for integers. The kernel subtracts trunc(a / b) * b. The sum of the second form is exact in f32: the runtime divides
    in it.
    """
    a, b = node.operands
    if a.dtype.is_float:
        return None
    rest = F.Mod(a, b)
    divisors = b.constant
    if a.dtype.kind == "uint" or (is_not_negative(a) and is_not_negative(b)) or _is_compared_with_zero(node.output):
        return rest.node
    if divisors is not None and np.all((divisors > 0) & (divisors < min(2**23, 2 ** (a.dtype.bits - 2)))):
        return ops.Mod(rest + _copied(b), _copied(b))
    if b.rank is not None and b.rank < (rest.rank or 0):  # see RaiseRankOfFused
        b = F.Unsqueeze(b, list(range(rest.type.rank - b.rank)))
    zero = F.Constant(np.zeros(()), graph=node.graph, dtype=a.dtype)
    return ops.Select(F.Less(rest * F.Sign(b), zero), rest + b, rest)


def _copied(value: Value) -> Value:
    """A constant of its own for another reader (MakeConstantsScalar); `value` if it is not one."""
    return F.Constant(value.node.tensor, graph=value.graph) if isinstance(value.node, Constant) else value


def _is_compared_with_zero(value: Value) -> bool:
    readers = [use.node for use in value.uses]
    return all(
        isinstance(each, ops.Equal | ops.NotEqual) and (0,) in [one.type.integers for one in each.operands]
        for each in readers
    )


_MIRRORED: dict[type[Node], type[ops.Binary]] = {
    ops.Less: ops.Greater, ops.LessEqual: ops.GreaterEqual, ops.Greater: ops.Less, ops.GreaterEqual: ops.LessEqual,
}


@rule(
    wrap_type((*_MIRRORED, ops.Mod, ops.FloorMod, ops.Divide, ops.Power)),
    "`y > c` for `c < y`; `max(y, y)` as the second operand of the others",
    Gap(
        "gpu-order-of-numbers",
        "a comparison, `Mod`, `FloorMod`, `Divide` or `Power` of a constant number and a view, a reduction or a "
        "`Gather` of one element takes the second operand for the first", device=GPU,
    ),
)
def KeepOrderOfNumbers(node: ops.Binary) -> Node | None:
    """c < Squeeze(x : [1])  ->  Squeeze(x) > c
    Mod(c, y)  ->  Mod(c, max(y, y)), where y is Squeeze(x : [1]), or Barrier(n : [1], bounds), a reduction later

    The plugin moves the operation before what changes the shape alone.
    """
    c, y = node.operands
    is_moved = isinstance(y.node, Reduction | ops.View | ops.Gather)
    is_reduced_later = isinstance(y.node, ops.Barrier) and y.node.hides == "bounds"
    if not is_one_element(c) or not (is_moved or is_reduced_later) or not is_declared(y) or set(y.type.dims) - {1}:
        return None
    if type(node) in _MIRRORED:
        return _MIRRORED[type(node)](y, c)
    node.graph.set_input(node, 1, F.Maximum(y, y))
    return node


@rule(wrap_type(ops.BitwiseNot, when=lambda x: x.dtype.kind != "uint"), "`BitwiseXor` with -1", Gap(
    "bitwise-not", "`BitwiseNot` does not compile", severity=ERROR, device=GPU,
))
def BitwiseNotToXor(node: ops.BitwiseNot) -> Node:
    """BitwiseNot(x)  ->  BitwiseXor(x, -1)"""
    (x,) = node.operands
    return ops.BitwiseXor(x, F.Constant(np.full((), -1), graph=node.graph, dtype=x.dtype))


_BY_INDICES = (ops.ScatterElementsUpdate, ops.ScatterUpdate, ops.ScatterNDUpdate, ops.GatherElements)


@rule(wrap_type(_BY_INDICES), "matrices of one column", Gap(
    "elements-of-constant-vector",
    "in a model of static shapes, `GatherElements` and the Scatter operations read and write other elements if the "
    "data, indices or updates are constants of one dimension", device=GPU,
))
def VectorsToColumns(node: Op) -> Node | None:
    """GatherElements(x : [N], i, 0)  ->  Squeeze(GatherElements(Unsqueeze(x, 1), Unsqueeze(i, 1), 0), 1)
    ScatterElementsUpdate(x : [N], i, u, 0), ScatterUpdate and ScatterNDUpdate  likewise

    In a model of static shapes a constant [N] is a tensor [1, N, 1, 1], another one [N, 1, 1, 1].
    """
    x, *others = node.operands
    given = [x, *others[: 1 if isinstance(node, ops.GatherElements) else 2]]
    known: dict[Value, bool] = {}
    if x.rank != 1 or not all(map(is_declared, given)):
        return None
    if not any(each.rank == 1 and is_computable(each, known, of_sizes=True) for each in given):
        return None
    by_elements = isinstance(node, ops.GatherElements | ops.ScatterElementsUpdate)
    columns = [
        each if port == 1 and not by_elements else F.Unsqueeze(each, [each.rank]) for port, each in enumerate(given)
    ]
    attributes = node.attribute_values()
    if "axis" in attributes:
        attributes["axis"] = 0
    axis = [] if isinstance(node, ops.GatherElements | ops.ScatterNDUpdate) else [np.array(0)]
    return ops.Squeeze(type(node)(*columns, *axis, **attributes), [1])


@rule(wrap_type((ops.GatherND, ops.ScatterElementsUpdate)), "the operation on i32", Gap(
    "gpu-bytes-by-indices",
    "`GatherND` and `ScatterElementsUpdate` of booleans or integers of 8 bits do not compile (\"No layout format\")",
    severity=ERROR, device=GPU,
))
def IndexBytesAsIntegers(node: ops.GatherND | ops.ScatterElementsUpdate) -> Node | None:
    """GatherND(x, i)  ->  Convert(GatherND(Convert(x, i32), i)), and ScatterElementsUpdate likewise"""
    kind = node.output.dtype
    if kind not in (boolean, i8, u8):
        return None
    wide = [each.astype(i32) if each.dtype is kind else each for each in node.operands]
    return type(node)(*wide, **node.attribute_values()).output.astype(kind).node


@rule(wrap_type(ops.ScatterNDUpdate, any_input(), any_input(is_constant()), any_input()), "`i + size`", Gap(
    "gpu-constant-places", "`ScatterNDUpdate` takes constant indices below 0 for others", device=GPU,
))
def CountConstantPlaces(node: ops.ScatterNDUpdate) -> Node | None:
    """ScatterNDUpdate(x : [2,...], [[-1]], u)  ->  ScatterNDUpdate(x, [[1]], u)"""
    x, places, _ = node.operands
    numbers = np.asarray(places.constant)
    sizes = (of_declared_sizes(x.shape) or ())[: numbers.shape[-1]]
    if not (numbers < 0).any() or not sizes or not all(isinstance(each, int) for each in sizes):
        return None
    counted = np.where(numbers < 0, numbers + np.array(sizes, numbers.dtype), numbers)
    node.graph.set_input(node, 1, F.Constant(counted, graph=node.graph, dtype=places.dtype))
    return node


@rule(wrap_type(ops.ScatterNDUpdate), "`i + size` where `i < 0`", Gap(
    "negative-places", "`ScatterNDUpdate` takes indices below 0 for others", device=GPU, alone=True,
))
def CountPlacesFromFront(node: ops.ScatterNDUpdate) -> Node | None:
    """ScatterNDUpdate(x, i, u)  ->  ScatterNDUpdate(x, Select(i < 0, i + sizes of x, i), u)"""
    x, places, _ = node.operands
    count = now(places.type.dims[-1]) if places.rank else None
    if count is None or isinstance(places.node, ops.Select) or is_not_negative(places):
        return None
    assume_fixed(places.type.dims[-1:])
    sizes = F.Slice(x.sizes, [0], [count], [1], [0]).astype(places.dtype)
    node.graph.set_input(node, 1, F.Select(places < 0, places + sizes, places))
    return node


@rule(wrap_type(ops.Multiply), "`Unsqueeze` of the factor", Gap(
    "factor-of-root-mean-square",
    "a division by the root of a mean of squares, times a vector that is not constant, multiplies each element by the "
    "first of the vector, if shapes are unknown", device=GPU,
))
def RaiseRankOfFactor(node: ops.Multiply) -> Node | None:
    """(x : [?,?,?] / Sqrt(ReduceMean(x * x, -1) + e)) * y : [N]  ->  (x / ...) * Unsqueeze(y, [0, 1])

    The device makes this an RMS, whose kernel takes the vector for one along the first dimension.
    """
    for port, (y, x) in enumerate(both_orders(node)):
        if y.rank and x.rank is not None and y.rank < x.rank and not isinstance(y.node, Constant) and _is_rms(x):
            node.graph.set_input(node, port, F.Unsqueeze(y, list(range(x.rank - y.rank))))
            return node
    return None


def _is_rms(x: Value) -> bool:
    """Whether it is a product or quotient with the root of a mean, also one that is converted to another type."""
    x = source_of(x, ops.Convert)
    if not isinstance(x.node, ops.Multiply | ops.Divide):
        return False
    for root in x.node.operands:
        for _ in range(4):
            if isinstance(root.node, ops.Divide | ops.Power | ops.Sqrt | ops.Add):
                root = next((each for each in root.node.operands if not isinstance(each.node, Constant)), root)
        if isinstance(root.node, ops.ReduceMean):
            return True
    return False


@rule(wrap_type(ops.PReLU), "slopes of the rank of the tensor", Gap(
    "gpu-slopes-of-channels",
    "`PReLU` of a tensor of unknown sizes multiplies all channels by the first of a vector of slopes", device=GPU,
))
def RaiseRankOfSlopes(node: ops.PReLU) -> Node | None:
    """PReLU(x : [?,3,?,?], s : [3])  ->  PReLU(x, Unsqueeze(s, [0, 2, 3]))

    The kernel takes the vector for one along the first dimension.
    """
    x, slopes = node.operands
    if (x.rank or 0) < 2 or slopes.rank != 1 or slopes.shape == (1,):
        return None
    node.graph.set_input(node, 1, F.Unsqueeze(slopes, [0, *range(2, x.type.rank)]))
    return node


@maximum_rule(wrap_type(ops.PReLU), "`max(x, x)`", Gap(
    "gpu-computed-slopes",
    "`PReLU` of a tensor of unknown sizes with slopes that are not constant reads other elements, unless it is a part "
    "of the operation before it", device=GPU,
))
def MaximumBeforeSlopes(node: ops.PReLU) -> Use | None:
    """PReLU(x : [?,?], s)  ->  PReLU(max(x, x), s), where s is not constant

    The kernel of a maximum computes the PReLU as well.
    """
    x, slopes = node.operands
    if is_weights(slopes) or isinstance(x.node, ops.Elementwise) or is_static_model(node.graph):
        return None
    return Use(node, 0)


@rule(wrap_type((ops.Add, ops.Subtract)), "the constant plus a zero that cannot be folded", Gap(
    "gpu-constant-of-known-size",
    "a sum or difference of a tensor of unknown size and a constant that determines all sizes of the result does not "
    "compile (\"Count is called for dynamic shape\")", severity=ERROR, device=GPU, alone=True,
))
def HideAddedConstant(node: ops.Add | ops.Subtract) -> Node | None:
    """x : [1,?] + c : [2]  ->  x + Barrier(c, value)"""
    for port, (c, x) in enumerate(both_orders(node)):
        if isinstance(c.node, Constant) and not is_declared(x) and is_static_there(node):
            node.graph.set_input(node, port, F.Barrier(c, hides="value"))
            return node
    return None


def _is_computed(*values: Value) -> bool:
    return not all(isinstance(each.node, Constant) for each in values)


def _scalar(value: Value) -> Value:
    return value if value.rank == 0 else value.reshape([])


def _up_to(size: Value, dtype: ElementType) -> Value:
    """0, 1, 2, ... before a number."""
    return F.Range(0, _scalar(size), 1, output_type=dtype)


@rule(wrap_type(ops.OneHot), "`Equal` with a `Range`", Gap(
    "computed-depth", "`OneHot` whose depth or values are computed does not compile", severity=ERROR, device=GPU,
    alone=True,
))
def OneHotToEqual(node: ops.OneHot) -> Node | None:
    """OneHot(x, n, a, b)  ->  Select(Unsqueeze(x, -1) == Range(n), a, b)"""
    x, depth, on, off = node.operands
    if x.rank is None or not _is_computed(depth, on, off):
        return None
    at = normalise_axis(node.axis, x.rank + 1)
    numbers = _up_to(depth, x.dtype).reshape([-1, *[1] * (x.rank - at)])
    return ops.Select(F.Equal(F.Unsqueeze(x, [at]), numbers), on, off)


@rule(wrap_type(ops.Eye), "`Equal` of two `Range`", Gap(
    "computed-eye", "`Eye` of computed sizes does not compile", severity=ERROR, device=GPU, alone=True,
))
def EyeToEqual(node: ops.Eye) -> Node | None:
    """Eye(n, m, d)  ->  Unsqueeze(Range(n) + d, 1) == Range(m)"""
    rows, columns, diagonal = node.operands
    if not _is_computed(rows, columns, diagonal):
        return None
    places = F.Unsqueeze(_up_to(rows, i64) + _scalar(diagonal).astype(i64), [1])
    return ops.Convert(F.Equal(places, _up_to(columns, i64)), destination_type=node.output_type)


@rule(wrap_type(ops.Sign), "`Select` by `x != x`", Gap(
    "gpu-sign-of-nan", "`Sign` of NaN is -1", device=GPU, alone=True,
))
def KeepNaNOfSign(node: ops.Sign) -> Node | None:
    """Sign(x)  ->  Select(x != x, x, Sign(x))"""
    (x,) = node.operands
    use = node.output.only_use
    if not x.dtype.is_float or (use is not None and isinstance(use.node, ops.Select) and use.node.inputs[1] is x):
        return None
    insert_after(node.output, lambda y: F.Select(F.NotEqual(x, x), x, y))
    return node


@rule(wrap_type(ops.Slice), "a `Slice` of the first elements, in reverse order", Gap(
    "gpu-reversed-beginning", "a `Slice` in reverse order that begins before the last element of a tensor of known "
    "sizes, and ends with the first one, begins with the last but one", device=GPU,
))
def ReverseBeginning(node: ops.Slice) -> Node | None:
    """x[2:-9:-1]  ->  x[-8:3][::-1], which are the same elements of a tensor of any size"""
    x, *_ = node.operands
    starts, stops, steps, axes = (integers(node, port) for port in range(1, 5))
    sizes = of_declared_sizes(x.shape)
    if sizes is None or starts is None or stops is None or steps is None or axes is None:
        return None
    tops = [size if isinstance(size := sizes[normalise_axis(axis, len(sizes))], int) else FAR for axis in axes]
    reversed_ = [
        port for port, (top, start, stop, step) in enumerate(zip(tops, starts, stops, steps, strict=True))
        if step < 0 and start != -1 and start < top - 1 and stop < -top
    ]
    if not reversed_:
        return None
    bounds = [[bounds[port] + 1 for port in reversed_] for bounds in (stops, starts)]
    x = F.Slice(x, *bounds, [1] * len(reversed_), [axes[port] for port in reversed_])
    ends = [[far if port in reversed_ else bound for port, bound in enumerate(bounds)]
            for far, bounds in ((END, starts), (-END, stops))]
    return ops.Slice(x, *map(np.array, ends), *node.operands[3:])


@rule(wrap_type(ops.Parameter), "a size that is not declared", Gap(
    "gpu-input-without-elements", "a model with an input that is declared with a size of 0 does not run",
    severity=ERROR, device=GPU, alone=True,
))
def WidenEmptyInput(node: ops.Parameter) -> Node | None:
    """Parameter : f32[2,0]  ->  Parameter : f32[2,?]"""
    type_ = node.value_type
    if node.graph.owner is not None or 0 not in (type_.shape or ()):
        return None
    node.retype(type_.with_shape(tuple(fresh() if dim == 0 else dim for dim in type_.shape)))
    return node


ACTIVATIONS = (ops.Unary, ops.HardSigmoid, ops.PReLU, ops.Selu, ops.Swish, ops.Power)


@maximum_rule(wrap_type(ACTIVATIONS), "`max(y, y)`", Gap(
    "gpu-returned-activation",
    "an activation of a view, of known sizes in a model of unknown sizes, is left out if it is returned and read "
    "elsewhere", device=GPU,
))
def MaximumBehindActivation(node: Op) -> Value | None:
    """y = Tanh(Reshape(x)), which is returned and read elsewhere  ->  max(y, y)

    The plugin makes the activation a part of the view, and leaves the view out. A reduction along sizes of 1 is a view
    there too, as is a Transpose that moves only these.
    """
    y = node.output
    returned = sum(isinstance(use.node, Result) for use in y.uses)
    if not 0 < returned < len(y.uses) or not is_declared(y) or y.dtype is boolean or is_static_model(node.graph):
        return None
    sources = [node.operands[0]]
    for source in sources:
        if source.only_use is not None and isinstance(source.node, (*ACTIVATIONS, ops.Binary)):
            sources += source.node.operands
    return y if any(each.only_use is not None and _may_be_view(each.node) for each in sources) else None


def _may_be_view(node: Node) -> bool:
    """Whether the output has the elements of the first input, as far as its sizes tell."""
    if not isinstance(node, Reduction | ops.Transpose | ops.Gather):
        return isinstance(node, ops.View)
    before, after = (of_declared_sizes(each.shape) or () for each in (node.operands[0], node.outputs[0]))
    return [size for size in before if size != 1] == [size for size in after if size != 1]


@maximum_rule(wrap_type(ops.CumSum), "`max(y, y)`", Gap(
    "gpu-activations-of-sums", "of a `CumSum` and two activations the activations are left out", device=GPU,
))
def MaximumBehindSums(node: ops.CumSum) -> Value | None:
    """Sin(Tanh(y)) with y = CumSum(x)  ->  Sin(Tanh(max(y, y))), also where views are between them"""
    y, count = node.output, 0
    while (use := y.only_use) is not None and isinstance(use.node, (*ACTIVATIONS, ops.View)):
        count += not isinstance(use.node, ops.View)
        y = use.node.output
    return node.output if count > 1 else None
