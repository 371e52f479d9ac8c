"""One model: build the module, export it, strip what depends on the machine, check it, compare it with PyTorch.

Files are reproducible: weights come from one seed, and stack traces, paths, doc strings and metadata are removed.
Another version of PyTorch may still write another graph for the same model.
"""

from __future__ import annotations

import io
from collections.abc import Iterator

import numpy as np
import onnx
import torch
from google.protobuf.message import Message
from torch import Tensor, nn

from tools.exporting.catalogue import Model
from tools.exporting.inputs import Inputs

WEIGHT_SEED = 20240229
RTOL, ATOL = 1e-4, 1e-5


def build(model: Model) -> nn.Module:
    """The module in evaluation mode, its weights and statistics drawn from the weight seed."""
    module = model.make().eval()
    random = np.random.default_rng(WEIGHT_SEED)
    for name, tensor in module.state_dict().items():
        if tensor.is_floating_point():
            tensor.copy_(torch.from_numpy(model.weights(name, tuple(tensor.shape), random)))
    return module


def export(model: Model, module: nn.Module) -> onnx.ModelProto:
    """The ONNX model of a module, as the exporter writes it."""
    example = tuple(tensors(model.example))
    names = {"input_names": list(model.example), "output_names": list(model.outputs), "opset_version": model.opset}
    if model.exporter == "dynamo":
        shapes = tuple(model.dynamic.get(name) for name in model.example)
        program = torch.onnx.export(module, example, dynamo=True, dynamic_shapes=shapes, verbose=False, **names)
        return program.model_proto
    file = io.BytesIO()
    source = torch.jit.script(module) if model.exporter == "script" else module
    torch.onnx.export(source, example, file, dynamo=False, dynamic_axes=dict(model.dynamic), **names)
    return onnx.load_from_string(file.getvalue())


def tensors(inputs: Inputs) -> Iterator[Tensor]:
    """The inputs of a case, for PyTorch."""
    return (torch.from_numpy(data.array()) for data in inputs.values())


def messages(message: Message) -> Iterator[Message]:
    """A protobuf message and all messages inside it: graphs, sub-graphs, functions, nodes, types."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for child in (value,) if isinstance(value, Message) else value:
            yield from messages(child)


def strip(proto: onnx.ModelProto) -> None:
    """Remove what depends on the machine: the build of PyTorch, and doc strings and metadata at every depth."""
    proto.producer_version = proto.producer_version.partition("+")[0]
    for message in messages(proto):
        for field in ("doc_string", "metadata_props"):
            if field in message.DESCRIPTOR.fields_by_name:
                message.ClearField(field)


def check(proto: onnx.ModelProto, sequences: bool = False) -> None:
    """Raise ValueError unless a model is what its readers expect: self-contained, plain ONNX, sequences as told."""
    onnx.checker.check_model(proto, full_check=True)
    found = False
    for message in messages(proto):
        if isinstance(message, onnx.NodeProto) and message.domain:
            raise ValueError(f"operator {message.domain}::{message.op_type}")
        if isinstance(message, onnx.TensorProto) and message.external_data:
            raise ValueError(f"external data of {message.name}")
        found |= isinstance(message, onnx.NodeProto) and "Sequence" in message.op_type
    if found is not sequences:
        raise ValueError("operators on sequences" if found else "no operator on sequences")


def compare(model: Model, module: nn.Module, data: bytes) -> float:
    """The largest difference between PyTorch and ONNX Runtime over all cases; AssertionError beyond the tolerance."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)  # exporters declare some shapes wrongly, which is worth having here
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    largest = 0.0
    for case, inputs in model.cases.items():
        with torch.no_grad():
            expected = flat(module(*tensors(inputs)))
        actual = session.run(None, {name: data.array() for name, data in inputs.items()})
        for name, want, have in zip(model.outputs, expected, actual, strict=True):
            np.testing.assert_allclose(have, want.numpy(), RTOL, ATOL, err_msg=f"{case}: {name}", strict=True)
            if want.dtype != torch.bool:
                largest = max(largest, float(np.abs(have - want.numpy()).max(initial=0)))
    return largest


def flat(outputs: Tensor | tuple) -> list[Tensor]:
    """The tensors of a nested tuple, as the exporters order them."""
    if isinstance(outputs, Tensor):
        return [outputs]
    return [tensor for item in outputs for tensor in flat(item)]
