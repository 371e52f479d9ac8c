"""Inputs of models whose only unknown size is the number of steps, and how many loops of one are left."""

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx

from mo_loop import convert_model, ops
from tests.harness import Array, floats, folded


def feeds(model: onnx.ModelProto, *lengths: int,
          integers: Callable[[Array], Array] = lambda numbers: 100 * numbers) -> list[dict[str, Any]]:
    """Numbers for the inputs, a set for each number of steps; `integers` makes whole ones of normal numbers."""
    result = []
    for place, length in enumerate(lengths):
        given: dict[str, Any] = {}
        for port in model.graph.input:
            shape = [dim.dim_value or length for dim in port.type.tensor_type.shape.dim]
            numbers = floats(*shape, seed=10 * place + len(port.name))
            kind = onnx.helper.tensor_dtype_to_np_dtype(port.type.tensor_type.elem_type)
            if kind == np.bool_:
                given[port.name] = numbers > -1
            else:
                given[port.name] = integers(numbers).astype(kind) if kind == np.int64 else numbers
        result.append(given)
    return result


def loops(model: onnx.ModelProto, **options: Any) -> list[ops.Iteration]:
    """The loops that are left."""
    graph = convert_model(model, **folded(**options)).graph
    return [loop for scope in graph.scopes() for loop in scope.of(ops.Iteration)]
