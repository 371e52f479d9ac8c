"""Runs an IR with variables: one inference after another, with a reset where a sequence begins.

    stepped = Stepped("model.xml")
    outputs, states = stepped.run(StateTask({"x": x}, reset=True))     # states: {"pastpresent": array}

A worker process serves both classes (mo_loop/compare/execution/isolated.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from mo_loop.compare.execution.runtime import Compiled, compile_ir, read_ir
from mo_loop.compare.results.array_comparison import Named


@dataclass(frozen=True)
class StateTask:
    """The inputs of one inference. `reset` the states before it; return the `states` after it."""

    feeds: Mapping[str, Any]
    reset: bool = False
    states: bool = True


class Stepped:
    """A compiled IR whose states are reset and read."""

    def __init__(self, path: str | Path, properties: Mapping[str, Any] | None = None, device: str = "CPU") -> None:
        self._compiled = compile_ir(path, properties, device)
        self.facts = self._compiled.facts

    def run(self, task: StateTask) -> tuple[Named, dict[str, np.ndarray]]:
        """One inference: the outputs, and the value of each variable by its id."""
        if task.reset:
            self.reset()
        outputs = self._compiled.run(task.feeds)
        return outputs, self._compiled.states() if task.states else {}

    def reset(self) -> None:
        """Give all variables their initial values."""
        self._compiled.reset()


class InitialStates:
    """The initial values that an IR computes for its variables from the inputs; those of variables that have none lack.

    A runtime reports the value of a variable only after an inference, so the inputs of the ReadValues become outputs.
    """

    def __init__(self, path: str | Path) -> None:
        import openvino

        try:
            from openvino import opset13
        except ImportError:  # releases before 2025
            from openvino.runtime import opset13

        model = read_ir(path)
        reads = [each for each in model.get_ops() if each.get_type_name() == "ReadValue" and each.get_input_size()]
        self._ids = [_id(each) for each in reads]
        self._compiled: Compiled | None = None
        if reads:
            results = [opset13.result(each.input_value(0)) for each in reads]
            self._compiled = Compiled(openvino.Model(results, model.get_parameters(), "initial"))
        self.facts = self._ids

    def run(self, feeds: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """The initial values by the ids of the variables."""
        if self._compiled is None:
            return {}
        found = self._compiled.run(feeds)
        return {name: array for name, (_, array) in zip(self._ids, found, strict=True)}


def _id(node: Any) -> str:
    if hasattr(node, "get_variable_id"):
        return str(node.get_variable_id())
    return str(node.get_attributes()["variable_id"])  # older releases
