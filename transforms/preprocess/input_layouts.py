"""--layout: the layouts of inputs and outputs; --batch: shapes that contain the batch size with which the model was
exported.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop.errors import ConversionWarning, UsageError
from mo_loop.graph import TensorType, now
from mo_loop.preprocessing import PARENTHESES, Layouts, PerInput, layouts_of, permutation, record_layout
from mo_loop.transforms.preprocess.inputs import (
    inputs_of,
    is_done,
    mark_done,
    names_of,
    put_after,
    require_known,
    state_of,
)
from mo_loop.transforms.replace import insert_before
from mo_loop.transforms.vocabulary import Constant, FunctionPass, Graph, Node, Parameter, Result, Value, ops

FLAG = "--layout"


class LayoutPass(FunctionPass):
    """A pass over the inputs and outputs that --layout names."""

    bodies = "never"

    def __init__(self, layouts: PerInput[Layouts] | Mapping[str, Any], *, of_batch: bool = False) -> None:
        """Layouts by name or by place; a mapping may hold text such as `nhwc->nchw`.

        With `of_batch` a layout may also give the batch axis of an input that is a state now.
        """
        self._of_batch = of_batch
        if isinstance(layouts, Mapping):
            layouts = PerInput.of(layouts, PARENTHESES, layouts_of, FLAG)
        self._layouts: PerInput[Layouts] = layouts

    def inputs(self, graph: Graph) -> list[tuple[Parameter, Layouts]]:
        """The inputs whose layout was given; UsageError for a name that neither an input nor an output has."""
        parameters = inputs_of(graph)
        inputs = [names_of(parameter) for parameter in parameters]
        outputs = [_names_of(result) for result in graph.results]
        known = [name for each in (*inputs, *outputs) for name in sorted(each)]
        if self._of_batch:
            known += [name for name, (source, _) in self._layouts.entries if source is None and state_of(graph, name)]
        require_known(graph, self._layouts, known)
        return [(parameters[place], layouts) for place, layouts in self._layouts.among(inputs).items()]

    def outputs(self, graph: Graph) -> list[tuple[Result, Layouts]]:
        """The outputs whose layout was given; a name that an input has as well means the input."""
        if not self._layouts.entries[0][0]:
            return []
        inputs = {name for parameter in inputs_of(graph) for name in names_of(parameter)}
        places = self._layouts.among([_names_of(result) - inputs for result in graph.results])
        return [(graph.results[place], layouts) for place, layouts in places.items()]


def _names_of(result: Result) -> set[str]:
    """The names of an output; that of its layer in the file only if there is no other one."""
    return {*result.output_names, *result.value.names} - {""} or {result.name}


class ChangeLayouts(LayoutPass):
    """x [N,H,W,C]  ->  transpose(x [N,C,H,W], [0, 2, 3, 1]), so that the model reads the same tensor as before

    An output is transposed before its Result. A layout without a new layout is only recorded in the file; other passes
    use it to find channels and batch.
    """

    def run_on_graph(self, graph: Graph) -> bool:
        changed = False
        for parameter, layouts in self.inputs(graph):
            order = _order(parameter.output, parameter.name, layouts, is_done(graph, "layout", parameter.name))
            if order:
                _transpose_input(parameter, order)
                changed = self._changed(graph, parameter, parameter.name, layouts)
            record_layout(parameter.output, layouts[1])
        for result, layouts in self.outputs(graph):
            name = result.output_names[0] if result.output_names else result.name
            order = _order(result.value, name, layouts, is_done(graph, "layout", name))
            if order:
                _transpose_output(result, name, order)
                changed = self._changed(graph, result, name, layouts)
        return changed

    def _changed(self, graph: Graph, node: Node, name: str, layouts: Layouts) -> bool:
        mark_done(graph, "layout", name, f"{layouts[0]}->{layouts[1]}")
        return self.accept(node)


def _order(value: Value, name: str, layouts: Layouts, done: bool) -> tuple[int, ...]:
    """The axes in their new order; empty where they stay. UsageError where a layout does not fit the tensor."""
    source, target = layouts
    for layout in (source, target):
        if layout is not None and not layout.fits(value.rank):
            raise UsageError(f"{FLAG}: {layout} does not fit {name!r}: {value.type}")
    if source is None or source == target or done:
        return ()
    if value.rank is None:
        raise UsageError(f"{FLAG}: {name!r} has no known rank and cannot be transposed", hint="give its shape: --input")
    order = permutation(source, target, value.rank)
    return () if order == tuple(range(value.rank)) else order


def _transpose_input(parameter: Parameter, order: tuple[int, ...]) -> None:
    """Permute the axes of an input, and transpose it back for the model."""
    type_ = parameter.value_type
    back = np.argsort(order)

    def transposed(x: Value) -> Node:
        parameter.retype(TensorType(type_.dtype, tuple(type_.shape[axis] for axis in order)))
        if parameter.sizes is not None:
            parameter.__dict__["sizes"] = tuple(parameter.sizes[axis] for axis in order)
        parameter.graph.validate_node(parameter)
        return ops.Transpose(x, back.astype(np.int64), name=f"{parameter.name}/layout")

    put_after(parameter, transposed)


def _transpose_output(result: Result, name: str, order: tuple[int, ...]) -> None:
    """Transpose an output. Only the layer before its Result has the name of the output."""
    if result.value.node.name == name:
        result.value.node.name = f"{name}/before_layout"
    insert_before(result, 0, lambda x: ops.Transpose(x, np.array(order, np.int64)))


class RecordLayouts(LayoutPass):
    """Records the layout of each output on its value; runs last, when no pass replaces the value any more"""

    def run_on_graph(self, graph: Graph) -> bool:
        for result, (_, layout) in self.outputs(graph):
            record_layout(result.value, layout)
        return False


@dataclass(eq=False)
class CheckBatch(FunctionPass):
    """Warns of reshape(x [N,...], [1,...]): with the batch size N the samples are merged into another dimension

    Only if inference finds no error: the Reshape may be intended, as in a grouped convolution.
    """

    batch: int

    def run_on_graph(self, graph: Graph) -> bool:
        for node in self.candidates(graph, ops.Reshape):
            if self.batch > 1 and _holds_one(node, self.batch):
                text = f"{node.operands[0].type} becomes {node.output.type}: {self.batch} samples are joined into one"
                warnings.warn(ConversionWarning(text, where=node.origin, code="ML514"), stacklevel=2)
        return False


def _holds_one(node: ops.Reshape, batch: int) -> bool:
    x, pattern = node.operands
    if not isinstance(pattern.node, Constant) or not x.shape or now(x.shape[0]) != batch:
        return False
    wanted = pattern.type.integers
    return bool(wanted) and wanted[0] == 1
