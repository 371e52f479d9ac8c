"""Small transformer networks of random weights, as GraphProtos with the inputs and outputs that generation requires.

    gpt2(rng, sizes)      # input_ids, position_ids, attention_mask, past_0, ... => logits, present_0, ...
    encoder(rng, sizes, has_first_step), decoder(rng, sizes, has_hidden, all_tokens)
    whisper_encoder(rng, sizes), decoder(rng, sizes, has_hidden, all_tokens, has_mask=False)

The weights are initializers of the graph, or of the model around it (`weights_outside`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from onnx import GraphProto, TensorProto, helper

from tests.fuzz.drawn_graph import Scope

INT, FLOAT = TensorProto.INT32, TensorProto.FLOAT
MASKED = np.float32(-1e4)


@dataclass(frozen=True)
class Sizes:
    """The sizes of a network."""

    layers: int = 2
    heads: int = 2
    width: int = 8
    """Of one head."""
    vocabulary: int = 50
    positions: int = 64
    features: int = 6
    """Of audio, at each time."""
    rare: int = -1
    """A token that the network never prefers: padding is then recognised in the sequences. -1 for none."""
    nudge: float = 0.0
    """A relative change of all weights: what it changes is not stable."""

    @property
    def hidden(self) -> int:
        return self.heads * self.width


class Network(Scope):
    """Collects the nodes and weights of one GraphProto."""

    def __init__(self, name: str, rng: np.random.Generator, sizes: Sizes) -> None:
        super().__init__(name)
        self.rng, self.sizes = rng, sizes

    def random(self, *shape: int, scale: float = 1.0) -> str:
        """A weight of random numbers."""
        numbers = self.rng.standard_normal(shape) * scale
        return self.constant((numbers * (1 + self.sizes.nudge * np.sin(1e3 * numbers))).astype(np.float32))

    def ints(self, *numbers: int) -> str:
        return self.constant(np.array(numbers, np.int64))

    def linear(self, x: str, size: int, into: int) -> str:
        scale = 1.5 / np.sqrt(size)
        return self.op("Add", self.op("MatMul", x, self.random(size, into, scale=scale)), self.random(into, scale=0.3))

    def normalised(self, x: str) -> str:
        size = self.sizes.hidden
        return self.op("LayerNormalization", x, self.random(size), self.random(size, scale=0.1))

    def embedded(self, ids: str, rows: int, scale: float = 1.0) -> str:
        return self.op("Gather", self.random(rows, self.sizes.hidden, scale=scale), ids)

    def heads(self, x: str) -> str:
        """[B, S, hidden] as [B, heads, S, width]."""
        cut = self.op("Reshape", x, self.ints(0, 0, self.sizes.heads, self.sizes.width))
        return self.op("Transpose", cut, perm=[0, 2, 1, 3])

    def attended(self, q: str, k: str, v: str, bias: str) -> str:
        """Attention of [B, heads, S, width], as [B, S, hidden]; `bias` is added to the products."""
        products = self.op("MatMul", q, self.op("Transpose", k, perm=[0, 1, 3, 2]))
        scaled = self.op("Div", products, self.constant(np.float32(np.sqrt(self.sizes.width))))
        mixed = self.op("MatMul", self.op("Softmax", self.op("Add", scaled, bias), axis=-1), v)
        joined = self.op("Reshape", self.op("Transpose", mixed, perm=[0, 2, 1, 3]), self.ints(0, 0, self.sizes.hidden))
        return self.linear(joined, self.sizes.hidden, self.sizes.hidden)

    def feed_forward(self, x: str) -> str:
        inner = self.op("Tanh", self.linear(x, self.sizes.hidden, 2 * self.sizes.hidden))
        return self.linear(inner, 2 * self.sizes.hidden, self.sizes.hidden)

    def dimension(self, x: str, axis: int) -> str:
        """One dimension, as a scalar."""
        return self.op("Gather", self.op("Shape", x), self.constant(np.int64(axis)))

    def mask_bias(self, mask: str) -> str:
        """[B, T] of 0 and 1 as [B, 1, 1, T] of a large negative number and 0."""
        absent = self.op("Sub", self.constant(np.float32(1)), self.op("Cast", mask, to=FLOAT))
        return self.op("Unsqueeze", self.op("Mul", absent, self.constant(MASKED)), self.ints(1, 2))

    def causal_bias(self, ids: str, length: str) -> str:
        """[S, T]: each of the last S of T positions sees those before it and itself."""
        zero, one = self.constant(np.int64(0)), self.constant(np.int64(1))
        first = self.op("Sub", length, self.dimension(ids, 1))
        rows = self.op("Unsqueeze", self.op("Range", first, length, one), self.ints(1))
        hidden = self.op("Greater", self.op("Range", zero, length, one), rows)
        return self.op("Mul", self.op("Cast", hidden, to=FLOAT), self.constant(MASKED))

    def logits(self, x: str, scale: float) -> str:
        head = self.random(self.sizes.hidden, self.sizes.vocabulary, scale=scale)
        bias = self.rng.standard_normal(self.sizes.vocabulary).astype(np.float32)
        bias[np.arange(self.sizes.vocabulary) == self.sizes.rare] = -1e3
        return self.op("Add", self.op("MatMul", self.normalised(x), head), self.constant(bias))

    def graph(self, inputs: Sequence[Any], outputs: Sequence[tuple[str, str, Sequence[Any]]]) -> GraphProto:
        """The GraphProto; outputs are (name, value, shape)."""
        for name, value, _ in outputs:
            self.nodes.append(helper.make_node("Identity", [value], [name]))
        returned = [floats(name, shape) for name, _, shape in outputs]
        return helper.make_graph(self.nodes, self.name, inputs, returned, self.initializers)


def ints(name: str, shape: Sequence[Any]) -> Any:
    """An int32 input."""
    return helper.make_tensor_value_info(name, INT, shape)


def floats(name: str, shape: Sequence[Any]) -> Any:
    """A float input or output."""
    return helper.make_tensor_value_info(name, FLOAT, shape)


def gpt2(rng: np.random.Generator, sizes: Sizes, name: str = "decoder") -> GraphProto:
    """A decoder of the GPT-2 kind: keys and values of a layer are one tensor [2, B, heads, T, width]."""
    net = Network(name, rng, sizes)
    x = net.op("Add", net.embedded("input_ids", sizes.vocabulary), net.embedded("position_ids", sizes.positions, 0.5))
    causal = net.causal_bias("input_ids", net.dimension("attention_mask", 1))
    bias = net.op("Add", net.mask_bias("attention_mask"), causal)
    presents = []
    for layer in range(sizes.layers):
        y = net.normalised(x)
        q, k, v = (net.heads(net.linear(y, sizes.hidden, sizes.hidden)) for _ in range(3))
        past_k, past_v = net.op("Split", f"past_{layer}", outputs=2, axis=0, num_outputs=2)
        first = net.ints(0)
        k = net.op("Concat", net.op("Squeeze", past_k, first), k, axis=2)
        v = net.op("Concat", net.op("Squeeze", past_v, first), v, axis=2)
        presents.append(net.op("Concat", *(net.op("Unsqueeze", each, first) for each in (k, v)), axis=0))
        x = net.op("Add", x, net.attended(q, k, v, bias))
        x = net.op("Add", x, net.feed_forward(net.normalised(x)))
    past = [2, "B", sizes.heads, "P", sizes.width]
    inputs = [ints("input_ids", ["B", "S"]), ints("position_ids", ["B", "S"]), ints("attention_mask", ["B", "T"])]
    inputs += [floats(f"past_{layer}", past) for layer in range(sizes.layers)]
    outputs = [("logits", net.logits(x, 1.0), ["B", "S", sizes.vocabulary])]
    shape = [2, "B", sizes.heads, "T", sizes.width]
    outputs += [(f"present_{layer}", each, shape) for layer, each in enumerate(presents)]
    return net.graph(inputs, outputs)


def encoder(rng: np.random.Generator, sizes: Sizes, has_first_step: bool) -> GraphProto:
    """An encoder of the T5 kind, which makes the caches of the cross attention, perhaps with the first step."""
    net = Network("encoder", rng, sizes)
    ids, mask = "encoder_input_ids", "encoder_attention_mask"
    zero, one = net.constant(np.int64(0)), net.constant(np.int64(1))
    places = net.op("Range", zero, net.dimension(ids, 1), one)
    x = net.op("Add", net.embedded(ids, sizes.vocabulary), net.embedded(places, sizes.positions, 0.5))
    bias = net.mask_bias(mask)
    for _ in range(sizes.layers):
        x = net.op("Add", x, net.attended(*_projections(net, net.normalised(x)), bias))
        x = net.op("Add", x, net.feed_forward(net.normalised(x)))
    hidden = net.normalised(x)
    cross = [net.heads(net.linear(hidden, sizes.hidden, sizes.hidden)) for _ in range(2 * sizes.layers)]
    cached = ["B", sizes.heads, "E", sizes.width]
    outputs = [(name, each, cached) for name, each in zip(_caches("present", "cross", sizes), cross, strict=True)]
    inputs = [ints(ids, ["B", "E"]), ints(mask, ["B", "E"])]
    if not has_first_step:
        return net.graph(inputs, outputs)
    logits, selves = _decoded(net, "decoder_input_ids", [], cross, bias)
    first = [("logits", logits, ["B", 1, sizes.vocabulary])]
    first += [("encoder_hidden_states", hidden, ["B", "E", sizes.hidden])]
    kept = ["B", sizes.heads, 1, sizes.width]
    first += [(name, each, kept) for name, each in zip(_caches("present", "self", sizes), selves, strict=True)]
    return net.graph([*inputs, ints("decoder_input_ids", ["B", 1])], [*first, *outputs])


def whisper_encoder(rng: np.random.Generator, sizes: Sizes) -> GraphProto:
    """An encoder of the Whisper kind: it reads features [B, F, E], and makes the first step after given tokens."""
    net = Network("encoder", rng, sizes)
    x = net.op("Transpose", "encoder_input_ids", perm=[0, 2, 1])
    x = net.linear(x, sizes.features, sizes.hidden)
    none = net.constant(np.float32(0))
    for _ in range(sizes.layers):
        x = net.op("Add", x, net.attended(*_projections(net, net.normalised(x)), none))
        x = net.op("Add", x, net.feed_forward(net.normalised(x)))
    hidden = net.normalised(x)
    cross = [net.heads(net.linear(hidden, sizes.hidden, sizes.hidden)) for _ in range(2 * sizes.layers)]
    logits, selves = _decoded(net, "decoder_input_ids", [], cross, none, is_prefix=True)
    first = [("logits", logits, ["B", "L", sizes.vocabulary])]
    first += [("encoder_hidden_states", hidden, ["B", "E", sizes.hidden])]
    for kind, values, length in (("self", selves, "L"), ("cross", cross, "E")):
        names = _caches("present", kind, sizes)
        shape = ["B", sizes.heads, length, sizes.width]
        first += [(name, each, shape) for name, each in zip(names, values, strict=True)]
    features = floats("encoder_input_ids", ["B", sizes.features, "E"])
    return net.graph([features, ints("decoder_input_ids", ["B", "L"])], first)


def decoder(rng: np.random.Generator, sizes: Sizes, has_hidden: bool, all_tokens: bool,
            has_mask: bool = True) -> GraphProto:
    """The decoder of the T5 kind. With `all_tokens` it receives whole sequences and reads their last token."""
    net = Network("decoder", rng, sizes)
    mask = "encoder_attention_mask"
    selves, cross = (_caches("past", kind, sizes) for kind in ("self", "cross"))
    last = net.op("Gather", "input_ids", net.ints(-1), axis=1) if all_tokens else "input_ids"
    bias = net.mask_bias(mask) if has_mask else net.constant(np.float32(0))
    logits, presents = _decoded(net, last, selves, cross, bias)
    inputs = [ints("input_ids", ["B", "L" if all_tokens else 1])]
    inputs += [ints(mask, ["B", "E"])] * has_mask
    inputs += [floats("encoder_hidden_states", ["B", "E", sizes.hidden])] * has_hidden
    inputs += [floats(name, ["B", sizes.heads, "P", sizes.width]) for name in selves]
    inputs += [floats(name, ["B", sizes.heads, "E", sizes.width]) for name in cross]
    names = _caches("present", "self", sizes)
    kept = ["B", sizes.heads, "T", sizes.width]
    outputs = [(name, each, kept) for name, each in zip(names, presents, strict=True)]
    return net.graph(inputs, [("logits", logits, ["B", 1, sizes.vocabulary]), *outputs])


def _projections(net: Network, x: str) -> list[str]:
    size = net.sizes.hidden
    return [net.heads(net.linear(x, size, size)) for _ in range(3)]


def _caches(which: str, kind: str, sizes: Sizes) -> list[str]:
    return [f"{which}_{part}_{kind}_{layer}" for layer in range(sizes.layers) for part in ("key", "value")]


def _decoded(net: Network, ids: str, past: Sequence[str], cross: Sequence[str], bias: str,
             is_prefix: bool = False) -> tuple[str, list[str]]:
    """The logits of one token, or of each of a prefix, and the caches of the self attention."""
    sizes = net.sizes
    place = net.op("Unsqueeze", net.dimension(past[0], 2), net.ints(0)) if past else net.ints(0)
    own, presents = net.constant(np.float32(0)), []
    if is_prefix:
        length = net.dimension(ids, 1)
        place = net.op("Range", net.constant(np.int64(0)), length, net.constant(np.int64(1)))
        own = net.causal_bias(ids, length)
    x = net.op("Add", net.embedded(ids, sizes.vocabulary), net.embedded(place, sizes.positions, 0.5))
    for layer in range(sizes.layers):
        q, *parts = _projections(net, net.normalised(x))
        if past:
            before = past[2 * layer : 2 * layer + 2]
            parts = [net.op("Concat", old, new, axis=2) for old, new in zip(before, parts, strict=True)]
        presents += parts
        x = net.op("Add", x, net.attended(q, *parts, own))
        q = net.heads(net.linear(net.normalised(x), sizes.hidden, sizes.hidden))
        x = net.op("Add", x, net.attended(q, *cross[2 * layer : 2 * layer + 2], bias))
        x = net.op("Add", x, net.feed_forward(net.normalised(x)))
    return net.logits(x, 1.0), presents


def outside(graph: GraphProto) -> list[TensorProto]:
    """Take the weights out of a graph, for the model around it."""
    weights = list(graph.initializer)
    del graph.initializer[:]
    return weights
