"""The schema of an operator, wherever it is written: in the onnx package, or in the tables of mo_loop.

    schema_of("Gelu", 1, "com.microsoft")            # None if nobody describes the operator in this version
    contrib_schemas()                                # tuple of onnx.defs.OpSchema, by domain, name and version
    contrib_schema("Gelu", 1, "com.microsoft")       # one of them; None if there is none

contrib_schemas.json holds those that the onnx package does not have: of operators of ONNX Runtime, which mo_loop does
not need, and of other exporters.
`tools/record_contrib_schemas.py` writes it from the installed onnxruntime package. written_schemas.json has the same
form; it is written by hand, for operators that no installed package describes: those of other exporters.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

MICROSOFT = "com.microsoft"
TABLE = Path(__file__).with_name("contrib_schemas.json")
WRITTEN = Path(__file__).with_name("written_schemas.json")


@cache
def contrib_schemas() -> tuple[Any, ...]:
    """All schemas of both tables; the versions of an operator are in ascending order."""
    return tuple(_schema(each) for table in (TABLE, WRITTEN) for each in json.loads(table.read_text("utf-8")))


def contrib_schema(op: str, opset: int, domain: str) -> Any:
    """The newest schema of an operator that is not newer than `opset`; None if the table has none."""
    held = (each for each in contrib_schemas() if (each.domain, each.name) == (domain, op))
    return next((each for each in reversed([*held]) if each.since_version <= opset), None)


def _schema(row: dict[str, Any]) -> Any:
    from onnx.defs import OpSchema

    return OpSchema(
        row["name"], row["domain"], row["version"], inputs=[_port(*each) for each in row["inputs"]],
        outputs=[_port(*each) for each in row["outputs"]],
        type_constraints=[(name, allowed, "") for name, allowed in row["types"].items()],
        attributes=[_attribute(name, *each) for name, each in row["attributes"].items()],
    )


def _port(name: str, type_: str, option: str = "Single", least: int = 1) -> Any:
    from onnx.defs import OpSchema

    chosen = getattr(OpSchema.FormalParameterOption, option)
    return OpSchema.FormalParameter(name, type_, param_option=chosen, is_homogeneous=False, min_arity=least)


def _attribute(name: str, kind: str, *default: Any) -> Any:
    """An attribute: required without `default`, optional and without a default value if that is None."""
    from onnx import AttributeProto, helper
    from onnx.defs import OpSchema

    if not default or default[0] is None:
        return OpSchema.Attribute(name, getattr(OpSchema.AttrType, kind), required=not default)
    number = AttributeProto.AttributeType.Value(kind)
    return OpSchema.Attribute(name, helper.make_attribute(name, default[0], attr_type=number))


def schema_of(op: str, opset: int, domain: str) -> Any:
    """The newest `onnx.defs.OpSchema` of an operator that is not newer than `opset`; None if there is none."""
    return contrib_schema(op, opset, domain) or onnx_schema(op, opset, domain)


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
