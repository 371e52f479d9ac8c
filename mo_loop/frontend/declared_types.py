"""The types of the tensors of an ONNX model: those that it declares, and those that ONNX shape inference finds.

types_of(model, ["a"])      # {"a": TypeProto of f32[N,3]}
"""

from __future__ import annotations

import warnings
from collections.abc import Container, Iterable, Mapping
from dataclasses import replace
from typing import Any

from mo_loop.conversion_limits import budget
from mo_loop.errors import ConversionWarning, UnsupportedError
from mo_loop.frontend.model import OnnxModel
from mo_loop.graph import Value
from mo_loop.graph.dimension import Dimension, fresh, high, low, named, now
from mo_loop.graph.shape import Shape
from mo_loop.graph.types import UNKNOWN, OptionalType, SequenceType, TensorType, from_onnx
from mo_loop.origin import Origin


def type_from(proto: Any, *, symbolic: bool) -> Any:
    """A TypeProto as a type. Without `symbolic` the names of dimensions are dropped: in a body, a name can mean
    another size in every iteration."""
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
            budget().name(dim.dim_param)
            dims.append(named(dim.dim_param))
        else:
            dims.append(fresh())
    return tuple(dims)


def contradictions(
    proto: Any, values: Mapping[str, Value], path: tuple[str, ...], several: Container[Value]
) -> list[ConversionWarning]:
    """The declared types of inner values and outputs that contradict the inferred types. Inference is right, except for
    the values of `several` ranks.

    Edits, and exports with another batch size, leave wrong declarations. The computed numbers do not depend on them.
    """
    found = []
    for entry in (*proto.value_info, *proto.output):
        value = values.get(entry.name)
        if value is None or value in several or not entry.type.HasField("tensor_type"):
            continue
        if not isinstance(value.type, TensorType):
            continue
        if _contradicts(entry.type.tensor_type, value.type):
            declared = type_from(entry.type, symbolic=True)
            where = next((each for each in value.origins if each.scope == path and each.output == entry.name), None)
            where = where or Origin(path, output=entry.name)
            text = f"{where.path} is declared as {declared}, but it is {value.type}"
            found.append(ConversionWarning(text, where=where, code="ML510"))
    return found


def _contradicts(declared: Any, inferred: TensorType) -> bool:
    """Whether no tensor can have both types. Symbols are not compared: a name alone does not give the size."""
    if inferred.dtype is None:
        return False
    if declared.elem_type and declared.elem_type != inferred.dtype.onnx:
        return True
    if not declared.HasField("shape") or inferred.shape is None:
        return False
    dims = declared.shape.dim
    if len(dims) != len(inferred.shape):
        return True
    for dim, found in zip(dims, inferred.shape, strict=True):
        size, found = dim.dim_value, known if (known := now(found)) is not None else found
        if not dim.HasField("dim_value") or size < 0 or size == found:
            continue
        most = high(found)
        if size < low(found) or (most is not None and size > most):
            return True
    return False


def types_of(model: OnnxModel, names: Iterable[str]) -> dict[str, Any]:
    """TypeProtos of those tensors of the main graph that inference can type; initializers have a type already."""
    import onnx

    wanted = set(names)
    graph = model.proto.graph
    found = {
        each.name: onnx.helper.make_tensor_type_proto(each.data_type, each.dims)
        for each in graph.initializer
        if each.name in wanted
    }
    if not wanted - found.keys():
        return found
    inferred = with_inferred_types(model).proto.graph.value_info
    return found | {entry.name: entry.type for entry in inferred if entry.name in wanted}


def with_inferred_types(model: OnnxModel) -> OnnxModel:
    """The model with the types that inference finds among its declarations, also in bodies.

    It is as it was if inference fails: for a broken model, or one above the 2 GB limit of protobuf.
    """
    import onnx

    try:
        with warnings.catch_warnings(action="ignore"):
            return replace(model, proto=onnx.shape_inference.infer_shapes(model.proto))
    except Exception:
        return model


def is_valid(model: OnnxModel) -> bool:
    """Whether onnx finds no error in the model: its shape inference may end the process for others."""
    import onnx

    try:
        onnx.checker.check_model(model.proto)
    except Exception:
        return False
    return True
