"""Export small PyTorch models to ONNX, as test material for control flow and recurrent layers.

    pip install torch==2.13.0 onnx onnxscript       # add onnxruntime to have every case compared with PyTorch
    python tools/export_pytorch.py                  # every model, into tests/models/pytorch
    python tools/export_pytorch.py --out models lstm gru

Writes NAME.onnx for each model, and one cases.toml with the inputs to run them on, of this form:

    [while_doubling]
    about = "Doubles x until the sum of its magnitudes reaches a limit."
    exporter = "script"
    opset = 11
    [while_doubling.cases.never_entered]
    x = { shape = [3], dtype = "float32", seed = 2 }
    limit = { shape = [], dtype = "float32", values = [0.0] }

Data with a `seed` is `numpy.random.default_rng(seed).standard_normal(shape)`; `values` are in row-major order.

The files are reproducible: weights come from one seed, and what depends on the machine (stack traces, paths, doc
strings) is removed. Another version of PyTorch may still write another graph for the same model.
"""

import argparse
import importlib.util
import io
import logging
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import onnx
import torch
from google.protobuf.message import Message
from torch import Tensor, nn
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

OUT = Path(__file__).resolve().parents[1] / "tests" / "models" / "pytorch"
WEIGHT_SEED = 20240229
MAX_BYTES = 60_000
RTOL, ATOL = 1e-4, 1e-5

HEADER = """\
# Inputs of the models in this folder, one table a model. Written by tools/export_pytorch.py: change them there.
# seed: numpy.random.default_rng(seed).standard_normal(shape), then cast to dtype.  values: row-major order.
"""


# --------------------------------------------------------------------------------------------------------------- inputs


@dataclass(frozen=True)
class Data:
    """One input of one case: normal random numbers from a seed, or explicit values."""

    shape: tuple[int, ...]
    dtype: str
    seed: int | None = None
    values: tuple[float | int | bool, ...] | None = None

    def array(self) -> np.ndarray:
        """The data as an array of `shape` and `dtype`."""
        if self.values is not None:
            return np.array(self.values, self.dtype).reshape(self.shape)
        return np.random.default_rng(self.seed).standard_normal(self.shape).astype(self.dtype)

    def toml(self) -> str:
        """The data as a TOML inline table."""
        source = f"seed = {self.seed}" if self.values is None else f"values = {str(list(self.values)).lower()}"
        return f'{{ shape = {list(self.shape)}, dtype = "{self.dtype}", {source} }}'


Inputs = Mapping[str, Data]
DynamicAxes = Mapping[str, Mapping[int, str]]


def normal(seed: int, *shape: int) -> Data:
    """float32 data of normal distribution."""
    return Data(shape, "float32", seed=seed)


def exact(values: float | int | bool | list) -> Data:
    """The given scalar or nested list: float32, int64 or bool, as its elements are."""
    array = np.array(values)
    dtype = "float32" if array.dtype == np.float64 else str(array.dtype)
    return Data(array.shape, dtype, values=tuple(array.ravel().tolist()))


# --------------------------------------------------------------------------------------------------------------- models


@dataclass(frozen=True)
class Model:
    """A module with what its export and its tests need. Inputs are named and ordered as the module's parameters."""

    make: Callable[[], nn.Module]
    exporter: str
    opset: int
    cases: Mapping[str, Inputs]
    dynamic: DynamicAxes
    outputs: tuple[str, ...]

    @property
    def about(self) -> str:
        """The docstring of the module."""
        return " ".join((self.make.__doc__ or "").split())

    @property
    def example(self) -> Inputs:
        """The inputs the exporters trace with: the first case."""
        return next(iter(self.cases.values()))


MODELS: dict[str, Model] = {}


def exported(
    name: str,
    *,
    exporter: str,
    opset: int,
    cases: Mapping[str, Inputs],
    dynamic: DynamicAxes | None = None,
    outputs: tuple[str, ...] = ("y",),
) -> Callable[[Callable[[], nn.Module]], Callable[[], nn.Module]]:
    """Register a module class, or a function that makes a module, as NAME.onnx.

    exporter: "script" (TorchScript, keeps Python's control flow), "trace" (TorchScript, loses it) or "dynamo".
    dynamic: for each input, the axes that stay symbolic, with the names of their symbols.
    """

    def register(make: Callable[[], nn.Module]) -> Callable[[], nn.Module]:
        MODELS[name] = Model(make, exporter, opset, cases, dynamic or {}, outputs)
        return make

    return register


@exported(
    "while_doubling",
    exporter="script",
    opset=11,
    cases={
        "few_trips": {"x": exact([0.5, -1.0, 0.25]), "limit": exact(9.0)},
        "many_trips": {"x": exact([0.1, 0.2]), "limit": exact(1000.0)},
        "never_entered": {"x": normal(2, 5), "limit": exact(0.0)},
    },
    dynamic={"x": {0: "n"}},
)
class WhileDoubling(nn.Module):
    """Doubles x until the sum of its magnitudes reaches a limit."""

    def forward(self, x: Tensor, limit: Tensor) -> Tensor:
        while bool(x.abs().sum() < limit):
            x = x * 2 + 0.25
        return x


@exported(
    "while_collatz",
    exporter="script",
    opset=14,
    cases={
        "nine_trips": {"n": exact(12)},
        "one_trip": {"n": exact(2)},
        "never_entered": {"n": exact(1)},
        "many_trips": {"n": exact(27)},
    },
    outputs=("steps", "peak"),
)
class WhileCollatz(nn.Module):
    """Counts the steps of the Collatz sequence of n and finds its peak: an If in a while loop, all scalars of int64."""

    def forward(self, n: Tensor) -> tuple[Tensor, Tensor]:
        steps = torch.zeros_like(n)
        peak = n
        while bool(n > 1):
            if bool(n % 2 == 0):
                n = torch.div(n, 2, rounding_mode="floor")
            else:
                n = 3 * n + 1
            peak = torch.maximum(peak, n)
            steps = steps + 1
        return steps, peak


@exported(
    "for_fixed",
    exporter="script",
    opset=13,
    cases={
        "two_rows": {"x": normal(1, 2, 4)},
        "one_row": {"x": normal(2, 1, 4)},
        "five_rows": {"x": normal(3, 5, 4)},
    },
    dynamic={"x": {0: "batch"}},
)
class ForFixed(nn.Module):
    """A hundred trips through one linear layer; TorchScript unrolls by eight: a loop of 12 trips, then one of 4."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        for i in range(100):
            x = torch.tanh(self.linear(x)) + 0.01 * i
        return x


@exported(
    "for_trip_count",
    exporter="script",
    opset=17,
    cases={
        "three_trips": {"x": normal(1, 2, 4), "count": exact(3)},
        "one_trip": {"x": normal(2, 1, 4), "count": exact(1)},
        "no_trips": {"x": normal(3, 3, 4), "count": exact(0)},
        "many_trips": {"x": normal(4, 2, 4), "count": exact(40)},
    },
    dynamic={"x": {0: "batch"}},
)
class ForTripCount(nn.Module):
    """A for loop whose trip count is an input, and whose body uses the iteration number."""

    def forward(self, x: Tensor, count: Tensor) -> Tensor:
        for i in range(int(count)):
            x = x * 0.5 + i
        return x


@exported(
    "for_growing",
    exporter="script",
    opset=15,
    cases={
        "three_trips": {"x": normal(1, 1, 4), "count": exact(3)},
        "one_trip": {"x": normal(2, 1, 4), "count": exact(1)},
        "no_trips": {"x": normal(3, 1, 4), "count": exact(0)},
    },
)
class ForGrowing(nn.Module):
    """Carries a tensor that grows by one row in each trip."""

    def forward(self, x: Tensor, count: Tensor) -> Tensor:
        rows = x
        for _ in range(int(count)):
            rows = torch.cat((rows, rows[-1:] * 0.5 + x), dim=0)
        return rows


@exported(
    "for_break",
    exporter="script",
    opset=16,
    cases={
        "breaks_at_third": {"x": exact([[1.0, 0.5], [0.5, 0.25], [2.0, 1.0], [9.0, 9.0]]), "limit": exact(3.0)},
        "breaks_at_first": {"x": exact([[1.0, 0.5], [0.5, 0.25]]), "limit": exact(-1.0)},
        "runs_to_the_end": {"x": normal(1, 6, 2), "limit": exact(1000.0)},
        "no_rows": {"x": Data((0, 2), "float32", values=()), "limit": exact(3.0)},
    },
    dynamic={"x": {0: "rows"}},
    outputs=("total", "used"),
)
class ForBreak(nn.Module):
    """Adds up rows of x until their sum exceeds a limit, and counts the rows it used."""

    def forward(self, x: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
        total = torch.zeros(2)
        used = torch.zeros(1, dtype=torch.int64)
        for i in range(x.size(0)):
            total = total + x[i]
            used = used + 1
            if bool(total.sum() > limit):
                break
        return total, used


@exported(
    "if_tensor",
    exporter="script",
    opset=11,
    cases={
        "then": {"x": exact([[1.0, 2.0], [-0.5, 0.25]])},
        "else": {"x": exact([[-1.0, 2.0], [-3.5, 0.25]])},
        "else_at_zero": {"x": exact([[0.0, 0.0], [0.0, 0.0], [0.0, 0.0]])},
    },
    dynamic={"x": {0: "batch"}},
)
class IfTensor(nn.Module):
    """Takes a branch by the sign of the sum of x."""

    def forward(self, x: Tensor) -> Tensor:
        if bool(x.sum() > 0):
            y = x * 2
        else:
            y = torch.relu(-x)
        return y + 1


@exported(
    "if_shapes",
    exporter="script",
    opset=13,
    cases={
        "narrow": {"x": normal(1, 2, 4), "narrow": exact(True)},
        "wide": {"x": normal(2, 2, 4), "narrow": exact(False)},
        "wide_one_row": {"x": normal(3, 1, 4), "narrow": exact(False)},
    },
    dynamic={"x": {0: "batch"}},
)
class IfShapes(nn.Module):
    """Branches of different shape: two columns of x, or x twice side by side."""

    def forward(self, x: Tensor, narrow: Tensor) -> Tensor:
        if bool(narrow):
            y = x[:, :2]
        else:
            y = torch.cat((x, x), dim=1)
        return y + 1


@exported(
    "loop_if_loop",
    exporter="script",
    opset=18,
    cases={
        "both_branches": {"x": exact([[0.25, 0.35], [0.1, 0.5]]), "outer": exact(4), "inner": exact(3)},
        "else_only": {"x": exact([[5.25, 6.0]]), "outer": exact(3), "inner": exact(2)},
        "no_inner_trips": {"x": exact([[0.25, 0.35]]), "outer": exact(2), "inner": exact(0)},
        "no_outer_trips": {"x": normal(1, 2, 2), "outer": exact(0), "inner": exact(3)},
    },
    dynamic={"x": {0: "batch"}},
)
class LoopIfLoop(nn.Module):
    """A loop in an if in a loop; the innermost body captures an input of the model and a weight."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2))

    def forward(self, x: Tensor, outer: Tensor, inner: Tensor) -> Tensor:
        start = x
        for _ in range(int(outer)):
            if bool(x.mean() < 1):
                for j in range(int(inner)):
                    x = x + 0.5 * float(j) + 0.01 * start * self.weight
            else:
                x = x - 1
        return x


@exported(
    "decoder",
    exporter="script",
    opset=17,
    cases={
        "ends_late": {"state": normal(9, 1, 6), "limit": exact(20)},
        "ends_early": {"state": normal(11, 1, 6), "limit": exact(20)},
        "cut_short": {"state": normal(9, 1, 6), "limit": exact(2)},
        "no_trips": {"state": normal(9, 1, 6), "limit": exact(0)},
    },
    outputs=("tokens", "last_state"),
)
class Decoder(nn.Module):
    """Greedy decoding: feeds each token back and appends it, until the end token or a limit of tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.end = 3
        self.embedding = nn.Embedding(8, 6)
        self.mix = nn.Linear(12, 6)
        self.head = nn.Linear(6, 8)

    def forward(self, state: Tensor, limit: Tensor) -> tuple[Tensor, Tensor]:
        token = torch.ones(1, dtype=torch.int64)
        tokens = token
        for _ in range(int(limit)):
            state = torch.tanh(self.mix(torch.cat((self.embedding(token), state), dim=1)))
            token = self.head(state).argmax(dim=1)
            tokens = torch.cat((tokens, token), dim=0)
            if bool(token[0] == self.end):
                break
        return tokens, state


SEQUENCES = {
    "two_of_six": {"x": normal(1, 2, 6, 4)},
    "one_of_one": {"x": normal(2, 1, 1, 4)},
    "three_of_nine": {"x": normal(3, 3, 9, 4)},
}
BATCH_AND_TIME = {"x": {0: "batch", 1: "time"}}


@exported(
    "lstm_dynamo",
    exporter="dynamo",
    opset=21,
    cases=SEQUENCES,
    dynamic=BATCH_AND_TIME,
    outputs=("y", "h", "c"),
)
@exported(
    "lstm",
    exporter="trace",
    opset=11,
    cases=SEQUENCES,
    dynamic=BATCH_AND_TIME,
    outputs=("y", "h", "c"),
)
class Lstm(nn.Module):
    """nn.LSTM, one layer, batch first."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(4, 5, batch_first=True)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y, (h, c) = self.layer(x)
        return y, h, c


@exported(
    "lstm_bidirectional",
    exporter="trace",
    opset=17,
    cases={
        "six_of_two": {"x": normal(1, 6, 2, 4), "h0": normal(2, 4, 2, 3), "c0": normal(3, 4, 2, 3)},
        "one_of_one": {"x": normal(4, 1, 1, 4), "h0": normal(5, 4, 1, 3), "c0": normal(6, 4, 1, 3)},
        "nine_of_three": {"x": normal(7, 9, 3, 4), "h0": normal(8, 4, 3, 3), "c0": normal(9, 4, 3, 3)},
    },
    dynamic={"x": {0: "time", 1: "batch"}, "h0": {1: "batch"}, "c0": {1: "batch"}},
    outputs=("y", "h", "c"),
)
class LstmBidirectional(nn.Module):
    """nn.LSTM, two bidirectional layers, time first, with initial states."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.LSTM(4, 3, num_layers=2, bidirectional=True)

    def forward(self, x: Tensor, h0: Tensor, c0: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        y, (h, c) = self.layers(x, (h0, c0))
        return y, h, c


@exported("gru", exporter="trace", opset=14, cases=SEQUENCES, dynamic=BATCH_AND_TIME, outputs=("y", "h"))
def gru() -> nn.Module:
    """nn.GRU, bidirectional, batch first."""
    return nn.GRU(4, 5, batch_first=True, bidirectional=True)


@exported("rnn", exporter="trace", opset=12, cases=SEQUENCES, dynamic=BATCH_AND_TIME, outputs=("y", "h"))
def rnn() -> nn.Module:
    """nn.RNN with ReLU, two layers, batch first."""
    return nn.RNN(4, 5, num_layers=2, nonlinearity="relu", batch_first=True)


IMAGES = {
    "two_images": {"x": normal(1, 2, 3, 8, 8)},
    "one_image": {"x": normal(2, 1, 3, 8, 8)},
    "five_images": {"x": normal(3, 5, 3, 8, 8)},
}


@exported("cnn_dynamo", exporter="dynamo", opset=18, cases=IMAGES, dynamic={"x": {0: "batch"}})
@exported("cnn", exporter="trace", opset=13, cases=IMAGES, dynamic={"x": {0: "batch"}})
def cnn() -> nn.Module:
    """A small image classifier; one batch normalisation follows a ReLU, so that no exporter can fold it away."""
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1),
        nn.BatchNorm2d(4),
        nn.ReLU(),
        nn.BatchNorm2d(4),
        nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3, stride=2, padding=1, groups=2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(24, 5),
    )


@exported("mlp", exporter="trace", opset=17, cases=SEQUENCES, dynamic=BATCH_AND_TIME)
def mlp() -> nn.Module:
    """A perceptron with LayerNorm, GELU and softmax."""
    return nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.GELU(), nn.Linear(8, 3), nn.Softmax(dim=-1))


@exported(
    "encoder_layer",
    exporter="dynamo",
    opset=21,
    cases={
        "two_of_five": {"src": normal(1, 2, 5, 8)},
        "one_of_three": {"src": normal(2, 1, 3, 8)},
        "three_of_nine": {"src": normal(3, 3, 9, 8)},
    },
    dynamic={"src": {0: "batch", 1: "time"}},
)
def encoder_layer() -> nn.Module:
    """nn.TransformerEncoderLayer: self-attention of two heads, batch first."""
    return nn.TransformerEncoderLayer(d_model=8, nhead=2, dim_feedforward=16, batch_first=True)


@exported(
    "cond_dynamo",
    exporter="dynamo",
    opset=18,
    cases={
        "then": {"x": exact([[1.0, 2.0, -0.5, 0.25], [0.5, 0.5, 1.5, -1.0]])},
        "else": {"x": exact([[-1.0, 2.0, -3.5, 0.25], [0.5, 0.5, -1.5, -1.0]])},
        "else_one_row": {"x": exact([[-1.0, -2.0, -0.5, 0.25]])},
    },
    dynamic={"x": {0: "batch"}},
)
class Cond(nn.Module):
    """torch.cond: one of two linear layers by the sign of the sum of x; the branches capture x and the weights."""

    def __init__(self) -> None:
        super().__init__()
        self.positive = nn.Linear(4, 3)
        self.negative = nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: self.positive(x), lambda x: torch.tanh(self.negative(x)), (x,))


@exported(
    "while_dynamo",
    exporter="dynamo",
    opset=21,
    cases={
        "three_trips": {"x": normal(1, 2, 4), "count": exact(3)},
        "one_trip": {"x": normal(2, 1, 4), "count": exact(1)},
        "never_entered": {"x": normal(3, 3, 4), "count": exact(0)},
        "many_trips": {"x": normal(4, 2, 4), "count": exact(40)},
    },
    dynamic={"x": {0: "batch"}},
)
class WhileLoop(nn.Module):
    """The while_loop operator: no trip count, a counter among the carried values, and a captured limit."""

    def forward(self, x: Tensor, count: Tensor) -> Tensor:
        start = torch.zeros((), dtype=torch.int64)
        return while_loop(lambda i, x: i < count, lambda i, x: (i + 1, x * 0.5 + 1), (start, x))[1]


SCANS = {
    "five_steps": {"h": normal(1, 2, 4), "xs": normal(2, 5, 2, 4)},
    "one_step": {"h": normal(3, 2, 4), "xs": normal(4, 1, 2, 4)},
    "twelve_steps": {"h": normal(5, 2, 4), "xs": normal(6, 12, 2, 4)},
}


@exported(
    "scan_dynamo",
    exporter="dynamo",
    opset=20,
    cases=SCANS,
    dynamic={"xs": {0: "time"}},
    outputs=("last", "ys"),
)
class Scan(nn.Module):
    """The scan operator: one recurrent layer over the first axis of xs, with a scan output."""

    def __init__(self, reverse: bool = False) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.reverse = reverse

    def forward(self, h: Tensor, xs: Tensor) -> tuple[Tensor, Tensor]:
        def step(h: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
            h = torch.tanh(self.linear(h) + x)
            return h, h * 2

        return scan(step, h, xs, dim=0, reverse=self.reverse)


@exported(
    "scan_reverse_dynamo",
    exporter="dynamo",
    opset=18,
    cases=SCANS,
    dynamic={"xs": {0: "time"}},
    outputs=("last", "ys"),
)
def scan_reverse() -> nn.Module:
    """The scan operator running backwards: the exporter reverses xs before an ordinary Scan, and ys after it."""
    return Scan(reverse=True)


# --------------------------------------------------------------------------------------------------------------- export


def build(model: Model) -> nn.Module:
    """The module in evaluation mode, its weights and statistics drawn from the weight seed."""
    module = model.make().eval()
    random = np.random.default_rng(WEIGHT_SEED)
    for name, tensor in module.state_dict().items():
        if not tensor.is_floating_point():
            continue
        values = random.normal(scale=0.5, size=tuple(tensor.shape)).astype(np.float32)
        tensor.copy_(torch.from_numpy(np.abs(values) + 0.5 if name.endswith("running_var") else values))
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


def check(proto: onnx.ModelProto) -> None:
    """Raise ValueError unless a model is what its readers expect: small, self-contained, plain ONNX, no sequences."""
    onnx.checker.check_model(proto, full_check=True)
    if proto.ByteSize() > MAX_BYTES:
        raise ValueError(f"{proto.ByteSize()} bytes, more than {MAX_BYTES}")
    for message in messages(proto):
        if isinstance(message, onnx.NodeProto) and (message.domain or "Sequence" in message.op_type):
            raise ValueError(f"operator {message.domain}::{message.op_type}")
        if isinstance(message, onnx.TensorProto) and message.external_data:
            raise ValueError(f"external data of {message.name}")


def compare(model: Model, module: nn.Module, data: bytes) -> float:
    """The largest difference between PyTorch and ONNX Runtime over all cases; AssertionError beyond the tolerance."""
    import onnxruntime

    onnxruntime.set_default_logger_severity(3)  # exporters declare some shapes wrongly, which is worth having here
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    largest = 0.0
    for inputs in model.cases.values():
        with torch.no_grad():
            expected = flat(module(*tensors(inputs)))
        actual = session.run(None, {name: data.array() for name, data in inputs.items()})
        for want, have in zip(expected, actual, strict=True):
            np.testing.assert_allclose(have, want.numpy(), RTOL, ATOL, strict=True)
            largest = max(largest, float(np.abs(have - want.numpy()).max(initial=0)))
    return largest


def flat(outputs: Tensor | tuple) -> list[Tensor]:
    """The tensors of a nested tuple, as the exporters order them."""
    if isinstance(outputs, Tensor):
        return [outputs]
    return [tensor for item in outputs for tensor in flat(item)]


def cases_toml() -> str:
    """The inputs of every model, as the text of cases.toml."""
    lines = [HEADER]
    for name, model in MODELS.items():
        lines += [f"[{name}]", f'about = "{model.about}"', f'exporter = "{model.exporter}"', f"opset = {model.opset}"]
        for case, inputs in model.cases.items():
            lines += [f"[{name}.cases.{case}]", *(f"{key} = {data.toml()}" for key, data in inputs.items())]
        lines += [""]
    return "\n".join(lines)


def main() -> int:
    """Export the models named on the command line, or all of them."""
    parser = argparse.ArgumentParser(description="Export small PyTorch models to ONNX.")
    parser.add_argument("--out", type=Path, default=OUT, help="folder to write to (default: tests/models/pytorch)")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(MODELS)}")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in MODELS]:
        parser.error(f"unknown model: {', '.join(unknown)}")

    warnings.filterwarnings("ignore")
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    comparing = importlib.util.find_spec("onnxruntime") is not None
    options.out.mkdir(parents=True, exist_ok=True)
    for name in options.names or MODELS:
        model = MODELS[name]
        module = build(model)
        proto = export(model, module)
        strip(proto)
        check(proto)
        data = proto.SerializeToString(deterministic=True)
        note = f"max difference {compare(model, module, data):.1e}" if comparing else "not compared"
        (options.out / f"{name}.onnx").write_bytes(data)
        print(f"{name:22} opset {model.opset:2} {len(data):6} bytes  {note}")
    (options.out / "cases.toml").write_text(cases_toml(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
