"""One ONNX node (or a small model) through the whole program, compared with what ONNX says it gives.

    check_node("Concat", {"a": a, "b": b}, {"axis": 1}, opset=13)
    check_node("Slice", {"x": x, "starts": s, "ends": e}, opset=13, constants=("starts", "ends"), dynamic=True)

Inputs are named arrays in the order of the operator's ports, None for an absent one. Those named in `constants` become
initializers, the others model inputs; with `dynamic` every dimension of a model input is symbolic, or of those
inputs whose names it lists (a shape given at run time must have a static length, for ranks are static). The model is
converted, written, read by OpenVINO and run twice on one compiled model (buffers that survive an inference have given
wrong numbers before). The oracle is ONNX Runtime, or the reference evaluator where it lacks the type or operator.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper

from mo_loop.api import convert_model, save_model
from mo_loop.verify.compare import compare_all
from mo_loop.verify.oracle import OnnxRuntime, Reference
from mo_loop.verify.runtime import compile_ir

NEWEST = onnx.defs.onnx_opset_version()

Arrays = Mapping[str, Any]
Named = list[tuple[str, Any]]


def check_node(
    op_type: str,
    inputs: Arrays,
    attributes: Mapping[str, Any] | None = None,
    *,
    opset: int,
    outputs: int | Sequence[str] = 1,
    constants: Sequence[str] = (),
    dynamic: bool | Sequence[str] = False,
    expected: Sequence[Any] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> list[Any]:
    """Convert and run a model of one node; AssertionError when a number differs. Returns the arrays it gave.

    `outputs` is how many the node has, or their names ("" for one not wanted). `expected` replaces the oracle.
    """
    model = node_model(
        op_type, inputs, attributes, opset=opset, outputs=outputs, constants=constants, dynamic=dynamic
    )
    feeds = {name: value for name, value in inputs.items() if value is not None and name not in constants}
    return check_model(model, feeds, expected=expected, rtol=rtol, atol=atol)


def check_model(
    model: Any,
    *feeds: Arrays,
    expected: Sequence[Any] | None = None,
    rtol: float | None = None,
    atol: float | None = None,
) -> list[Any]:
    """Convert a ModelProto, run it with each of `feeds` (one alone: twice) and compare. Returns the last arrays."""
    sets = [*feeds, feeds[0]] if len(feeds) == 1 else list(feeds)
    actual = run_converted(model, *sets)
    for given, found in zip(sets, actual, strict=True):
        wanted = oracle(model, given) if expected is None else _named(model, expected)
        wrong = [str(each) for each in compare_all(wanted, found, rtol=rtol, atol=atol) if not each]
        assert not wrong, "; ".join(wrong)
    return [array for _, array in actual[-1]]


def run_converted(model: Any, *feeds: Arrays) -> list[Named]:
    """What the converted model gives for each of `feeds`, on one compiled model, in the order of its outputs."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.xml"
        converted = convert_model(model)
        save_model(converted, path)
        compiled = compile_ir(path)
        found = [compiled.run(given) for given in feeds]
    for given, arrays in zip(feeds, found, strict=True):
        _check_inferred(converted.graph, given, arrays)
    return found


def _check_inferred(graph: Any, feeds: Arrays, arrays: Named) -> None:
    """What inference says of the outputs must hold for what came out."""
    lengths: dict[Any, int] = {}
    for parameter in graph.parameters:
        for dim, length in zip(parameter.output.shape, np.shape(feeds[parameter.name]), strict=True):
            if not isinstance(dim, int) and dim.symbol is not None:
                lengths[dim.symbol] = length
    for result, (name, array) in zip(graph.results, arrays, strict=True):
        shape = result.value.shape
        if shape is not None:
            fits = [_fits(dim, length, lengths) for dim, length in zip(shape, array.shape, strict=False)]
            text = f"{name} is inferred as {result.value.type} and has the shape {list(array.shape)}"
            assert len(shape) == array.ndim and all(fits), text


def _fits(dim: Any, length: int, lengths: Mapping[Any, int]) -> bool:
    if isinstance(dim, int):
        return dim == length
    if all(symbol in lengths for symbol in dim.symbols()):
        return bool(dim.const + sum(factor * lengths[symbol] for symbol, factor in dim.terms) == length)
    return dim.lo <= length and (dim.hi is None or length <= dim.hi)


def oracle(model: Any, feeds: Arrays) -> Named:
    """Expected outputs: from ONNX Runtime, or from the reference evaluator where that cannot run the model."""
    try:
        return OnnxRuntime(model).run(feeds)
    except Exception:  # its errors share no base class: an opset, an operator or a type it does not know
        return Reference(model).run(feeds)


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
    """A ModelProto of several nodes; the arrays in `inputs` only say names, types and shapes."""
    graph = helper.make_graph(
        list(nodes),
        "test",
        [_port(name, np.asarray(value), _is_listed(name, dynamic)) for name, value in inputs.items()],
        [helper.make_empty_tensor_value_info(name) for name in outputs],
        [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()],
    )
    opsets = [helper.make_opsetid(domain, opset)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=helper.find_min_ir_version_for(opsets, True))


def _is_listed(name: str, dynamic: bool | Sequence[str]) -> bool:
    return dynamic if isinstance(dynamic, bool) else name in dynamic


def _port(name: str, array: np.ndarray[Any, Any], dynamic: bool) -> Any:
    shape = [f"{name}_{i}" if dynamic else dim for i, dim in enumerate(array.shape)]
    if array.dtype.kind in "USO":
        return helper.make_tensor_value_info(name, onnx.TensorProto.STRING, shape)
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), shape)


def _named(model: Any, arrays: Sequence[Any]) -> Named:
    return [(port.name, array) for port, array in zip(model.graph.output, arrays, strict=True)]
