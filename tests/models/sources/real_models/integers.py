"""Quantised variants as ONNX Runtime's own tools write them, calibrated on random data."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static

from tests.models.sources.exporting.inputs import Inputs

SAMPLES = 3

# The operators that QOperator writes in ONNX's own domain; the others are ONNX Runtime's alone.
IN_DOMAIN = ["Conv", "MatMul"]

SYMMETRIC = {"ActivationSymmetric": True}
UNSIGNED = {"activation_type": QuantType.QUInt8, "weight_type": QuantType.QInt8}
STATIC: dict[str, dict[str, Any]] = {
    "qdq_u8s8": {"quant_format": QuantFormat.QDQ, **UNSIGNED},
    "qdq_s8s8": {"quant_format": QuantFormat.QDQ, "activation_type": QuantType.QInt8, "weight_type": QuantType.QInt8,
                 "per_channel": True, "extra_options": SYMMETRIC},
    "qdq_matmul": {"quant_format": QuantFormat.QDQ, "op_types_to_quantize": ["MatMul"], **UNSIGNED},
    "qoperator_u8s8": {"quant_format": QuantFormat.QOperator, "op_types_to_quantize": IN_DOMAIN, **UNSIGNED},
}
DYNAMIC = ["MatMul", "Gemm", "Conv", "Gather"]


class RandomData(CalibrationDataReader):
    """Samples of a model's inputs: normal numbers anew, whole numbers in another order."""

    def __init__(self, inputs: Inputs) -> None:
        self.samples = _samples(inputs)

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.samples, None)


def _samples(inputs: Inputs) -> Iterator[dict[str, np.ndarray]]:
    yield {name: data.array() for name, data in inputs.items()}
    for number in range(1, SAMPLES):
        random = np.random.default_rng(1000 + number)
        yield {name: random.standard_normal(data.shape).astype(data.dtype) if data.seed is not None
               else random.permuted(data.array()) for name, data in inputs.items()}


def masked(graph: Any) -> list[str]:
    """The nodes from masks of the largest numbers to their SoftMax: the scale of such a tensor would be infinite."""
    constants = [*graph.initializer, *(node.attribute[0].t for node in graph.node if node.op_type == "Constant")]
    names = [*(each.name for each in graph.initializer), *(n.output[0] for n in graph.node if n.op_type == "Constant")]
    masks = {name for name, tensor in zip(names, constants, strict=True) if _is_mask(tensor)}
    found = []
    for node in graph.node:
        if masks.intersection(node.input):
            found.append(node.name)
            masks.update(node.output if node.op_type != "Softmax" else ())
    return found


def _has_finite_scales(graph: Any) -> bool:
    floats = (each for each in graph.initializer if each.data_type == onnx.TensorProto.FLOAT)
    return all(np.isfinite(onnx.numpy_helper.to_array(each)).all() for each in floats)


def _is_mask(tensor: Any) -> bool:
    is_float = tensor.data_type == onnx.TensorProto.FLOAT
    return is_float and np.abs(onnx.numpy_helper.to_array(tensor)).max(initial=0) > 1e30


def quantise(source: Path, target: Path, variant: str, inputs: Inputs) -> None:
    """Write a variant of a model; ValueError if it has operators outside of ONNX's domain."""
    if variant in STATIC:
        quantize_static(source, target, RandomData(inputs), **STATIC[variant])
        if not _has_finite_scales(onnx.load(target).graph):
            kept = masked(onnx.load(source).graph)
            quantize_static(source, target, RandomData(inputs), nodes_to_exclude=kept, **STATIC[variant])
    else:
        quantize_dynamic(source, target, op_types_to_quantize=DYNAMIC, weight_type=QuantType.QInt8)
    model = onnx.load(target)
    if foreign := sorted({node.op_type for node in model.graph.node if node.domain not in ("", "ai.onnx")}):
        target.unlink()
        raise ValueError(f"operators of another domain: {', '.join(foreign)}")
