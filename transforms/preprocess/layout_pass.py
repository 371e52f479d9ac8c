"""The inputs and outputs that --layout names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mo_loop.graph import Graph
from mo_loop.ops.base import Parameter, Result
from mo_loop.preprocessing.layout import Layouts, layouts_of
from mo_loop.preprocessing.per_input import PARENTHESES, PerInput
from transforms.function_pass import FunctionPass
from transforms.preprocess.inputs import inputs_of, names_of, require_known, state_of

FLAG = "--layout"


class LayoutPass(FunctionPass):
    """A pass over the inputs and outputs that --layout names."""

    bodies = "never"

    def __init__(self, layouts: PerInput[Layouts] | Mapping[str, Any], *, of_batch: bool = False) -> None:
        """Layouts by name or by place; a mapping may hold text such as `nhwc->nchw`.

        With `of_batch` a layout may also say where the batch of an input is that is a state now.
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
            known += [name for name, said in self._layouts.entries if said[0] is None and state_of(graph, name)]
        require_known(graph, self._layouts, known)
        return [(parameters[place], said) for place, said in self._layouts.among(inputs).items()]

    def outputs(self, graph: Graph) -> list[tuple[Result, Layouts]]:
        """The outputs whose layout was given; a name that an input has as well means the input."""
        if not self._layouts.entries[0][0]:
            return []
        inputs = {name for parameter in inputs_of(graph) for name in names_of(parameter)}
        places = self._layouts.among([_names_of(result) - inputs for result in graph.results])
        return [(graph.results[place], said) for place, said in places.items()]


def _names_of(result: Result) -> set[str]:
    """The names of an output; that of its layer in the file only if there is no other one."""
    return {*result.output_names, *result.value.names} - {""} or {result.name}
