"""Checks the inputs of a node before its translator runs: their number and kind.

    given = arguments(translator, inputs, node)    # ModelError if there are too few or too many
    require_tensors(given, node)                   # ModelError for a sequence, TypeError_ for strings

forms.py and ranges.py check the declarations of a translator about its inputs and attributes.
"""

from __future__ import annotations

from collections.abc import Iterable

from mo_loop.errors import ModelError, TypeError_
from mo_loop.frontend.context import Context
from mo_loop.frontend.registry import Translator
from mo_loop.frontend.schemas import schema_of
from mo_loop.graph import Value
from mo_loop.graph.types import TensorType, string


def arguments(translator: Translator, inputs: list[Value | None], context: Context) -> list[Value | None]:
    """The inputs as arguments of the translator. ModelError if there are too few or too many."""
    limit = len(translator.inputs)
    present = inputs
    if translator.variadic:
        if (not translator.inputs and not present) or (None in present[limit:] and not translator.takes_absent):
            raise ModelError(f"{context.op_type} of opset {context.opset} lacks an input", code="ML227")
    else:
        while present and present[-1] is None:
            present = present[:-1]
        if len(present) > limit:
            raise ModelError(
                f"{context.op_type} of opset {context.opset} takes at most {limit} inputs, not {len(present)}",
                code="ML227",
            )
    if len(present) < translator.required or None in present[: translator.required]:
        # An optional input has a default. None for a required input is an error of the model.
        wanted = ", ".join(translator.inputs[: translator.required])
        raise ModelError(f"{context.op_type} needs the inputs {wanted}", code="ML227")
    return present


def require_tensors(inputs: Iterable[Value | None], context: Context) -> None:
    """Raise ModelError for an input that is not a tensor, and TypeError_ for strings that the schema does not allow."""
    for value in inputs:
        if value is not None and not isinstance(value.type, TensorType):
            raise ModelError(f"{context.op_type} takes tensors, and an input is {value.type}", code="ML227")
        if value is not None and value.type.dtype is string:
            _require_texts(inputs, context)
            return


def _require_texts(inputs: Iterable[Value | None], context: Context) -> None:
    """Raise TypeError_ for an input of strings where the schema of the operator has none."""
    domain = "" if context.domain == "ai.onnx" else context.domain
    schema = schema_of(context.op_type, context.opset, domain)
    if schema is None and domain != "":
        return  # an operator of another domain: its translator checks its inputs
    ports = [] if schema is None else schema.inputs
    for place, value in enumerate(inputs):
        if value is not None and value.type.dtype is string:
            port = ports[min(place, len(ports) - 1)] if ports else None
            if port is None or "tensor(string)" not in port.types:
                name = str(place) if port is None else repr(port.name)
                raise TypeError_(f"the input {name} is {value.type}, and must not be strings", code="ML240")
