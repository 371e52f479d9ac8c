"""--layout: the layouts of inputs and outputs."""

from __future__ import annotations

import numpy as np

from mo_loop import ops
from mo_loop.errors import UsageError
from mo_loop.graph import Graph, Node, Value
from mo_loop.graph.types import TensorType
from mo_loop.ops.base import Parameter, Result
from mo_loop.preprocessing.layout import Layouts, permutation, record_layout
from transforms.preprocess.inputs import is_done, mark_done, put_behind
from transforms.preprocess.layout_pass import FLAG, LayoutPass
from transforms.replace import insert_before


class ChangeLayouts(LayoutPass):
    """x [N,H,W,C]  ->  transpose(x [N,C,H,W], [0, 2, 3, 1]), so that the model reads the same tensor as before

    An output is transposed before its Result. A layout without a new layout is only recorded in the file; other passes
    use it to find channels and batch.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for parameter, said in self.inputs(graph):
            order = _order(parameter.output, parameter.name, said, is_done(graph, "layout", parameter.name))
            if order:
                _transpose_input(parameter, order)
                changed = self._changed(graph, parameter, parameter.name, said)
            record_layout(parameter.output, said[1])
        for result, said in self.outputs(graph):
            name = result.output_names[0] if result.output_names else result.name
            order = _order(result.value, name, said, is_done(graph, "layout", name))
            if order:
                _transpose_output(result, name, order)
                changed = self._changed(graph, result, name, said)
        return changed

    def _changed(self, graph: Graph, node: Node, name: str, said: Layouts) -> bool:
        mark_done(graph, "layout", name, f"{said[0]}->{said[1]}")
        return self.accept(node)


def _order(value: Value, name: str, said: Layouts, done: bool) -> tuple[int, ...]:
    """The axes in their new order; empty where they stay. UsageError where a layout does not fit the tensor."""
    source, target = said
    for layout in (source, target):
        if layout is not None and not layout.fits(value.rank):
            raise UsageError(f"{FLAG}: {layout} does not fit {name!r}: {value.type}")
    if source is None or source == target or done:
        return ()
    if value.rank is None:
        raise UsageError(f"{FLAG}: {name!r} is of unknown rank and cannot be transposed", hint="say its shape: --input")
    order = permutation(source, target, value.rank)
    return () if order == tuple(range(value.rank)) else order


def _transpose_input(parameter: Parameter, order: tuple[int, ...]) -> None:
    """Permute the axes of an input, and transpose it back for the model."""
    type_ = parameter.value_type
    back = np.argsort(order)

    def transposed(x: Value) -> Node:
        parameter.retype(TensorType(type_.dtype, tuple(type_.shape[axis] for axis in order)))
        parameter.graph.validate_node(parameter)
        return ops.Transpose(x, back.astype(np.int64), name=f"{parameter.name}/layout")

    put_behind(parameter, transposed)


def _transpose_output(result: Result, name: str, order: tuple[int, ...]) -> None:
    """Transpose an output. Only the layer before its Result has the name of the output."""
    if result.value.node.name == name:
        result.value.node.name = f"{name}/before_layout"
    insert_before(result, 0, lambda x: ops.Transpose(x, np.array(order, np.int64)))
