"""The declared sizes of inputs, and checks of what the conversion assumed of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.dimension import Dim, fresh, now
from mo_loop.graph.origin import made_for
from mo_loop.graph.shape import of_declared_sizes
from mo_loop.graph.types import i64, string
from mo_loop.ops.base import Constant, Parameter, Result
from mo_loop.ops.control import If
from mo_loop.transforms.function_pass import FunctionPass

Place = tuple[Parameter, int]
"""An input and one of its axes."""


class WriteSizes(FunctionPass):
    """x : f32[h,w], where h is 224 and w is 8 in the model, and the graph needs w = 8  ->  x : f32[224,8], checked

    The IR may be given other sizes (`ov.Model.reshape`). Those that no decision depends on are only written. The others
    are checked: VariadicSplit of Range(0, whether they are as assumed) into [1] has no result for another size. With
    static shapes the runtime computes this once; another size is an error at reshape, or at inference.
    """

    bodies = "never"

    def run_on_graph(self, graph: Graph) -> bool:
        places: dict[str, Place] = {
            size.name: (each, axis) for each in graph.parameters for axis, size in enumerate(each.sizes or ()) if size
        }
        assumed = {each: list(_assumed(each, places)) for each in graph.parameters if each.sizes}
        changed = False
        for each in graph.parameters:
            if each in assumed and (shape := of_declared_sizes(each.value_type.shape)) != each.value_type.shape:
                each.retype(each.value_type.with_shape(shape))
                changed = self.accept(each)
        graph.validate()
        for node in graph.of(If):
            _forget_sizes(node)
        checked = [each for each, conditions in assumed.items() if conditions and each.output.dtype is not string]
        if checked:
            with made_for(checked[0].origins):
                zero = _zero_if([each for parameter in checked for each in _conditions(parameter, assumed[parameter])])
            for each in checked:
                with made_for(each.origins):
                    _check(each, zero)
                changed = self.accept(each, "checks its sizes")
        return changed


def _assumed(parameter: Parameter, places: dict[str, Place]) -> Iterator[tuple[Place, str, Any]]:
    """What the graph assumes of the sizes of an input: "is" a number, or that of another place; "least" a number."""
    for axis, (own, dim) in enumerate(zip(parameter.sizes or (), parameter.value_type.dims, strict=False)):
        symbol = dim.symbol if isinstance(dim, Dim) else None
        if own is None:
            continue
        if isinstance(dim, int):
            yield (parameter, axis), "is", dim
        elif symbol is not None and symbol.name != own.name and symbol.name in places:
            yield (parameter, axis), "is", places[symbol.name]
        if symbol is not None and symbol.lo > 0:
            yield (parameter, axis), "least", symbol.lo


def _forget_sizes(node: If) -> None:
    """Let the branch for other sizes, which the declared ones leave out, have none of them in the file."""
    if node.operands[0].type.integers != (1,):
        return
    symbols: dict[Dim, Any] = {}
    for parameter in node.else_body.parameters:
        shape = getattr(parameter.value_type, "shape", None) or ()
        if any(now(dim) is not None and isinstance(dim, Dim) for dim in shape):
            dims = [symbols.setdefault(dim, fresh()) if isinstance(dim, Dim) else dim for dim in shape]
            parameter.retype(parameter.value_type.with_shape(tuple(dims)))
    node.else_body.validate()


def _size(place: Place) -> Value:
    return ops.Gather(ops.ShapeOf(place[0].output), place[1], 0).output


def _conditions(parameter: Parameter, assumed: Sequence[tuple[Place, str, Any]]) -> Iterator[Value]:
    numbers = {axis: other for (_, axis), kind, other in assumed if kind == "is" and isinstance(other, int)}
    if numbers:
        sizes = ops.ShapeOf(parameter.output).output
        if len(numbers) < len(parameter.output.type.dims):
            sizes = ops.Gather(sizes, list(numbers), 0).output
        yield ops.ReduceLogicalAnd(ops.Equal(sizes, np.array(list(numbers.values()))), [0]).output
    for place, kind, other in assumed:
        if kind == "least":
            yield ops.GreaterEqual(_size(place), other).output
        elif isinstance(other, tuple):
            yield ops.Equal(_size(place), _size(other)).output


def _zero_if(conditions: Sequence[Value]) -> Value:
    """0 if all conditions hold; else an operation fails."""
    holds = conditions[0]
    for each in conditions[1:]:
        holds = ops.LogicalAnd(holds, each).output
    start, step = (Constant(np.array(each), graph=holds.graph, dtype=i64) for each in (0, 1))
    numbers = ops.Range(start, ops.Convert(holds, destination_type=i64), step, output_type=i64)
    return ops.Gather(ops.VariadicSplit(numbers, 0, np.array([1])).outputs[0], 0, 0).output


def _check(parameter: Parameter, zero: Value) -> None:
    """Let all readers depend on `zero`, whose computation has the checks."""
    x = parameter.output
    first = ops.Add(_size((parameter, 0)), zero).output
    readers = [use for use in x.uses if not isinstance(use.node, ops.ShapeOf)]
    rest = np.zeros(len(x.type.dims) - 1, np.int64)  # 0 keeps a size
    target = ops.Concat(ops.Reshape(first, [1]), rest, axis=0) if rest.size else ops.Reshape(first, [1])
    checked = ops.Reshape(x, target, special_zero=True)
    for reader, port in readers:
        reader.graph.set_input(reader, port, checked.output)
        if isinstance(reader, Result) and reader.output_names:
            checked.name = reader.output_names[0]
