"""The schema of an operator, wherever it is written: in the onnx package, or in the tables of mo_loop.

    schema_of("Gelu", 1, "com.microsoft")            # None if nobody describes the operator in this version
"""

from __future__ import annotations

from typing import Any

from mo_loop.frontend import contrib_schemas


def schema_of(op: str, opset: int, domain: str) -> Any:
    """The newest `onnx.defs.OpSchema` of an operator that is not newer than `opset`; None if there is none."""
    return contrib_schemas.schema(op, opset, domain) or onnx_schema(op, opset, domain)


def has_outputs(op: str, opset: int, domain: str, count: int) -> bool:
    """Whether a node of the operator can have `count` outputs; of variadic ones, its body or a size decides."""
    schema = schema_of(op, opset, domain)
    return schema is not None and count <= schema.max_output < 1000


def onnx_schema(op: str, opset: int, domain: str) -> Any:
    """The same from the onnx package alone, whose schemas may have a function."""
    import onnx

    try:
        return onnx.defs.get_schema(op, opset, domain)
    except onnx.defs.SchemaError:
        return None
