"""The ONNX model between other inputs and outputs, as `--input`, `--output` and `--freeze` cut the conversion.

cut_model(load("model.onnx"), Cut.of(model, "hidden", "logits"))          # a ModelProto; None if nothing is cut
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from mo_loop.compare.oracle.graph_edits import sweep
from mo_loop.errors import UsageError
from mo_loop.frontend.cut import Cut
from mo_loop.frontend.inferred_types import types_of
from mo_loop.frontend.model import OnnxModel


def cut_model(model: OnnxModel, cut: Cut, kept: Collection[str] = ()) -> Any:
    """A copy of the model that begins and ends at the tensors of `cut`; None if it is the model itself.

    The declared shapes of changed inputs are removed. Inputs in `kept` stay although no node reads them. UsageError if
    the type of an inner tensor is not known.
    """
    if cut.inputs is None and cut.outputs is None:
        return None
    import onnx

    proto = onnx.ModelProto()
    proto.CopyFrom(model.proto)
    graph = proto.graph
    declared = {entry.name: entry for entry in graph.input}
    inner = [name for name in cut.inputs or {} if name not in declared]
    types = {each.name: each.type for each in (*graph.value_info, *graph.output)}
    types |= types_of(model, [name for name in inner if name not in types])
    for name, entry in (cut.inputs or {}).items():
        kind = declared[name].type if name in declared else types.get(name)
        if kind is None:
            raise UsageError(f"the type of {name!r} is not known", hint="cut the model at another tensor")
        _detach(graph, name)
        if entry.value is not None:
            array = np.asarray(entry.value).astype(onnx.helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type))
            graph.initializer.append(onnx.numpy_helper.from_array(array, name))
            continue
        added = graph.input.add(name=name)
        added.type.CopyFrom(kind)
        added.type.tensor_type.ClearField("shape")
        if kind.tensor_type.HasField("shape"):  # the rank, and the names of dimensions, which may be shared
            for dim in kind.tensor_type.shape.dim:
                added.type.tensor_type.shape.dim.add(dim_param=dim.dim_param)
    if cut.outputs is not None:
        del graph.output[:]
        graph.output.extend(onnx.helper.make_empty_tensor_value_info(name) for name in cut.outputs)
    needed = sweep(graph)
    for each in [entry for entry in graph.input if entry.name not in needed and entry.name not in kept]:
        graph.input.remove(each)
    del graph.value_info[:]
    return proto


def _detach(graph: Any, name: str) -> None:
    """Remove an input or initializer, or give another name to the output of the node that makes the tensor."""
    for entries in (graph.input, graph.initializer):
        for each in [entry for entry in entries if entry.name == name]:
            entries.remove(each)
    for node in graph.node:
        for place, output in enumerate(node.output):
            if output == name:
                node.output[place] = f"{name} (cut)"
