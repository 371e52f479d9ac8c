"""CausalConvWithState and VarlenCausalConvWithState: a convolution of each channel over its past.

    y[t] = activation (bias + sum over j of weight[j] * x[t - (K - 1 - j) * dilation])

The positions before the first one are the state, which has (K - 1) * dilation of them. The new state has the last
ones. Sequences of different lengths are packed into [tokens, channels]; each is convolved with its state in front:

    [state 0, sequence 0, state 1, sequence 1, ..]
"""

from typing import Any

import numpy as np

from mo_loop.frontend.ops.images.convolution import WindowAttributes, biased, grouped
from mo_loop.frontend.ops.linear import reshaped
from mo_loop.frontend.ops.shared import counted, first_numbers, number, ranked, require_choice
from mo_loop.frontend.vocabulary import MICROSOFT, Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.ops.lengths import Length, as_i64, joined
from mo_loop.ops.ranges import AtLeast3, Integers, Matrix, NotNegative, Positive, Rank3, Vector


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
    return [_convolved(x, long, weight, bias, dilation, activation), _last(long, x, 2)]


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
    state = _last(long, rows, 1)
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
    taps = weight.type.dims[2]
    if not isinstance(taps, int):
        raise UnsupportedError(
            "the size of the kernel is known only at run time", code="ML314", hint="declare the shape of the weight",
        )
    return (taps - 1) * dilation


def _after(state: Value | None, x: Value, width: int, axis: int) -> Value:
    """The state and the input along an axis; without a state, zeros and the input."""
    if not width:
        return x
    if state is not None:
        return ops.Concat(state, x, axis=axis)
    before = [width if each == axis else 0 for each in range(3)]
    return ops.Pad(x, before, [0, 0, 0], number(x, 0))


def _last(long: Value, x: Value, axis: int) -> Value:
    """The positions after as many as `x` has: the new state."""
    return long.cut(axis, x.size(axis))


def _convolved(x: Value, long: Value, weight: Value, bias: Value | None, dilation: int, activation: str) -> Value:
    """The positions of `long` [batch, channels, S] that have all taps in front of them: as many as `x` has."""
    require_choice("activation", activation, ("none", "silu", "swish"))
    if x.type.dims[2] == 0:
        return x
    at = WindowAttributes(dilations=(dilation,)).over(1)
    filters = grouped(weight, _channels(weight), at)
    y = ops.GroupConvolution(long, filters, dilations=at.dilations, **at.attributes())
    if bias is not None:
        y = y + reshaped(bias, [1, -1, 1])
    return y if activation == "none" else ops.Swish(y)


def _channels(weight: Value) -> int:
    channels = weight.type.dims[0]
    if not isinstance(channels, int):
        raise UnsupportedError(
            "the number of channels is known only at run time", code="ML314", hint="declare the shape of the weight",
        )
    return channels


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
        made.append(_captured(x, packing, capture_count, state_update_capacity))
    return made


class _Packing:
    """The layout of the tokens and the states."""

    def __init__(self, x: Value, cumulative: Value, state: Value, width: int) -> None:
        self.x, self.state, self.width = x, state, width
        self.starts = cumulative[:-1]
        self.stops = cumulative[1:]

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


def _captured(x: Value, packing: _Packing, count: Value | None, capacity: int) -> Value:
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
