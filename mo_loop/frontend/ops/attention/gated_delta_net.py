"""GatedDeltaNet: linear attention over tokens of several sequences, one sequence after the other; and the convolutions
before it.

Sequences of different lengths are read as [batch, longest]: the tokens past the end of a sequence have a key of zeros
and a decay of 1, which leave the state as it is. States are [batch, heads, V, K].

CausalConvWithState and VarlenCausalConvWithState: a convolution of each channel over its past.

    y[t] = activation (bias + sum over j of weight[j] * x[t - (K - 1 - j) * dilation])

The positions before the first one are the state, which has (K - 1) * dilation of them. The new state has the last
ones. Sequences of different lengths are packed into [tokens, channels]; each is convolved with its state in front:

    [state 0, sequence 0, state 1, sequence 1, ..]
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop.frontend.ops.attention.heads import scaled
from mo_loop.frontend.ops.attention.linear_attention import divided, read_by, recurrence, shared
from mo_loop.frontend.ops.images.convolution import WindowAttributes, biased, grouped
from mo_loop.frontend.ops.shared import counted, first_numbers, known_size, number, ranked, require_choice
from mo_loop.frontend.vocabulary import MICROSOFT, Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import f32
from mo_loop.ops.lengths import Length, as_i64, joined
from mo_loop.ops.ranges import AtLeast3, Integers, Matrix, NotNegative, Positive, Rank3, Rank4, Vector

EPSILON, EPSILON_OF_SIGMOID = 1e-12, 1e-6
"""The addend of the sum of squares before its root in the kernel: larger with a sigmoid gate."""


@translates("GatedDeltaNet", since=1, domain=MICROSOFT, ignored="chunk_size")
def gated_delta_net(
    query: Matrix | Rank3 | Rank4, key: Rank3 | Rank4 = None, value: Rank3 | Rank4 = None,
    cu_seqlens: Vector | Integers = None, decay=None, beta=None,
    initial_state: Rank4 = None, a_log=None, dt_bias=None, capture_count=None, state_update_active=None, *,
    beta_activation: str = "none", chunk_size: Positive = 64, gate_activation: str = "none",
    gate_lower_bound: float = -5.0, qk_l2_norm: int = 0, scale: float = 0.0, state_update_capacity: NotNegative = 0,
    update_rule: str = "gated_delta", node: Context,
):
    """q, k and v are [tokens, heads, size] or [batch, T, heads, size]; or q has all of them side by side."""
    decay, beta = read_by(update_rule, decay, beta, "GatedDeltaNet")
    dtype = query.dtype
    if key is None or value is None:
        query, key, value = _unpacked(query, initial_state)
    elif query.rank == 2 or query.rank != key.rank or key.rank != value.rank:
        text = f"the query, {query.type}, the keys, {key.type}, and the values, {value.type}, do not fit together"
        raise ModelError(text, code="ML235")
    order = _order(query, cu_seqlens, initial_state)
    q, k, v = (order.apart(each.astype(f32)) for each in (query, key, value))
    if qk_l2_norm:
        epsilon = EPSILON_OF_SIGMOID if gate_activation in ("sigmoid", "kda") else EPSILON
        q, k = _normalised(q, epsilon), _normalised(k, epsilon)
    k, heads = order.zeroed(k), v.size(2)
    if decay is not None:
        decay = order.zeroed(_decay(order, decay, query, (gate_activation, a_log, dt_bias, gate_lower_bound)))
    if beta is not None:
        require_choice("beta_activation", beta_activation, ("none", "sigmoid"))
        rate = beta.astype(f32)
        beta = ops.Unsqueeze(order.apart(rate if beta_activation == "none" else ops.Sigmoid(rate)), [3])
    if initial_state is not None:
        states = ops.Transpose(initial_state.astype(f32), [0, 1, 3, 2])  # [batch, heads, K, V]
    else:
        states = ops.Broadcast(np.float32(0), joined([order.batch, v.size(2), q.size(3), v.size(3)], q))
    y, last, added = recurrence(
        ops.Unsqueeze(shared(scaled(q, scale), heads), [3]), shared(k, heads), v, decay, beta, states
    )
    made: list[Any] = [order.together(ops.Squeeze(y, [3]), query).astype(dtype)]
    made.append(ops.Transpose(last, [0, 1, 3, 2]) if node.wants(1) else None)
    if node.wants(2):
        count = capture_count
        if count is not None and state_update_active is not None:
            count = ops.Select(ops.NotEqual(state_update_active, np.int32(0)), count, np.int32(0))
        made.append(_captured(order, [decay, k, ops.Squeeze(added, [3])], count, state_update_capacity))
    return made


def _unpacked(packed: Value, state: Value | None) -> list[Value]:
    """Q, K and V of [.., 2 * heads * K + V heads * V]; the state has the number and the size of the heads."""
    if state is None:
        raise ModelError("GatedDeltaNet with packed queries, keys and values has no input initial_state", code="ML227")
    known = [*state.type.dims[1:], packed.type.dims[-1]]
    if not all(isinstance(each, int) for each in known):
        raise UnsupportedError(
            "the sizes of the packed queries, keys and values are known only at run time", code="ML314",
            hint="declare the shapes of the query and of the initial state",
        )
    heads, width, size, total = (int(str(each)) for each in known)
    part = (total - heads * width) // 2
    axis = ranked(packed, "the query") - 1
    pieces = ops.VariadicSplit(packed, axis, [part, part, heads * width])
    shapes = [[part // size, size], [part // size, size], [heads, width]]
    return [
        ops.Reshape(piece, [0] * axis + shape, special_zero=True) for piece, shape in zip(pieces, shapes, strict=True)
    ]


def _normalised(x: Value, epsilon: float) -> Value:
    """x divided by its length."""
    squares = ops.ReduceSum(x * x, [-1], keep_dims=True)
    return x / ops.Sqrt(squares + epsilon)


def _decay(order: "_Order", decay: Value, query: Value, gate: tuple[str, Value | None, Value | None, float]) -> Value:
    """The logarithms of the decay, [batch, T, heads, K or 1]."""
    raw = decay.astype(f32)
    if raw.rank == ranked(query, "the query") - 1:
        raw = ops.Unsqueeze(raw, -1)
    raw = order.apart(raw)
    kind, a_log, dt_bias, bound = gate
    if kind == "none":
        return raw
    require_choice("gate_activation", kind, ("none", "softplus", "qwen", "sigmoid", "kda"))
    if a_log is None or dt_bias is None:
        raise ModelError(f"GatedDeltaNet with gate_activation {kind} has no a_log or dt_bias", code="ML227")
    rate = ops.Exp(a_log[:, None])
    moved = raw + dt_bias.reshape([raw.size(2), -1])
    return -rate * ops.SoftPlus(moved) if kind in ("softplus", "qwen") else ops.Sigmoid(rate * moved) * bound


@dataclass
class _Order:
    """Sequences of one length: their number, None if the tensors have an axis for them."""

    batch: Any
    is_apart: bool

    def apart(self, x: Value) -> Value:
        """[tokens, ..] as [batch, T, ..]."""
        if self.is_apart:
            return x
        if self.batch == 1:
            return x[None]
        rest = [x.size(axis) for axis in range(1, len(x.type.dims))]
        return x.reshape([self.batch, divided(x.size(0), self.batch), *rest])

    def together(self, x: Value, like: Value) -> Value:
        """[batch, T, heads, V] as the query has its tokens."""
        if self.is_apart:
            return x
        rest = [x.size(axis) for axis in (2, 3)]
        return x.reshape([like.size(0), *rest])

    def zeroed(self, x: Value) -> Value:
        """Zeros in place of the tokens past the end of a sequence."""
        return x

    def lengths(self, x: Value) -> Any:
        """The number of tokens of each sequence, or of all, where `x` is [batch, T, ..]."""
        return x.size(1)


class _Ragged(_Order):
    """Sequences of different lengths."""

    def __init__(self, cumulative: Value) -> None:
        self.starts = cumulative[:-1]
        self.stops = cumulative[1:]
        super().__init__(self.starts.size(0), False)
        self._counts = self.stops - self.starts
        self._longest = ops.ReduceMax(self._counts, [0])
        steps = counted(self._longest, cumulative)[None]
        self._inside = steps < self._counts[:, None]
        self._rows = ops.Select(self._inside, self.starts[:, None] + steps, np.int64(0))

    def apart(self, x: Value) -> Value:
        return ops.Gather(x, self._rows, 0)

    def zeroed(self, x: Value) -> Value:
        return ops.Select(ops.Unsqueeze(self._inside, [2, 3]), x, np.float32(0))

    def lengths(self, x: Value) -> Any:
        return self._counts[:, None]

    def together(self, x: Value, like: Value) -> Value:
        tokens = counted(like.size(0), like)
        ended = tokens[:, None] >= self.stops[None]
        sequence = ops.ReduceSum(ops.Select(ended, np.int64(1), np.int64(0)), [1])
        step = tokens - ops.Gather(self.starts, sequence, 0)
        row = sequence * self._longest + step
        return ops.Gather(x.reshape([-1, x.size(2), x.size(3)]), row, 0)


def _order(query: Value, cumulative: Value | None, state: Value | None) -> "_Order":
    if cumulative is not None:
        return _Order(1, False) if cumulative.type.dims[0] == 2 else _Ragged(as_i64(cumulative))
    if ranked(query, "the query") == 4:
        return _Order(query.size(0), True)
    if state is None:
        raise ModelError("GatedDeltaNet has neither cu_seqlens nor initial_state", code="ML227")
    return _Order(state.size(0), False)


def _captured(order: _Order, tensors: list[Value | None], count: Value | None, capacity: int) -> Value:
    """[batch, ..]: the decays, keys and deltas of the first tokens of each sequence, zeros after their number."""
    decay, keys, deltas = tensors
    assert keys is not None and deltas is not None
    if not capacity or count is None:
        return ops.Broadcast(np.float32(0), joined([order.batch, 0], keys))
    slots = first_numbers(capacity)[None]
    limit = ops.Minimum(as_i64(count)[:, None], order.lengths(keys))
    is_captured = ops.Unsqueeze(ops.Less(slots, limit), [2, 3])
    last = keys.size(1)
    at = np.minimum(slots[0], last - 1) if isinstance(last, int) else ops.Minimum(last - 1, slots[0])
    kept = ops.Exp(decay) if decay is not None else None
    parts = []
    for each in (kept, keys, deltas):
        some = ops.Gather(deltas if each is None else each, at, 1)
        if each is None:  # a decay of 1 for each head
            some = ops.Broadcast(np.float32(1), joined([order.batch, capacity, deltas.size(2), 1], deltas))
        parts.append(ops.Select(is_captured, some, np.float32(0)).reshape([None, -1]))
    return ops.Concat(*parts, axis=1)


# -- causal convolutions


@translates("CausalConvWithState", since=1, domain=MICROSOFT)
def causal_convolution(
    x: AtLeast3, weight: AtLeast3, bias: Vector = None, past_state: AtLeast3 = None,
    *, activation: str = "none", channels_last: int = 0, dilation: Positive = 1, input_channel_offset: NotNegative = 0,
    input_channels: NotNegative = 0, ndim: int = 1, state_channels_last: int = -1, state_length: NotNegative = 0,
    state_update_capacity: NotNegative = 0, state_window: NotNegative = 0, node: Context,
):
    """x is [batch, channels, S], or [batch, S, channels..] with `channels_last`; the states have this layout too."""
    extended = input_channel_offset or input_channels or state_channels_last != -1 or state_length
    if ndim != 1 or state_window or extended or state_update_capacity or node.wants(2):
        raise UnsupportedError(
            "CausalConvWithState with ndim above 1, a window of states, or selected channels", code="ML316",
            hint="the CPU kernel of ONNX Runtime has none of them: export the model for the CPU provider",
        )
    if channels_last:
        return _of_rows(x, weight, bias, past_state, dilation, activation)
    long = _after(past_state, x, _width(weight, dilation), 2)
    return [_convolved(x, long, weight, bias, dilation, activation), long.cut(2, x.size(2))]


def _of_rows(
    x: Value, weight: Value, bias: Value | None, past: Value | None, dilation: int, activation: str
) -> list[Any]:
    """The outputs for channels after the positions, in any number of axes."""
    rank = ranked(x)
    channels = _channels(weight)
    rows = _rows(x, channels)
    long = _after(_rows(past, channels) if past is not None else None, rows, _width(weight, dilation), 1)
    columns, long_columns = (ops.Transpose(each, [0, 2, 1]) for each in (rows, long))
    y = ops.Transpose(_convolved(columns, long_columns, weight, bias, dilation, activation), [0, 2, 1])
    state = long.cut(1, rows.size(1))
    if rank == 3:
        return [y, state]
    tail = x.sizes[2:]
    return [ops.Reshape(each, ops.Concat([0, 0], tail, axis=0), special_zero=True) for each in (y, state)]


def _rows(x: Value, channels: int) -> Value:
    """[batch, S, channels..] as [batch, S, channels]."""
    return x if x.rank == 3 else x.reshape([None, None, channels])


def _width(weight: Value, dilation: int) -> int:
    """The number of positions of the state."""
    if dilation < 1:
        raise ModelError(f"the dilation of a causal convolution is {dilation}, not at least 1", code="ML227")
    return (known_size(weight.type.dims[2], "the size of the kernel", "declare the shape of the weight") - 1) * dilation


def _after(state: Value | None, x: Value, width: int, axis: int) -> Value:
    """The state and the input along an axis; without a state, zeros and the input."""
    if not width:
        return x
    if state is not None:
        return ops.Concat(state, x, axis=axis)
    before = [width if each == axis else 0 for each in range(3)]
    return ops.Pad(x, before, [0, 0, 0], number(x, 0))


def _convolved(x: Value, long: Value, weight: Value, bias: Value | None, dilation: int, activation: str) -> Value:
    """The positions of `long` [batch, channels, S] that have all taps in front of them: as many as `x` has."""
    require_choice("activation", activation, ("none", "silu", "swish"))
    if x.type.dims[2] == 0:
        return x
    at = WindowAttributes(dilations=(dilation,)).over(1)
    filters = grouped(weight, _channels(weight), at)
    y = ops.GroupConvolution(long, filters, dilations=at.dilations, **at.attributes())
    y = biased(y, bias, 1)
    return y if activation == "none" else ops.Swish(y)


def _channels(weight: Value) -> int:
    return known_size(weight.type.dims[0], "the number of channels", "declare the shape of the weight")


@translates("VarlenCausalConvWithState", since=1, domain=MICROSOFT, ignored="delta_offset group_size")
def packed_causal_convolution(
    x: Matrix, weight: Rank3, cumulative_sequence_length: Vector | Integers, bias: Vector = None,
    initial_state: Rank3 = None, capture_count=None, kernel_delta=None, previous_mask=None, *,
    activation: str = "none", delta_offset: int = 0, dilation: Positive = 1, group_size: Positive = 1,
    state_update_capacity: NotNegative = 0, node: Context,
):
    """x is [tokens, channels]; sequence i has the tokens from number i to number i + 1 of the cumulative lengths."""
    if initial_state is None:
        raise ModelError("VarlenCausalConvWithState has no input initial_state", code="ML227")
    if kernel_delta is not None or previous_mask is not None:
        raise UnsupportedError(
            "VarlenCausalConvWithState with weights of each token (kernel_delta)", code="ML316",
            hint="the CPU kernel of ONNX Runtime does not have them: export the model for the CPU provider",
        )
    packing = _Packing(x, as_i64(cumulative_sequence_length), initial_state, _width(weight, dilation))
    long = packing.with_states()
    columns = ops.Unsqueeze(ops.Transpose(long, [1, 0]), 0)
    y = ops.Transpose(ops.Squeeze(_convolved(columns, columns, weight, bias, dilation, activation), [0]), [1, 0])
    made: list[Any] = [packing.of_tokens(y), packing.ends(long)]
    if node.wants(2):
        made.append(_first_tokens(x, packing, capture_count, state_update_capacity))
    return made


class _Packing:
    """The layout of the tokens and the states."""

    def __init__(self, x: Value, cumulative: Value, state: Value, width: int) -> None:
        self.x, self.state, self.width = x, state, width
        self.starts, self.stops = cumulative[:-1], cumulative[1:]

    def with_states(self) -> Value:
        """The rows [state 0, sequence 0, state 1, sequence 1, ..] of channels."""
        if not self.width:
            return self.x
        channels = joined([-1, self.x.size(1)], self.x)
        states = ops.Reshape(ops.Transpose(self.state, [0, 2, 1]), channels)
        both = ops.Concat(self.x, states, axis=0)
        tokens, rows = self.x.size(0), both.size(0)
        begins = self._shifted(self.starts)
        is_state = _passed(begins, rows, self.x) - _passed(begins + np.int64(self.width), rows, self.x)
        before = ops.CumSum(is_state, 0, exclusive=True)
        source = ops.Select(ops.Equal(is_state, np.int64(0)), counted(rows, self.x) - before, before + tokens)
        return ops.Gather(both, source, 0)

    def _shifted(self, tokens: Value) -> Value:
        """[batch]: token numbers of the sequences, after the states of all sequences before."""
        return tokens + counted(tokens.size(0), self.x) * np.int64(self.width)

    def of_tokens(self, y: Value) -> Value:
        """The rows of the convolution that belong to tokens; the others have taps in two sequences."""
        if not self.width:
            return y
        tokens = self.x.size(0)
        before = _passed(self.stops, tokens, self.x) * np.int64(self.width)
        return ops.Gather(y, counted(tokens, self.x) + before, 0)

    def ends(self, long: Value) -> Value:
        """[batch, channels, width]: the last rows of each sequence."""
        if not self.width:
            return self.state
        rows = ops.Unsqueeze(self._shifted(self.stops), 1) + first_numbers(self.width)[None]
        return ops.Transpose(ops.Gather(long, rows, 0), [0, 2, 1])


def _passed(places: Value, rows: Length, like: Value) -> Value:
    """[rows]: how many of the places, which are at most `rows`, are not after each row."""
    empty = ops.Broadcast(np.int64(0), joined([rows + 1], like), graph=like.graph)
    ones = ops.Broadcast(np.int64(1), places.sizes, graph=like.graph)
    counts = ops.ScatterElementsUpdate12(empty, places, ones, 0, reduction="sum")
    return ops.CumSum(counts[:-1], 0)


def _first_tokens(x: Value, packing: _Packing, count: Value | None, capacity: int) -> Value:
    """[batch, capacity, channels]: the first tokens of each sequence, zeros after the number to be captured."""
    slots = first_numbers(capacity)[None]
    at = ops.Unsqueeze(packing.starts, 1) + slots
    inside = at < ops.Unsqueeze(packing.stops, 1)
    if count is not None:
        inside = inside & ops.Less(slots, ops.Unsqueeze(as_i64(count), 1))
    tokens = ops.Gather(x, ops.Select(inside, at, np.int64(0)), 0)
    return ops.Select(ops.Unsqueeze(inside, 2), tokens, number(x, 0))


@translates("CausalConvWithState", since=27)
def causal_conv_with_state(input, weight, bias=None, past_state=None, *, activation: str = "none"):
    """A causal convolution of each channel of [N, C, L] with its kernel [C, 1, K]; the state has K - 1 elements."""
    require_choice("activation", activation, ("none", "silu", "swish"))
    reach = weight.size(2) - 1
    if past_state is None:
        before = joined([0, 0, reach], input)
        whole = ops.Pad(input, before, np.zeros(3, np.int64), number(input, 0))
    else:
        whole = ops.Concat(past_state, input, axis=2)
    product = ops.GroupConvolution(
        whole, ops.Unsqueeze(weight, 1), strides=(1,), pads_begin=(0,), pads_end=(0,), dilations=(1,)
    )
    y = biased(product, bias, 1)
    # Counted from the end: an input may be shorter than the state.
    length = ops.Gather(whole.sizes, [2], 0)
    kept = whole[:, :, length - joined([reach], input) : length]
    return [y if activation == "none" else ops.Swish(y), kept]
