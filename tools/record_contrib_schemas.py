"""Write mo_loop/frontend/contrib_schemas.json: the schemas of ONNX Runtime's own operators.

    python tools/record_contrib_schemas.py           # from the installed onnxruntime package

They are the operators of the domain com.microsoft, those of the default domain that the onnx package does not have, and
those of com.microsoft.nchwc, which occur in files that ONNX Runtime saved after optimisation.
"""

import json
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mo_loop.frontend.schemas import MICROSOFT, TABLE

LEFT_OUT = ("MemcpyFromHost", "MemcpyToHost")
"""Operators that ONNX Runtime inserts when it loads a model, and that no file has."""


def main() -> int:
    """Write the table."""
    rows = [json.dumps(row) for row in sorted(rows_of_onnxruntime(), key=_key)]
    TABLE.write_text("[\n" + ",\n".join(rows) + "\n]\n", "utf-8")
    print(f"{len(rows)} operators")
    return 0


def rows_of_onnxruntime() -> list[dict[str, Any]]:
    """The rows of the table."""
    import onnx
    from onnxruntime.capi.onnxruntime_pybind11_state import get_all_operator_schema

    standard = {(each.domain, each.name, each.since_version) for each in onnx.defs.get_all_schemas_with_history()}
    return [
        _row(each)
        for each in get_all_operator_schema()
        if each.domain in ("", MICROSOFT, f"{MICROSOFT}.nchwc")
        and not each.deprecated
        and each.name not in LEFT_OUT
        and (each.domain, each.name, each.since_version) not in standard
    ]


def _row(schema: Any) -> dict[str, Any]:
    return {
        "domain": schema.domain,
        "name": schema.name,
        "version": schema.since_version,
        "inputs": [_port(each, schema.min_input, place) for place, each in enumerate(schema.inputs)],
        "outputs": [_port(each, schema.min_output, place) for place, each in enumerate(schema.outputs)],
        "attributes": {name: _attribute(each) for name, each in sorted(schema.attributes.items())},
        "types": {each.type_param_str: sorted(each.allowed_type_strs) for each in schema.type_constraints},
    }


def _port(port: Any, least: int, place: int) -> list[Any]:
    """Name, type, and unless the port is required: its option, and for a variadic one the smallest number of values."""
    option = str(port.option).rpartition(".")[2]
    if option == "Single":
        return [port.name, port.typeStr]
    return [port.name, port.typeStr, option, *([max(least - place, 0)] if option == "Variadic" else [])]


def _attribute(attribute: Any) -> list[Any]:
    """The kind, and for an optional attribute its default value or None."""
    from onnx import AttributeProto, helper

    kind = str(attribute.type).rpartition(".")[2]
    if attribute.required:
        return [kind]
    proto = AttributeProto.FromString(attribute._default_value)
    value = helper.get_attribute_value(proto) if proto.type else None
    return [kind, _plain(value)]


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.decode()
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return float(f"{value:.9g}") if isinstance(value, float) else value


def _key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["domain"], row["name"], row["version"]


if __name__ == "__main__":
    sys.exit(main())
