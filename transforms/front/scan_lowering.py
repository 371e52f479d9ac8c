"""ONNX Scan becomes TensorIterator-1 or Loop-5."""

from __future__ import annotations

from dataclasses import replace

from mo_loop import ops
from mo_loop.graph import Graph
from mo_loop.graph.dimension import low
from mo_loop.graph.types import TensorType
from mo_loop.ops.base import Parameter, Result
from mo_loop.ops.control import TensorIterator
from mo_loop.ops.front import Scan
from mo_loop.ops.port_map import Concatenated, Sliced
from mo_loop.target import ERROR, Gap
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.port_maps import replace_by_loop, replace_iteration


class ScanLowering(FunctionPass):
    """Scan  ->  TensorIterator if its length is proven to be at least 1, else Loop with the trip count from the shape

    The runtime fails on a TensorIterator of length 0 and on one directly inside another, and runs a single iteration if
    the body reads no slice. An element of a Scan has no scan axis, a slice has it with size 1: a Squeeze or Unsqueeze
    in the body converts between them. Outer Scans come first, because the result decides the possible forms of the
    inner ones.
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
    )  # fmt: skip

    bodies = "last"

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for scan in self.candidates(graph, Scan):
            obstacle = _obstacle(scan)
            self._lower(scan, iterator=not obstacle)
            changed = self.accept(scan, f"to a Loop, because {obstacle}" if obstacle else "to a TensorIterator")
        return changed

    def _lower(self, scan: Scan, iterator: bool) -> None:
        for entry in scan.input_map:
            if isinstance(entry, Sliced):
                _squeeze_inside(entry, scan)
        _unsqueeze_inside(scan)
        if not iterator:
            replace_by_loop(scan)
            return
        new = TensorIterator(
            *scan.inputs, graph=scan.graph, name=scan.name, body=scan.body, input_map=scan.input_map,
            output_map=scan.output_map,
        )  # fmt: skip
        replace_iteration(scan, new)


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
        squeezed = ops.Squeeze(parameter.output, [entry.axis]).output
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
            slice_ = ops.Unsqueeze(elements[result], entry.axis).output
            if result in shared:
                entry = replace(entry, result=Result(slice_))
            else:
                scan.body.set_input(result, 0, slice_)
                shared.add(result)
        output_map.append(entry)
    scan.output_map = tuple(output_map)
