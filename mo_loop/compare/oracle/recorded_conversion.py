"""The conversion parameters that an IR records, in the model that ONNX Runtime runs: both then take the same inputs.

    options = recorded(graph, ConvertOptions())                 # cuts, constants and names as the IR records them
    proto = as_converted(model, graph, options, kept, any_sizes=False)

Each input of the model keeps its name and gets the form that it has in the IR; the nodes after it give the model what
it had before. UsageError names a parameter that cannot be applied.
"""

import copy
from collections.abc import Collection, Mapping
from dataclasses import replace
from hashlib import sha256
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper

from mo_loop.compare.oracle import graph_edits
from mo_loop.conversion import Conversion
from mo_loop.errors import UsageError
from mo_loop.frontend.cut import Cut
from mo_loop.frontend.declared_types import types_of
from mo_loop.frontend.model import OnnxModel, opened
from mo_loop.frontend.onnx_graphs import graph_protos, needs_permission, with_data
from mo_loop.graph import Graph, f16
from mo_loop.ir_origins import recorded_options
from mo_loop.ops.arithmetic import Convert
from mo_loop.ops.base import Constant, Parameter
from mo_loop.options import ConvertOptions
from mo_loop.preprocessing import Layout, permutation
from mo_loop.transforms.preprocess.inputs import DONE, channel_axis, names_of

LARGEST = float(np.finfo(np.float16).max)
"""The largest number in f16."""

REVERSE, MEAN, SCALE, LAYOUT = "reverse_input_channels", "mean_values", "scale_values", "layout"
"""The steps of preprocessing, in the order in which they follow an input."""

_FORMER = ("mean_values", "scale_values", "scale", "reverse_input_channels", "layout", "source_layout", "target_layout")
"""Parameters of other converters, which record no more than their text."""

_NONE = ("", "[]", "()", "{}", "False", "None")


def recorded(ir: Graph, options: ConvertOptions) -> ConvertOptions:
    """The options with the cuts, frozen values and names that an IR records.

    UsageError for an IR with preprocessing of another converter, which is not described well enough.
    """
    parameters, converter = (ir.rt_info.get(name, {}) for name in ("conversion_parameters", "converter"))
    if not isinstance(parameters, Mapping):
        return options
    if not isinstance(converter, Mapping) or converter.get("name") != "mo_loop":
        for name in _FORMER:
            if str(parameters.get(name, "")) not in _NONE:
                raise UsageError(
                    f"verify cannot apply {name} = {parameters[name]} to the ONNX model",
                    why="another converter recorded it in the IR, and not how it is computed",
                    hint="verify an IR without it, or one of mo_loop",
                )
        return options
    found = recorded_options(ir.rt_info)
    if found is None:
        names = ", ".join(f"{name} = {parameters[name]}" for name in ("freeze", "input") if name in parameters)
        raise UsageError(
            f"verify cannot apply {names or 'the conversion parameters of the IR'} to the ONNX model",
            why="the IR does not record the values", hint="convert the model in the same run: verify MODEL [OPTIONS]",
        )
    return replace(
        options, input=found.input, output=found.output, freeze=found.freeze, rename=found.rename, batch=found.batch,
        sequence_io=found.sequence_io,
    )


def as_converted(
    model: OnnxModel, ir: Graph, options: ConvertOptions, kept: Collection[str], *, any_sizes: bool
) -> Any:
    """The ModelProto that takes the inputs of an IR, with the cuts, names and batch size of `options`, and the
    preprocessing and the weights of the IR; None if that is the model itself.

    Inputs in `kept` stay although no node reads them. With `any_sizes` others than the declared sizes can be given.
    UsageError if the type of an inner tensor is not known, or a step of preprocessing is not.
    """
    cut, rename_to = Conversion(options).cut(model), options.rename or {}
    is_whole = cut.inputs is None and cut.outputs is None
    any_sizes = any_sizes or options.batch is not None
    steps = ir.rt_info.get(DONE)
    # The weights that the IR stores in f16, and with which it computes in another type.
    sources = [each.inputs[0] for scope in ir.scopes() for each in scope.of(Convert) if "decompression" in each.rt_info]
    weights = [each.node for each in sources if each is not None and each.dtype is f16]
    halves = {_content(each.array) for each in weights if isinstance(each, Constant)}
    if is_whole and not (any_sizes or steps or halves or rename_to or needs_permission(model)):
        return None
    proto = with_data(model)
    if not is_whole:
        _cut(opened(proto), cut, kept)
    ports = {each.name for each in (*proto.graph.input, *proto.graph.output)}
    if not ports.isdisjoint(rename_to):
        graph_edits.rename(proto.graph, {old: new for old, new in rename_to.items() if old in ports})
    if steps:
        _add_preprocessing(proto.graph, ir, steps)
    if halves:
        _halve(proto, halves)
    return graph_edits.of_unknown_sizes(proto) if any_sizes else proto


def _cut(model: OnnxModel, cut: Cut, kept: Collection[str]) -> None:
    """Let the model begin and end at the tensors of `cut`, and remove the declared sizes of changed inputs."""
    graph, inputs = model.proto.graph, cut.inputs or {}
    types = {each.name: copy.deepcopy(each.type) for each in (*graph.value_info, *graph.output, *graph.input)}
    types |= types_of(model, [name for name in inputs if name not in types])
    for entries in (graph.input, graph.initializer):
        graph_edits.keep(entries, {each.name for each in entries} - inputs.keys())
    for node in graph.node:
        node.output[:] = [f"{name} (cut)" if name in inputs else name for name in node.output]
    for name, entry in inputs.items():
        kind = types.get(name)
        if kind is None:
            raise UsageError(f"the type of {name!r} is not known", hint="cut the model at another tensor")
        if entry.value is not None:
            array = np.asarray(entry.value).astype(onnx.helper.tensor_dtype_to_np_dtype(kind.tensor_type.elem_type))
            graph.initializer.append(numpy_helper.from_array(array, name))
            continue
        for dim in kind.tensor_type.shape.dim:  # the rank stays, and the names of dimensions, which may be shared
            dim.ClearField("dim_value")
        graph.input.add(name=name, type=kind)
    if cut.outputs is not None:
        del graph.output[:]
        graph.output.extend(onnx.ValueInfoProto(name=name) for name in cut.outputs)
    graph_edits.sweep(graph)
    graph_edits.keep(graph.input, graph_edits.names_needed(graph).union(kept))
    del graph.value_info[:]


def _add_preprocessing(graph: Any, ir: Graph, steps: Mapping[str, Mapping[str, Any]]) -> None:
    """Add the preprocessing that an IR records, and the layouts of its outputs."""
    unknown = sorted(set(steps) - {REVERSE, MEAN, SCALE, LAYOUT})
    if unknown:
        raise UsageError(f"verify cannot apply {unknown[0]} to the ONNX model", why="it does not know this step")
    inputs = {each.name: each for each in graph.input}
    outputs = {each.name: each for each in graph.output}
    parameters = {name: each for each in ir.parameters for name in names_of(each)}
    for name in dict.fromkeys(name for each in steps.values() for name in each):
        own = {step: found[name] for step, found in steps.items() if name in found}
        if name in inputs and name in parameters:
            _prepare(graph, inputs[name], parameters[name], own)
        elif name in outputs and set(own) == {LAYOUT}:
            inner = f"{name} (of the model)"
            graph_edits.rename(graph, {name: inner}, ports=False)
            order = _transposed(outputs[name], own[LAYOUT])
            graph.node.append(onnx.helper.make_node("Transpose", [inner], [name], perm=order))
        else:
            raise UsageError(
                f"verify cannot apply {', '.join(own)} of {name!r} to the ONNX model",
                why="the model has no input or output of this name",
            )


def _prepare(graph: Any, port: Any, parameter: Parameter, steps: Mapping[str, Any]) -> None:
    """Put the steps between an input and the nodes that read it."""
    name, nodes = port.name, list[Any]()
    dtype = onnx.helper.tensor_dtype_to_np_dtype(port.type.tensor_type.elem_type)

    def add(operator: str, *constants: np.ndarray, **attributes: Any) -> None:
        inputs = [nodes[-1].output[0] if nodes else name, *(f"{name} ({operator})" for _ in constants)]
        graph.initializer.extend(numpy_helper.from_array(each, inputs[1]) for each in constants)
        nodes.append(onnx.helper.make_node(operator, inputs, [f"{name} ({operator} of input)"], **attributes))

    if REVERSE in steps:
        add("Gather", np.array([2, 1, 0]), axis=int(steps[REVERSE]))
    for step, operator in ((MEAN, "Sub"), (SCALE, "Div")):
        if step in steps:
            values = np.array([float(each) for each in str(steps[step]).split(",")], np.float64).astype(dtype)
            shape: tuple[int, ...] = ()
            if values.size > 1:  # along the channels
                shape = -1, *[1] * (len(parameter.output.type.dims) - 1 - channel_axis(parameter, values.size, step))
            add(operator, values.reshape(shape))
    if LAYOUT in steps:
        add("Transpose", perm=[int(each) for each in np.argsort(_transposed(port, steps[LAYOUT]))])
    graph_edits.rename(graph, {name: nodes[-1].output[0]}, ports=False)
    graph_edits.replace_entries(graph.node, [*nodes, *graph.node])


def _transposed(port: Any, text: Any) -> list[int]:
    """The order of the dimensions of a port in the layout of the IR, in which it is declared then."""
    source, _, target = str(text).partition("->")
    shape = port.type.tensor_type.shape
    order = [int(each) for each in permutation(Layout.parse(source), Layout.parse(target), len(shape.dim))]
    graph_edits.replace_entries(shape.dim, [shape.dim[axis] for axis in order])
    return order


def _halve(model: Any, halves: Collection[bytes]) -> None:
    """Give the weights that the IR has as f16 those numbers, in their former type.

    They are known by their content, in any order: the IR may have transposed them.
    """
    for tensor in (each for graph in graph_protos(model) for each in graph_edits.tensors_in(graph)):
        if tensor.data_type not in (onnx.TensorProto.FLOAT, onnx.TensorProto.DOUBLE) or np.prod(tensor.dims) < 2:
            continue
        array = numpy_helper.to_array(tensor)
        with np.errstate(over="ignore"):
            half = np.where(np.isfinite(array), np.clip(array, -LARGEST, LARGEST), array).astype(np.float16)
        if _content(half) in halves:
            tensor.CopyFrom(numpy_helper.from_array(half.astype(array.dtype), tensor.name))


def _content(array: np.ndarray) -> bytes:
    return sha256(np.sort(array, axis=None).tobytes()).digest()
