"""Random models with quantised weights, and their results in f64.

    case = draw(seed=1, index=7)
    case.model, case.sets, case.expected        an onnx.ModelProto, inputs by name, outputs by name for each of them

A weight of 4 or 8 bits is dequantised with one scale, one for each slice along an axis or one for each block, with and
without zero points, and read by one or two operators, also transposed, reshaped, or in the body of a Loop or an If.
Some sizes are large enough for the runtime's kernels for compressed weights.
"""

import random
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

TYPES = {"int4": (-8, 7), "uint4": (0, 15), "int8": (-128, 127), "uint8": (0, 255), "float8e4m3fn": (-15, 15),
         "float8e5m2": (-7, 7)}
"""The element types, and the least and the largest integer that are drawn; all between them can be represented."""
HIDDEN = 16
SIZES = (16, 32, 48, 64, 96, 128, 256, 256, 512)
ROWS = (5, 1, 17)
"""The numbers of rows of the sets of inputs."""

Array = np.ndarray[Any, Any]


@dataclass
class Case:
    """One model with sets of inputs and the results for each of them."""

    name: str
    facts: dict[str, Any]
    model: Any
    sets: list[dict[str, Array]] = field(default_factory=list)
    expected: list[dict[str, Array]] = field(default_factory=list)


def draw(seed: int, index: int) -> Case:
    """Model number `index` of a seed."""
    return _Drawing(seed, index).case()


class _Drawing:
    def __init__(self, seed: int, index: int) -> None:
        self.choices = random.Random(f"weights/{seed}/{index}")
        self.numbers = np.random.default_rng([seed, index])
        self.name = f"weights-{seed}-{index}"
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.facts: dict[str, Any] = {}

    def case(self) -> Case:
        pick = self.facts
        pick["reader"] = self.choices.choice(("MatMul", "MatMul", "MatMul", "Gemm", "GemmT", "Transpose", "Left",
                                              "Gather", "Gather1", "Reshape", "Conv", "ConvTranspose", "Two", "LSTM"))
        pick["place"] = self.choices.choice(("main", "main", "main", "captured", "Loop", "If"))
        weights = self._weights()
        body = [self.constants, self.nodes]
        self.constants, self.nodes = [], []
        inputs, outputs, rank = self._reader(weights)
        case = Case(self.name, self.facts, self._model(body, inputs, rank))
        for rows in ROWS:
            feeds, results = outputs(rows)
            case.sets.append(feeds)
            case.expected.append(results)
        return case

    # -- the weights

    def _weights(self) -> Array:
        """The numbers of the weights, in f64; the nodes that make them are the value "w"."""
        convolves = self.facts["reader"] in ("Conv", "ConvTranspose")
        recurs = self.facts["reader"] == "LSTM"
        shape = [self.choices.choice(SIZES), self.choices.choice(SIZES)]
        if convolves:
            shape = [self.choices.choice((4, 16, 32)), self.choices.choice((4, 16, 32)), 3, 3]
        if recurs:
            shape = [1, 4 * HIDDEN, self.choices.choice((16, 32))]
        kind = self.choices.choice(tuple(TYPES))
        way = self.choices.choice(("tensor", "tensor1", "axis", "axis", "block", "block", "block"))
        axis, block = 0, 0
        if way in ("axis", "block"):
            axis = self.choices.randrange(2) + recurs
        if way == "block":
            sizes = [each for each in (16, 32, 64, 128, shape[axis]) if each <= shape[axis]] or [shape[axis]]
            block = self.choices.choice(sizes)
        grid = {"tensor": [], "tensor1": [1], "axis": [shape[axis]]}.get(way)
        if grid is None:
            grid = [-(-size // block) if each == axis else size for each, size in enumerate(shape)]
        has_zero = self.choices.random() < 0.6 and not kind.startswith("float8")
        self.facts |= {"type": kind, "shape": shape, "way": way, "axis": axis, "block": block, "zero": has_zero}
        low, high = TYPES[kind]
        integers = self.numbers.integers(low, high + 1, shape)
        scale = (self.numbers.random(grid) * 0.02 + 0.01).astype(np.float32)
        zero = self.numbers.integers(low, high + 1, grid) if has_zero else np.zeros(grid, np.int64)
        self.constants += [_quantized("q", integers, kind), numpy_helper.from_array(scale, "scale")]
        names = ["q", "scale"]
        if has_zero:
            self.constants.append(_quantized("zero", zero, kind))
            names.append("zero")
        attributes = {"axis": axis} if way in ("axis", "block") else {}
        if block:
            attributes["block_size"] = block
        given = self.choices.random() < 0.2 and kind == "int8" and not block
        if given:  # the numbers are given in f32 and quantised in the graph
            full = [_spread(each, shape, axis, block) for each in (scale, zero)]
            self.constants[-3 if has_zero else -2] = numpy_helper.from_array(
                ((integers - full[1]) * full[0]).astype(np.float32), "numbers"
            )
            typed = {} if has_zero else {"output_dtype": TensorProto.INT8}
            self.nodes.append(helper.make_node("QuantizeLinear", ["numbers", *names[1:]], ["q"], **attributes, **typed))
        self.facts["given"] = given
        self.nodes.append(helper.make_node("DequantizeLinear", names, ["w"], **attributes))
        full = [_spread(each, shape, axis, block) for each in (scale.astype(np.float64), zero)]
        return (integers - full[1]) * full[0]

    # -- its readers

    def _reader(self, w: Array) -> tuple[list[tuple[str, list[Any], int]], Any, int]:
        """The inputs of the model, and a function that makes a set of them with the results."""
        reader = self.facts["reader"]
        if reader in ("Gather", "Gather1"):
            axis = int(reader == "Gather1")
            self.nodes.append(helper.make_node("Gather", ["w", "i"], ["y"], axis=axis))

            def gathered(rows: int) -> Any:
                i = self.numbers.integers(0, w.shape[axis], rows)
                return {"i": i}, {"y": np.take(w, i, axis)}

            return [("i", ["rows"], TensorProto.INT64)], gathered, 2
        if reader in ("Conv", "ConvTranspose"):
            return self._convolution(w, reader)
        if reader == "LSTM":
            return self._lstm(w)
        if reader == "Left":
            self.nodes.append(helper.make_node("MatMul", ["w", "x"], ["y"]))
            return self._product(w.shape[1], lambda x: w @ x, transposed=True)
        self.nodes += {
            "MatMul": [helper.make_node("MatMul", ["x", "w"], ["y"])],
            "Gemm": [helper.make_node("Gemm", ["x", "w"], ["y"])],
            "GemmT": [helper.make_node("Gemm", ["x", "w"], ["y"], transB=1)],
            "Transpose": [helper.make_node("Transpose", ["w"], ["t"], perm=[1, 0]),
                          helper.make_node("MatMul", ["x", "t"], ["y"])],
            "Reshape": [helper.make_node("Reshape", ["w", "pattern"], ["t"]),
                        helper.make_node("MatMul", ["x", "t"], ["y"])],
            "Two": [helper.make_node("MatMul", ["x", "w"], ["a"]),
                    helper.make_node("ReduceSum", ["w", "zeroth"], ["b"]), helper.make_node("Add", ["a", "b"], ["y"])],
        }[reader]
        right = w
        if reader in ("GemmT", "Transpose"):
            right = w.T
        elif reader == "Reshape":
            right = w.reshape(w.shape[0] // 2, w.shape[1] * 2)
            self.constants.append(numpy_helper.from_array(np.array(right.shape), "pattern"))
        elif reader == "Two":
            self.constants.append(numpy_helper.from_array(np.array([0]), "zeroth"))
        more = w.sum(0) if reader == "Two" else 0
        return self._product(right.shape[0], lambda x: x @ right + more)

    def _product(self, size: int, compute: Any, *, transposed: bool = False) -> Any:
        def made(rows: int) -> Any:
            x = self.numbers.standard_normal((size, rows) if transposed else (rows, size)).astype(np.float32)
            return {"x": x}, {"y": compute(x.astype(np.float64))}

        return [("x", [size, "rows"] if transposed else ["rows", size], TensorProto.FLOAT)], made, 2

    def _convolution(self, w: Array, reader: str) -> Any:
        self.nodes.append(helper.make_node(reader, ["x", "w"], ["y"]))
        channels = w.shape[1] if reader == "Conv" else w.shape[0]

        def made(rows: int) -> Any:
            x = self.numbers.standard_normal((rows, channels, 6, 5)).astype(np.float32)
            return {"x": x}, {"y": _convolved(x.astype(np.float64), w, reader)}

        return [("x", ["rows", channels, 6, 5], TensorProto.FLOAT)], made, 4

    def _lstm(self, w: Array) -> Any:
        recurrent = (self.numbers.standard_normal((1, 4 * HIDDEN, HIDDEN)) * 0.3).astype(np.float32)
        self.constants.append(numpy_helper.from_array(recurrent, "r"))
        self.nodes.append(helper.make_node("LSTM", ["x", "w", "r"], ["y"], hidden_size=HIDDEN))

        def made(rows: int) -> Any:
            x = self.numbers.standard_normal((rows, 2, w.shape[2])).astype(np.float32) * np.float32(0.3)
            return {"x": x}, {"y": _recurrent(x.astype(np.float64), w[0], recurrent[0].astype(np.float64))}

        return [("x", ["rows", 2, w.shape[2]], TensorProto.FLOAT)], made, 4

    # -- the model

    def _model(self, weights: list[list[Any]], inputs: Any, rank: int) -> Any:
        place = self.facts["place"]
        ports = [helper.make_tensor_value_info(name, kind, shape) for name, shape, kind in inputs]
        result = [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None] * rank)]
        constants, nodes = weights
        if place == "main":
            graph = helper.make_graph([*nodes, *self.nodes], "g", ports, result, [*constants, *self.constants])
            return _checked(graph)
        inside, outside = ([*nodes, *self.nodes], []) if place != "captured" else (self.nodes, nodes)
        outer = constants if place == "captured" else []
        inner = [*([] if place == "captured" else constants), *self.constants]
        if place == "If":
            branch = helper.make_graph(inside, "then", [], result, inner)
            other = [helper.make_node("Identity", ["y_of_else"], ["y"])]
            empty = numpy_helper.from_array(np.zeros([1] * rank, np.float32), "y_of_else")
            otherwise = helper.make_graph(other, "else", [], result, [empty])
            node = helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=otherwise)
            test = [helper.make_node("Size", [inputs[0][0]], ["n"]), helper.make_node("Greater", ["n", "none"], ["c"])]
            outer = [*outer, numpy_helper.from_array(np.int64(0), "none")]
            return _checked(helper.make_graph([*outside, *test, node], "g", ports, result, outer))
        truth = [helper.make_tensor_value_info(name, TensorProto.BOOL, []) for name in ("go", "on")]
        count = helper.make_tensor_value_info("k", TensorProto.INT64, [])
        step = [*inside, helper.make_node("Identity", ["go"], ["on"])]
        last = helper.make_tensor_value_info("all", TensorProto.FLOAT, [None] * (rank + 1))
        loop = helper.make_graph(step, "body", [count, truth[0]], [truth[1], *result], inner)
        outer = [*outer, *(numpy_helper.from_array(np.array(v), n) for n, v in (("m", 2), ("true", True), ("last", 1)))]
        made = [helper.make_node("Loop", ["m", "true"], ["all"], body=loop),
                helper.make_node("Gather", ["all", "last"], ["y"], axis=0)]
        del last
        return _checked(helper.make_graph([*outside, *made], "g", ports, result, outer))


def _checked(graph: Any) -> Any:
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    onnx.checker.check_model(model)
    return model


def _quantized(name: str, values: Array, kind: str) -> Any:
    return helper.make_tensor(name, getattr(TensorProto, kind.upper()), values.shape, values.reshape(-1))


def _spread(parameter: Array, shape: list[int], axis: int, block: int) -> Array:
    if block:
        return np.take(parameter, np.arange(shape[axis]) // block, axis)
    if parameter.size == 1:
        return parameter.reshape(-1)[0]
    return parameter.reshape([-1 if each == axis else 1 for each in range(len(shape))])


def _recurrent(x: Array, w: Array, r: Array) -> Array:
    """The hidden states of an LSTM without a bias, [length, 1, batch, HIDDEN]."""
    h = c = np.zeros((x.shape[1], HIDDEN))
    states = []
    for step in x:
        i, o, f, g = np.split(step @ w.T + h @ r.T, 4, 1)
        i, o, f = (1 / (1 + np.exp(-each)) for each in (i, o, f))
        c = f * c + i * np.tanh(g)
        h = o * np.tanh(c)
        states.append(h)
    return np.stack(states)[:, None]


def _convolved(x: Array, w: Array, reader: str) -> Array:
    """Conv or ConvTranspose of stride 1 without pads."""
    rows, _, height, width = x.shape
    if reader == "Conv":
        return np.einsum("nchwij,ocij->nohw", np.lib.stride_tricks.sliding_window_view(x, (3, 3), (2, 3)), w)
    y = np.zeros((rows, w.shape[1], height + 2, width + 2))
    for i in range(3):
        for j in range(3):
            y[:, :, i : i + height, j : j + width] += np.einsum("nchw,co->nohw", x, w[:, :, i, j])
    return y
