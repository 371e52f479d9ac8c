"""Weights of matrix products that releases of the runtime read or pack wrongly."""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from mo_loop.graph.shape import normalise_axis
from mo_loop.graph.tensor import SAMPLE, ArrayTensor, DeferredTensor, Tensor, same_bytes
from mo_loop.graph.transposed_tensor import TransposedTensor
from mo_loop.graph.types import ElementType, i4, u4, u8
from mo_loop.ops.base import follows_from_constants
from mo_loop.target import CRASH, NEVER, Gap, Processor, ReleaseRange
from mo_loop.transforms.low_precision.weights import is_weights
from mo_loop.transforms.replace import drop_dead, move_readers
from mo_loop.transforms.vocabulary import Constant, F, FunctionPass, Graph, Node, Use, Value, is_static, node_pass, ops

WHOLE = 16
"""Columns that the kernels of older releases compute at once."""


@node_pass(
    (ops.Dequantize,), "the same scale for each column",
    Gap(
        "row-times-weights-of-one-scale", "`MatMul` of a single row with 4- or 8-bit weights of one scale is wrong",
        until="2024.6.0", on={Processor.SSE41: NEVER},
    ),
    Gap(
        "columns-of-one-zero-point",
        "`MatMul` of few rows with 4- or 8-bit weights of one zero point has wrong last columns if their number is not "
        "a multiple of 16", "the same zero point for each column", until="2025.0.0", on={Processor.SSE41: NEVER},
    ),
)
def SpreadScales(node: ops.Dequantize) -> str:
    """MatMul(x, Dequantize(w, one scale))  ->  MatMul(x, Dequantize(w, the same scale for each column))
       MatMul(x, Dequantize(w, scales, one zero point))  ->  the same zero point for each scale
    """
    sizes = [each.node.tensor.size for each in node.inputs[1:] if each and isinstance(each.node, Constant)]
    if not is_weights(node.output) or 1 not in sizes:
        return "it is not of weights with one scale or zero point"
    shape = node.inputs[0].type.shape
    by_axis: dict[int, list[Use]] = {}
    for use in node.output.uses:
        axis = _columns(use, len(shape))
        if axis is not None and shape[axis] > 1 and (sizes[0] == 1 or shape[axis] % WHOLE):
            by_axis.setdefault(axis, []).append(use)
    if not by_axis:
        return "no matrix product has its numbers as second input"
    for axis, readers in by_axis.items():
        move_readers(node.output, _with_many(node, axis, shape[axis]).output, readers)
    drop_dead([node])
    return ""


def _with_many(node: ops.Dequantize, axis: int, columns: int) -> ops.Dequantize:
    """The same numbers, with a scale for each column, and with a zero point for each scale if that is needed."""
    x, scale, zero = (*node.inputs, None)[:3]
    attributes = node.attribute_values()
    if scale.node.tensor.size == 1:
        scale = _repeated(scale, (columns,))
        attributes |= {"axis": axis, "block_size": 0}
    if zero is not None and columns % WHOLE:
        zero = _repeated(zero, scale.node.tensor.shape, {u4: u8}.get(zero.dtype, zero.dtype))
    return ops.Dequantize(x, scale, zero, **attributes)


def _columns(use: Use, rank: int) -> int | None:
    """The axis of weights along which a matrix product does not sum; None for other readers, and for several.

    A product of quantised activations is computed with integers, which is right.
    """
    node, port = use
    if isinstance(node, ops.MatMul) and port == 1 and rank > 1:
        if isinstance(node.operands[0].node, ops.FakeQuantize):
            return None
        return rank - 2 if node.transpose_b else rank - 1
    if not isinstance(node, ops.Transpose | ops.Convert) or port:
        return None
    found = {_columns(each, rank) for each in node.output.uses}
    axis = found.pop() if len(found) == 1 else None
    return None if axis is None else node.axis_map(0)[axis]


def _repeated(parameter: Value, shape: Sequence[int], dtype: ElementType | None = None) -> Value:
    assert isinstance(parameter.node, Constant)
    if parameter.node.tensor.size != 1:
        return parameter
    to = dtype or parameter.dtype
    array = np.full(shape, parameter.node.array.reshape(())).astype(to.numpy)
    return F.Constant(ArrayTensor(array, to), graph=parameter.graph)


@node_pass((ops.Dequantize,), "the numbers and the zero points are larger by 8, in u4", Gap(
    "zero-points-of-i4", "`MatMul` with weights of i4 that have zero points is wrong", until="2025.3.0",
    on={Processor.SSE41: NEVER},
))
def UnsignedWeights(node: ops.Dequantize) -> str:
    """Dequantize(w, scale, zero point) of i4  ->  Dequantize(w + 8, scale, zero point + 8) of u4"""
    x, scale, zero = (*node.inputs, None)[:3]
    if not is_weights(node.output) or zero is None or {x.dtype, zero.dtype} != {i4}:
        return "it is not of weights of i4 with zero points of i4"
    moved = [Constant(_shifted(each.node.tensor), graph=node.graph, name=each.node.name) for each in (x, zero)]
    for new, old in zip(moved, (x, zero), strict=True):
        new.origins = old.node.origins
    attributes = node.attribute_values()
    move_readers(node.output, F.Dequantize(moved[0].output, scale, moved[1].output, **attributes), node.output.uses)
    drop_dead([node])
    return ""


@node_pass((ops.Dequantize,), "8-bit weights of [B, 1, K, N], and a `Reshape` to [B, K, N]; 4-bit weights in f32", Gap(
    "stacked-weights",
    "`MatMul` with several matrices of 4- or 8-bit weights is wrong, does not run, or ends the process", severity=CRASH,
    since="2025.4.1", until="2025.4.1", on={Processor.SSE41: NEVER},
))
def DivideStackedWeights(node: ops.Dequantize) -> str:
    """MatMul(x, Dequantize(w : [B, K, N]))  ->  MatMul(x, Dequantize(w) {divided: true}), a Reshape of [B, 1, K, N]

    Weights of 4 bits are expanded, also those in blocks: in this form they are wrong with a factor after the product.
    Weights of several blocks of 8 bits are reshaped in any case.
    """
    if not is_weights(node.output) or node.divided or node.expanded:
        return "it is not of weights, or has their last form"
    shape = node.inputs[0].type.shape
    if len(shape) != 3 or shape[0] == 1 or all(_columns(use, 3) is None for use in node.output.uses):
        return "it is not of several matrices that a product of numbers reads"
    is_narrow = node.inputs[0].type.dtype.bits < 8
    node.divided, node.expanded = not is_narrow, is_narrow
    return ""


def _shifted(tensor: Tensor) -> Tensor:
    """The numbers plus 8 in u4: the highest bit of each is inverted."""

    def blocks() -> Iterator[bytes | memoryview]:
        for block in tensor.blocks():
            yield (np.frombuffer(block, np.uint8) ^ 0x88).tobytes()

    return DeferredTensor(u4, tensor.shape, blocks, tensor.files)


VIEWS = (ops.View, ops.Convert, ops.Dequantize)
"""Operations after which the runtime may read the bytes of the constant itself."""
KINDS = (ops.MatMul, ops.Filtered)


@dataclass
class _Readers:
    """The nodes of one kind that read weights of the same sizes and type, apart by the order of the dimensions."""

    outputs_first: list[tuple[Node, Hashable]] = field(default_factory=list)
    inputs_first: list[tuple[Node, Hashable]] = field(default_factory=list)


class SeparateWeightOrders(FunctionPass):
    """MatMul(x, w : [N, K]) {transpose_b}, MatMul(y, v : [K, N])  ->  the second is MatMul(y, v') {transpose_b}
       Convolution(x, w : [O, I, ...]), ConvolutionBackpropData(y, v : [I, O, ...])  ->  the second reads max(v, v)

    where v has the bytes of w, possibly in another scope; v' : [N, K] is v transposed.

    The runtime packs weights for [N, K] or [O, I], and keeps the result by the address of the bytes and these sizes.
    The .bin has equal bytes once, so both orders have one address. It computes max(v, v) when it compiles the model.
    """

    avoids = (
        Gap(
            "weights-of-both-orders",
            "two `MatMul`s that read the same bytes of the .bin, one as [N, K] with `transpose_b` and one as [K, N] "
            "without: one of them computes with the weights of the other", "the weights transposed, with `transpose_b`",
        ),
        Gap(
            "filters-of-both-orders",
            "a `Convolution` and a `ConvolutionBackpropData` that read the same bytes of the .bin, with as many input "
            "and output channels: one of them computes with the filters of the other", "`max(w, w)` of the filters",
            on={Processor.SSE41: ReleaseRange(since="2026.4.1")},
        ),
    )

    bodies = "never"  # all scopes are examined together

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        while self._separate(graph):  # weights that are transposed now may have the bytes of others
            changed = True
        return changed

    def _separate(self, graph: Graph) -> bool:
        changed = False
        for each in _readers(graph):
            known = _Sources([source for _, source in each.outputs_first])
            for node, source in each.inputs_first:
                if self.leaves(node):
                    continue
                if source in known:
                    changed = self._rewrite(node)
                else:
                    self.refuse(node, "no node reads the bytes of its weights in the other order")
        self.at = None
        return changed

    def _rewrite(self, node: Node) -> bool:
        weights = node.operands[1]
        made = _transposed(weights) if isinstance(node, ops.MatMul) else None
        if isinstance(node, ops.MatMul) and made is not None:
            node.transpose_b = True
        node.graph.set_input(node, 1, F.Maximum(weights, weights) if made is None else made)
        drop_dead([weights.node])
        return self.accept(node)


class _Sources:
    """Tensors, found again by their bytes, and values, found again by their identity."""

    def __init__(self, sources: list[Hashable]) -> None:
        self._known = set(sources)
        self._by_start: dict[bytes, list[Tensor]] = defaultdict(list)
        for each in self._known:
            if isinstance(each, Tensor):
                self._by_start[_start(each)].append(each)

    def __contains__(self, source: Hashable) -> bool:
        if isinstance(source, Value):
            return source in self._known and follows_from_constants(source)
        assert isinstance(source, Tensor)
        return source in self._known or any(same_bytes(source, each) for each in self._by_start.get(_start(source), ()))


def _start(tensor: Tensor) -> bytes:
    """The first bytes, which a sample of any kind of tensor has."""
    return tensor.sample()[: SAMPLE // 2]


def _readers(graph: Graph) -> Iterator[_Readers]:
    """The readers of weights in all scopes, where some read one order and some the other."""
    found: dict[Hashable, _Readers] = defaultdict(_Readers)
    nodes = [node for scope in graph.scopes() for kind in KINDS for node in scope.of(kind)]
    if len(set(map(_has_outputs_first, nodes))) < 2:
        return
    for node in nodes:
        value = node.operands[1]
        sizes = _sizes(node, value)
        if sizes is None:
            continue
        source = _source(value)
        type_ = (source.dtype, source.nbytes) if isinstance(source, Tensor) else None
        readers = found[sizes, type_]
        (readers.outputs_first if _has_outputs_first(node) else readers.inputs_first).append((node, source))
    for each in found.values():
        if each.outputs_first and each.inputs_first:
            yield each


def _has_outputs_first(node: Node) -> bool:
    return node.transpose_b if isinstance(node, ops.MatMul) else isinstance(node, ops.Convolution)


def _sizes(node: Node, value: Value) -> Hashable:
    """The sizes of weights with the outputs first; None if both orders are the same or the sizes are not known."""
    if not is_static(value.shape) or value.type.rank < 2:
        return None
    shape = list(value.type.dims)
    is_product = isinstance(node, ops.MatMul)
    while is_product and len(shape) > 2 and shape[0] == 1:
        del shape[0]
    in_groups = isinstance(node, ops.GroupConvolution | ops.GroupConvolutionBackpropData)
    at = len(shape) - 2 if is_product else int(in_groups)
    if 1 in shape[at : at + 2]:
        return None
    if not _has_outputs_first(node):
        shape[at : at + 2] = shape[at + 1], shape[at]
    return is_product, at, tuple(shape)


def _source(value: Value) -> Tensor | Value:
    """The tensor whose bytes the runtime may read as `value`, or `value` itself, which it may compute once."""
    source = value
    while isinstance(source.node, VIEWS):
        source = source.node.operands[0]
    return source.node.tensor if isinstance(source.node, Constant) else value


def _transposed(value: Value) -> Value | None:
    """Weights with their last two dimensions exchanged, in a constant of the same type; None if they are computed."""
    node = value.node
    if isinstance(node, Constant):
        made = Constant(_swapped(node.tensor), graph=node.graph, name=node.name)
        made.origins = node.origins
        return made.output
    if isinstance(node, ops.Convert):
        inner = _transposed(node.operands[0])
        return None if inner is None else F.Convert(inner, **node.attribute_values())
    if not isinstance(node, ops.Dequantize) or not is_weights(value):
        return None
    rank = value.type.rank
    x, *parameters = (
        _transposed(each) if each is not None and (number == 0 or each.rank == rank) else each
        for number, each in enumerate(node.inputs)
    )
    axis = normalise_axis(node.axis, rank)
    swapped = {rank - 1: rank - 2, rank - 2: rank - 1}
    attributes = node.attribute_values() | {"axis": swapped.get(axis, axis)}
    return F.Dequantize(x, *parameters, **attributes)


def _swapped(tensor: Tensor) -> Tensor:
    """The elements with the last two dimensions exchanged when the .bin is written."""
    *batch, rows, columns = tensor.shape
    if tensor.dtype.bits >= 8 and all(each == 1 for each in batch):
        return TransposedTensor(tensor)

    def blocks() -> Iterator[bytes | memoryview]:
        yield from ArrayTensor(np.swapaxes(tensor.array(), -1, -2), tensor.dtype).blocks()

    return DeferredTensor(tensor.dtype, (*batch, columns, rows), blocks, tensor.files)
