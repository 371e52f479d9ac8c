"""Counted loops over slices become TensorIterators."""

from __future__ import annotations

from collections.abc import Sequence

from mo_loop import ops
from mo_loop.graph import Value
from mo_loop.graph.dimension import low
from mo_loop.ops.base import Parameter
from mo_loop.ops.control import Loop, TensorIterator
from mo_loop.ops.port_map import Invariant, Sliced
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.port_maps import drop_unused_inputs, replace_iteration
from mo_loop.transforms.slice_reads import SliceRead, ends_by_trip_count, slice_reads

Key = tuple[Invariant, int, bool]
"""One sliced input: a tensor, the axis along which it is read, and whether in reverse."""


class LoopToTI(FunctionPass):
    """for i in range(len(X)): X[i], X[:, i:i+1], X[n-1-i]  ->  TensorIterator that slices X

    Requires that the condition is always true, the trip count is proven to be at least 1 and equal to the length of
    every tensor that is read slice by slice, the iteration number is used for nothing else, and the loop is not
    directly in the body of a TensorIterator (the runtime fails on a TensorIterator directly inside another). A tensor
    that is read along two axes, or in both directions, is sliced twice. A tensor that is also read as a whole stays an
    invariant input as well.
    """

    bodies = "last"

    kinds = (Loop,)

    def rewrite(self, node: Loop) -> bool:
        if isinstance(node.graph.owner, TensorIterator):
            return self.refuse(node, "it is directly in the body of a TensorIterator")
        reads, reason = counted_reads(node)
        if reason:
            return self.refuse(node, reason)
        if low(node.count) < 1:
            return self.refuse(node, "it may run zero times")
        by_key: dict[Key, list[SliceRead]] = {}
        for read in reads:
            by_key.setdefault((read.entry, read.axis, read.reverse), []).append(read)
        turned, added = _sliced_inputs(node, by_key)
        _replace(node, turned, added)
        return self.accept(node)


def counted_reads(node: Loop) -> tuple[list[SliceRead], str]:
    """The slices that the loop reads, if it has exactly one iteration per slice; else the reason why not."""
    if not ends_by_trip_count(node):
        return [], "its condition may be false"
    reads, reason = slice_reads(node)
    if not reason and any(read.length != node.count for read in reads):
        return [], "its trip count is not proven to be the length of its slices"
    return reads, reason


def _sliced_inputs(
    node: Loop, by_key: dict[Key, list[SliceRead]]
) -> tuple[dict[Invariant, Sliced], list[tuple[Sliced, Value]]]:
    """Invariant inputs that become sliced ones, and new sliced inputs with their outer values. Readers get slices."""
    outer = {entry: value for entry, value in node.fed if isinstance(entry, Invariant)}
    nodes = {read.node for reads in by_key.values() for read in reads}
    turned: dict[Invariant, Sliced] = {}
    added: list[tuple[Sliced, Value]] = []
    for (entry, axis, reverse), reads in by_key.items():
        whole = outer[entry].type
        piece = whole.with_shape((*whole.dims[:axis], 1, *whole.dims[axis + 1 :]))
        alone = entry not in turned and all(use.node in nodes for use in entry.parameter.output.uses)
        parameter = entry.parameter if alone else Parameter(graph=node.body, type=piece)
        sliced = Sliced(parameter, axis, start=-1, end=0, stride=-1) if reverse else Sliced(parameter, axis)
        if alone:
            parameter.retype(piece)
            node.body.validate_node(parameter)
            turned[entry] = sliced
        else:
            added.append((sliced, outer[entry]))
        _read_from(parameter.output, reads)
    return turned, added


def _read_from(piece: Value, reads: Sequence[SliceRead]) -> None:
    """The readers of whole tensors read the slice."""
    element: Value | None = None
    for read in reads:
        new = piece
        if not read.keeps:
            element = new = element or ops.Squeeze(piece, [read.axis]).output
        elif read.rest:
            start, stop, step, axes = (list(each) for each in zip(*read.rest, strict=True))
            new = ops.Slice(piece, start, stop, step, axes).output
        read.node.outputs[0].replace_with(new)


def _replace(node: Loop, turned: dict[Invariant, Sliced], added: Sequence[tuple[Sliced, Value]]) -> None:
    body = node.body
    body.remove(node.condition)
    body.sweep()
    body.remove(node.iteration)
    entries = [turned.get(entry, entry) if isinstance(entry, Invariant) else entry for entry in node.input_map]
    new = TensorIterator(
        *node.data_inputs, *(value for _, value in added), graph=node.graph, name=node.name, body=body,
        input_map=(*entries, *(entry for entry, _ in added)), output_map=node.output_map,
    )  # fmt: skip
    drop_unused_inputs(new)
    replace_iteration(node, new)
