"""Types as an ONNX model declares them."""

from __future__ import annotations

from typing import Any

from mo_loop.errors import UnsupportedError
from mo_loop.shape import Dimension, Shape, fresh, named
from mo_loop.types import UNKNOWN, OptionalType, SequenceType, TensorType, from_onnx


def type_from(proto: Any, *, symbolic: bool) -> Any:
    """A TypeProto as a type. Without `symbolic` the names of dimensions are dropped: in a body they need not mean
    the same in every iteration."""
    kind = proto.WhichOneof("value")
    if kind == "tensor_type":
        tensor = proto.tensor_type
        shape = _shape_from(tensor.shape, symbolic) if tensor.HasField("shape") else None
        return TensorType(from_onnx(tensor.elem_type), shape) if tensor.elem_type else UNKNOWN
    if kind == "sequence_type":
        return SequenceType(type_from(proto.sequence_type.elem_type, symbolic=symbolic))
    if kind == "optional_type":
        return OptionalType(type_from(proto.optional_type.elem_type, symbolic=symbolic))
    if kind is None:
        return UNKNOWN
    raise UnsupportedError(f"values of kind {kind} cannot be expressed", code="ML311")


def _shape_from(proto: Any, symbolic: bool) -> Shape:
    dims: list[Dimension] = []
    for dim in proto.dim:
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            dims.append(dim.dim_value)
        elif symbolic and dim.dim_param and not dim.dim_param.startswith("?"):
            dims.append(named(dim.dim_param))
        else:
            dims.append(fresh())
    return tuple(dims)
