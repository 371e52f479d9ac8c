"""Puts QuantizeLinear and DequantizeLinear around the layers of a network, as one style does it."""

import logging
import random
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from tests.fuzz.quantised.networks import PRODUCTS, Layer, Network, moves
from tests.fuzz.quantised.styles import ALL, INTEGERS, NONE, NUMBERS, Style

Array = np.ndarray[Any, Any]
LIMITS = {"uint8": (0, 255), "int8": (-128, 127), "uint16": (0, 65535), "int16": (-32768, 32767), "int4": (-8, 7),
          "float8e4m3fn": (-448, 448), "float8e5m2": (-57344, 57344)}
LARGEST_WEIGHT = {"int8": 63, "int4": 7, "float8e4m3fn": 448, "float8e5m2": 57344}
"""CPUs without VNNI add two products of 8 bits in 16 bits: 2 * 255 * 64 fits."""


UNSIGNED = ((128, 63), (100, 63), (100, 150))
"""Zero points and largest numbers of weights of u8; the last ones fit no i8, so that the runtime computes in f32."""


def quantised_dynamically(network: Network, style: Style) -> Any:
    """The network as ONNX Runtime's quantiser writes it, with the whole range of 8 bits."""
    from onnxruntime.quantization import QuantType, quantize_dynamic

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder, "model.onnx")
        logging.disable(logging.CRITICAL)  # it asks for a step before it that changes nothing here
        try:
            kind = getattr(QuantType, style.dynamic)
            quantize_dynamic(network.model([network.output]), target, weight_type=kind, per_channel=style.by_channel)
        finally:
            logging.disable(logging.NOTSET)
        return onnx.load(target)


class Quantiser:
    """Makes the model. `facts` are the draws, `is_exact` whether scales are powers of two and sums are short."""

    def __init__(self, network: Network, style: Style, choices: random.Random,
                 ranges: Mapping[str, tuple[float, float]], *, computes_in_f32: bool = False) -> None:
        self.network, self.style, self.choices, self.ranges = network, style, choices, ranges
        self.in_powers = choices.random() < 0.35
        self.is_shared = choices.random() < 0.5
        self.real = TensorProto.FLOAT16 if style.is_half and not computes_in_f32 else TensorProto.FLOAT
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.count = 0
        self.scales: dict[str, tuple[Array, Array, str]] = {}
        self.read: dict[str, str] = {}
        self.facts: dict[str, Any] = {"powers": self.in_powers, "shared": self.is_shared}
        self.is_exact = self.in_powers and style.activations in ("uint8", "int8") and not style.is_half

    def model(self) -> Any:
        for layer in self.network.layers:
            self._layer(layer)
        result = self.network.output
        if self.style.where == ALL and self.choices.random() < 0.7:
            result = self._quantised(result)
        x = helper.make_tensor_value_info("x", self.real, ["N", *self.network.shape])
        y = helper.make_tensor_value_info(result, self.real, [None] * self.network.rank)
        graph = helper.make_graph(self.nodes, "g", [x], [y], self.constants)
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", self._opset)], ir_version=10)
        onnx.checker.check_model(model)
        return model

    @property
    def _opset(self) -> int:
        return max(self.style.opset, 18)

    # -- nodes

    def _constant(self, array: Any, kind: str = "") -> str:
        self.count += 1
        name = f"q{self.count}"
        array = np.asarray(array)
        if kind.startswith(("float8", "int4")):
            made = helper.make_tensor(name, getattr(TensorProto, kind.upper()), array.shape, array.reshape(-1))
        else:
            made = numpy_helper.from_array(array.astype(kind) if kind else array, name)
        self.constants.append(made)
        return name

    def _real_constant(self, array: Any) -> str:
        rounded = np.asarray(array, np.float16 if self.style.is_half else np.float32)
        return self._constant(rounded, "float16" if self.real == TensorProto.FLOAT16 else "float32")

    def _node(self, op: str, *inputs: str, **attributes: Any) -> str:
        self.count += 1
        self.nodes.append(helper.make_node(op, inputs, [f"v{self.count}"], **attributes))
        return f"v{self.count}"

    def _layer(self, layer: Layer) -> None:
        inputs = list(layer.inputs)
        follows = layer.op in ("Relu", "Clip") and self._made_by(layer.inputs[0]) in (*PRODUCTS, "Add")
        for place in layer.tensors:
            name = inputs[place]
            if name not in self.network.constants and self._quantises(layer) and not follows:
                inputs[place] = self._quantised(name, layer)
        scale = self._scale_of(layer) if layer.out_axis is not None else None
        for place, name in enumerate(inputs):
            if name not in self.network.constants:
                continue
            array = self.network.constants[name]
            if layer.out_axis is not None and place == 1:
                inputs[place], weight_scale = self._weights(array, layer)
            elif layer.out_axis is not None and place == 2 and self.style.bias == "int32" and scale is not None:
                inputs[place] = self._bias(array, np.asarray(scale) * weight_scale)
            else:
                is_real = array.dtype == np.float32 and layer.op != "Resize"
                inputs[place] = self._real_constant(array) if is_real else self._constant(array)
        self.nodes.append(helper.make_node(layer.op, inputs, layer.outputs, **layer.attributes))

    def _made_by(self, name: str) -> str:
        return next((each.op for each in self.network.layers if name in each.outputs), "")

    def _quantises(self, layer: Layer) -> bool:
        """Whether the style quantises the inputs of a layer."""
        if self.style.where == NONE:
            return False
        return self.style.where == ALL or layer.op in (*PRODUCTS, "Add")

    # -- activations

    def _quantised(self, name: str, reader: Layer | None = None) -> str:
        if name in self.read and not self.style.separate:
            return self.read[name]
        scale, zero, kind = self._parameters(name)
        parameters = [self._real_constant(scale), self._constant(zero, kind)]
        q = self._node("QuantizeLinear", name, *parameters)
        self.read[name] = self._node("DequantizeLinear", q, *parameters)
        return self.read[name]

    def _parameters(self, name: str) -> tuple[Array, Array, str]:
        """The scale, the zero point and the type of a tensor."""
        if name in self.scales:
            return self.scales[name]
        source = next((each for each in self.network.layers if name in each.outputs), None)
        if self.is_shared and source is not None and moves(source):
            made = self._parameters(source.inputs[0])
        else:
            made = self._chosen(*self.ranges[name])
        self.scales[name] = made
        return made

    def _chosen(self, low: float, high: float) -> tuple[Array, Array, str]:
        kind = self.style.activations
        if self.style.by_range:
            kind = "uint8" if low >= 0 else "int8"
        least, most = LIMITS[kind]
        is_symmetric = self.style.is_symmetric or kind.startswith("float")
        if is_symmetric:
            scale = max(-low / -least if least else 0.0, high / most, 1e-4)
        else:
            scale = max((high - low) / (most - least), 1e-4)
        scale = self._power(np.float32(scale))
        zero = 0 if is_symmetric else int(np.clip(np.rint(least - low / scale), least, most))
        return scale, np.asarray(zero), kind

    def _power(self, scale: Any) -> Any:
        return np.exp2(np.ceil(np.log2(scale))).astype(np.float32) if self.in_powers else np.asarray(scale, np.float32)

    def _scale_of(self, layer: Layer) -> Array | None:
        name = layer.inputs[0]
        return self.scales[name][0] if name in self.scales and self._quantises(layer) else None

    # -- weights

    def _weights(self, array: Array, layer: Layer) -> tuple[str, Array]:
        """The weights as a value of the model, and their scale: one number, or one for each output."""
        kind, axis = self.style.weights, layer.out_axis
        if self.style.block and layer.op in ("MatMul", "Gemm") and not array.shape[1 - axis] % self.style.block:
            return self._blocks(array, 1 - axis), np.float32(1)
        if self.style.block and kind == "int4":
            return self._real_constant(array), np.float32(1)
        others = tuple(each for each in range(array.ndim) if each != axis)
        sizes = np.abs(array).max(others if self.style.by_channel else None)
        middle, largest = self.choices.choice(UNSIGNED) if kind == "uint8" else (0, LARGEST_WEIGHT[kind])
        scale = self._power(np.maximum(sizes, 1e-3) / largest)
        zero = np.full(scale.shape, middle)
        full = scale.reshape([-1 if each == axis else 1 for each in range(array.ndim)]) if scale.ndim else scale
        attributes = {"axis": axis} if scale.ndim else {}
        parameters = [self._real_constant(scale), self._constant(zero, kind)]
        if self.style.weights_as == NUMBERS:
            q = self._node("QuantizeLinear", self._real_constant(array), *parameters, **attributes)
            return self._node("DequantizeLinear", q, *parameters, **attributes), scale
        numbers = array / full
        if not kind.startswith("float"):
            numbers = np.clip(np.rint(numbers) + middle, *LIMITS[kind])
        if self.style.weights_as == INTEGERS:
            return self._node("DequantizeLinear", self._constant(numbers, kind), *parameters, **attributes), scale
        order = [*range(1, array.ndim), 0]
        q = self._constant(np.transpose(numbers, order), kind)
        attributes = {"axis": order.index(axis)} if scale.ndim else {}
        w = self._node("DequantizeLinear", q, *parameters, **attributes)
        return self._node("Transpose", w, perm=[int(each) for each in np.argsort(order)]), scale

    def _blocks(self, array: Array, axis: int) -> str:
        size = self.style.block
        shape = [*array.shape[:axis], array.shape[axis] // size, size, *array.shape[axis + 1 :]]
        scale = self._power(np.maximum(np.abs(array.reshape(shape)).max(axis + 1), 1e-3) / 7)
        numbers = np.clip(np.rint(array / np.repeat(scale, size, axis)), -8, 7)
        inputs = self._constant(numbers, "int4"), self._real_constant(scale)
        return self._node("DequantizeLinear", *inputs, axis=axis, block_size=size)

    def _bias(self, array: Array, scale: Array) -> str:
        q = self._constant(np.rint(array / scale), "int32")
        zero = self._constant(np.zeros(np.shape(scale)), "int32")
        axis = {"axis": 0} if np.ndim(scale) else {}
        return self._node("DequantizeLinear", q, self._real_constant(scale), zero, **axis)
