"""Constant folding: nodes whose inputs are constant, by each operation's own numpy meaning."""

from __future__ import annotations

from typing import Any

import numpy as np

from mo_loop.graph import Graph, Value
from mo_loop.ops.base import Constant, Op, Parameter, Result
from mo_loop.ops.control import Control
from mo_loop.shape import element_count, is_static
from mo_loop.tensor import ArrayTensor
from mo_loop.types import TensorType
from transforms.base import FunctionPass

SIZE_LIMIT = 1 << 20
"""Bytes above which a result is not folded: a model must not grow by folding."""


class ConstantFolding(FunctionPass):
    """f(constants)  ->  constant, and likewise any value that inference knows completely

    A static shape without elements is such a value, and no optimisation alone: the runtime's Gather, Broadcast and
    others divide by zero when they are compiled for it.
    """

    bodies = "last"

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for node in list(graph.ordered()):
            if isinstance(node, Constant | Parameter | Result | Control) or not isinstance(node, Op) or node.random:
                continue
            arrays = self._folded(node)
            if arrays is None:
                continue
            for output, array in zip(node.outputs, arrays, strict=True):
                if output.is_used:
                    self._replace(graph, output, array)
                    changed = True
        if changed:
            graph.sweep()
        return changed

    def _folded(self, node: Op) -> list[Any] | None:
        """The values of all outputs, or None."""
        if node.outputs and all(_is_known(output) for output in node.outputs):
            return [np.array(output.type.integers).reshape(output.known.shape) for output in node.outputs]
        if node.outputs and all(_is_empty(output) for output in node.outputs):
            return [np.zeros(output.type.dims, output.dtype.numpy) for output in node.outputs]
        if not node.inputs or not all(value is None or isinstance(value.node, Constant) for value in node.inputs):
            return None
        inputs: list[Any] = []
        size = 0
        for value in node.inputs:
            constant: Any = None if value is None else value.node
            size += 0 if constant is None else constant.tensor.nbytes
            inputs.append(constant)
        if size > SIZE_LIMIT or any(_is_large(output) for output in node.outputs):
            return None
        result = node.evaluate(*(None if each is None else each.array for each in inputs))
        if result is NotImplemented:
            return None
        return list(result) if isinstance(result, tuple) else [result]

    def _replace(self, graph: Graph, output: Value, array: Any) -> None:
        dtype = output.dtype
        tensor = ArrayTensor(np.asarray(array).astype(dtype.numpy), dtype)
        constant = Constant(tensor, graph=graph, name=output.node.name)
        constant.output.names = output.names
        output.names = ()
        output.replace_with(constant.output)


def _is_known(output: Value) -> bool:
    return isinstance(output.type, TensorType) and output.type.integers is not None


def _is_empty(output: Value) -> bool:
    return isinstance(output.type, TensorType) and is_static(output.shape) and 0 in output.type.dims


def _is_large(output: Value) -> bool:
    count = element_count(output.shape)
    return not isinstance(count, int) or output.dtype.size_of(count) > SIZE_LIMIT


