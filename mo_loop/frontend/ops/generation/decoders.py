"""The decoders of generating operators: their inputs in the first step and in each later one.

A decoder only (GPT-2), with keys and values of a layer in one tensor [2, N, heads, T, width]:

    logits [N, S, V], present_0, ...  =  decoder (tokens [N, S], positions [N, S], mask [N, T], past_0, ...)

S is the length of the prompts in the first step, and 1 in the others. A padding token of a prompt has position 0 and
is not counted, and the mask hides it unless the operator has a mask of its own.
"""

from typing import Any

import numpy as np

from mo_loop.frontend.ops.generation.generation_inputs import filled, repeated
from mo_loop.frontend.ops.shared import converted
from mo_loop.frontend.scope import Scope
from mo_loop.frontend.vocabulary import Body, ModelError, UnsupportedError, Value, ops
from mo_loop.graph.types import ElementType, TensorType, f32, i32
from mo_loop.ops.lengths import dimension

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
        kept = ops.Convert(ops.NotEqual(prompts, np.int32(padding)), destination_type=i32)
        counted = ops.CumSum(kept, 1)
        positions = (counted - np.int32(1)) * kept
        mask = kept if mask is None else mask
        rows = dimension(prompts, 0)
        past = self.first.declared(PAST)
        none = filled(np.zeros((), past.dtype.numpy), prompts, 2, rows, past.dims[2], 0, past.dims[4])
        caches = [none] * (len(self.first.inputs) - PAST)
        logits, *presents = outputs_of(self.first, scope, [prompts, positions, mask, *caches])
        length = ops.ReduceSum(kept, [1], keep_dims=True)
        return prompts, logits, [length, self._longer(mask), *presents]

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
        return ops.Concat(mask, filled(np.int32(1), mask, dimension(mask, 0), 1), axis=1)


def _check_gpt(body: Body) -> None:
    if len(body.inputs) > len(body.outputs) + 2:
        raise UnsupportedError(
            "a decoder whose past and present share a buffer", code="ML316",
            hint="export the model for the CPU: without --past_present_share_buffer and without masked attention",
        )  # fmt: skip
    if len(body.inputs) < 4 or len(body.inputs) != len(body.outputs) + 2:
        found = f"{len(body.inputs)} inputs and {len(body.outputs)} outputs"
        raise ModelError(f"the decoder has {found}: it needs two more inputs than outputs, at least 4", code="ML226")
    past = body.declared(PAST)
    if not isinstance(past, TensorType) or past.rank != 5 or not all(isinstance(past.dims[at], int) for at in (2, 4)):
        raise ModelError(f"the decoder declares {past} for a cache, not [2, N, heads, T, width]", code="ML226")


def outputs_of(body: Body, scope: Scope, values: list[Value]) -> list[Value]:
    """The outputs of a decoder; of the logits the last ones of each sequence, as f32 [N, V]."""
    fed = [converted(value, _type(body, place) or value.dtype) for place, value in enumerate(values)]
    logits, *others = body.within(scope).inline(fed)
    if logits.rank is None:
        return [logits, *others]
    return [converted(ops.Gather(logits, -1, 1), f32), *others]


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
    return logits if logits.type.dims[-1] == vocabulary else ops.Slice(logits, [0], [vocabulary], [1], [-1])
