"""Quantised constants: in the bodies that read them, in the form that the runtime decompresses where it needs them.

Constants of f32 and f64 stored as f16, but for those that decide shapes, indices or control flow: rounding such a
constant changes the result, not only its precision.

%scales = Constant [2.1, 2.1]        2.0996 in f16, for which Interpolate gives other sizes
%limits = Constant [0.1, 0.2, 0.3]   all(x < limits) ends a loop
"""

from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np

from mo_loop.graph import DeferredTensor, FileTensor, Tensor, element_count
from mo_loop.graph.transposed_tensor import TransposedTensor
from mo_loop.graph.types import KNOWN_LIMIT, f16, f32, f64
from mo_loop.ops.control import Control, If, Loop
from mo_loop.ops.port_map import Branched, Merged, Selected
from mo_loop.ops.quantization import quantised_constant
from mo_loop.support.traversal import reached
from mo_loop.transforms.low_precision.weights import (
    PRODUCTS,
    StoredWeights,
    has_quantised_activations,
    is_weights,
    multiplies_activations,
    saturates,
)
from mo_loop.transforms.port_maps import push_inputs
from mo_loop.transforms.replace import drop_dead, insert_before, move_readers, replace_output
from mo_loop.transforms.vocabulary import Constant, FunctionPass, Graph, Node, Op, Parameter, Use, Value, node_pass, ops


@node_pass((Control,), bodies="last")
def PushWeightsToSubgraph(node: Control) -> str:
    """an invariant input that is Dequantize(Constant)  ->  the same nodes in the body

    The runtime recognises compressed weights only in the graph that reads them; outside they would be expanded.
    """
    return "" if push_inputs(node, is_weights, _dequantise_inside) else "no invariant input is a dequantised constant"


def _dequantise_inside(parameter: Parameter, value: Value) -> None:
    copies: dict[Value, Value] = {}
    constants = [each.node for each in value.node.operands]
    parameter.graph.adopt(value.graph, [*constants, value.node], copies)
    parameter.output.replace_with(copies[value])


@dataclass(eq=False)
class CompressWeights(FunctionPass):
    """Dequantize(Constant)  ->  Constant -> Convert -> Subtract -> Multiply -> Reshape

    The constant keeps its type of at most 8 bits. A constant of blocks of B elements along an axis of K is
    [.., K / B, B, ..], and its scales [.., K / B, 1, ..].

    The runtime reads such weights in matrix products and Gather without expanding them. It assumes that the scales and
    the zero points vary along the axis that is not summed, or with the blocks along the axis that is. Where they vary
    otherwise, it computes wrong numbers or crashes, so the numbers and the scales are negated there: the result is the
    same, and the runtime does not recognise the form. Filters that a Reshape divides into groups have this shape from
    the beginning: the runtime computes a convolution with integers only if no Reshape is between. Weights that are
    `expanded` have the negated form everywhere. The runtime limits filters of ConvolutionBackpropData to i8 after it
    subtracts their zero points: these are negated, too.

    With `portable`, weights of products that saturate on some processors (weights.py) are negated as well, and the
    runtime computes the products in f32. Of two quantised activations the second becomes Barrier(x, memory).
    """

    portable: bool = field(default=False, kw_only=True)

    def run_on_graph(self, graph: Graph) -> bool:
        changed = self.portable and self.rewrite_each(graph, ops.MatMul, self._hide)
        return self.rewrite_each(graph, ops.Dequantize, self._compress) or changed

    def _hide(self, node: ops.MatMul) -> bool:
        if not multiplies_activations(node):
            return self.refuse(node, "it does not multiply two quantised activations")
        insert_before(node, 1, lambda value: ops.Barrier(value, hides="memory"))
        return self.accept(node)

    def _compress(self, node: ops.Dequantize) -> bool:
        if not is_weights(node.output):
            return self.refuse(node, "its inputs are not constants, or not of at most 8 bits")
        weights = StoredWeights(node).centred()
        for use in node.output.uses:
            groups = _groups(use, weights)
            if groups is not None:
                made = use.node.outputs[0]
                fits = all(self._keeps(each, set(), weights) for each in made.uses)
                replace_output(made, weights.grouped(groups).decompressed(1 if fits else -1))
                drop_dead([use.node])
        if node not in node.graph:
            return self.accept(node)
        readers = node.output.uses
        fitting = [use for use in readers if self._keeps(use, weights.axes, weights)]
        others = [use for use in readers if use not in fitting]
        for each, sign in ((fitting, 1), (others, -1)):
            if each:
                move_readers(node.output, weights.decompressed(sign), each)
        drop_dead([node])
        return self.accept(node)

    def _keeps(self, use: Use, axes: set[int], weights: StoredWeights) -> bool:
        """Whether a reader gets weights that the runtime recognises."""
        if weights.node.expanded or not _fits(use, axes, weights.block_axis, weights.has_zero_points):
            return False
        return not self.portable or not any(
            has_quantised_activations(each) and saturates(each, weights.tensor.array()) for each in _products(use)
        )


def _products(use: Use) -> Iterator[Node]:
    """The products whose second operand is the value that is read, or has its elements."""
    if isinstance(use.node, PRODUCTS):
        yield from [use.node] if use.port == 1 else []
    elif isinstance(use.node, ops.View | ops.Transpose | ops.Convert):
        for each in use.node.output.uses:
            yield from _products(each)


def _groups(use: Use, weights: StoredWeights) -> int | None:
    """The number of groups of the filters [O, C, K...] that become [G, O / G, C, K...], for a convolution alone."""
    node = use.node
    shape = node.outputs[0].shape if isinstance(node, ops.Reshape | ops.Unsqueeze) and use.port == 0 else None
    if shape is None or weights.block_axis is not None or not weights.axes <= {0}:
        return None
    if shape[2:] != weights.shape[1:] or not isinstance(shape[0], int) or not node.outputs[0].is_used:
        return None
    return shape[0] if all(isinstance(each.node, ops.Filtered) for each in node.outputs[0].uses) else None


def _fits(use: Use, axes: set[int], block_axis: int | None, has_zero_points: bool) -> bool:
    """Whether the runtime computes a reader of the form rightly."""
    node, port = use
    rank = node.operands[port].type.rank
    if isinstance(node, ops.Transpose) and node.integers("order") is not None:
        order = node.axis_map(0)
        block = None if block_axis is None else order.index(block_axis)
        moved = {order.index(axis) for axis in axes}
        return all(_fits(each, moved, block, has_zero_points) for each in node.output.uses)
    if isinstance(node, ops.View | ops.Convert):
        return not axes and all(_fits(each, set(), None, has_zero_points) for each in node.output.uses)
    if isinstance(node, ops.MatMul):
        if rank < 2:
            return not axes
        is_last = node.transpose_b if port else not node.transpose_a
        summed = rank - 1 if is_last else rank - 2
        return block_axis == summed if block_axis is not None else summed not in axes
    if isinstance(node, ops.Gather) and port == 0:
        return rank == 2 and (block_axis == 1 or (block_axis is None and 1 not in axes))
    if isinstance(node, ops.ConvolutionBackpropData):
        return not has_zero_points
    return not isinstance(node, ops.Gather | ops.Result)


def deciding_constants(graph: Graph) -> frozenset[Node]:
    """The constants of all scopes that such a value is computed from, through small values only.

    A value of more than KNOWN_LIMIT elements is data: the threshold of a detector decides, the weights before it do
    not.
    """
    deciding = (value for scope in graph.scopes() for node in scope.ordered() for value in _deciding_inputs(node))
    small = reached(filter(_is_small, deciding), lambda value: filter(_is_small, _sources(value)))
    return frozenset(value.node for value in small if isinstance(value.node, Constant))


def _sources(value: Value) -> Iterator[Value]:
    """The values that a value is computed from: for a body Parameter its outer values, for control flow the Results."""
    node, owner = value.node, value.graph.owner
    if isinstance(node, Control):
        entry = node.output_map[value.index]
        results = (entry.then, entry.else_) if isinstance(entry, Selected) else (entry.result,)
        yield from (result.value for result in results)
    elif isinstance(node, Parameter) and isinstance(owner, Control):
        for each, outer in owner.fed:
            if node in ((each.then, each.else_) if isinstance(each, Branched) else (each.parameter,)):
                yield from (outer, each.result.value) if isinstance(each, Merged) else (outer,)
    else:
        yield from node.operands


def _deciding_inputs(node: Node) -> Iterator[Value]:
    assert isinstance(node, Op)
    for port in _ports(node):
        value = node.inputs[port] if port < len(node.inputs) else None
        if value is not None:
            yield value
    if isinstance(node, Loop):
        yield node.condition.value


def _ports(node: Op) -> tuple[int, ...]:
    """The input ports for shapes, indices, counts and conditions."""
    if isinstance(node, ops.Interpolate | ops.Interpolate11):
        return (1, 2)
    if isinstance(node, ops.Range):
        return (0, 1, 2)
    if isinstance(node, Loop):
        return (0, 1)
    return (0,) if isinstance(node, If) else tuple(node.index_ports)


def _is_small(value: Value) -> bool:
    count = element_count(value.shape)
    return count <= KNOWN_LIMIT if isinstance(count, int) else value.rank == 1


T = TypeVar("T")

LARGEST = float(np.finfo(np.float16).max)
SMALLEST = float(np.finfo(np.float16).smallest_subnormal)
EXACT = 4096.0
"""Up to this size f16 differs from a value by at most 1."""
LARGE = 1 << 23
"""Bytes from which on a second thread computes."""
FEW = 0.75
"""A constant with at least this share of values out of range keeps its type."""


@dataclass
class Compression:
    """The results of CompressFloatConstants: the numbers of constants, of their values, and of bytes saved.

    `clipped` counts values outside the range of f16, `kept` the constants that stay because of their values, `deciding`
    the constants that decide shapes or control flow.
    """

    compressed: int = 0
    values: int = 0
    clipped: int = 0
    kept: int = 0
    deciding: int = 0
    saved: int = 0


class CompressFloatConstants(FunctionPass):
    """Constant f32  ->  Convert(Constant f16), marked as decompression; f64 likewise

    The runtime keeps a marked constant in f16. As in OpenVINO, finite values outside the range of f16 become the
    largest value of f16. A constant keeps its type if three quarters of its values are outside the range (too large, or
    so small that they become 0), or if a value inside the range moves by more than 1. Unlike in OpenVINO, infinities
    and NaN, which f16 can hold, stay as they are. So do constants of one element, where nothing is saved, constants
    that decide shapes or control flow, and the scales and ranges of quantised numbers.

    `counts` holds the numbers of changes. The values are read and converted in blocks while the file is written.
    """

    bodies = "never"  # a constant outside a body may decide inside it, so all scopes are examined together

    def __init__(self) -> None:
        self.counts = Compression()
        self._known: dict[Hashable, Tensor | None] = {}

    def run_on_graph(self, graph: Graph) -> bool:
        deciding = deciding_constants(graph)
        changed = False
        for scope in graph.scopes():
            for constant in self.candidates(scope, Constant):
                changed = self._compress(constant, constant in deciding) or changed
        return changed

    def _compress(self, constant: Constant, decides: bool) -> bool:
        tensor: Tensor = constant.tensor
        if tensor.dtype not in (f32, f64) or tensor.size < 2:
            return False
        if decides:
            self.counts.deciding += 1
            return self.refuse(constant, "it decides a shape, an index or control flow")
        if _is_of_quantisation(constant):
            return self.refuse(constant, "it is a scale, or the range, of quantised numbers")
        small = self._halved(tensor)
        if small is None:
            return self.refuse(constant, "f16 cannot hold its values")
        _replace(constant, small)
        return self.accept(constant)

    def _halved(self, tensor: Tensor) -> Tensor | None:
        """The tensor in f16, or None. Constants that share a tensor share the result, and it is counted once."""
        key: Hashable = tensor
        if isinstance(tensor, FileTensor):
            key = (tensor.path, tensor.offset, tensor.dtype, tensor.shape)
        if key not in self._known:
            clipped = _clipped(tensor.source if isinstance(tensor, TransposedTensor) else tensor)  # in any order
            self._known[key] = None if clipped is None else _in_f16(tensor, clipped > 0)
            if clipped is None:
                self.counts.kept += 1
            else:
                self.counts.compressed += 1
                self.counts.values += tensor.size
                self.counts.clipped += clipped
                self.counts.saved += tensor.nbytes - f16.size_of(tensor.size)
        return self._known[key]


def _is_of_quantisation(constant: Constant) -> bool:
    """Whether a constant is a range of FakeQuantize, or the scale of a constant of at most 8 bits.

    Rounding it would move all numbers of a slice in the same direction.
    """
    readers = [use.node for use in constant.output.uses]
    return any(isinstance(each, ops.FakeQuantize) or _scales_integers(each) for each in readers)


def _scales_integers(node: Node) -> bool:
    if not isinstance(node, ops.Multiply) or node.inputs[0] is None:
        return False
    return quantised_constant(node.inputs[0]) is not None


def _replace(constant: Constant, tensor: Tensor) -> None:
    graph, name = constant.graph, constant.name
    readers = constant.output.uses
    small = Constant(tensor, graph=graph, name=f"{name}_compressed" if name else "")
    wide = ops.Convert(small.output, destination_type=constant.tensor.dtype, name=name)
    wide.rt_info.update(constant.rt_info)
    wide.rt_info["decompression"] = {"version": 0}
    wide.output.take_names(constant.output)
    small.origins = wide.origins = constant.origins
    for node, port in readers:
        graph.set_input(node, port, wide.output)
    graph.remove(constant)


def _each(function: Callable[[np.ndarray], T], tensor: Tensor) -> Iterator[T]:
    """The results of `function` for the values of each piece of a tensor.

    A second thread computes them while this one reads the next piece: numpy releases the interpreter lock.
    """
    pieces = (np.frombuffer(piece, tensor.dtype.numpy) for piece in tensor.pieces())
    if tensor.nbytes <= LARGE:
        yield from map(function, pieces)
        return
    from concurrent.futures import Future, ThreadPoolExecutor

    waiting: Future[T] | None = None
    with ThreadPoolExecutor(1) as thread:
        for values in pieces:
            begun = thread.submit(function, values)
            if waiting is not None:
                yield waiting.result()
            waiting = begun
        if waiting is not None:
            yield waiting.result()


def _clipped(tensor: Tensor) -> int | None:
    """The number of values outside the range of f16; None if the constant must keep its type."""
    outside = vanishing = 0
    for found in _each(_lost, tensor):
        if found is None:
            return None
        outside += found[0]
        vanishing += found[1]
    return outside if outside + vanishing < FEW * tensor.size else None


def _lost(values: np.ndarray) -> tuple[int, int] | None:
    """The numbers of values that are too large and too small for f16; None if one changes by more than 1."""
    sizes = np.abs(values)
    small = int(np.count_nonzero(sizes < SMALLEST))
    vanishing = small - (values.size - int(np.count_nonzero(values))) if small else 0
    if sizes.max() <= EXACT:  # NaN is not
        return 0, vanishing
    large = values[(sizes > EXACT) & np.isfinite(values)]
    within = np.abs(large) <= LARGEST
    inside = large[within]
    if np.any(np.abs(inside - inside.astype(np.float16).astype(inside.dtype)) > 1):
        return None
    return large.size - int(np.count_nonzero(within)), vanishing


def _in_f16(tensor: Tensor, clips: bool) -> Tensor:
    def halved(values: np.ndarray) -> bytes:
        if clips:
            values = np.where(np.isfinite(values), np.clip(values, -LARGEST, LARGEST), values)
        return values.astype(np.float16).tobytes()

    return DeferredTensor(f16, tensor.shape, lambda: _each(halved, tensor), tensor.files)
