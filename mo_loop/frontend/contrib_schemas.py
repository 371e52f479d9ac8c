"""The schemas of operators that the onnx package does not have: those of ONNX Runtime, and of other exporters.

    schemas()                                        # tuple of onnx.defs.OpSchema, by domain, name and version
    schema("Gelu", 1, "com.microsoft")               # one of them; None if there is none

contrib_schemas.json holds them, because the onnx package does not have them and mo_loop does not need ONNX Runtime.
`tools/record_contrib_schemas.py` writes it from the installed onnxruntime package. written_schemas.json has the same
form; it is written by hand, for operators that no installed package describes: those of other exporters.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

MICROSOFT = "com.microsoft"
TABLE = Path(__file__).with_name("contrib_schemas.json")
WRITTEN = Path(__file__).with_name("written_schemas.json")


@cache
def schemas() -> tuple[Any, ...]:
    """All schemas of both tables; the versions of an operator are in ascending order."""
    return tuple(_schema(each) for table in (TABLE, WRITTEN) for each in json.loads(table.read_text("utf-8")))


def schema(op: str, opset: int, domain: str) -> Any:
    """The newest schema of an operator that is not newer than `opset`; None if the table has none."""
    held = [each for each in schemas() if (each.domain, each.name) == (domain, op) and each.since_version <= opset]
    return held[-1] if held else None


def _schema(row: dict[str, Any]) -> Any:
    from onnx.defs import OpSchema

    return OpSchema(
        row["name"],
        row["domain"],
        row["version"],
        inputs=[_port(*each) for each in row["inputs"]],
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
