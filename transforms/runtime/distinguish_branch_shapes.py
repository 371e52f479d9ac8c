"""Outputs of If that the runtime does not copy."""

from __future__ import annotations

from math import gcd

import numpy as np

from mo_loop import ops
from mo_loop.graph import Graph, Value
from mo_loop.graph.shape import Dimension, element_count, high, is_static, low
from mo_loop.graph.types import i64, string
from mo_loop.ops.base import Constant, Result
from mo_loop.ops.control import If, Selected
from mo_loop.ops.slicing import FAR
from transforms.function_pass import FunctionPass
from transforms.replace import replace_output
from transforms.runtime.alternatives import pattern, reshaped


class DistinguishBranchShapes(FunctionPass):
    """y = If(c, then: a, else: b)  ->  Reshape(If(c, then: a as [1, size], else: b as [size, 1]), the sizes of y)

    Before 2026.2 the runtime computes the number of bytes of a Result of dynamic shape only when its shape is not the
    one that the output of the If has. If the other branch has given the output this shape before, the number is that
    of an earlier inference, or 0. So the branches return shapes that are equal for a size of 1 only. If both sizes may
    be 1, the else branch appends two elements, which a Slice removes outside. If more than one dimension is unknown,
    the shape is an output too. A Result of static shape is always copied.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        return self.rewrite_each(graph, If, self._distinguish)

    def _distinguish(self, node: If) -> bool:
        lossy = [entry for entry in node.output_map if _may_be_lost(entry)]
        if not lossy:
            return self.refuse(node, "no output has the same dynamic shape in both branches")
        entries: list[Selected] = []
        for entry, output in zip(node.output_map, node.outputs, strict=True):
            entries += _distinguished(entry, output) if entry in lossy else [entry]
        new = ops.If(
            *node.inputs, graph=node.graph, name=node.name, then_body=node.then_body, else_body=node.else_body,
            input_map=node.input_map, output_map=tuple(entries),
        )  # fmt: skip
        new.rt_info.update(node.rt_info)
        outputs = iter(new.outputs)
        for entry, old in zip(node.output_map, node.outputs, strict=True):
            value = next(outputs)
            if entry in lossy:
                value = _without_padding(value, new) if _is_padded(entry) else value
                value = reshaped(value, old.type.dims, lambda: next(outputs))
            replace_output(old, value)
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
    return not (_is_below(one, other) or _is_below(other, one)) and _may_be(one, other) and _may_be(other, one)


def _is_below(one: Dimension, other: Dimension) -> bool:
    top = high(one)
    return top is not None and top < low(other)


def _may_be(dim: Dimension, number: Dimension) -> bool:
    """False if `number` is one that the factors in `dim` exclude: 3N is never 1. Both are of different inferences, so
    that symbols in both have different values."""
    if isinstance(dim, int) or not isinstance(number, int):
        return True
    return (number - dim.const) % gcd(*(factor for _, factor in dim.terms)) == 0


def _is_padded(entry: Selected) -> bool:
    """Whether both branches may return one element."""
    sizes = (element_count(each.value.shape) for each in (entry.then, entry.else_))
    return all(size is not None and _may_agree(size, 1) for size in sizes)


def _distinguished(entry: Selected, output: Value) -> list[Selected]:
    """The values of both branches as [1, size] and [size, 1], and the shape if it does not follow from the size."""
    a, b = entry.then.value, entry.else_.value
    row = ops.Reshape(a, [1, -1], special_zero=False).output
    column = ops.Reshape(b, [-1, 1], special_zero=False).output
    if _is_padded(entry):
        padding = Constant(np.zeros((2, 1), b.dtype.numpy), graph=b.graph, dtype=b.dtype)
        column = ops.Concat(column, padding, axis=0).output
    entries = [Selected(Result(row), Result(column))]
    if pattern(output.type.dims) is None:
        entries.append(Selected(Result(ops.ShapeOf(a)), Result(ops.ShapeOf(b))))
    return entries


def _without_padding(value: Value, node: If) -> Value:
    condition = node.inputs[0]
    assert condition is not None
    ends = (Constant([end], graph=node.graph, dtype=i64) for end in (FAR, -2))
    # With bounds of the end the slice would have the symbol of the whole (see RemoveSliceBounds).
    end = ops.Barrier(ops.Select(condition, *ends), hides="bounds")
    return ops.Slice(value, [0], end, [1], [0]).output


def _results(entries: list[Selected]) -> list[Result]:
    return [result for entry in entries for result in (entry.then, entry.else_)]
