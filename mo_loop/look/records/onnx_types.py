"""Types that an ONNX model declares, as an inspection shows them, including types that cannot be converted."""

from __future__ import annotations

from typing import Any

from mo_loop.graph.types import BY_ONNX
from mo_loop.look.records.tensor_ports import Shape, TensorPort


def declared(name: str, proto: Any) -> TensorPort:
    """A value of a declared type."""
    type_, shape = _type(proto)
    return TensorPort(name, type_, shape)


def _type(proto: Any) -> tuple[str, Shape]:
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        tensor = proto.tensor_type
        shape: Shape = [_dim(dim) for dim in tensor.shape.dim] if tensor.HasField("shape") else None
        return element_type(tensor.elem_type), shape
    if kind in ("sequence_type", "optional_type"):
        inner = TensorPort("", *_type(getattr(proto, kind).elem_type))
        return f"{'seq' if kind == 'sequence_type' else 'optional'}({inner})", None
    if kind == "map_type":
        value = TensorPort("", *_type(proto.map_type.value_type))
        return f"map({element_type(proto.map_type.key_type)}, {value})", None
    return "?" if kind is None else f"{kind.removesuffix('_type')}()", None


def _dim(dim: Any) -> int | str:
    return dim.dim_value if dim.HasField("dim_value") else dim.dim_param or "?"


def element_type(number: int) -> str:
    if not number:
        return "?"
    return BY_ONNX[number].name if number in BY_ONNX else f"type {number}"
