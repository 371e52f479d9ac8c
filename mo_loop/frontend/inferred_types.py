"""Types of tensors that the model does not declare, found by ONNX shape inference.

types_of(model, ["a"])      # {"a": TypeProto of f32[N,3]}
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from mo_loop.frontend.model import OnnxModel


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
