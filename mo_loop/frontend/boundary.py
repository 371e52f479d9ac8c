"""Makes the inputs and outputs of the graph; with --sequence-io packed a sequence becomes two tensors.

x: seq(f32[?,4])   ->   x.data: f32[?]      the elements flattened and concatenated
                        x.shapes: i64[?,2]  one row for each element
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mo_loop import ops
from mo_loop.errors import UnsupportedError
from mo_loop.frontend.cut import Cut, Start
from mo_loop.frontend.declared_types import type_from
from mo_loop.frontend.input_sizes import InputSizes
from mo_loop.frontend.model import OnnxModel
from mo_loop.frontend.onnx_graphs import main_graph
from mo_loop.graph import Graph, Value
from mo_loop.graph.dimension import fresh
from mo_loop.graph.origin import Origin, made_for
from mo_loop.graph.types import OptionalType, SequenceType, TensorType, i64, string
from mo_loop.ops.base import Constant, Identity, Op, Parameter, Result
from mo_loop.ops.sequences import Optional

PACK = "give --sequence-io packed: it becomes its data and its shapes, two tensors"


def made_start(graph: Graph, packed: bool, sizes: InputSizes, name: str, start: Start) -> Value:
    """The node of an input: a Parameter, or a Constant if the input is frozen."""
    origin = Origin(output=name)
    if start.value is not None:
        with made_for((origin,)):
            value = Constant(start.value, graph=graph, dtype=start.type.dtype, name=name).output
        value.define(origin)
        return value
    if not isinstance(start.type, TensorType):
        return made_input(graph, name, start.type, packed)
    value = made_input(graph, name, sizes.opened(name, start.type), packed)
    value.node.__dict__["sizes"] = sizes.own(name, start.type)
    return value


def made_input(graph: Graph, name: str, type_: TensorType | SequenceType | OptionalType, packed: bool) -> Value:
    """The Parameter of an input. A sequence has two Parameters, and a node that builds the sequence from them.

    With packed sequences, an optional input is assumed to be present.
    """
    origin = Origin(output=name)
    if isinstance(type_, TensorType):
        with made_for((origin,)):
            value = Parameter(graph=graph, type=type_, name=name).output
        value.define(origin)
        return value
    if not packed:
        raise refused(f"the input {name!r}", "enter", type_, origin)
    if isinstance(type_, OptionalType):
        return made_input(graph, name, type_.element, packed)
    element = type_.element
    if element.dtype is None or element.shape is None or element.dtype is string:
        what = "strings" if element.dtype is string else "tensors of unknown rank"
        raise UnsupportedError(
            f"the input {name!r} is a sequence of {what}: it cannot be packed", code="ML310", where=origin,
            hint="" if element.dtype is string else f"give the shape of an element: --input '{name}[?,?]'",
        )  # fmt: skip
    data = made_input(graph, f"{name}.data", TensorType(element.dtype, (fresh(),)), packed)
    table = TensorType(i64, (fresh(), max(len(element.shape), 1)))
    shapes = made_input(graph, f"{name}.shapes", table, packed)
    dims = tuple(dim if isinstance(dim, int) else -1 for dim in element.shape)
    with made_for((origin,)):
        return ops.PackedSequence(data, shapes, dims=dims, name=name).output


def make_result(value: Value, name: str, packed: bool) -> None:
    """A model output, two for a sequence. The node before a Result has the same name, so each needs a separate node."""
    if isinstance(value.type, OptionalType) and isinstance(value.node, Optional) and value.node.inputs and packed:
        assert value.node.inputs[0] is not None
        value = value.node.inputs[0]
    if isinstance(value.type, SequenceType) and packed:
        for each, part in zip(ops.PackSequence(value).outputs, ("data", "shapes"), strict=True):
            make_result(Identity(each).output, f"{name}.{part}", packed)
        return
    if isinstance(value.type, SequenceType | OptionalType):
        origin = next((each for each in value.origins if each.output == name), Origin(output=name))
        raise refused(f"the output {name!r}", "leave", value.type, origin)
    node = value.node
    taken = any(use.node.type == "Result" for use in value.uses if isinstance(use.node, Op))
    if node.name != name and (isinstance(node, Parameter | Constant) or (taken and len(node.outputs) == 1)):
        node = Identity(value)
        node.output.take_output(value, name)
        value = node.output
    if not isinstance(node, Parameter | Constant):
        node.name = name
    value.add_name(name)
    Result(value, name=f"{name}/sink_port_0", names=(name,))


def refused(what: str, way: str, type_: SequenceType | OptionalType, origin: Origin) -> UnsupportedError:
    """The error for an input or output that is not a tensor; `way` is "enter" or "leave"."""
    text = f"{what} is a {type_}: only tensors can {way} an IR"
    return UnsupportedError(text, code="ML310", where=origin, hint=PACK)


def boundary_errors(model: OnnxModel, cut: Cut, packed: bool) -> Iterator[UnsupportedError]:
    """The errors of all inputs and outputs that are not tensors. Translation alone would stop at the first of them."""
    scratch = Graph("inputs")
    for start in cut.parameters(model):
        if start.value is not None or start.if_needed:
            continue
        try:
            made_input(scratch, start.name, start.type, packed)
        except UnsupportedError as error:
            yield error
    if packed:
        return
    declared: dict[str, Any] = {entry.name: entry.type for entry in model.proto.graph.output}
    for name in cut.outputs or declared:
        if name in declared and declared[name].WhichOneof("value") in ("sequence_type", "optional_type"):
            try:
                type_ = type_from(declared[name], symbolic=True)
            except UnsupportedError:
                continue  # a sequence of maps: it depends on the node that makes it
            if isinstance(type_, SequenceType | OptionalType):
                yield refused(f"the output {name!r}", "leave", type_, main_graph(model).tensor(name))
