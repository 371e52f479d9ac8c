"""Outputs of If that the runtime does not copy."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.shape import Dimension, high, is_static, low
from mo_loop.graph.types import string
from mo_loop.ops.base import Constant, Result
from mo_loop.ops.control import If, Selected
from transforms.function_pass import FunctionPass
from transforms.replace import replace_output
from transforms.runtime.alternatives import joined, pattern


class SeparateBranchOutputs(FunctionPass):
    """y = If(c, then: a, else: b)  ->  t, e = If(c, then: (a, nothing), else: (nothing, b)); y = Concat(t, e)

    Before 2026.2 the runtime computes the number of bytes of a Result of dynamic shape only when its shape is not the
    one that the output of the If has. If the other branch has given the output this shape before, the number is that
    of an earlier inference, or 0. So every branch gets an output of its own: it returns a as [1, size], and the other
    branch nothing, as [0, 0], which is never the same shape. Outside both are joined as vectors and reshaped. If more
    than one dimension is unknown, the shape is an output too. A Result of static shape is always copied.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, If, self._separate)

    def _separate(self, node: If) -> bool:
        lossy = [entry for entry in node.output_map if _may_be_lost(entry)]
        if not lossy:
            return self.refuse(node, "no output has the same dynamic shape in both branches")
        entries: list[Selected] = []
        for entry, output in zip(node.output_map, node.outputs, strict=True):
            entries += _separated(entry, output) if entry in lossy else [entry]
        new = ops.If(
            *node.inputs, graph=node.graph, name=node.name, then_body=node.then_body, else_body=node.else_body,
            input_map=node.input_map, output_map=tuple(entries),
        )  # fmt: skip
        new.rt_info.update(node.rt_info)
        outputs = iter(new.outputs)
        for entry, old in zip(node.output_map, node.outputs, strict=True):
            replace_output(old, _joined(old, outputs) if entry in lossy else next(outputs))
        node.graph.remove(node)
        kept = set(_results(entries))
        for result in dict.fromkeys(_results(lossy)):
            if result not in kept:
                result.graph.remove(result)
        return self.accept(node)


def _may_be_lost(entry: Selected) -> bool:
    """Whether the Results have dynamic shapes, which may agree, and elements."""
    a, b = entry.then.value, entry.else_.value
    if a.shape is None or b.shape is None or a.rank != b.rank or a.dtype is string or 0 in (*a.shape, *b.shape):
        return False
    return not (is_static(a.shape) and is_static(b.shape)) and all(map(_may_agree, a.shape, b.shape))


def _may_agree(one: Dimension, other: Dimension) -> bool:
    return not (_is_below(one, other) or _is_below(other, one))


def _is_below(one: Dimension, other: Dimension) -> bool:
    top = high(one)
    return top is not None and top < low(other)


def _separated(entry: Selected, output: Value) -> list[Selected]:
    """The values of both branches, each beside nothing, and the shape if it does not follow from the size."""
    entries = [
        Selected(_vector(entry.then), _nothing(entry.else_)),
        Selected(_nothing(entry.then), _vector(entry.else_)),
    ]
    if pattern(output.type.dims) is None:
        entries.append(Selected(Result(ops.ShapeOf(entry.then.value)), Result(ops.ShapeOf(entry.else_.value))))
    return entries


def _vector(result: Result) -> Result:
    return Result(ops.Reshape(result.value, [1, -1], special_zero=False))


def _nothing(result: Result) -> Result:
    kind = result.value.dtype
    return Result(Constant(np.zeros((0, 0), kind.numpy), graph=result.graph, dtype=kind))


def _joined(old: Value, outputs: Iterator[Value]) -> Value:
    return joined([next(outputs), next(outputs)], old.type.dims, lambda: next(outputs))


def _results(entries: list[Selected]) -> list[Result]:
    return [result for entry in entries for result in (entry.then, entry.else_)]
