"""Random networks in f32: convolutions, matrix products, and the operations between them."""

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from tests.fuzz.quantised.styles import Style

Array = np.ndarray[Any, Any]
PRODUCTS = ("Conv", "ConvTranspose", "MatMul", "Gemm")


@dataclass
class Layer:
    """One ONNX node. `tensors` are the inputs that may be quantised; `out_axis` is the axis of w's outputs."""

    op: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, Any]
    tensors: list[int]
    out_axis: int | None = None


def moves(layer: Layer) -> bool:
    """Whether a layer only moves elements, so that quantisers give its result the scale of its input."""
    moving = ("MaxPool", "Transpose", "Reshape", "Slice", "Split", "Pad", "Flatten")
    return layer.op in moving or (layer.op == "Resize" and layer.attributes["mode"] == "nearest")


@dataclass
class Network:
    """Layers in the order of execution, with constants by name; `shape` is that of x without the batch."""

    shape: tuple[int, ...]
    layers: list[Layer] = field(default_factory=list)
    constants: dict[str, Array] = field(default_factory=dict)
    is_exact: bool = True
    rank: int = 4

    @property
    def output(self) -> str:
        return self.layers[-1].outputs[0]

    def ranges(self, sets: Sequence[dict[str, Array]]) -> dict[str, tuple[float, float]]:
        """The least and the largest number of each tensor, 0 included."""
        from mo_loop.compare.oracle.oracle import OnnxRuntime

        session = OnnxRuntime(self.model([name for each in self.layers for name in each.outputs]))
        found: dict[str, tuple[float, float]] = {}
        for feeds in sets:
            for name, array in [*feeds.items(), *session.run(feeds)]:
                low, high = found.get(name, (0.0, 0.0))
                found[name] = min(low, float(array.min())), max(high, float(array.max()))
        return found

    def model(self, outputs: Sequence[str]) -> Any:
        """The network in f32 with these outputs."""
        nodes = [helper.make_node(each.op, each.inputs, each.outputs, **each.attributes) for each in self.layers]
        results = [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs]
        x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", *self.shape])
        weights = [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
        graph = helper.make_graph(nodes, "g", [x], results, weights)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def draw_network(choices: random.Random, numbers: np.random.Generator, style: Style) -> Network:
    """A network whose weights fit the style."""
    return _Drawing(choices, numbers, style).network()


class _Drawing:
    def __init__(self, choices: random.Random, numbers: np.random.Generator, style: Style) -> None:
        self.choices, self.numbers, self.style = choices, numbers, style
        self.shape: list[int] = [choices.choice((8, 16)), 8, choices.choice((8, 12))]
        self.made = Network(tuple(self.shape))
        self.count = 0

    def network(self) -> Network:
        y = "x" if self.choices.random() < 0.8 else self.relu("x")
        for _ in range(self.choices.randint(2, 6)):
            y = getattr(self, self.choices.choice(IMAGE))(y)
        ends = ("none", "conv", "head", "head", "attention")
        end = self.choices.choice(ends[:-1] if self.style.is_half else ends)  # its numbers may be beyond f16
        if end != "none":
            getattr(self, end)(y)
        elif not self.made.layers or self.made.output != y:
            self.conv(y)
        return self.made

    # -- parts

    def constant(self, array: Any) -> str:
        self.count += 1
        name = f"c{self.count}"
        self.made.constants[name] = np.asarray(array)
        return name

    def add(self, op: str, *inputs: str, tensors: int | None = None, outputs: int = 1, out_axis: int | None = None,
            **attributes: Any) -> Any:
        """Add a layer; the first `tensors` inputs may be quantised."""
        self.count += 1
        names = [f"t{self.count}_{each}" for each in range(outputs)]
        places = list(range(len(inputs) if tensors is None else tensors))
        self.made.layers.append(Layer(op, list(inputs), names, attributes, places, out_axis))
        return names if outputs > 1 else names[0]

    def weights(self, *shape: int, summed: int) -> str:
        return self.constant((self.numbers.standard_normal(shape) * 1.4 / math.sqrt(summed)).astype(np.float32))

    def bias(self, count: int) -> list[str]:
        has_one = self.choices.random() < 0.8
        return [self.constant((self.numbers.standard_normal(count) * 0.3).astype(np.float32))] if has_one else []

    # -- layers of images

    def conv(self, x: str, *, same: bool = False) -> str:
        size = self.choices.choice((1, 3, 3))
        channels = self.shape[0]
        groups = channels if self.choices.random() < 0.2 else 1
        outputs = channels if same or groups > 1 else self.choice_of_channels()
        stride = 2 if not same and min(self.shape[1:]) >= 8 and self.choices.random() < 0.2 else 1
        w = self.weights(outputs, channels // groups, size, size, summed=channels // groups * size * size)
        attributes = {"pads": [size // 2] * 4, "group": groups, "strides": [stride] * 2}
        y = self.add("Conv", x, w, *self.bias(outputs), tensors=1, out_axis=0, **attributes)
        self.shape = [outputs, *((each - 1) // stride + 1 for each in self.shape[1:])]
        return str(y)

    def choice_of_channels(self) -> int:
        return self.choices.choice((8, 16, 24))

    def conv_relu(self, x: str) -> str:
        return self.relu(self.conv(x))

    def transposed_conv(self, x: str) -> str:
        channels, outputs = self.shape[0], self.choice_of_channels()
        if max(self.shape[1:]) > 16:
            return self.conv(x)
        w = self.weights(channels, outputs, 2, 2, summed=channels)
        y = self.add("ConvTranspose", x, w, *self.bias(outputs), tensors=1, out_axis=1, strides=[2, 2])
        self.shape = [outputs, *(2 * each for each in self.shape[1:])]
        return str(y)

    def residual(self, x: str) -> str:
        inner = self.conv(x, same=True)
        return str(self.add("Add", *((x, inner) if self.choices.random() < 0.5 else (inner, x))))

    def concat(self, x: str) -> str:
        first, size = self.shape[0], self.shape[1:]
        if first > 32:
            return self.conv_relu(x)
        y = self.add("Concat", x, self.conv(x, same=True), axis=1)
        self.shape = [first * 2, *size]
        return str(y)

    def relu(self, x: str) -> str:
        return str(self.add("Relu", x))

    def clip(self, x: str) -> str:
        return str(self.add("Clip", x, *[self.constant(np.float32(each)) for each in (0, 6)], tensors=1))

    def max_pool(self, x: str) -> str:
        return self.pool(x, "MaxPool")

    def average_pool(self, x: str) -> str:
        return self.pool(x, "AveragePool")

    def pool(self, x: str, op: str) -> str:
        if min(self.shape[1:]) < 4:
            return self.relu(x)
        y = self.add(op, x, kernel_shape=[2, 2], strides=[2, 2])
        self.shape = [self.shape[0], *(each // 2 for each in self.shape[1:])]
        return str(y)

    def resize(self, x: str) -> str:
        if max(self.shape[1:]) > 16:
            return self.relu(x)
        scales = self.constant(np.array([1, 1, 2, 2], np.float32))
        y = self.add("Resize", x, "", scales, tensors=1, mode=self.choices.choice(("nearest", "linear")))
        self.shape = [self.shape[0], *(2 * each for each in self.shape[1:])]
        return str(y)

    def transpose(self, x: str) -> str:
        y = self.add("Transpose", x, perm=[0, 2, 3, 1])
        if self.choices.random() < 0.5:
            y = self.relu(y)
        return str(self.add("Transpose", y, perm=[0, 3, 1, 2]))

    def reshape(self, x: str) -> str:
        channels, high, wide = self.shape
        if high % 2 or channels > 32:
            return self.relu(x)
        self.shape = [channels * 2, high // 2, wide]
        return str(self.add("Reshape", x, self.constant(np.array([-1, *self.shape])), tensors=1))

    def pad(self, x: str) -> str:
        if max(self.shape[1:]) > 16:
            return self.relu(x)
        y = self.add("Pad", x, self.constant(np.array([0, 0, 1, 0, 0, 0, 1, 2])), tensors=1)
        self.shape = [self.shape[0], self.shape[1] + 2, self.shape[2] + 2]
        return str(y)

    def slice(self, x: str) -> str:
        if self.shape[1] < 4:
            return self.relu(x)
        ends = [self.constant(np.array([each])) for each in (1, self.shape[1], 2)]
        y = self.add("Slice", x, *ends, tensors=1)
        self.shape[1] -= 1
        return str(y)

    def split(self, x: str) -> str:
        if self.shape[0] % 2 or self.shape[0] < 8:
            return self.relu(x)
        a, b = self.add("Split", x, outputs=2, axis=1, num_outputs=2)
        self.shape[0] //= 2
        if self.choices.random() < 0.5:
            return str(self.add("Add", a, b))
        shape = list(self.shape)
        a = self.conv(a, same=True)
        self.shape = [shape[0] * 2, *shape[1:]]
        return str(self.add("Concat", a, b, axis=1))

    # -- the end

    def head(self, x: str) -> str:
        channels, high, wide = self.shape
        self.made.is_exact = self.made.is_exact and (high * wide).bit_count() == 1
        y = self.add("Flatten", self.add("GlobalAveragePool", x))
        self.made.rank = 2
        outputs = self.choices.choice((16, 32, 48))
        y = self.product(y, channels, outputs)
        if self.choices.random() < 0.5:
            y = self.product(self.relu(y), outputs, 16)
        return str(y)

    def product(self, x: str, inner: int, outputs: int) -> str:
        way = self.choices.choice(("MatMul", "Gemm", "Gemm transposed"))
        bias = self.constant((self.numbers.standard_normal(outputs) * 0.3).astype(np.float32))
        if way == "MatMul":
            w = self.weights(inner, outputs, summed=inner)
            return str(self.add("Add", self.add("MatMul", x, w, tensors=1, out_axis=1), bias, tensors=1))
        is_transposed = way != "Gemm"
        shape = (outputs, inner) if is_transposed else (inner, outputs)
        w = self.weights(*shape, summed=inner)
        axis = 0 if is_transposed else 1
        return str(self.add("Gemm", x, w, bias, tensors=1, out_axis=axis, transB=int(is_transposed)))

    def attention(self, x: str) -> str:
        """A product of two activations: every place with every other, without Softmax."""
        channels, high, wide = self.shape
        flat = self.add("Reshape", x, self.constant(np.array([-1, channels, high * wide])), tensors=1)
        rows = self.add("Transpose", flat, perm=[0, 2, 1])
        scores = self.add("MatMul", self.linear(rows, channels), flat)
        self.made.rank = 3
        return str(self.add("MatMul", scores, rows))

    def linear(self, x: str, channels: int) -> str:
        return str(self.add("MatMul", x, self.weights(channels, channels, summed=channels), tensors=1, out_axis=1))


IMAGE = ("conv", "conv_relu", "conv_relu", "transposed_conv", "residual", "residual", "concat", "relu", "clip",
         "max_pool", "average_pool", "resize", "transpose", "reshape", "pad", "slice", "split")
"""The parts of a network of images, as methods of `_Drawing`."""
