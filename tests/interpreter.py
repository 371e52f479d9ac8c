"""Computes the results of a graph in numpy; covers control flow, sequences and optionals.

    results = interpret(graph, [np.array(3), np.ones((2, 4), np.float32)])

A slow and simple reference for the tests of passes: it relies neither on passes nor on inferred types. Values are
arrays, lists of them (sequences), and `Present` or None (optionals). RandomUniform returns the middle of its bounds, so
that a graph gives the same values before and after a pass. A variable has its initial value, as in a first inference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.shape import normalise_axis
from mo_loop.ops.base import Constant, Op, Parameter, Result
from mo_loop.ops.control import If, Iteration, Loop
from mo_loop.ops.port_map import Concatenated, Final, Invariant, Merged, Sliced
from mo_loop.ops.quantization import limits, spread

MOST_ITERATIONS = 50


INDEXED = (
    ops.Gather, ops.GatherElements, ops.GatherND, ops.ScatterUpdate, ops.ScatterElementsUpdate, ops.ScatterNDUpdate,
)
"""Operations whose result for an index out of range is undefined."""


class Uninterpreted(Exception):
    """Raised for an operation that has no implementation here."""


class Invalid(Exception):
    """Raised for invalid inputs: an index out of range, or a loop that does not end."""


class Undefined:
    """An undefined value: an output of a loop without iterations. Everything computed from it is undefined, too."""


UNDEFINED = Undefined()


class Present(NamedTuple):
    """An optional that has a value."""

    value: Any


def interpret(graph: Graph, feeds: Sequence[Any]) -> list[Any]:
    """The values of the graph's Results for the values of its Parameters, both in order.

    Raises:
        Uninterpreted: an operation is not known here.
        Invalid: the inputs make no sense.
    """
    known = dict(zip(graph.parameters, feeds, strict=True))
    found = _run(graph, known)
    return [found[result] for result in graph.results]


def _run(graph: Graph, known: dict[Any, Any]) -> dict[Node, Any]:
    """The value of every Result of a graph."""
    values: dict[Value, Any] = {node.outputs[0]: value for node, value in known.items()}
    results: dict[Node, Any] = {}
    for node in graph.ordered():
        if isinstance(node, Parameter):
            continue
        given = [None if value is None else values.get(value) for value in node.inputs]
        if isinstance(node, Result):
            results[node] = given[0]
        else:
            values.update(zip(node.outputs, _computed(node, given), strict=True))
    return results


def _computed(node: Node, given: list[Any]) -> Sequence[Any]:
    if isinstance(node, Constant):
        return [np.asarray(node.array)]
    if isinstance(node, If):
        return _branch(node, given)
    if isinstance(node, Iteration):
        return _iterations(node, given)
    undefined = [place for place, each in enumerate(given) if each is UNDEFINED]
    if undefined and isinstance(node, ops.Select) and 0 not in undefined and given[0].size == 1:
        return [given[1] if given[0].all() else given[2]]
    if undefined == [0] and isinstance(node, ops.Slice) and not np.any(given[1:3]):  # nothing of it
        sizes = [dim if isinstance(dim, int) else 0 for dim in node.output.type.dims]
        return [np.zeros([0 if axis in given[4] else size for axis, size in enumerate(sizes)], node.output.dtype.numpy)]
    if undefined:
        return [UNDEFINED] * len(node.outputs)
    own = OWN.get(type(node).__name__)
    try:
        made = own(node, *given) if own else _evaluated(node, given)
    except (ArithmeticError, IndexError, TypeError, ValueError) as error:
        raise Invalid(f"{node!r}: {error}") from error
    return made if isinstance(made, tuple) else (made,)


def _evaluated(node: Node, given: list[Any]) -> Any:
    if not isinstance(node, Op) or type(node).evaluate is Op.evaluate:
        raise Uninterpreted(node.type)
    with np.errstate(all="ignore"):
        made = node.evaluate(*given)
    if made is NotImplemented:
        raise (Invalid if isinstance(node, INDEXED) else Uninterpreted)(node.type)
    arrays = made if isinstance(made, tuple) else (made,)
    return tuple(np.asarray(a).astype(out.dtype.numpy) for a, out in zip(arrays, node.outputs, strict=True))


# -- control flow


def _branch(node: If, given: list[Any]) -> list[Any]:
    is_true = bool(given[0].reshape(()))
    body = node.then_body if is_true else node.else_body
    known = {}
    for entry, value in zip(node.input_map, given[1:], strict=True):
        parameter = entry.then if is_true else entry.else_
        if parameter is not None:
            known[parameter] = value
    results = _run(body, known)
    return [results[entry.then if is_true else entry.else_] for entry in node.output_map]


def _iterations(node: Iteration, given: list[Any]) -> list[Any]:
    fed = list(zip(node.input_map, given[node.first_data_port :], strict=True))
    keeps = not isinstance(node, ops.Scan)
    pieces = {entry: _pieces(entry, value, keeps) for entry, value in fed if isinstance(entry, Sliced)}
    limit, go = _limits(node, given, [len(each) for each in pieces.values()])
    states = {entry: value for entry, value in fed if isinstance(entry, Merged)}
    rounds: list[dict[Node, Any]] = []
    while go and len(rounds) < limit:
        if len(rounds) == MOST_ITERATIONS:
            raise Invalid("the loop does not end")
        known = {entry.parameter: value for entry, value in fed if isinstance(entry, Invariant)}
        known |= {entry.parameter: value for entry, value in states.items()}
        for entry, each in pieces.items():
            if len(rounds) >= len(each):
                raise Invalid("more iterations than slices")
            known[entry.parameter] = each[len(rounds)]
        if isinstance(node, Loop) and node.iteration is not None:
            type_ = node.iteration.output.type
            known[node.iteration] = np.full((1,) * (type_.rank or 0), len(rounds), type_.dtype.numpy)
        results = _run(node.body, known)
        rounds.append(results)
        states = {entry: results[entry.result] for entry in states}
        go = not isinstance(node, Loop) or bool(results[node.condition].reshape(()))
    initial = {entry.result: value for entry, value in fed if isinstance(entry, Merged)}
    return [_output(node, number, rounds, initial) for number in range(len(node.output_map))]


def _limits(node: Iteration, given: list[Any], counts: list[int]) -> tuple[float, bool]:
    """The maximum number of iterations, and whether the first one runs."""
    if not isinstance(node, Loop):
        if len(set(counts)) > 1:
            raise Invalid(f"slices of {counts}")
        return (counts[0] if counts else 1), True
    trips = int(given[0].reshape(()))
    if trips < 0:
        trips = 0 if node.none_below_zero else -1
    return (float("inf") if trips < 0 else trips), bool(given[1].reshape(()))


def _pieces(entry: Sliced, value: Any, keeps: bool) -> list[Any]:
    axis = normalise_axis(entry.axis, value.ndim)
    length = value.shape[axis]
    first, last = (each + length + 1 if each < 0 else each for each in (entry.start, entry.end))
    low, high = min(first, last), max(first, last)
    starts = range(low, high - entry.part_size + 1, abs(entry.stride))
    found = [np.take(value, range(k, k + entry.part_size), axis) for k in starts]
    if entry.stride < 0:
        found = [np.take(value, range(k - entry.part_size, k), axis) for k in range(high, low, entry.stride)]
    return found if keeps else [np.squeeze(each, axis) for each in found]


def _output(node: Iteration, number: int, rounds: list[dict[Node, Any]], initial: dict[Node, Any]) -> Any:
    entry = node.output_map[number]
    if isinstance(entry, Final):
        if not rounds and entry.result not in initial:
            return UNDEFINED
        return rounds[-1][entry.result] if rounds else initial[entry.result]
    assert isinstance(entry, Concatenated)
    made = [results[entry.result] for results in rounds]
    if entry.stride < 0:
        made.reverse()
    if not made:  # no iteration: sizes known only at run time are 0
        type_ = node.outputs[number].type
        if type_.shape is None:
            raise Uninterpreted("a concatenation of no parts of unknown rank")
        axis = normalise_axis(entry.axis, len(type_.dims))
        dims = [dim if isinstance(dim, int) else 0 for dim in type_.dims]
        dims = [max(each) for each in zip(dims, entry.declared or dims, strict=True)]
        return np.zeros((*dims[:axis], 0, *dims[axis + 1 :]), type_.dtype.numpy)
    return np.stack(made, entry.axis) if isinstance(node, ops.Scan) else np.concatenate(made, entry.axis)


# -- operations that have no `evaluate`


def _place(position: Any, length: int, ends: int = 0) -> int:
    at = int(position.reshape(()))
    if not -length <= at < length + ends:
        raise Invalid(f"position {at} of {length}")
    return at + length if at < 0 else at


def _inserted(node: Any, items: list[Any], tensor: Any, position: Any = None) -> list[Any]:
    at = len(items) if position is None else _place(position, len(items), 1)
    return [*items[:at], tensor, *items[at:]]


def _erased(node: Any, items: list[Any], position: Any = None) -> list[Any]:
    at = _place(np.array(-1) if position is None else position, len(items))
    return [*items[:at], *items[at + 1 :]]


def _split(node: Any, tensor: Any, split: Any = None) -> list[Any]:
    length = tensor.shape[node.axis]
    if split is None:
        singles = np.split(tensor, length, node.axis) if length else []
        return singles if node.keepdims else [np.squeeze(each, node.axis) for each in singles]
    if split.ndim == 0:
        return [each for each in np.split(tensor, range(int(split), length, int(split)), node.axis) if length]
    if split.sum() != length:
        raise Invalid(f"{split} of {length}")
    return np.split(tensor, np.cumsum(split)[:-1], node.axis)


def _joined(node: Any, items: list[Any]) -> Any:
    if not items:
        raise Invalid("an empty sequence is joined")
    return np.stack(items, node.axis) if node.new_axis else np.concatenate(items, node.axis)


def _held(node: Any, optional: Any) -> Any:
    if isinstance(optional, list):  # an optional that LowerOptionals replaced by a sequence
        optional = Present(optional[0]) if optional else None
    if optional is None:
        raise Invalid("an absent optional is read")
    return optional.value


def _reversed(node: Any, x: Any, lengths: Any) -> Any:
    made = np.moveaxis(x.copy(), (node.batch_axis, node.seq_axis), (0, 1))
    for row, length in zip(made, lengths, strict=True):
        row[:length] = row[:length][::-1].copy()
    return np.moveaxis(made, (0, 1), (node.batch_axis, node.seq_axis))


def _normalised(node: Any, x: Any, scale: Any, bias: Any) -> Any:
    if x.ndim < 2 or x.shape[1] % node.num_groups:
        raise Invalid(f"{node.num_groups} groups in {x.shape}")
    groups = x.reshape(x.shape[0], node.num_groups, -1)
    centred = groups - groups.mean(-1, keepdims=True)
    whole = (centred / np.sqrt(groups.var(-1, keepdims=True) + node.epsilon)).reshape(x.shape)
    rest = (-1, *(1,) * (x.ndim - 2))
    return whole * scale.reshape(rest) + bias.reshape(rest)


def _convolved(node: Any, x: Any, filters: Any) -> Any:
    grouped = filters if isinstance(node, ops.GroupConvolution) else filters[None]
    rank = x.ndim - 2
    padded = np.pad(x, [(0, 0), (0, 0), *zip(node.pads_begin, node.pads_end, strict=True)])
    padded = padded.reshape(len(x), len(grouped), -1, *padded.shape[2:])
    spans = [(k - 1) * wide + 1 for k, wide in zip(grouped.shape[3:], node.dilations, strict=True)]
    windows = np.lib.stride_tricks.sliding_window_view(padded, spans, tuple(range(3, 3 + rank)))
    picked = windows[(..., *(slice(None, None, step) for step in (*node.strides, *node.dilations)))]
    at, within = "xyz"[:rank], "klm"[:rank]
    made = np.einsum(f"bgc{at}{within},goc{within}->bgo{at}", picked, grouped)
    return made.reshape(len(x), -1, *made.shape[3:])


def _packed(node: Any, items: list[Any]) -> tuple[Any, Any]:
    data, table = node.outputs
    flat = [each.reshape(-1) for each in items]
    rows = [each.shape or (1,) for each in items]
    width = len(rows[0]) if rows else table.type.dims[1]
    return np.concatenate([np.zeros(0, data.dtype.numpy), *flat]), np.array(rows, np.int64).reshape(len(rows), width)


def _unpacked(node: Any, data: Any, table: Any) -> list[Any]:
    fixed = [column for column, dim in enumerate(node.dims) if dim >= 0]
    if table.prod(1).sum() != data.size or any((table[:, column] != node.dims[column]).any() for column in fixed):
        raise Invalid(f"{data.size} elements for the shapes {table.tolist()}")
    ends = np.cumsum([np.prod(row) for row in table], dtype=np.int64)
    parts = np.split(data, ends[:-1]) if len(table) else []
    return [part.reshape(row) for part, row in zip(parts, table, strict=True)]


def _quantised(node: Any, x: Any, scale: Any, zero: Any = None, exact: Any = None) -> Any:
    steps = x / spread(scale, node.axis, x.shape, node.block_size) if exact is None else exact
    steps = np.rint(steps)
    if zero is not None:
        steps = steps + spread(zero, node.axis, x.shape, node.block_size).astype(np.float64)
    return np.clip(steps, *limits(node.to)).astype(node.to.numpy)


def _dequantised(node: Any, x: Any, scale: Any, zero: Any = None) -> Any:
    steps = x.astype(np.float64)
    if zero is not None:
        steps = steps - spread(zero, node.axis, x.shape, node.block_size).astype(np.float64)
    return (steps * spread(scale, node.axis, x.shape, node.block_size)).astype(node.to.numpy)


def _quantised_dynamically(node: Any, x: Any) -> Any:
    least, most = min(x.min(initial=0), 0), max(x.max(initial=0), 0)
    scale = np.float32((most - least) / 255 or 1)
    zero = np.rint(np.clip(-least / scale, 0, 255))
    return np.clip(np.rint(x / scale) + zero, 0, 255).astype(np.uint8), scale, zero.astype(np.uint8)


def _product_of_integers(node: Any, a: Any, b: Any, a_zero: Any = 0, b_zero: Any = 0) -> Any:
    rows = np.int64(0 if a_zero is None else a_zero)
    left = a.astype(np.int64) - (rows.reshape(-1, 1) if rows.ndim == 1 and a.ndim > 1 else rows)
    return np.matmul(left, b.astype(np.int64) - np.int64(0 if b_zero is None else b_zero)).astype(np.int32)


def _in_levels(node: Any, x: Any, low: Any, high: Any, to_low: Any, to_high: Any) -> Any:
    step = np.rint((np.clip(x, low, high) - low) / (high - low) * (node.levels - 1))
    return (step / (node.levels - 1) * (to_high - to_low) + to_low).astype(x.dtype)


def _scattered(node: Any, data: Any, indices: Any, updates: Any, axis: Any) -> Any:
    if node.reduction != "sum":
        return _evaluated(node, [data, indices, updates, axis])
    places: list[Any] = list(np.indices(indices.shape, sparse=True))
    places[int(axis)] = indices
    result = data.copy()
    np.add.at(result, tuple(places), updates)
    return result


OWN: dict[str, Callable[..., Any]] = {
    "ShapeOf": lambda node, x: np.array(x.shape, node.output_type.numpy),
    "AtLeast": lambda node, x: x,
    "Assign": lambda node, x: x,
    "ReadValue": lambda node, initial: initial,
    "Barrier": lambda node, x: x,
    "Quantize": _quantised,
    "Dequantize": _dequantised,
    "FakeQuantize": _in_levels,
    "ScatterElementsUpdate12": _scattered,
    "DynamicQuantize": _quantised_dynamically,
    "IntegerMatMul": _product_of_integers,
    "RoundedOrExact": lambda node, rounded, exact: exact,
    "RandomUniform": lambda node, shape, low, high: np.full(shape, (low + high) / 2).astype(node.output.dtype.numpy),
    "ReverseSequence": _reversed,
    "Convolution": _convolved,
    "GroupConvolution": _convolved,
    "GroupNormalization": _normalised,
    "SequenceEmpty": lambda node: [],
    "SequenceConstruct": lambda node, *items: list(items),
    "SequenceInsert": _inserted,
    "SequenceErase": _erased,
    "SequenceAt": lambda node, items, position: items[_place(position, len(items))],
    "SequenceLength": lambda node, items: np.array(len(items), np.int64),
    "SplitToSequence": _split,
    "ConcatFromSequence": _joined,
    "SequenceExtend": lambda node, first, second: [*first, *second],
    "StackedSequence": lambda node, stack: list(stack),
    "JoinedSequence": lambda node, joined, sizes: np.split(joined, np.cumsum(sizes)[:-1], node.axis),
    "PackSequence": _packed,
    "PackedSequence": _unpacked,
    "Optional": lambda node, value=None: None if value is None else Present(value),
    "OptionalHasElement": lambda node, optional: np.array(bool(optional)),
    "OptionalGetElement": _held,
}
