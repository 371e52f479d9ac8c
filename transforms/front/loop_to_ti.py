"""Loops over slices: counted ones become TensorIterators, Scan becomes TensorIterator-1 or Loop-5, and recurrent cells
become LSTMSequence, GRUSequence and RNNSequence.
"""

from collections.abc import Sequence
from dataclasses import replace

from mo_loop.graph import TensorType, low
from mo_loop.ops.control import Iteration, Loop, TensorIterator
from mo_loop.ops.front import Scan
from mo_loop.ops.port_map import Concatenated, Invariant, Sliced
from mo_loop.support.traversal import by_key
from mo_loop.target import ERROR
from mo_loop.transforms.port_maps import drop_unused_inputs, replace_by_loop, replace_iteration
from mo_loop.transforms.slice_reads import SliceRead, ends_by_trip_count, slice_reads
from mo_loop.transforms.vocabulary import F, FunctionPass, Gap, Graph, Parameter, Result, Value, node_pass

Key = tuple[Invariant, int, bool]
"""One sliced input: a tensor, the axis along which it is read, and whether in reverse."""


@node_pass((Loop,), bodies="last")
def LoopToTI(node: Loop) -> str:
    """for i in range(len(X)): X[i], X[:, i:i+1], X[n-1-i]  ->  TensorIterator that slices X

    Requires that the condition is always true, the trip count is proven to be at least 1 and equal to the length of
    every tensor that is read slice by slice, the iteration number is used for nothing else, and the loop is not
    directly in the body of a TensorIterator (the runtime fails on a TensorIterator directly inside another). A tensor
    that is read along two axes, or in both directions, is sliced twice. A tensor that is also read as a whole stays an
    invariant input as well.
    """
    if isinstance(node.graph.owner, TensorIterator):
        return "it is directly in the body of a TensorIterator"
    reads, reason = counted_reads(node)
    if reason:
        return reason
    if low(node.count) < 1:
        return "it may run zero times"
    _replace(node, *_sliced_inputs(node, by_key(((read.entry, read.axis, read.reverse), read) for read in reads)))
    return ""


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
        piece = outer[entry].type.with_size(axis, 1)
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
            element = new = element or F.Squeeze(piece, [read.axis])
        elif read.rest:
            start, stop, step, axes = (list(each) for each in zip(*read.rest, strict=True))
            new = F.Slice(piece, start, stop, step, axes)
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
    )
    drop_unused_inputs(new)
    replace_iteration(node, new)


class ScanLowering(FunctionPass):
    """Scan  ->  TensorIterator if its length is proven to be at least 1, else Loop with the trip count from the shape

    The runtime fails on a TensorIterator of length 0 and on one directly inside another, and runs a single iteration if
    the body reads no slice. An element of a Scan has no scan axis, a slice has it with size 1: a Squeeze or Unsqueeze
    in the body converts between them. Outer Scans come first, because the result decides what the inner ones can
    become.
    """

    instead = "`Loop` with a trip count from the shape"
    avoids = (
        Gap(
            "tensor-iterator-of-no-slices",
            "a TensorIterator over a dimension of 0 returns the values of an earlier inference",
        ),
        Gap(
            "nested-tensor-iterators", "a TensorIterator directly in a TensorIterator does not compile",
            "`Loop`", ERROR,
        ),
    )

    bodies = "last"
    kinds = (Scan,)

    def rewrite(self, scan: Scan) -> bool:
        obstacle = _obstacle(scan)
        for entry in scan.input_map:
            if isinstance(entry, Sliced):
                _squeeze_inside(entry, scan)
        _unsqueeze_inside(scan)
        if obstacle:
            replace_by_loop(scan)
            return self.accept(scan, f"to a Loop, because {obstacle}")
        new = TensorIterator(
            *scan.inputs, graph=scan.graph, name=scan.name, body=scan.body, input_map=scan.input_map,
            output_map=scan.output_map,
        )
        replace_iteration(scan, new)
        return self.accept(scan, "to a TensorIterator")


def _obstacle(scan: Scan) -> str:
    """Why the Scan cannot become a TensorIterator; empty if it can."""
    if isinstance(scan.graph.owner, TensorIterator):
        return "it is directly in the body of a TensorIterator"
    if low(scan.count) < 1:
        return "its length may be 0"
    if not any(isinstance(entry, Sliced) and entry.parameter.output.is_used for entry in scan.input_map):
        return "its body reads no slice"
    return ""


def _squeeze_inside(entry: Sliced, scan: Scan) -> None:
    """The Parameter becomes a slice of size 1 along the axis; its readers read the element."""
    parameter: Parameter = entry.parameter
    element: TensorType = parameter.output.type
    dims = element.dims
    readers = parameter.output.uses
    parameter.retype(TensorType(element.dtype, (*dims[: entry.axis], 1, *dims[entry.axis :])))
    scan.body.validate_node(parameter)
    if readers:
        squeezed = F.Squeeze(parameter.output, [entry.axis])
        for node, port in readers:
            scan.body.set_input(node, port, squeezed)


def _unsqueeze_inside(scan: Scan) -> None:
    """Concatenated elements become slices; a Result that has another role as well gets a second one for the slice."""
    shared = {entry.result for entry in (*scan.back_edges, *scan.output_map) if not isinstance(entry, Concatenated)}
    elements = {entry.result: entry.result.value for entry in scan.output_map}
    output_map = []
    for entry in scan.output_map:
        if isinstance(entry, Concatenated):
            result: Result = entry.result
            slice_ = F.Unsqueeze(elements[result], entry.axis)
            if result in shared:
                entry = replace(entry, result=Result(slice_))
            else:
                scan.body.set_input(result, 0, slice_)
                shared.add(result)
        output_map.append(entry)
    scan.output_map = tuple(output_map)


class FuseRecurrentCells(FunctionPass):
    """h' = tanh(x W + h R + b) for every slice x  ->  RNNSequence(X, h, W, R, b); LSTM and GRU likewise

    The computation is followed from the next states back to slices and states. The order of gates, the layout of their
    weights and the spelling of the cell do not matter; weights must be constant. The loop is removed, or keeps the rest
    of its body, which then reads the hidden states slice by slice. It must have exactly one iteration per slice.

    If there may be no slice, the final states are selected outside the loop. Directly in the body of a TensorIterator
    only sequences of static batch and length are made; the runtime may replace others by a TensorIterator.
    """

    bodies = "last"

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for node in self.candidates(graph, Iteration):
            while node in graph and self._fuse(node):
                changed = True
                graph.validate()
        return changed

    def _fuse(self, node: Iteration) -> bool:
        # Models without loops do not load the thousand lines of this package.
        from mo_loop.transforms.front.recurrence.fusion import fused

        reason = fused(node)
        return self.refuse(node, reason) if reason else self.accept(node)
