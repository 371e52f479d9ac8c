"""Whether an IR can be that of a model: its inputs and outputs are those of the model."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mo_loop.api import Model
from mo_loop.compare.input_sets.given import input_names
from mo_loop.compare.stepping.state_variables import has_states
from mo_loop.errors import UsageError
from mo_loop.frontend.model import OnnxModel


def require_interface(model: OnnxModel, ir: Model, path: str) -> None:
    """UsageError if the IR has an input that the model has not, or no output of the model.

    A converter may drop an input that nothing reads, and rename one that the model returns. Of an IR with states,
    `Stepwise` finds whether it fits.
    """
    if has_states(ir.graph):
        return
    inputs, outputs = input_names(model), [entry.name for entry in model.proto.graph.output]
    foreign = [port for port in ir.inputs if not _names(port).intersection(inputs)]
    common = [port for port in ir.outputs if _names(port).intersection(outputs)]
    is_short = len(ir.inputs) != len(inputs) or len(ir.outputs) != len(outputs)
    if (foreign and is_short) or not (common or len(ir.outputs) == len(outputs)):
        raise UsageError(
            f"{path} is not the IR of this model",
            why=f"the model has {_interface(inputs, outputs)}, the IR has {_interface(ir.inputs, ir.outputs)}",
            hint="give the IR of this model, or none: then the model is converted",
        )


def _names(port: Any) -> set[str]:
    return {str(port), *port.names}


def _interface(inputs: Iterable[Any], outputs: Iterable[Any]) -> str:
    return f"inputs {_listed(inputs)} and outputs {_listed(outputs)}"


def _listed(names: Iterable[Any]) -> str:
    return ", ".join(map(str, names)) or "none"
