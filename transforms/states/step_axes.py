"""The operations that mix the steps of the sequence over which loops step: their result for one step depends on others.

Where the length is a symbol, every dimension with it is an axis of the steps. Where the model has one step already,
every axis of 1 outside of the loops may be one.

An operation that mixes steps gives other numbers outside a loop when the sequence comes step by step. Only certain
cases count:

    mixing(ReduceMean(x, [0]), 0, 0)          "reduces all steps to one value"   x[T,B,3]: one step has no others
    mixing(Convolution(x, w), 0, 2)           "has a window of 3 steps"
    mixing(Transpose(x, [1, 0, 2]), 0, 0)     ""
"""

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Any

from mo_loop.graph import Dim, Dimension, Symbol, normalise_axis
from mo_loop.ops.control import If, Iteration
from mo_loop.ops.movement import FAR
from mo_loop.ops.port_map import Sliced
from mo_loop.ops.recurrent import Sequence
from mo_loop.support.traversal import reached
from mo_loop.transforms.slice_reads import indexed_data
from mo_loop.transforms.vocabulary import Graph, Node, Op, Value, integers, ops, source_of


@dataclass(frozen=True)
class Mixing:
    """A node that mixes steps, and the way in which it does so."""

    node: Op
    what: str


def mixing_along(graph: Graph, symbols: Collection[Symbol]) -> Iterator[Mixing]:
    """The nodes that mix elements along axes whose sizes depend on one of the symbols, in the graph and in all bodies.
    """
    return _mixing(graph, lambda dim: isinstance(dim, Dim) and not set(symbols).isdisjoint(dim.symbols()), Node)


def mixing_along_single(graph: Graph) -> Iterator[Mixing]:
    """The nodes outside of loops that mix elements along axes of 1, each of which may be that of the steps."""
    return _mixing(graph, lambda dim: dim == 1, If)


def _mixing(graph: Graph, is_step: Callable[[Dimension], bool], within: type[Node]) -> Iterator[Mixing]:
    for node in graph.ordered():
        axes = [
            (port, axis) for port, value in enumerate(node.inputs) if value is not None
            for axis, dim in enumerate(value.shape or ()) if is_step(dim)
        ]
        what = next((text for place in axes if (text := mixing(node, *place))), "")
        if what and isinstance(node, Op) and not serves_lengths(node):
            yield Mixing(node, what)
        for body in node.bodies if isinstance(node, within) else ():
            yield from _mixing(body, is_step, within)


def stepped_axes(node: Node) -> Iterator[tuple[Value, int]]:
    """The values through which a loop or layer steps, and their axes."""
    if isinstance(node, Sequence) and node.inputs[0] is not None:
        yield node.inputs[0], 1
    if isinstance(node, Iteration):
        for entry, value in node.fed:
            if isinstance(entry, Sliced) and value.shape is not None:
                yield value, normalise_axis(entry.axis, len(value.shape))
        yield from indexed_data(node)


# -- how an operation mixes steps


def mixing(node: Node, port: int, axis: int) -> str:
    """How a node makes elements along an axis of an input depend on each other; empty if it does not."""
    for kinds, rule in _RULES:
        if isinstance(node, kinds):
            return rule(node, port, axis)
    return ""


def serves_lengths(node: Node) -> bool:
    """Whether the results of a node only become sizes, and lengths of sequences: those are counted in each step."""

    def readers(node: Node) -> list[Node]:
        uses = [use for output in node.outputs for use in output.uses]
        return [use.node for use in uses if not isinstance(use.node, ops.ShapeOf) and not _reads_lengths(*use)]

    return all(each is node or (each.outputs and not each.bodies) for each in reached([node], readers))


def _reads_lengths(node: Node, port: int) -> bool:
    """Whether an input is lengths of sequences: of a recurrent layer, or in range(T) < lengths."""
    if isinstance(node, Sequence):
        return port == len(node.outputs)
    if not isinstance(node, ops.Comparison):
        return False
    other = node.inputs[1 - port]
    return other is not None and isinstance(source_of(other, (ops.View, ops.Convert)).node, ops.Range)


def _rank(node: Node, port: int = 0) -> int:
    value = node.inputs[port]
    return 0 if value is None or value.shape is None else len(value.shape)


def _along(text: str) -> Callable[[Any, int, int], str]:
    """The rule of an operation that works along axes."""
    return lambda node, port, axis: text if port == 0 and axis in (node.along or ()) else ""


def _sliced(node: ops.Slice, port: int, axis: int) -> str:
    """Backwards, or a part; one step has the first and the last element alone."""
    starts, stops, steps = (integers(node, place) for place in (1, 2, 3))
    axes = integers(node, 4) if len(node.inputs) > 4 else tuple(range(len(steps or ())))
    if port != 0 or steps is None or axes is None:
        return ""
    place = next((place for place, at in enumerate(axes) if normalise_axis(at, _rank(node)) == axis), None)
    if place is None:
        return ""
    if steps[place] < 0:
        return "reads the sequence backwards"
    start = 0 if starts is None else starts[place]
    stop = FAR if stops is None else stops[place]
    is_last = start == -1 and stop >= FAR
    return "leaves out some steps" if (start != 0 and not is_last) or stop < 0 or steps[place] > 1 else ""


def _in_windows(node: Any, port: int, axis: int) -> str:
    x, filters = node.inputs[0], node.inputs[1] if len(node.inputs) > 1 else None
    at = axis - 2
    if port != 0 or x.shape is None or at < 0:
        sums = isinstance(node, ops.Convolution) and not isinstance(node, ops.GroupConvolution)
        return "sums over all steps" if port == 0 and axis == 1 and sums else ""
    count = len(x.shape) - 2
    sizes = () if filters is None else filters.shape or ()
    kernel = node.kernel if isinstance(node, ops.Pooling) else sizes[-count:]
    if not kernel or not isinstance(kernel[at], int) or len(node.strides) != count:
        return ""
    if kernel[at] > 1:
        return f"has a window of {kernel[at]} steps"
    return "leaves out some steps" if node.strides[at] > 1 else ""


def _multiplied(node: ops.MatMul, port: int, axis: int) -> str:
    rank = _rank(node, port)
    at_end = (port == 0) != (node.transpose_a if port == 0 else node.transpose_b)
    inner = rank - 1 if rank == 1 or at_end else rank - 2
    return "sums over all steps" if axis == inner else ""


_RULES: tuple[tuple[Any, Callable[[Any, int, int], str]], ...] = (
    (ops.Reduction, _along("reduces all steps to one value")),
    ((ops.AlongAxis, ops.MVN, ops.NormalizeL2, ops.LRN), _along("normalises over all steps")),
    (ops.TopK, _along("chooses among all steps")),
    (ops.CumSum, _along("adds up the steps")),
    (ops.GroupNormalization, lambda _, port, axis: "normalises over all steps" if port == 0 and axis >= 1 else ""),
    ((ops.Filtered, ops.Pooling), _in_windows),
    (ops.MatMul, _multiplied),
    (
        ops.Einsum,
        lambda node, port, axis: "" if "." in node.equation or axis in node.axis_map(port) else "sums over all steps",
    ),
    (
        ops.ScaledDotProductAttention,
        lambda node, port, axis: "reads all steps" if port in (1, 2) and axis == _rank(node, port) - 2 else "",
    ),
    (ops.Slice, _sliced),
    ((ops.Split, ops.VariadicSplit), _along("splits the sequence")),
    (ops.ReverseSequence, _along("reads the sequence backwards")),
    (ops.Fourier, _along("transforms the whole sequence")),
    (ops.Resizing, _along("resizes the sequence")),
)
