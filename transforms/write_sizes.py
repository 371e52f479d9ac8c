"""The declared sizes of inputs, and checks of what the conversion assumed of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.dimension import Dim, now
from mo_loop.graph.types import i64, string
from mo_loop.ops.base import Constant, Parameter, Result
from mo_loop.transforms.function_pass import FunctionPass


class WriteSizes(FunctionPass):
    """x : f32[h,w], where h is 224 and w is 8 in the model, and the graph needs w = 8  ->  x : f32[224,8], checked

    The IR may be given other sizes (`ov.Model.reshape`). Those that no decision depends on are only written. The others
    are checked: VariadicSplit of Range(0, whether they are as assumed) into [1] has no result for another size. With
    static shapes the runtime computes this once; another size is an error at reshape, or at inference.

    The entry `sizes` of the model's rt_info has what each size may be: `<sizes><x value="?,3,?,?" /></sizes>`.

        ?       any size, but not 0 if the declared size is not 0; the model itself may refuse sizes, such as other
                channels of a convolution
        3       this size
        4..     at least 4
        n1      the size of all axes that have n1; n1=4.. is at least 4 as well
        ...     in place of all sizes: any rank
    """

    bodies = "never"

    def run_on_graph(self, graph: Graph) -> bool:
        checked = [each for each in graph.parameters if each.sizes is not None]
        owners = {size.name: (each, axis) for each in checked for axis, size in enumerate(each.sizes) if size is not None}
        found = {each: list(_assumed(each, owners)) for each in checked}
        if graph.parameters:
            graph.rt_info["sizes"] = _texts(graph.parameters, found)
        sizes: dict[tuple[Parameter, int], Value] = {}
        written = False
        for each in graph.parameters:
            type_ = each.value_type
            shape = getattr(type_, "shape", None)
            if shape is not None and any(isinstance(dim, Dim) and dim.now is not None for dim in shape):
                known = [now(dim) for dim in shape]
                each.retype(type_.with_shape(tuple(d if n is None else n for d, n in zip(shape, known, strict=True))))
                written = self.accept(each)
        conditions = [_condition(sizes, *each) for listed in found.values() for each in listed]
        if conditions:
            zero = _zero_if(conditions)
            for each in [each for each, listed in found.items() if listed]:
                self._check(each, zero)
            written = True
        return written

    def _check(self, parameter: Parameter, zero: Value) -> None:
        x = parameter.output
        if x.dtype is string:
            return
        readers = [use for use in x.uses if not isinstance(use.node, ops.ShapeOf)]
        rest = np.zeros(len(x.type.dims) - 1, np.int64)
        first = ops.Reshape(ops.Add(_size(parameter, 0), zero), [1])
        target = ops.Concat(first, rest, axis=0).output if rest.size else first.output
        checked = ops.Reshape(x, target, special_zero=True)
        for reader, port in readers:
            reader.graph.set_input(reader, port, checked.output)
            if isinstance(reader, Result) and reader.output_names:
                checked.name = reader.output_names[0]


def _assumed(parameter: Parameter, owners: dict[str, tuple[Parameter, int]]) -> Iterator[tuple]:
    """What the graph assumes of the sizes of an input: axis, kind, and a number, or another input and axis."""
    for axis, (own, dim) in enumerate(zip(parameter.sizes, parameter.value_type.dims, strict=True)):
        if isinstance(dim, int):  # also a size that the model does not declare, such as that of one step
            yield parameter, axis, "equal", dim
            continue
        symbol = dim.symbol
        if own is None or symbol is None:
            continue
        if symbol.name != own.name and symbol.name in owners:
            yield parameter, axis, "same", owners[symbol.name]
        if symbol.lo > 0:
            yield parameter, axis, "least", symbol.lo


def _texts(parameters: Sequence[Parameter], found: Mapping[Parameter, Sequence[tuple]]) -> dict[str, str]:
    """The name of each input -> what its sizes may be."""
    every = [each for listed in found.values() for each in listed]
    heads = dict.fromkeys(other for _, _, kind, other in every if kind == "same")
    shared = {head: f"n{number}" for number, head in enumerate(heads, 1)}
    shared |= {(parameter, axis): shared[other] for parameter, axis, kind, other in every if kind == "same"}
    fixed = {(parameter, axis): str(size) for parameter, axis, kind, size in every if kind == "equal"}
    least = {(parameter, axis): f"{size}.." for parameter, axis, kind, size in every if kind == "least" and size > 1}

    def text(parameter: Parameter) -> str:
        if parameter.output.shape is None:
            return "..."
        places = [(parameter, axis) for axis in range(len(parameter.output.shape))]
        bounds = ["=".join(each[place] for each in (shared, least) if place in each) for place in places]
        return ",".join(fixed.get(place) or bound or "?" for place, bound in zip(places, bounds, strict=True))

    return {each.name: text(each) for each in parameters}


def _size(parameter: Parameter, axis: int) -> Value:
    return ops.Gather(ops.ShapeOf(parameter.output), axis, 0).output


def _condition(sizes: dict[tuple[Parameter, int], Value], parameter: Parameter, axis: int, kind: str, other) -> Value:
    for place in [(parameter, axis), *([other] if kind == "same" else [])]:
        if place not in sizes:
            sizes[place] = _size(*place)
    size = sizes[parameter, axis]
    if kind == "least":
        return ops.GreaterEqual(size, other).output
    return ops.Equal(size, sizes[other] if kind == "same" else other).output


def _zero_if(conditions: Sequence[Value]) -> Value:
    """0 if all conditions hold; else an operation fails."""
    holds = conditions[0]
    for each in conditions[1:]:
        holds = ops.LogicalAnd(holds, each).output
    graph = holds.graph
    start, step = (Constant(np.array(each), graph=graph, dtype=i64) for each in (0, 1))
    numbers = ops.Range(start, ops.Convert(holds, destination_type=i64), step, output_type=i64)
    part = ops.VariadicSplit(numbers, 0, np.array([1]))
    return ops.Gather(part.outputs[0], 0, 0).output
