"""The decoders and encoders of generating operators: their inputs in the first step and in each later one, lengths,
rows and padding.

A decoder only (GPT-2), with keys and values of a layer in one tensor [2, N, heads, T, width]:

    logits [N, S, V], present_0, ...  =  decoder (tokens [N, S], positions [N, S], mask [N, T], past_0, ...)

S is the length of the prompts in the first step, and 1 in the others. A padding token of a prompt has position 0 and
is not counted, and the mask hides it unless the operator has a mask of its own.

Encoders with decoders (T5): the encoder runs once for each prompt, its caches are the same in every step.

    logits, hidden, present_self ..., present_cross ...  =  encoder (ids [N, E], mask [N, E], start tokens [N, 1])
    present_cross ...                                    =  encoder (ids, mask)          # without the first step
    logits, present_self ...  =  decoder (tokens, mask, hidden, past_self ..., past_cross ...)       # hidden: optional

`tokens` are the newest ones [N, 1] if the decoder declares this dimension, else the whole sequences. Without a mask,
the padding tokens before a prompt are hidden, and no others.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from mo_loop.frontend.ops.shared import counted, full, number, repeated_numbers
from mo_loop.frontend.scope import Scope
from mo_loop.frontend.vocabulary import Body, Context, ModelError, UnsupportedError, Value, ops
from mo_loop.graph.types import ElementType, TensorType, f32, i32
from mo_loop.ops.front import Failed
from mo_loop.ops.lengths import as_value, joined

LOWEST = np.finfo(np.float32).min
"""The score of a token that must not be chosen, as in ONNX Runtime."""


class Given:
    """Values of the graph of a node, for the node itself and for the bodies of its loop."""

    def __init__(self, node: Context, values: Mapping[str, Value | None]) -> None:
        self.scope = Scope(node.graph, node.scope, node.scope.path)
        self._path = node.path
        for name, value in values.items():
            self.add(name, value)

    def add(self, name: str, value: Value | None) -> None:
        if value is not None:
            self.scope.values[f"{self._path}:{name}"] = value

    def find(self, scope: Scope, name: str) -> Value | None:
        """The value in `scope`, which is that of the node or of a body; None if it is not given."""
        return scope.find(f"{self._path}:{name}")

    def at(self, scope: Scope, name: str) -> Value:
        return scope[f"{self._path}:{name}"]


def filled(item: Any, like: Value, *dims: Any) -> Value:
    """A tensor of one number; the dimensions are ints and scalar Values."""
    array = np.asarray(item)
    if all(isinstance(each, int) for each in dims):
        return ops.Constant(full(dims, array, array.dtype), graph=like.graph)
    return ops.Broadcast(array, joined(dims, like))


def repeated(x: Value, count: Any, axis: int = 0) -> Value:
    """Each slice along an axis `count` times, one after another: a prompt for each of its beams."""
    if count == 1:
        return x
    rows = x.size(axis)
    if isinstance(rows, int) and isinstance(count, int):
        return ops.Gather(x, repeated_numbers(rows, count), axis)
    column = ops.Unsqueeze(counted(rows, x), 1)
    return ops.Gather(x, ops.Broadcast(column, joined([rows, count], x)).reshape([-1]), axis)


def marked(tokens: Value, vocabulary: int) -> Value:
    """[N, vocabulary] of boolean: the numbers in tokens [N, L]. Larger numbers are left out."""
    rows = tokens.size(0)
    inside = ops.Minimum(tokens, np.array(vocabulary, np.int32))
    ones = inside * np.int32(0) + np.int32(1)
    counted = ops.ScatterElementsUpdate(filled(np.int32(0), tokens, rows, vocabulary + 1), inside, ones, 1)
    return counted[:, :vocabulary] > np.int32(0)


def padded(sequences: Value, length: Any, item: int) -> Value:
    """[N, L] with a number appended until L is `length`."""
    missing = as_value(length, sequences.graph) - as_value(sequences.size(1), sequences.graph)
    ends = joined([0, missing], sequences)
    fill = np.array(item, np.int32)
    longer = ops.Pad(sequences, np.zeros(2, np.int64), ends, fill, pad_mode="constant")
    if not isinstance(length, int) or longer.type.dims[1] == length:
        return longer
    # The length is known, but not to follow from the one before and the pads.
    return longer.reshape([None, length])


def all_true(flags: Value) -> Value:
    """A scalar."""
    return ops.ReduceLogicalAnd(flags, np.arange(flags.type.known_rank), keep_dims=False)


def not_translated(values: Sequence[Value]) -> Value | None:
    """A value of unknown rank, because a node that computes it could not be translated; that node reports why."""
    unknown = next((value for value in values if value.rank is None), None)
    if unknown is not None and not unknown.graph.of(Failed):
        raise UnsupportedError("a decoder needs logits and caches of known rank", code="ML314")
    return unknown


PAST = 3
"""The number of the first cache among the inputs of a GPT-2 decoder."""


class Gpt:
    """A decoder of the GPT-2 kind; its states are the positions, the mask and the caches."""

    def __init__(self, decoder: Body, first: Body | None) -> None:
        """`first` computes the first step, if it is given."""
        self.decoder = decoder
        self.first = first or decoder
        for body in (self.decoder, self.first):
            _check_gpt(body)

    def start(self, scope: Scope, prompts: Value, mask: Value | None, padding: int) -> tuple[Value, Value, list[Value]]:
        """The sequences [N, S] to continue, the logits [N, V] of the first new token, and the states after it."""
        kept = ops.NotEqual(prompts, np.int32(padding)).astype(i32)
        positions = (ops.CumSum(kept, 1) - np.int32(1)) * kept
        mask = kept if mask is None else mask
        rows = prompts.size(0)
        past = self.first.declared(PAST)
        none = filled(number(past, 0), prompts, 2, rows, past.dims[2], 0, past.dims[4])
        caches = [none] * (len(self.first.inputs) - PAST)
        logits, *presents = outputs_of(self.first, scope, [prompts, positions, mask, *caches])
        return prompts, logits, [ops.ReduceSum(kept, [1], keep_dims=True), self._longer(mask), *presents]

    def step(self, scope: Scope, tokens: Value, sequences: Value, states: list[Value]) -> tuple[Value, list[Value]]:
        """The logits [N, V] after `tokens` [N, 1], the last of `sequences`, and the next states."""
        positions, mask, *caches = states
        logits, *presents = outputs_of(self.decoder, scope, [tokens, positions, mask, *caches])
        return logits, [positions + np.int32(1), self._longer(mask), *presents]

    def for_beams(self, states: list[Value], beams: Any) -> list[Value]:
        """The states of N prompts as those of N * M beams."""
        positions, mask, *caches = states
        return [repeated(positions, beams), repeated(mask, beams), *(repeated(each, beams, 1) for each in caches)]

    def picked(self, states: list[Value], beams: Value) -> list[Value]:
        """The states of the beams that continue. Those of a prompt have the same positions and mask."""
        positions, mask, *caches = states
        return [positions, mask, *(ops.Gather(each, beams, 1) for each in caches)]

    def _longer(self, mask: Value) -> Value:
        """One more token is seen."""
        return ops.Concat(mask, filled(np.int32(1), mask, mask.size(0), 1), axis=1)


def _check_gpt(body: Body) -> None:
    if len(body.inputs) > len(body.outputs) + 2:
        raise UnsupportedError(
            "a decoder whose past and present share a buffer", code="ML316",
            hint="export the model for the CPU: without --past_present_share_buffer and without masked attention",
        )
    if len(body.inputs) < 4 or len(body.inputs) != len(body.outputs) + 2:
        found = f"{len(body.inputs)} inputs and {len(body.outputs)} outputs"
        raise ModelError(f"the decoder has {found}: it needs two more inputs than outputs, at least 4", code="ML226")
    past = body.declared(PAST)
    if not isinstance(past, TensorType) or past.rank != 5 or not all(isinstance(past.dims[at], int) for at in (2, 4)):
        raise ModelError(f"the decoder declares {past} for a cache, not [2, N, heads, T, width]", code="ML226")


def outputs_of(body: Body, scope: Scope, values: list[Value]) -> list[Value]:
    """The outputs of a decoder; of the logits the last ones of each sequence, as f32 [N, V]."""
    fed = [value.astype(_type(body, place) or value.dtype) for place, value in enumerate(values)]
    logits, *others = body.within(scope).inline(fed)
    return [logits, *others] if logits.rank is None else [ops.Gather(logits, -1, 1).astype(f32), *others]


def _type(body: Body, place: int) -> ElementType | None:
    declared: Any = body.declared(place)
    return declared.dtype if isinstance(declared, TensorType) else None


def vocabulary_of(logits: Value, given: int) -> int:
    """The number of tokens: the attribute, or else the size of the logits."""
    size = logits.type.dims[-1]
    if not isinstance(size, int):
        raise ModelError("the decoder's logits have no known last dimension", code="ML226")
    if given > size:
        raise ModelError(f"vocab_size is {given}, but the decoder has {size} logits", code="ML227")
    return given if given > 0 else size


def scores_of(logits: Value, vocabulary: int) -> Value:
    """The logits of the first `vocabulary` tokens."""
    return logits if logits.type.dims[-1] == vocabulary else logits[..., :vocabulary]


class EncoderDecoder:
    """An encoder and its decoder; the states are the caches of the self attention."""

    has_mask = True
    """Whether the decoder reads the mask of the encoder."""

    def __init__(self, encoder: Body | None, decoder: Body, given: Given, beams: Any, first_token: int) -> None:
        if encoder is None:
            raise ModelError("an encoder is missing", code="ML227")
        self.encoder, self.decoder, self.given = encoder, decoder, given
        self.beams, self.first_token = beams, first_token
        others = 1 + self.has_mask
        self.has_hidden = decoder.inputs[others : others + 1] == ["encoder_hidden_states"]
        self.layers, rest = divmod(len(decoder.inputs) - others - self.has_hidden, 4)
        if rest:
            raise UnsupportedError(
                f"a decoder of {len(decoder.inputs)} inputs: past and present share a buffer", code="ML316",
                hint="export the model for the CPU: without --past_present_share_buffer and without masked attention",
            )
        outputs = 2 + 4 * self.layers if self._makes_first_step() else 2 * self.layers
        if self.layers < 1 or len(decoder.outputs) != 1 + 2 * self.layers or len(encoder.outputs) != outputs:
            found = f"{len(decoder.inputs)} inputs and {len(decoder.outputs)} outputs"
            raise ModelError(
                f"the decoder has {found}, the encoder {len(encoder.outputs)} outputs: they do not belong together",
                code="ML226",
            )

    def start(self, scope: Scope, prompts: Value, mask: Value | None, padding: int) -> tuple[Value, Value, list[Value]]:
        """The sequences [N, 1] to continue, the logits [N, V] of the first new token, and the states after it."""
        if mask is None:  # 1 from the first token on that is not padding, else 0
            mask = ops.Minimum(ops.CumSum(ops.NotEqual(prompts, np.int32(padding)).astype(i32), 1), np.int32(1))
        begun = self.first_tokens(prompts)
        if self._makes_first_step():
            return self.first_step(scope, [prompts, mask, begun])
        if self.has_hidden:
            raise ModelError("the decoder reads encoder_hidden_states, which the encoder does not make", code="ML226")
        cross = self.encoder.within(scope).inline([prompts, mask])
        declared: Any = self.decoder.declared(2)
        if not isinstance(declared, TensorType) or declared.rank != 4 or declared.dtype is None:
            raise ModelError(f"the decoder declares {declared} for a cache, not [N, heads, T, width]", code="ML226")
        sizes = prompts.size(0), declared.dims[1], 0, declared.dims[3]
        none = filled(np.zeros((), declared.dtype.numpy), prompts, *sizes)
        logits, *states = outputs_of(self.decoder, scope, [begun, mask, *[none] * (2 * self.layers), *cross])
        self._keep([mask, *cross])
        return begun, logits, states

    def first_tokens(self, prompts: Value) -> Value:
        """decoder_start_token_id for each prompt, [N, 1]."""
        if self.first_token < 0:
            raise ModelError("decoder_start_token_id is missing", code="ML227")
        return filled(np.int32(self.first_token), prompts, prompts.size(0), 1)

    def first_step(self, scope: Scope, fed: list[Value]) -> tuple[Value, Value, list[Value]]:
        """The result of `start`, for an encoder with these inputs: the prompts, perhaps a mask, the first tokens."""
        _, *mask, begun = fed
        logits, hidden, *caches = outputs_of(self.encoder, scope, fed)
        states, cross = caches[: 2 * self.layers], caches[2 * self.layers :]
        self._keep([*mask, *[hidden] * self.has_hidden, *cross])
        return begun, logits, states

    def step(self, scope: Scope, tokens: Value, sequences: Value, states: list[Value]) -> tuple[Value, list[Value]]:
        """The logits [N, V] after `tokens` [N, 1], the last of `sequences`, and the next states."""
        kept = [self.given.at(scope, f"encoded {place}") for place in range(self._kept)]
        others = self.has_mask + self.has_hidden
        declared = self.decoder.declared(0)
        reads_last = isinstance(declared, TensorType) and declared.rank == 2 and declared.dims[1] == 1
        fed = [tokens if reads_last else sequences, *kept[:others], *states, *kept[others:]]
        logits, *presents = outputs_of(self.decoder, scope, fed)
        return logits, presents

    def for_beams(self, states: list[Value], beams: Any) -> list[Value]:
        """The states of N prompts as those of N * M beams."""
        return [repeated(each, beams) for each in states]

    def picked(self, states: list[Value], beams: Value) -> list[Value]:
        """The states of the beams that continue."""
        return [ops.Gather(each, beams, 0) for each in states]

    def _makes_first_step(self) -> bool:
        return len(self.encoder.inputs) == 2 + self.has_mask

    def _keep(self, values: list[Value]) -> None:
        """Let the body read the results of the encoder, for each beam: mask, hidden states, caches."""
        self._kept = len(values)
        for place, value in enumerate(values):
            self.given.add(f"encoded {place}", value if value.rank is None else repeated(value, self.beams))


class Whisper(EncoderDecoder):
    """An encoder of audio features and its decoder, without masks."""

    has_mask = False

    def begin(self, scope: Scope, features: Value, tokens: Value | None) -> tuple[Value, Value, list[Value]]:
        """The sequences [N, S] to continue, the logits [N, V] of the first new token, and the states after it."""
        if len(self.encoder.inputs) != 2:
            found = len(self.encoder.inputs)
            raise ModelError(f"the encoder has {found} inputs, not features and tokens", code="ML226")
        begun = self.first_tokens(features) if tokens is None else tokens.astype(i32)
        return self.first_step(scope, [features, begun])
