"""Models of com.microsoft's fused operators, as onnxruntime.transformers and its model builders write them.

    model = gpt2(SMALL)                 # Attention with a mask and the keys and values of earlier tokens, FastGelu
    model = llama(SMALL)                # GroupQueryAttention with rotary positions, SkipSimplifiedLayerNormalization
    model = t5(SMALL)                   # MultiHeadAttention with a bias, attention to an encoder
    sets = feeds("gpt2", SMALL)         # inputs: a whole text without earlier tokens, then single tokens after some

The optimiser for transformers recognises GPT-2, LLaMA and T5 only as older exporters wrote them. Weights are random.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

MICROSOFT = "com.microsoft"
DISTANCES = 8


@dataclass(frozen=True)
class Sizes:
    """The sizes of a model: `heads` of queries, `shared` of keys and values where they are fewer."""

    hidden: int
    heads: int
    shared: int
    layers: int
    inner: int
    vocabulary: int
    positions: int

    @property
    def width(self) -> int:
        return self.hidden // self.heads


SMALL = Sizes(hidden=64, heads=4, shared=2, layers=2, inner=96, vocabulary=50, positions=32)


class _Net:
    """Collects nodes and random weights."""

    def __init__(self, seed: int = 1) -> None:
        self.random = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.weights: list[onnx.TensorProto] = []
        self.inputs: list[onnx.ValueInfoProto] = []
        self.outputs: list[onnx.ValueInfoProto] = []

    def add(self, op: str, inputs: Sequence[str], count: int = 1, domain: str = "", **given: Any) -> Any:
        """The name of the output of a node, or a list of `count` names."""
        names = [f"{op}_{len(self.nodes)}_{number}" for number in range(count)]
        self.nodes.append(helper.make_node(op, inputs, names, f"{op}_{len(self.nodes)}", domain=domain, **given))
        return names[0] if count == 1 else names

    def fused(self, op: str, inputs: Sequence[str], count: int = 1, **given: Any) -> Any:
        return self.add(op, inputs, count, MICROSOFT, **given)

    def weight(self, *shape: int, scale: float = 0.0, mean: float = 0.0) -> str:
        array = self.random.standard_normal(shape) * (scale or shape[0] ** -0.5) + mean
        return self.constant(array.astype(np.float32))

    def constant(self, array: Any) -> str:
        name = f"weight_{len(self.weights)}"
        self.weights.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def product(self, x: str, rows: int, columns: int, bias: bool = True) -> str:
        made = self.add("MatMul", [x, self.weight(rows, columns)])
        return self.add("Add", [made, self.weight(columns, scale=0.1)]) if bias else made

    def input(self, name: str, kind: int, shape: Sequence[Any]) -> str:
        self.inputs.append(helper.make_tensor_value_info(name, kind, shape))
        return name

    def output(self, name: str, source: str, shape: Sequence[Any]) -> None:
        self.nodes.append(helper.make_node("Identity", [source], [name], name))
        self.outputs.append(helper.make_tensor_value_info(name, TensorProto.FLOAT, shape))

    def model(self, name: str) -> onnx.ModelProto:
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.weights)
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def gpt2(sizes: Sizes) -> onnx.ModelProto:
    """GPT-2: masked and unidirectional attention with packed weights, earlier keys and values in one tensor."""
    net = _Net()
    ids = net.input("input_ids", TensorProto.INT64, ["batch", "read"])
    places = net.input("position_ids", TensorProto.INT64, ["batch", "read"])
    mask = net.input("attention_mask", TensorProto.INT32, ["batch", "all"])
    words = net.add("Gather", [net.weight(sizes.vocabulary, sizes.hidden, scale=0.5), ids])
    at = net.add("Gather", [net.weight(sizes.positions, sizes.hidden, scale=0.5), places])
    x, stream = _layer_norm(net, sizes, words, at)
    for layer in range(sizes.layers):
        past = net.input(f"past_{layer}", TensorProto.FLOAT, [2, "batch", sizes.heads, "past", sizes.width])
        packed = [net.weight(sizes.hidden, 3 * sizes.hidden), net.weight(3 * sizes.hidden, scale=0.1)]
        read, present = net.fused("Attention", [x, *packed, mask, past], 2, num_heads=sizes.heads, unidirectional=1)
        net.output(f"present_{layer}", present, [2, "batch", sizes.heads, "all", sizes.width])
        projected = net.product(read, sizes.hidden, sizes.hidden, bias=False)
        x, stream = _layer_norm(net, sizes, projected, stream, net.weight(sizes.hidden, scale=0.1))
        inner = net.product(x, sizes.hidden, sizes.inner, bias=False)
        inner = net.fused("FastGelu", [inner, net.weight(sizes.inner, scale=0.1)])
        x, stream = _layer_norm(net, sizes, net.product(inner, sizes.inner, sizes.hidden), stream)
    net.output("logits", net.product(x, sizes.hidden, sizes.vocabulary, bias=False), ["batch", "read", "vocabulary"])
    return net.model("gpt2")


def _layer_norm(net: _Net, sizes: Sizes, x: str, skip: str, *bias: str) -> tuple[str, str]:
    """The normalised sum, and the sum."""
    scale, shift = net.weight(sizes.hidden, scale=0.1, mean=1.0), net.weight(sizes.hidden, scale=0.1)
    made = net.fused("SkipLayerNormalization", [x, skip, scale, shift, *bias], 4, epsilon=1e-5)
    net.nodes[-1].output[1] = net.nodes[-1].output[2] = ""
    return made[0], made[3]


def llama(sizes: Sizes) -> onnx.ModelProto:
    """LLaMA: grouped queries with rotary positions inside, gated SiLU, RMS normalisation."""
    net = _Net(2)
    ids = net.input("input_ids", TensorProto.INT64, ["batch", "read"])
    mask = net.input("attention_mask", TensorProto.INT64, ["batch", "all"])
    counts = net.add("ReduceSum", [mask, net.constant(np.array([1]))], keepdims=1)
    lengths = net.add("Cast", [net.add("Sub", [counts, net.constant(np.array([1]))])], to=TensorProto.INT32)
    size = net.add("Gather", [net.add("Shape", [mask]), net.constant(np.array(1))], axis=0)
    total = net.add("Cast", [size], to=TensorProto.INT32)
    angles = np.outer(np.arange(sizes.positions), 10000.0 ** (-np.arange(0, sizes.width, 2) / sizes.width))
    tables = [net.constant(function(angles).astype(np.float32)) for function in (np.cos, np.sin)]
    stream = net.add("Gather", [net.weight(sizes.vocabulary, sizes.hidden, scale=0.5), ids])
    scale = net.weight(sizes.hidden, scale=0.1, mean=1.0)
    x = net.add("SimplifiedLayerNormalization", [stream, scale], axis=-1, epsilon=1e-5, stash_type=1)
    shared = sizes.shared * sizes.width
    for layer in range(sizes.layers):
        names = (f"past_key_{layer}", f"past_value_{layer}")
        cache = ["batch", sizes.shared, "past", sizes.width]
        past = [net.input(name, TensorProto.FLOAT, cache) for name in names]
        queries = net.product(x, sizes.hidden, sizes.hidden, bias=False)
        others = [net.product(x, sizes.hidden, shared, bias=False) for _ in past]
        read, *present = net.fused("GroupQueryAttention", [queries, *others, *past, lengths, total, *tables], 3,
                                   num_heads=sizes.heads, kv_num_heads=sizes.shared, do_rotary=1, rotary_interleaved=0,
                                   local_window_size=-1)
        for name, each in zip(names, present, strict=True):
            net.output(name.replace("past", "present"), each, ["batch", sizes.shared, "all", sizes.width])
        x, stream = _rms_norm(net, sizes, net.product(read, sizes.hidden, sizes.hidden, bias=False), stream)
        gate, up = (net.product(x, sizes.hidden, sizes.inner, bias=False) for _ in range(2))
        inner = net.add("Mul", [net.fused("QuickGelu", [gate], alpha=1.0), up])
        x, stream = _rms_norm(net, sizes, net.product(inner, sizes.inner, sizes.hidden, bias=False), stream)
    net.output("logits", net.product(x, sizes.hidden, sizes.vocabulary, bias=False), ["batch", "read", "vocabulary"])
    return net.model("llama")


def _rms_norm(net: _Net, sizes: Sizes, x: str, skip: str) -> tuple[str, str]:
    """The normalised sum, and the sum."""
    scale = net.weight(sizes.hidden, scale=0.1, mean=1.0)
    made = net.fused("SkipSimplifiedLayerNormalization", [skip, x, scale], 4, epsilon=1e-5)
    net.nodes[-1].output[1] = net.nodes[-1].output[2] = ""
    return made[0], made[3]


def t5(sizes: Sizes) -> onnx.ModelProto:
    """T5's decoder: one more token, with relative positions, and attention to an encoder's keys and values."""
    net = _Net(3)
    ids = net.input("input_ids", TensorProto.INT64, ["batch", 1])
    mask = net.input("encoder_mask", TensorProto.INT32, ["batch", "encoded"])
    table = net.weight(DISTANCES, sizes.heads, scale=0.5)
    stream = net.add("Gather", [net.weight(sizes.vocabulary, sizes.hidden, scale=0.5), ids])
    scale = net.weight(sizes.hidden, scale=0.1, mean=1.0)
    x = net.add("SimplifiedLayerNormalization", [stream, scale], axis=-1, epsilon=1e-6, stash_type=1)
    bias = ""
    for layer in range(sizes.layers):
        own = [net.input(f"past_{part}_{layer}", TensorProto.FLOAT, ["batch", sizes.heads, "past", sizes.width])
               for part in ("key", "value")]
        if not bias:
            bias = _relative_bias(net, table, own[0])
        q, k, v = (net.product(x, sizes.hidden, sizes.hidden, bias=False) for _ in range(3))
        read, *present = net.fused("MultiHeadAttention", [q, k, v, "", "", bias, *own], 3, num_heads=sizes.heads,
                                   scale=1.0)
        for part, each in zip(("key", "value"), present, strict=True):
            net.output(f"present_{part}_{layer}", each, ["batch", sizes.heads, "all", sizes.width])
        x, stream = _rms_norm(net, sizes, net.product(read, sizes.hidden, sizes.hidden, bias=False), stream)
        encoded = [net.input(f"encoded_{part}_{layer}", TensorProto.FLOAT,
                             ["batch", sizes.heads, "encoded", sizes.width]) for part in ("key", "value")]
        q = net.product(x, sizes.hidden, sizes.hidden, bias=False)
        read = net.fused("MultiHeadAttention", [q, *encoded, "", mask], num_heads=sizes.heads, scale=1.0)
        x, stream = _rms_norm(net, sizes, net.product(read, sizes.hidden, sizes.hidden, bias=False), stream)
        gate = net.fused("FastGelu", [net.product(x, sizes.hidden, sizes.inner, bias=False)])
        inner = net.add("Mul", [gate, net.product(x, sizes.hidden, sizes.inner, bias=False)])
        x, stream = _rms_norm(net, sizes, net.product(inner, sizes.inner, sizes.hidden, bias=False), stream)
    net.output("logits", net.product(x, sizes.hidden, sizes.vocabulary, bias=False), ["batch", 1, "vocabulary"])
    return net.model("t5")


def _relative_bias(net: _Net, table: str, past: str) -> str:
    """The bias [1, heads, 1, all] of one query after the earlier keys."""
    size = net.add("Gather", [net.add("Shape", [past]), net.constant(np.array(2))], axis=0)
    zero, one = net.constant(np.array(0)), net.constant(np.array(1))
    keys = net.add("Range", [zero, net.add("Add", [size, one]), one])
    distance = net.add("Min", [net.add("Sub", [size, keys]), net.constant(np.array(DISTANCES - 1))])
    made = net.add("Transpose", [net.add("Gather", [table, distance])], perm=[1, 0])
    return str(net.add("Unsqueeze", [made, net.constant(np.array([0, 2]))]))


MODELS = {"gpt2": gpt2, "llama": llama, "t5": t5}


def feeds(name: str, sizes: Sizes, seed: int = 4) -> list[dict[str, Any]]:
    """Several sets of inputs for one compiled model: (texts, tokens read, tokens before them)."""
    calls = ((2, 1, 5), (1, 1, 3), (3, 1, 1)) if name == "t5" else ((2, 6, 0), (2, 1, 6), (1, 1, 9))
    return [_inputs(name, sizes, seed + number, *call) for number, call in enumerate(calls)]


def _inputs(name: str, sizes: Sizes, seed: int, texts: int, read: int, past: int) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    inputs: dict[str, Any] = {"input_ids": random.integers(0, sizes.vocabulary, (texts, read))}

    def cache(*shape: int) -> Any:
        return random.standard_normal(shape).astype(np.float32)

    for layer in range(sizes.layers):
        if name == "gpt2":
            inputs[f"past_{layer}"] = cache(2, texts, sizes.heads, past, sizes.width)
            continue
        heads = sizes.shared if name == "llama" else sizes.heads
        for part in ("key", "value"):
            inputs[f"past_{part}_{layer}"] = cache(texts, heads, past, sizes.width)
            if name == "t5":
                inputs[f"encoded_{part}_{layer}"] = cache(texts, heads, 4 + texts, sizes.width)
    if name == "gpt2":
        inputs["position_ids"] = np.tile(np.arange(past, past + read), (texts, 1))
        inputs["attention_mask"] = np.ones((texts, past + read), np.int32)
        inputs["attention_mask"][0, :1] = 0
    elif name == "llama":
        inputs["attention_mask"] = np.ones((texts, past + read), np.int64)
    else:
        inputs["encoder_mask"] = np.ones((texts, 4 + texts), np.int32)
        inputs["encoder_mask"][0, -1:] = 0
    return inputs
