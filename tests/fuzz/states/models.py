"""Draws recurrent models: LSTM, GRU, RNN, Scan and Loop with several states, nested, in branches, growing."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper

from tests.fuzz.drawn_graph import Scope
from tests.fuzz.states import shifts

Array = np.ndarray[Any, Any]

KINDS = ("LSTM", "GRU", "RNN", "Scan", "Loop", "branches", "stacked", "delays", "grown")
FLOAT, INT64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


@dataclass
class Recurrent:
    """A model over a sequence. `fixed` inputs are the same in every step, `axes` has the time axes of the others.

    All states of the model begin with zeros if this is set: then the option that keeps initial values is not needed.
    """

    name: str
    model: onnx.ModelProto
    fixed: dict[str, Array] = field(default_factory=dict)
    moving: dict[str, Array] = field(default_factory=dict)
    axes: dict[str, int] = field(default_factory=dict)
    from_zeros: bool = False

    def whole(self, start: int, length: int) -> dict[str, Array]:
        """The inputs for steps `start` to `start + length` in one run."""
        taken = {name: x.take(range(start, start + length), self.axes[name]) for name, x in self.moving.items()}
        return {**self.fixed, **taken}

    def step(self, number: int) -> dict[str, Array]:
        """The inputs for one step."""
        return self.whole(number, 1)


STEPS = 12
"""The length of the inputs that are drawn."""


def drawn(seed: int, number: int) -> Recurrent:
    """The model of this number; the same for the same seed."""
    rng = np.random.default_rng([seed, number])
    kind = KINDS[number % len(KINDS)]
    made = Drawing(rng, f"{seed}-{number}-{kind}")
    {
        "Scan": made.scan, "Loop": made.loop, "branches": made.branches, "stacked": made.stacked,
        "delays": lambda: shifts.delays(made), "grown": lambda: shifts.grown(made),
    }.get(kind, lambda: made.layer(kind))()
    return made.done()


class Drawing:
    """A model while it is drawn. Tensors that are carried have the shape [batch, width]."""

    def __init__(self, rng: np.random.Generator, name: str) -> None:
        self.rng = rng
        self.name = name
        self.batch, self.width = int(rng.integers(1, 4)), int(rng.integers(1, 6))
        self.graph = Scope("g")
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[str] = []
        self.result = Recurrent(name, onnx.ModelProto())
        self.batch_name = "B" if rng.random() < 0.5 else self.batch

    def chance(self, share: float) -> bool:
        return bool(self.rng.random() < share)

    def floats(self, *shape: int) -> Array:
        return (self.rng.standard_normal(shape) * 0.7).astype(np.float32)

    def given(self, name: str, array: Array, dims: list[Any], axis: int | None = None) -> str:
        """An input of the model."""
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        self.inputs.append(helper.make_tensor_value_info(name, kind, dims))
        if axis is None:
            self.result.fixed[name] = array
        else:
            self.result.moving[name], self.result.axes[name] = array, axis
        return name

    def sequence(self, width: int, axis: int = 0, name: str = "x") -> str:
        """An input with a dimension for time."""
        shape, dims = [self.batch, width], [self.batch_name, width]
        shape.insert(axis, STEPS)
        dims.insert(axis, "T")
        return self.given(name, self.floats(*shape), dims, axis)

    def first(self, name: str, *shape: int) -> str:
        """The initial value of a state [.., batch, width]: an input, zeros, or other numbers."""
        choice = self.rng.integers(3)
        if choice == 0:
            dims = [*shape[:-2], self.batch_name, shape[-1]]
            return self.given(name, self.floats(*shape), dims)
        return self.graph.constant(np.zeros(shape, np.float32) if choice == 1 else self.floats(*shape))

    def done(self) -> Recurrent:
        outputs = [helper.make_empty_tensor_value_info(name) for name in self.outputs]
        graph = self.graph.proto(self.inputs, outputs)
        self.result.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return self.result

    # -- kinds

    def layer(self, kind: str, x: str = "", width: int = 0) -> str:
        """A recurrent layer over the sequence; returns its output for each step, [T, batch, hidden]."""
        rng, graph = self.rng, self.graph
        outermost = not x
        if outermost:
            width = self.width
            x = self.sequence(width)
        hidden = int(rng.integers(1, 6))
        gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
        weights = [graph.constant(self.floats(1, gates * hidden, size)) for size in (width, hidden)]
        bias = graph.constant(self.floats(1, 2 * gates * hidden)) if self.chance(0.7) else ""
        shape = (1, self.batch, hidden)
        states = []
        number = len(graph.nodes)
        for name in ("h", "c") if kind == "LSTM" else ("h",):
            states.append(self.first(f"{name}{number}", *shape) if self.chance(0.6) else "")
        attributes: dict[str, Any] = {"hidden_size": hidden}
        if kind == "GRU" and self.chance(0.5):
            attributes["linear_before_reset"] = 1
        if self.chance(0.2):
            attributes["clip"] = 1.5
        if kind == "RNN" and self.chance(0.3):
            attributes["activations"] = ["Relu"]
        count = 3 if kind == "LSTM" else 2
        outputs = graph.op(kind, x, *weights, bias, "", *states, outputs=count, **attributes)
        if outermost:
            self.outputs += [graph.op("Tanh", outputs[0]), *outputs[1:]]
        squeezed = graph.op("Squeeze", outputs[0], graph.constant(np.array([1])))
        self.width = hidden
        return squeezed

    def stacked(self) -> None:
        """Layers of different kinds on each other, with a product between."""
        x, width = self.sequence(self.width), self.width
        for _ in range(2):
            kind = str(self.rng.choice(["LSTM", "GRU", "RNN", "Scan"]))
            if kind == "Scan":
                x = self.scan(x, width)
            else:
                x = self.layer(kind, x, width)
                width = self.width
            x = self.graph.op("Add", x, x)
        self.outputs.append(x)

    def scan(self, x: str = "", width: int = 0) -> str:
        """A Scan with several states; returns its output for each step."""
        rng = self.rng
        outermost = not x
        axis = int(rng.integers(2)) if outermost else 0
        width = width or self.width
        x = x or self.sequence(width, axis)
        body = Scope(f"body{len(self.graph.nodes)}")
        states, firsts, nexts = self._states(body, width)
        nexts, y = self._stepped(body, states, body.parameter("piece", FLOAT, [None, None]), nexts)
        kinds = [FLOAT] * len(states) + [INT64] * (len(nexts) - len(states))
        for kind, state in zip(kinds, nexts, strict=True):
            body.result(state, kind, [None, None] if kind == FLOAT else [])  # a Scan of ONNX Runtime needs the shapes
        body.result(y, FLOAT, [None, None])
        scan_axis = axis if axis == 0 else (1 if self.chance(0.5) else -2)
        outputs = self.graph.op("Scan", *firsts, x, outputs=len(firsts) + 1, num_scan_inputs=1, body=body.body(),
                                scan_input_axes=[scan_axis], scan_output_axes=[axis])
        if outermost:
            self.outputs += outputs
        return outputs[-1]

    def loop(self) -> None:
        """A Loop over the length of the sequence that reads it by the iteration number."""
        graph, width = self.graph, self.width
        x = self.sequence(width)
        length = graph.op("Gather", graph.op("Shape", x), graph.constant(np.array(0)))
        body = Scope("body")
        number = body.parameter("number", INT64, [])
        condition = body.parameter("condition", BOOL, [])
        states, firsts, nexts = self._states(body, width)
        grows = self.chance(0.5)
        if grows:
            cache = body.parameter("cache", FLOAT, [None, self.batch, width])
        piece = body.op("Gather", x, number)
        nexts, y = self._stepped(body, states, piece, nexts)
        if self.chance(0.4):
            y = body.op("Add", y, body.op("Cast", number, to=FLOAT))
        if self.chance(0.4):
            y = body.op("Add", y, body.op("Gather", self.graph.constant(self.floats(STEPS, width)), number))
        body.result(body.op("Identity", condition))
        for state in nexts:
            body.result(state)
        if grows:
            grown = body.op("Concat", cache, body.op("Unsqueeze", piece, body.constant(np.array([0]))), axis=0)
            body.result(grown)
            y = body.op("Add", y, body.op("ReduceMean", grown, axes=[0], keepdims=0))
        body.result(y)
        empty = [graph.constant(np.zeros((0, self.batch, width), np.float32))] if grows else []
        go = graph.constant(np.array(True))
        outputs = graph.op("Loop", length, go, *firsts, *empty, outputs=len(firsts) + len(empty) + 1, body=body.body())
        self.outputs += outputs

    def branches(self) -> None:
        """An If whose branches have a Scan each, with other states."""
        width = self.width
        x = self.sequence(width)
        flag = self.given("flag", np.array(self.chance(0.5)), [])
        made = []
        for name in ("then", "else"):
            outer, self.graph = self.graph, Scope(name)
            self.graph.result(self.graph.op("Identity", self.scan(x, width)))
            made.append(self.graph.body())
            self.graph = outer
        self.outputs.append(self.graph.op("If", flag, then_branch=made[0], else_branch=made[1]))

    # -- bodies

    def _states(self, body: Scope, width: int) -> tuple[list[str], list[str], list[str]]:
        """Parameters, initial values, and next values that are known already."""
        count = int(self.rng.integers(1, 4))
        states = [body.parameter(f"state{each}", FLOAT, [None, None]) for each in range(count)]
        firsts = [
            self.first(f"s{len(self.inputs)}_{body.name}", self.batch, width) if self.graph.name == "g"
            else self.graph.constant(self.floats(self.batch, width))
            for _ in states
        ]
        nexts: list[str] = []
        if self.chance(0.3):  # a counter
            counter = body.parameter("counter", INT64, [])
            firsts.append(self.graph.constant(np.array(int(self.rng.integers(3)))))
            nexts.append(body.op("Add", counter, body.constant(np.array(2))))
        return states, firsts, nexts

    def _stepped(self, body: Scope, states: list[str], piece: str, counters: list[str]) -> tuple[list[str], str]:
        """The next states, and the output of a step."""
        rng = self.rng
        values = [*states, piece]
        for _ in range(int(rng.integers(1, 4))):
            a, b = (values[int(rng.integers(len(values)))] for _ in range(2))
            made = body.op(str(rng.choice(["Add", "Mul", "Sub", "Max"])), a, b)
            values.append(body.op(str(rng.choice(["Tanh", "Sigmoid", "Relu"])), made))
        if self.chance(0.25):
            values.append(self._inner_loop(body, values[-1]))
        if self.chance(0.25):
            values.append(self._inner_branch(body, values[-1], piece))
        if counters and self.chance(0.7):
            values[-1] = body.op("Add", values[-1], body.op("Cast", counters[0], to=FLOAT))
        order = rng.permutation(len(states))
        nexts = []
        for place in order:
            mixed = body.op("Add", states[int(place)], values[-1 - int(rng.integers(min(2, len(values))))])
            nexts.append(body.op("Tanh", mixed) if self.chance(0.7) else mixed)
        if self.chance(0.2):
            nexts[0] = states[-1]  # a state that takes the value of another
        return [*nexts, *counters], body.op("Add", values[-1], nexts[-1])

    def _inner_loop(self, body: Scope, value: str) -> str:
        """A loop of a fixed number of iterations, which begins anew in each step."""
        inner = Scope(f"inner{len(body.nodes)}")
        inner.parameter("i", INT64, [])
        go = inner.parameter("go", BOOL, [])
        state = inner.parameter("inner_state", FLOAT, [None, None])
        inner.result(inner.op("Identity", go))
        inner.result(inner.op("Tanh", inner.op("Add", state, value)))
        trips = body.constant(np.array(int(self.rng.integers(1, 4))))
        start = body.op("Mul", value, body.constant(np.float32(0.5)))
        return str(body.op("Loop", trips, body.constant(np.array(True)), start, body=inner.body()))

    def _inner_branch(self, body: Scope, value: str, piece: str) -> str:
        """One of two values, by the numbers of the step."""
        total = body.op("ReduceSum", piece, keepdims=0)
        made = []
        for name, op in (("yes", "Neg"), ("no", "Abs")):
            branch = Scope(f"{name}{len(body.nodes)}")
            branch.result(branch.op(op, value))
            made.append(branch.body())
        flag = body.op("Greater", total, body.constant(np.float32(0)))
        return str(body.op("If", flag, then_branch=made[0], else_branch=made[1]))
