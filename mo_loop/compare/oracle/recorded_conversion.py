"""The conversion parameters that an IR records, in the model that ONNX Runtime runs: both then take the same inputs.

    options = recorded(graph, ConvertOptions())                 # cuts, constants and names as the IR records them
    proto = with_preprocessing(proto, graph)                    # mean values, scales, channel order, layouts
    proto = with_renamed_ports(proto, options.rename)

Each input of the model keeps its name and gets the form that it has in the IR; the nodes behind it give the model what
it had before. UsageError names a parameter that cannot be applied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import onnx

from mo_loop.compare.oracle.graph_edits import rename_reads
from mo_loop.errors import UsageError
from mo_loop.graph import Graph
from mo_loop.look.ir_origins import recorded_options
from mo_loop.ops.base import Parameter
from mo_loop.options import ConvertOptions
from mo_loop.preprocessing.layout import Layout, permutation
from mo_loop.transforms.preprocess.inputs import DONE, channel_axis, names_of

REVERSE, MEAN, SCALE, LAYOUT = "reverse_input_channels", "mean_values", "scale_values", "layout"
"""The steps of preprocessing, in the order in which they follow an input."""

_FORMER = ("mean_values", "scale_values", "scale", "reverse_input_channels", "layout", "source_layout", "target_layout")
"""Parameters of other converters, which record no more than their text."""

_NONE = ("", "[]", "()", "{}", "False", "None")


def recorded(ir: Graph, options: ConvertOptions) -> ConvertOptions:
    """The options with the cuts, frozen values and names that an IR records.

    UsageError for an IR with preprocessing of another converter, which is not described well enough.
    """
    parameters = ir.rt_info.get("conversion_parameters", {})
    if not isinstance(parameters, Mapping):
        return options
    if not _is_ours(ir):
        for name in _FORMER:
            if str(parameters.get(name, "")) not in _NONE:
                raise UsageError(
                    f"verify cannot apply {name} = {parameters[name]} to the ONNX model",
                    why="another converter recorded it in the IR, and not how it is computed",
                    hint="verify an IR without it, or one of mo_loop",
                )  # fmt: skip
        return options
    found = recorded_options(ir.rt_info)
    if found is None:
        names = ", ".join(f"{name} = {parameters[name]}" for name in ("freeze", "input") if name in parameters)
        raise UsageError(
            f"verify cannot apply {names or 'the conversion parameters of the IR'} to the ONNX model",
            why="the IR does not record the values", hint="convert the model in the same run: verify MODEL [OPTIONS]",
        )  # fmt: skip
    return replace(
        options, input=found.input, output=found.output, freeze=found.freeze, rename=found.rename, batch=found.batch,
        sequence_io=found.sequence_io,
    )  # fmt: skip


def _is_ours(ir: Graph) -> bool:
    converter = ir.rt_info.get("converter", {})
    return isinstance(converter, Mapping) and converter.get("name") == "mo_loop"


def has_preprocessing(ir: Graph) -> bool:
    """Whether an IR does more than the model."""
    return bool(ir.rt_info.get(DONE))


def with_preprocessing(model: Any, ir: Graph) -> Any:
    """A copy of a ModelProto with the preprocessing that an IR records, and the layouts of its outputs."""
    steps: Mapping[str, Mapping[str, Any]] = ir.rt_info[DONE]
    unknown = sorted(set(steps) - {REVERSE, MEAN, SCALE, LAYOUT})
    if unknown:
        raise UsageError(f"verify cannot apply {unknown[0]} to the ONNX model", why="it does not know this step")
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    inputs = {each.name: each for each in copy.graph.input}
    outputs = {each.name: each for each in copy.graph.output}
    parameters = {name: each for each in ir.parameters for name in names_of(each)}
    for name in dict.fromkeys(name for each in steps.values() for name in each):
        own = {step: found[name] for step, found in steps.items() if name in found}
        if name in inputs and name in parameters:
            _before(copy.graph, inputs[name], parameters[name], own)
        elif name in outputs and set(own) == {LAYOUT}:
            _after(copy.graph, outputs[name], *_layouts(own[LAYOUT]))
        else:
            raise UsageError(
                f"verify cannot apply {', '.join(own)} of {name!r} to the ONNX model",
                why="the model has no input or output of this name",
            )  # fmt: skip
    return copy


def _before(graph: Any, port: Any, parameter: Parameter, steps: Mapping[str, Any]) -> None:
    """Put the steps between an input and the nodes that read it."""
    name, kind = port.name, port.type.tensor_type
    dtype = onnx.helper.tensor_dtype_to_np_dtype(kind.elem_type)
    inner = f"{name} (preprocessed)"
    rename_reads(graph, name, inner)
    nodes: list[Any] = []

    def add(operator: str, constant: np.ndarray | None, **attributes: Any) -> None:
        source = nodes[-1].output[0] if nodes else name
        inputs = [source]
        if constant is not None:
            inputs.append(f"{name} ({operator})")
            graph.initializer.append(onnx.numpy_helper.from_array(constant, inputs[1]))
        nodes.append(onnx.helper.make_node(operator, inputs, [f"{name} ({operator} of input)"], **attributes))

    if REVERSE in steps:
        add("Gather", np.array([2, 1, 0]), axis=int(steps[REVERSE]))
    for step, operator in ((MEAN, "Sub"), (SCALE, "Div")):
        if step in steps:
            values = np.array([float(each) for each in str(steps[step]).split(",")], np.float64).astype(dtype)
            add(operator, _along_channels(values, parameter, step))
    if LAYOUT in steps:
        source, target = _layouts(steps[LAYOUT])
        order = permutation(source, target, len(kind.shape.dim))
        add("Transpose", None, perm=[int(each) for each in np.argsort(order)])
        dims = [kind.shape.dim[axis] for axis in order]
        kind.shape.CopyFrom(onnx.TensorShapeProto(dim=dims))
    nodes[-1].output[0] = inner
    _insert(graph, nodes)


def _along_channels(values: np.ndarray, parameter: Parameter, step: str) -> np.ndarray:
    if values.size == 1:
        return values.reshape(())
    axis = channel_axis(parameter, values.size, step)
    rank = len(parameter.output.type.dims)
    return values.reshape([values.size if each == axis else 1 for each in range(rank)])


def _after(graph: Any, port: Any, source: Layout, target: Layout) -> None:
    """Transpose an output; the tensor of the model gets another name."""
    name, kind = port.name, port.type.tensor_type
    inner = f"{name} (of the model)"
    for node in graph.node:
        node.output[:] = [inner if each == name else each for each in node.output]
    rename_reads(graph, name, inner)
    order = [int(each) for each in permutation(source, target, len(kind.shape.dim))]
    graph.node.append(onnx.helper.make_node("Transpose", [inner], [name], perm=order))
    kind.shape.CopyFrom(onnx.TensorShapeProto(dim=[kind.shape.dim[axis] for axis in order]))


def _layouts(text: Any) -> tuple[Layout, Layout]:
    source, _, target = str(text).partition("->")
    return Layout.parse(source), Layout.parse(target)


def _insert(graph: Any, nodes: list[Any]) -> None:
    kept = list(graph.node)
    del graph.node[:]
    graph.node.extend([*nodes, *kept])


def with_renamed_ports(model: Any, rename: Mapping[str, str] | None) -> Any:
    """A copy of a ModelProto whose inputs and outputs have the names of the IR; the model itself if none changes."""
    ports = {each.name for each in (*model.graph.input, *model.graph.output)}
    names = {old: new for old, new in (rename or {}).items() if old in ports}
    if not names:
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    for old, new in names.items():
        for each in (*copy.graph.input, *copy.graph.output, *copy.graph.value_info, *copy.graph.initializer):
            each.name = new if each.name == old else each.name
        for node in copy.graph.node:
            node.output[:] = [new if each == old else each for each in node.output]
        rename_reads(copy.graph, old, new)
    return copy
