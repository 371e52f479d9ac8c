"""Draws models of one step with states as inputs and outputs, their inputs for sequences, and orders of beams."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.fuzz.drawn_graph import Scope
from tests.fuzz.states.shifts import TYPES, integers

Array = np.ndarray[Any, Any]
FLOAT = TensorProto.FLOAT
STRONG = ("cache", "cache in front", "window", "LSTM", "GRU", "written")
WEAK = ("last", "sum", "frames", "delayed", "counter")


@dataclass(frozen=True)
class State:
    """A state: the output that is its next value, its sizes with "B" for the batch and 0 where it grows."""

    after: str
    sizes: tuple[int | str, ...]
    dtype: Any

    def first(self, batch: int) -> Array:
        """Zeros for so many sequences."""
        return np.zeros([batch if size == "B" else int(size) for size in self.sizes], self.dtype)

    def ordered(self, array: Array, order: Array) -> Array:
        """The state with other sequences in each place."""
        return array.take(order, self.sizes.index("B")) if "B" in self.sizes else array


@dataclass
class Carried:
    """A model of one step. `sequences` have the inputs of each step, for the batch of the same place in `batches`."""

    name: str
    model: onnx.ModelProto
    states: dict[str, State] = field(default_factory=dict)
    outputs: tuple[str, ...] = ()
    batches: tuple[int, ...] = ()
    sequences: list[list[dict[str, Array]]] = field(default_factory=list)
    beams: bool = False
    is_found: bool = False


def carried(seed: int, number: int) -> Carried:
    """The model of this number; the same for the same seed."""
    return Drawing(np.random.default_rng([seed, number]), f"{seed}-{number}-carried").done()


class Drawing:
    """A model of one step of x [batch, length, width] while it is drawn."""

    def __init__(self, rng: np.random.Generator, name: str) -> None:
        self.rng = rng
        self.width = int(rng.integers(1, 5))
        self.batch = int(rng.integers(1, 4)) if self.chance(0.4) else 0  # 0: known at run time
        self.length = 1 if self.chance(0.5) else 0
        self.dtype = TYPES[int(rng.integers(len(TYPES)))]
        self.kind = helper.np_dtype_to_tensor_dtype(np.dtype(self.dtype))
        self.graph = Scope("g")
        self.inputs: list[onnx.ValueInfoProto] = []
        self.result = Carried(name, onnx.ModelProto())
        self.read: list[str] = []

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def one(self, number: int) -> str:
        return self.graph.constant(np.array([number]))

    def done(self) -> Carried:
        rng, graph, result = self.rng, self.graph, self.result
        strong = self.chance(0.4)
        forms = [str(each) for each in rng.choice(STRONG if strong else STRONG + WEAK, int(rng.integers(1, 4)))]
        if self.length != 1:
            forms = [form if form not in ("last", "frames", "delayed") else "cache" for form in forms]
        dims = [self.batch or "B", self.length or "L", self.width]
        self.inputs.append(helper.make_tensor_value_info("x", self.kind, dims))
        self.numbers = graph.op("Cast", "x", to=FLOAT)
        for number, form in enumerate(forms):
            self._state(f"{number}", form)
        y = self.numbers
        for each in self.read:
            y = graph.op("Add", y, each)
        graph.result(graph.op("Tanh", graph.op("Mul", y, graph.constant(np.float32(0.1)))))
        outputs = [helper.make_empty_tensor_value_info(each.name) for each in graph.results]
        result.outputs = tuple(each.name for each in outputs)
        result.model = helper.make_model(graph.proto(self.inputs, outputs), opset_imports=[helper.make_opsetid("", 17)],
                                         ir_version=8)
        result.beams = self.chance(0.5)
        result.is_found = strong
        self._feeds()
        return result

    def _feeds(self) -> None:
        result, rng = self.result, self.rng
        result.batches = tuple(self.batch or int(each) for each in (2, 2, 1, 3))
        for batch in result.batches:
            steps = []
            for number in range(int(rng.integers(2, 5))):
                shape = (batch, self.length or int(rng.integers(1, 4)), self.width)
                feeds = {"x": integers(rng, shape, self.dtype)}
                if result.beams:
                    order = rng.integers(0, batch, batch) if number else np.arange(batch)
                    feeds["beam_idx"] = order.astype(np.int32)
                steps.append(feeds)
            result.sequences.append(steps)

    def _input(self, number: str, sizes: tuple[int | str, ...], dtype: Any) -> str:
        """A state: the name of its input. The batch may have another name than that of x."""
        name = f"h{number}"
        batch = self.batch or ("B" if self.chance(0.6) else f"B{number}")
        dims = [batch if size == "B" else f"P{number}" if size == 0 else size for size in sizes]
        self.inputs.append(helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), dims))
        self.result.states[name] = State("", sizes, dtype)
        return name

    def _output(self, name: str, value: str) -> None:
        graph, state = self.graph, self.result.states[name]
        after = graph.op("Identity", value)
        graph.result(after)
        self.result.states[name] = State(after, state.sizes, state.dtype)

    def _sum(self, value: str, axis: int) -> str:
        """A sum along an axis, kept as one of 1."""
        numbers = self.graph.op("Cast", value, to=FLOAT)
        return str(self.graph.op("ReduceSum", numbers, self.one(axis), keepdims=1))

    def _state(self, number: str, form: str) -> None:
        graph, width = self.graph, self.width
        if form in ("cache", "cache in front"):
            axis = 1 if form == "cache" else 0
            h = self._input(number, ("B", 0, width) if axis else (0, "B", width), self.dtype)
            rows = "x" if axis else graph.op("Transpose", "x", perm=[1, 0, 2])
            present = graph.op("Concat", h, rows, axis=axis)
            self._output(h, present)
            total = self._sum(present, axis)
            self.read.append(total if axis else graph.op("Transpose", total, perm=[1, 0, 2]))
        elif form == "window":
            h = self._input(number, ("B", 3, width), self.dtype)
            whole = graph.op("Concat", h, "x", axis=1)
            self._output(h, graph.op("Slice", whole, self.one(-3), self.one(99), self.one(1)))
            self.read.append(self._sum(whole, 1))
        elif form == "frames":
            h = self._input(number, ("B", 2, width), self.dtype)
            late = graph.op("Slice", h, self.one(1), self.one(99), self.one(1))
            self._output(h, graph.op("Concat", late, "x", axis=1))
            self.read.append(self._sum(h, 1))
        elif form == "written":
            h = self._input(number, ("B", 2, width), np.float32)
            batch = graph.op("Slice", graph.op("Shape", "x"), self.one(0), self.one(1))
            to = graph.op("Concat", batch, graph.constant(np.array([1, width])), axis=0)
            at = graph.op("Expand", graph.constant(np.ones((1, 1, 1), np.int64)), to)
            self._output(h, graph.op("ScatterElements", h, at, self._sum("x", 1), axis=1))
            self.read.append(self._sum(h, 1))
        elif form in ("LSTM", "GRU"):
            self._layer(number, form)
        else:
            self._other(number, form)

    def _other(self, number: str, form: str) -> None:
        graph, width = self.graph, self.width
        if form == "counter":
            h = self._input(number, (1,), np.int64)
            self._output(h, graph.op("Add", h, self.one(1)))
            self.read.append(graph.op("Cast", h, to=FLOAT))
            return
        if form == "sum":
            h = self._input(number, ("B", 1, width), np.float32)
            self._output(h, graph.op("Add", h, self._sum("x", 1)))
            self.read.append(h)
            return
        h = self._input(number, ("B", width), self.dtype)
        self._output(h, graph.op("Squeeze", "x", self.one(1)))
        if form == "delayed":  # two steps
            second = self._input(f"{number}s", ("B", width), self.dtype)
            self._output(second, h)
            h = second
        self.read.append(graph.op("Unsqueeze", graph.op("Cast", h, to=FLOAT), self.one(1)))

    def _layer(self, number: str, form: str) -> None:
        graph, rng, width = self.graph, self.rng, self.width
        hidden, gates = int(rng.integers(1, 4)), {"LSTM": 4, "GRU": 3}[form]
        weights = [graph.constant((rng.standard_normal((1, gates * hidden, size)) * 0.5).astype(np.float32))
                   for size in (width, hidden)]
        names = [self._input(f"{number}{part}", (1, "B", hidden), np.float32) for part in range(gates // 2)]
        rows = graph.op("Transpose", self.numbers, perm=[1, 0, 2])
        y, *last = graph.op(form, rows, *weights, "", "", *names, outputs=1 + len(names), hidden_size=hidden)
        for name, value in zip(names, last, strict=True):
            self._output(name, value)
        total = graph.op("ReduceSum", y, self.one(3), keepdims=0)  # [length, 1, batch]
        self.read.append(graph.op("Transpose", total, perm=[2, 0, 1]))
