"""Chain: one producer and what follows it, drawn for one cell of the grid.

    cell = Cell("Conv", rank=4, follower="Add", axes=(1,))
    chain = drawn(cell, seed=1)
    chain.nodes, chain.initializers, chain.inputs      their names begin with `chain.prefix`
    chain.feeds                                        sets of inputs by name

The cell fixes what decides whether the plugin fuses: the producer, the rank of its result, the follower, and the axes
along which its constant varies. Everything else is drawn: sizes, batch, static or symbolic dimensions, the element
type (f32, f16, or quantised to 8 bits), operators with scalars between and after them.
"""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 21
F32, F16, INT8 = "f32", "f16", "int8"
KINDS = (F32, F32, F16, INT8)
LARGEST_WEIGHT = 60
"""Of 8-bit weights: two neighbours of them do not saturate without VNNI."""
STEP = 1 / 64
"""Of quantised inputs. The numbers are multiples of it."""

Array = np.ndarray[Any, Any]


class Cell(NamedTuple):
    """One place of the grid; `axes` are those along which the constant varies, none for a number."""

    producer: str
    rank: int
    follower: str
    axes: tuple[int, ...]

    def __str__(self) -> str:
        return f"{self.producer}/{self.rank}/{self.follower}/{','.join(map(str, self.axes)) or '-'}"


@dataclass
class Chain:
    """A part of a model with one output, and its inputs for several inferences."""

    name: str
    prefix: str
    kind: str = F32
    is_dynamic: bool = False
    nodes: list[Any] = field(default_factory=list)
    initializers: list[Any] = field(default_factory=list)
    inputs: list[Any] = field(default_factory=list)
    feeds: list[dict[str, Array]] = field(default_factory=list)
    expected: list[Array] = field(default_factory=list)
    output: str = ""

    @property
    def facts(self) -> str:
        """The operators with their attributes and the shapes of the inputs, in one line."""
        shapes = [tuple(d.dim_value or d.dim_param for d in each.type.tensor_type.shape.dim) for each in self.inputs]
        sizes = {each.name: tuple(each.dims) for each in self.initializers}
        steps = []
        for node in self.nodes:
            texts = [f"{each.name}={helper.get_attribute_value(each)}" for each in node.attribute]
            texts += [f"{sizes[each]}" for each in node.input if each in sizes]
            steps.append(f"{node.op_type}({' '.join(texts)})")
        fed = [tuple(each.shape) for each in self.feeds[0].values()]
        return f"{self.kind} {shapes} fed {fed}: {' -> '.join(steps)}"


class Drawing:
    """The source of random choices of producers and followers, to which they add their operators."""

    def __init__(self, cell: Cell, seed: int, prefix: str = "") -> None:
        self.cell = cell
        self.choices = random.Random(f"fusions/{seed}/{cell}")
        self.numbers = np.random.default_rng(self.choices.randrange(1 << 32))
        self.prefix = prefix
        self.kind = self.choices.choice(KINDS)
        self.batch = self.choices.choice((1, 1, 2, 3))
        self.chain = Chain(str(cell), prefix, self.kind)
        self.shapes: dict[str, tuple[int, ...]] = {}
        self._count = 0

    @property
    def rank(self) -> int:
        return self.cell.rank

    # -- what is drawn

    def chance(self, share: float) -> bool:
        return self.choices.random() < share

    def pick(self, *values: Any) -> Any:
        return self.choices.choice(values)

    def shape(self, rank: int | None = None) -> list[int]:
        """The batch and small sizes, some of them equal."""
        common = self.pick(2, 3, 4, 5, 8)
        sizes = [common if self.chance(0.4) else self.pick(2, 3, 4, 5, 7, 8)
                 for _ in range(self.rank if rank is None else rank)]
        return [self.batch, *sizes[1:]]

    # -- what is added

    def name(self) -> str:
        self._count += 1
        return f"{self.prefix}v{self._count}"

    def add(self, op: str, *inputs: str, before: int = 0, **attributes: Any) -> str:
        """One operator; its output, `before` which there are others that nothing reads."""
        outputs = [self.name() for _ in range(before + 1)]
        self.chain.nodes.append(helper.make_node(op, list(inputs), outputs, **attributes))
        return outputs[-1]

    def constant(self, value: Any, *, exact: bool = False) -> str:
        """An initializer; floats have the element type of the chain unless `exact`."""
        array = np.asarray(value)
        if array.dtype.kind == "f" and not exact:
            array = array.astype(np.float16 if self.kind == F16 else np.float32)
        name = self.name()
        self.chain.initializers.append(numpy_helper.from_array(array, name))
        return name

    def random(self, shape: Sequence[int], *, signs: bool = True) -> Array:
        """Numbers from 0.5 to 1.5, with signs."""
        found = np.round(self.numbers.uniform(0.5, 1.5, list(shape)) / STEP) * STEP
        return found * self.numbers.choice((-1.0, 1.0), list(shape)) if signs else found

    def input(self, shape: Sequence[int], *, signs: bool = True) -> str:
        """An input of the model; quantised if the chain is."""
        name = f"{self.prefix}x{len(self.chain.inputs)}"
        kind = TensorProto.FLOAT16 if self.kind == F16 else TensorProto.FLOAT
        self.chain.inputs.append(helper.make_tensor_value_info(name, kind, list(shape)))
        self.shapes[name] = tuple(shape)
        while len(self.chain.feeds) < 2:
            self.chain.feeds.append({})
        for feeds in self.chain.feeds:
            feeds[name] = self.random(shape, signs=signs).astype(np.float16 if self.kind == F16 else np.float32)
        return self.quantised(name, STEP, 128) if self.kind == INT8 else name

    def weights(self, shape: Sequence[int], axis: int) -> str:
        """Constant weights; of a quantised chain those of 8 bits with a scale for each slice along `axis`."""
        if self.kind != INT8:
            return self.constant(self.random(shape))
        integers = self.numbers.integers(-LARGEST_WEIGHT, LARGEST_WEIGHT + 1, list(shape)).astype(np.int8)
        scales = self.numbers.uniform(0.01, 0.03, shape[axis]).astype(np.float32)
        return self.add("DequantizeLinear", self.constant(integers), self.constant(scales), axis=axis)

    def quantised(self, value: str, scale: Any, zero: int, **attributes: Any) -> str:
        """QuantizeLinear and DequantizeLinear of u8."""
        ports = [self.constant(scale), self.constant(np.full(np.shape(scale), zero, np.uint8))]
        return self.add("DequantizeLinear", self.add("QuantizeLinear", value, *ports, **attributes), *ports,
                        **attributes)


def with_symbols(drawing: Drawing) -> None:
    """Give inputs symbolic dimensions, and the second set of inputs another batch."""
    chain = drawing.chain
    chain.is_dynamic = drawing.chance(0.5)
    if not chain.is_dynamic:
        return
    everything = drawing.chance(0.4)
    for port in chain.inputs:
        for axis, dim in enumerate(port.type.tensor_type.shape.dim):
            if axis == 0 or everything or drawing.chance(0.3):
                dim.dim_param = f"{port.name}_{axis}"
    larger = {name: np.concatenate([array, *([array] * 2)]) if array.shape[0] == drawing.batch else array
              for name, array in chain.feeds[1].items()}
    smaller, chain.feeds[1] = chain.feeds[1], larger
    try:
        evaluate(chain)
    except Exception:  # ONNX Runtime's errors share no base class: the constants need the given batch
        chain.feeds[1] = smaller


def model_of(chains: Sequence[Chain]) -> Any:
    """One model of all the chains; each has an output."""
    parts = [[], [], [], []]
    for chain in chains:
        kind = TensorProto.FLOAT16 if chain.kind == F16 else TensorProto.FLOAT
        parts[0] += chain.nodes
        parts[1] += chain.inputs
        parts[2].append(helper.make_tensor_value_info(chain.output, kind, None))
        parts[3] += chain.initializers
    graph = helper.make_graph(parts[0], "g", parts[1], parts[2], parts[3])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=10)


def evaluate(chain: Chain, output: str = "") -> list[Array]:
    """The results of ONNX Runtime for each set of inputs."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    before, chain.output = chain.output, output or chain.output
    model = onnx.ModelProto.SerializeToString(model_of([chain]))
    chain.output = before
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return [session.run(None, feeds)[0] for feeds in chain.feeds]
