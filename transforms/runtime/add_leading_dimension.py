"""Tensors that enter or leave a loop, whose first dimension may be 0 while all others are 1."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from mo_loop import ops
from mo_loop.graph import Node, Value
from mo_loop.graph.dimension import high, low
from mo_loop.graph.shape import is_static
from mo_loop.graph.types import TensorType, bf16, boolean, f16, f32, f64, u8
from mo_loop.ops.base import Parameter, Result
from mo_loop.ops.control import Iteration, Loop
from mo_loop.ops.port_map import Concatenated, Final, Merged, Sliced
from mo_loop.target import CRASH, Gap
from mo_loop.transforms.function_pass import FunctionPass
from mo_loop.transforms.operands import integers
from mo_loop.transforms.replace import move_readers

CONCERNED = (f32, f16, bf16, f64, boolean, u8)
"""Element types whose tensors the runtime copies by that division; integers of other types are copied otherwise."""


class AddLeadingDimension(FunctionPass):
    """x : [N]  ->  Unsqueeze(x, 0) outside, Squeeze in the body; the same for states and final values

    The runtime divides by the first dimension of a tensor that it copies. A slice has another first dimension if it is
    cut along the first axis, and concatenated outputs are not copied in this way.
    """

    instead = "`Unsqueeze` outside and `Squeeze` in the body"
    avoids = (Gap(
        "copied-zero-by-ones",
        "a tensor of floats or booleans that a loop copies into its body, or out of it, crashes the process if "
        "its first dimension is 0 and all others are 1", severity=CRASH, until="2025.2.0",
    ),)  # fmt: skip

    kinds = (Iteration,)

    def rewrite(self, node: Iteration) -> bool:
        inputs = [number for number, entry in enumerate(node.input_map) if _is_concerned(_inner(entry))]
        states = {entry.result for entry in node.back_edges if _is_concerned(entry.parameter.output)}
        fed_back = {entry.result for entry in node.back_edges}
        results = states | {
            entry.result for entry in node.output_map
            if isinstance(entry, Final) and entry.result not in fed_back and _is_concerned(entry.result.value)
        }  # fmt: skip
        if not inputs and not results:
            return self.refuse(node, "its ports have other shapes or element types")
        for number in inputs:
            _add_outside(node, number)
            _remove_inside(node.input_map[number].parameter)
        readers = {
            output: output.uses for entry, output in zip(node.output_map, node.outputs, strict=True)
            if isinstance(entry, Final) and entry.result in results
        }  # fmt: skip
        _add_inside(node, results)
        node.graph.validate_node(node)
        for output, uses in readers.items():
            if uses:
                move_readers(output, ops.Squeeze(output, [0]).output, uses)
        return self.accept(node)


def _is_concerned(value: Value | None) -> bool:
    """Whether the first dimension may be 0 while all others are 1."""
    if value is None or value.dtype not in CONCERNED or not value.shape:
        return False
    first, *others = value.shape
    if low(first) > 0:
        return False
    return all(low(dim) <= 1 and high(dim) != 0 for dim in others)


def _inner(entry: Any) -> Value | None:
    """The tensor that is copied into the body; None for slices along the first axis."""
    return None if isinstance(entry, Sliced) and entry.axis == 0 else entry.parameter.output


def _raised(value: Value) -> Value:
    """The value with a first dimension of 1."""
    source = value.node.inputs[0] if isinstance(value.node, ops.Squeeze) else None
    if source is not None and source.shape == (1, *value.type.dims):
        return source
    if value.type.dims[0] == 0 and not is_static(value.shape):  # Unsqueeze would make all unknown sizes 0
        value = ops.Barrier(value, hides="bounds", axes=(0,)).output
    return ops.Unsqueeze(value, 0).output


def _add_outside(node: Iteration, number: int) -> None:
    entry, port = node.input_map[number], number + node.first_data_port
    value = node.operands[port]
    if isinstance(entry, Sliced):
        maps = list(node.input_map)
        maps[number] = replace(entry, axis=entry.axis + 1)
        node.input_map = tuple(maps)
    node.graph.set_input(node, port, _raised(value))


def _remove_inside(parameter: Parameter) -> None:
    type_: TensorType = parameter.output.type
    readers = parameter.output.uses
    parameter.retype(TensorType(type_.dtype, (1, *type_.dims)))
    parameter.graph.validate_node(parameter)
    others = [(reader, port) for reader, port in readers if not _adds_first(reader)]
    for reader, _ in readers:
        if _adds_first(reader):  # for an inner loop
            reader.outputs[0].replace_with(parameter.output)
            parameter.graph.remove(reader)
    if others:
        squeezed = ops.Squeeze(parameter.output, [0]).output
        for reader, port in others:
            parameter.graph.set_input(reader, port, squeezed)


def _adds_first(node: Node) -> bool:
    return isinstance(node, ops.Unsqueeze) and integers(node, 1) == (0,)


def _add_inside(node: Iteration, results: Collection[Result]) -> None:
    """States and final values get the dimension. A Result with another role keeps it, and they get new ones."""
    others = {entry.result for entry in node.output_map if isinstance(entry, Concatenated)}
    if isinstance(node, Loop):
        others.add(node.condition)
    new = {}
    for result in [each for each in node.body.results if each in results]:  # sets of nodes have no stable order
        value = _raised(result.value)
        if result in others:
            new[result] = Result(value)
        else:
            node.body.set_input(result, 0, value)
    node.input_map = tuple(
        replace(entry, result=new[entry.result]) if isinstance(entry, Merged) and entry.result in new else entry
        for entry in node.input_map
    )
    node.output_map = tuple(
        replace(entry, result=new[entry.result]) if isinstance(entry, Final) and entry.result in new else entry
        for entry in node.output_map
    )
