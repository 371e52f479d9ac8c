"""PyTorch: the models of one folder, and the export of one.

MODELS = Catalogue()

@MODELS.exported("lstm_dynamo", exporter="dynamo", opset=21, cases=CASES, dynamic={"x": {0: "batch"}})
@MODELS.exported("lstm", exporter="trace", opset=11, cases=CASES, dynamic={"x": {0: "batch"}})
class Lstm(nn.Module):
    "nn.LSTM, one layer, batch first."

Files are reproducible: weights come from one seed, and stack traces, paths, doc strings and metadata are removed.
Another version of PyTorch may still write another graph for the same model.
"""

from __future__ import annotations

import io
import logging
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import onnx
import torch
from torch import Tensor, nn

from tests.models.sources.exporting.comparing import Expected
from tests.models.sources.exporting.inputs import Inputs
from tests.models.sources.exporting.models import WEIGHT_SEED, Model

DynamicAxes = Mapping[str, Mapping[int, str]]
Weights = Callable[[str, tuple[int, ...], np.random.Generator], np.ndarray]

OPSETS = {"script": (7, 20), "trace": (7, 20), "dynamo": (18, 23)}
"""Exporter -> the first and the last opset that it supports."""


def wide_weights(name: str, shape: tuple[int, ...], random: np.random.Generator) -> np.ndarray:
    """Normal numbers with a deviation of 0.5; positive ones for the variances of a batch normalisation."""
    values = random.normal(scale=0.5, size=shape).astype(np.float32)
    return np.abs(values) + np.float32(0.5) if name.endswith("running_var") else values


@dataclass(frozen=True)
class TorchModel(Model):
    """`make` makes a module. Inputs are named and ordered as the module's parameters.

    `weights` makes the values of a parameter or buffer from its name and shape.
    """

    dynamic: DynamicAxes
    outputs: tuple[str, ...]
    weights: Weights = wide_weights


class Catalogue(dict[str, TorchModel]):
    """Models by name, in the order of their definition; `weights` makes the weights of all of them."""

    def __init__(self, weights: Weights = wide_weights) -> None:
        super().__init__()
        self.weights = weights

    def exported(self, name: str, *, exporter: str, opset: int, cases: Mapping[str, Inputs],
                 dynamic: DynamicAxes | None = None, outputs: tuple[str, ...] = ("y",),
                 weights: Weights | None = None) -> Callable[[Callable[[], nn.Module]], Callable[[], nn.Module]]:
        """Register a module class, or a function that makes a module, as NAME.onnx.

        exporter: "script" (TorchScript, keeps Python's control flow), "trace" (TorchScript, loses it) or "dynamo".
        dynamic: for each input, the axes that stay symbolic, with the names of their symbols.
        weights: makes the weights of this model; default: those of the catalogue.
        """

        def register(make: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
            self[name] = TorchModel(make, exporter, opset, cases, dynamic or {}, outputs, weights or self.weights)
            return make

        return register


def export(model: TorchModel) -> tuple[onnx.ModelProto, Expected]:
    """The ONNX model as the exporter writes it, and what PyTorch computes for each case."""
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    module = build(model)
    proto = convert(model, module)
    with torch.no_grad():
        results = {case: flat(module(*tensors(inputs))) for case, inputs in model.cases.items()}
    return proto, {case: [each.numpy() for each in outputs] for case, outputs in results.items()}


def build(model: TorchModel) -> nn.Module:
    """The module in evaluation mode, its weights and statistics drawn from the weight seed."""
    module = model.make().eval()
    random = np.random.default_rng(WEIGHT_SEED)
    for name, tensor in module.state_dict().items():
        if tensor.is_floating_point():
            tensor.copy_(torch.from_numpy(model.weights(name, tuple(tensor.shape), random)))
    return module


def convert(model: TorchModel, module: nn.Module) -> onnx.ModelProto:
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


def flat(outputs: Tensor | tuple) -> list[Tensor]:
    """The tensors of a nested tuple, as the exporters order them."""
    if isinstance(outputs, Tensor):
        return [outputs]
    return [tensor for item in outputs for tensor in flat(item)]
