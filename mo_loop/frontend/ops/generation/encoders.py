"""Encoders with decoders (T5): the encoder runs once for each prompt, its caches are the same in every step.

    logits, hidden, present_self ..., present_cross ...  =  encoder (ids [N, E], mask [N, E], start tokens [N, 1])
    present_cross ...                                    =  encoder (ids, mask)          # without the first step
    logits, present_self ...  =  decoder (tokens, mask, hidden, past_self ..., past_cross ...)       # hidden: optional

`tokens` are the newest ones [N, 1] if the decoder declares this dimension, else the whole sequences. Without a mask,
the padding tokens before a prompt are hidden, and no others.
"""

from typing import Any

import numpy as np

from mo_loop.frontend.ops.generation.decoders import outputs_of
from mo_loop.frontend.ops.generation.generation_inputs import Given, filled, repeated
from mo_loop.frontend.scope import Scope
from mo_loop.frontend.vocabulary import Body, ModelError, UnsupportedError, Value, ops
from mo_loop.graph.types import TensorType, i32
from mo_loop.ops.lengths import dimension


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
            )  # fmt: skip
        outputs = 2 + 4 * self.layers if self._makes_first_step() else 2 * self.layers
        if self.layers < 1 or len(decoder.outputs) != 1 + 2 * self.layers or len(encoder.outputs) != outputs:
            found = f"{len(decoder.inputs)} inputs and {len(decoder.outputs)} outputs"
            raise ModelError(
                f"the decoder has {found}, the encoder {len(encoder.outputs)} outputs: they do not belong together",
                code="ML226",
            )

    def start(self, scope: Scope, prompts: Value, mask: Value | None, padding: int) -> tuple[Value, Value, list[Value]]:
        """The sequences [N, 1] to continue, the logits [N, V] of the first new token, and the states after it."""
        mask = _left_padding(prompts, padding) if mask is None else mask
        begun = self.first_tokens(prompts)
        if self._makes_first_step():
            return self.first_step(scope, [prompts, mask, begun])
        if self.has_hidden:
            raise ModelError("the decoder reads encoder_hidden_states, which the encoder does not make", code="ML226")
        cross = self.encoder.within(scope).inline([prompts, mask])
        declared: Any = self.decoder.declared(2)
        if not isinstance(declared, TensorType) or declared.rank != 4 or declared.dtype is None:
            raise ModelError(f"the decoder declares {declared} for a cache, not [N, heads, T, width]", code="ML226")
        sizes = dimension(prompts, 0), declared.dims[1], 0, declared.dims[3]
        none = filled(np.zeros((), declared.dtype.numpy), prompts, *sizes)
        logits, *states = outputs_of(self.decoder, scope, [begun, mask, *[none] * (2 * self.layers), *cross])
        self._keep([mask, *cross])
        return begun, logits, states

    def first_tokens(self, prompts: Value) -> Value:
        """decoder_start_token_id for each prompt, [N, 1]."""
        if self.first_token < 0:
            raise ModelError("decoder_start_token_id is missing", code="ML227")
        return filled(np.int32(self.first_token), prompts, dimension(prompts, 0), 1)

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


def _left_padding(prompts: Value, padding: int) -> Value:
    """1 from the first token on that is not padding, else 0."""
    kept = ops.Convert(ops.NotEqual(prompts, np.int32(padding)), destination_type=i32)
    return ops.Minimum(ops.CumSum(kept, 1), np.int32(1))
