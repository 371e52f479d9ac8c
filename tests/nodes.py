"""Builds ONNX models of one node or a few nodes without model text.

    node_model("Slice", {"x": x, "starts": s, "ends": e}, opset=13, constants=("starts", "ends"), dynamic=True)

Inputs are named arrays in the order of the operator's ports; None is an absent input. The inputs listed in `constants`
become initializers, the others model inputs. `dynamic` makes every dimension symbolic, of all model inputs or of those
it lists. (Do not list a shape that is an input: its length must be static, because ranks are static.)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

NEWEST = onnx.defs.onnx_opset_version()

Arrays = Mapping[str, Any]


def node_model(
    op_type: str,
    inputs: Arrays,
    attributes: Mapping[str, Any] | None = None,
    *,
    opset: int,
    outputs: int | Sequence[str] = 1,
    constants: Sequence[str] = (),
    dynamic: bool | Sequence[str] = False,
) -> Any:
    """A ModelProto of one node; `com.microsoft::QuickGelu` is an operator of another domain, `opset` its version."""
    domain, _, op_type = op_type.rpartition("::")
    names = [f"out{i}" for i in range(outputs)] if isinstance(outputs, int) else list(outputs)
    ports = [name if value is not None else "" for name, value in inputs.items()]
    node = helper.make_node(op_type, ports, names, name=op_type.lower(), domain=domain, **(attributes or {}))
    present = {name: value for name, value in inputs.items() if value is not None}
    return graph_model(
        [node],
        {name: value for name, value in present.items() if name not in constants},
        [name for name in names if name],
        opset=opset,
        constants={name: value for name, value in present.items() if name in constants},
        dynamic=dynamic,
        domain=domain,
    )


def graph_model(
    nodes: Sequence[Any],
    inputs: Arrays,
    outputs: Sequence[str],
    *,
    opset: int,
    constants: Arrays | None = None,
    dynamic: bool | Sequence[str] = False,
    domain: str = "",
) -> Any:
    """A ModelProto of several nodes; the arrays in `inputs` only give names, types and shapes."""
    graph = helper.make_graph(
        list(nodes),
        "test",
        [_port(name, np.asarray(value), _is_listed(name, dynamic)) for name, value in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid(domain, opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=helper.find_min_ir_version_for(opsets, True))


def need_onnxruntime(release: str) -> None:
    """Skip the test if the installed ONNX Runtime is older than the first release with the kernels that it needs."""
    installed = version("onnxruntime")
    if [*map(int, installed.split(".")[:2])] < [*map(int, release.split("."))]:
        pytest.skip(f"ONNX Runtime {installed} has no kernel, {release} has")


def _is_listed(name: str, dynamic: bool | Sequence[str]) -> bool:
    return dynamic if isinstance(dynamic, bool) else name in dynamic


def _port(name: str, array: np.ndarray[Any, Any], dynamic: bool) -> Any:
    shape = [f"{name}_{i}" if dynamic else dim for i, dim in enumerate(array.shape)]
    if array.dtype.kind in "USO":
        return helper.make_tensor_value_info(name, onnx.TensorProto.STRING, shape)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape)
