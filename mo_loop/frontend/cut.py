"""Where a conversion starts and ends: the tensors that become inputs and outputs, by ONNX name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from mo_loop.errors import UsageError
from mo_loop.frontend.model import OnnxModel
from mo_loop.shape import Dimension, Shape, fresh, named


@dataclass
class Cut:
    """`inputs` name -> shape (`KEEP` leaves the declared one); None for either means what the model says."""

    inputs: dict[str, Any] | None = None
    outputs: list[str] | None = None
    KEEP: Any = field(default=..., repr=False)

    @classmethod
    def of(cls, model: OnnxModel, input: Any, output: Any) -> Cut:
        """From the arguments of convert_model; UsageError for a name that the model does not have."""
        inputs: dict[str, Any] | None = None
        if isinstance(input, Mapping):
            inputs = {name: _shape(given) for name, given in input.items()}
        elif input is not None:
            inputs = dict.fromkeys([input] if isinstance(input, str) else list(input), ...)
        outputs = None if output is None else [output] if isinstance(output, str) else list(output)
        if inputs is not None or outputs is not None:
            known = _tensor_names(model)
            for name in [*(inputs or ()), *(outputs or ())]:
                _check(name, known)
        return cls(inputs, outputs)


def _shape(given: Any) -> Shape | Any:
    if given is None or given == ...:
        return ...
    dims: list[Dimension] = []
    for dim in given:
        if isinstance(dim, int) and dim >= 0:
            dims.append(dim)
        elif isinstance(dim, str) and dim.isidentifier():
            dims.append(named(dim))
        elif dim in (None, -1, "?"):
            dims.append(fresh())
        else:
            raise UsageError(f"{dim!r} is no dimension", hint="use a number, a name, -1 or None")
    return tuple(dims)


def _tensor_names(model: OnnxModel) -> set[str]:
    graph = model.proto.graph
    names = {entry.name for entry in (*graph.input, *graph.initializer, *graph.output)}
    names.update(name for node in graph.node for name in node.output if name)
    return names


def _check(name: str, known: Iterable[str]) -> None:
    if name in known:
        return
    close = difflib.get_close_matches(name, known, 1)
    raise UsageError(
        f"the model has no tensor {name!r}", hint=f"did you mean {close[0]!r}?" if close else "", code="ML202"
    )
