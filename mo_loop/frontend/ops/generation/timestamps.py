"""The rules for timestamps in texts of speech: logits_processor 1 of WhisperBeamSearch.

Tokens from `first` on are timestamps. Of scores [N, V] after sequences [N, L] it forbids, in the order of ONNX Runtime:

    always                                         the tokens for texts without timestamps and for language models
    a timestamp is before the last token           the tokens that begin a text, a translation and a transcription
    none is                                        timestamps after first + 50
    two timestamps are last, or the first one      timestamps
    one timestamp is last                          text: the tokens below the end token
    there are timestamps                           those before the last one; the same one after a complete pair
    timestamps are together the most probable      everything below `first`
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop.frontend.arrays import first_numbers
from mo_loop.frontend.ops.generation.generation_inputs import LOWEST
from mo_loop.frontend.ops.shared import converted, counted
from mo_loop.frontend.vocabulary import ModelError, Value, ops
from mo_loop.graph.types import i32
from mo_loop.ops.lengths import dimension

LATEST = 50
"""The number of the latest timestamp that can be the first one."""


@dataclass(frozen=True)
class Timestamps:
    """The tokens of special meaning; those that are None do not exist."""

    first: int | None
    end: int
    never: tuple[int | None, ...]
    only_before: tuple[int | None, ...]
    """Forbidden after the first timestamp."""

    def applied(self, scores: Value, sequences: Value) -> Value:
        """The scores [N, V] of the next token after sequences [N, L]."""
        size = scores.type.dims[1]
        if self.first is None or not 0 < self.first < size:
            raise ModelError(
                f"beginning_timestamp_token_id is {self.first}: with a logits_processor it must be a token above 0, "
                f"and there are {size}",
                code="ML227",
            )
        scores = _without(scores, self._forbidden(sequences, self.first, first_numbers(size, np.int32)[None]))
        return _preferring_timestamps(scores, self.first, size)

    def _forbidden(self, sequences: Value, first: int, tokens: Any) -> Value:
        """[N, V]"""
        is_time = sequences >= np.int32(first)
        numbers = converted(is_time, i32)
        number = ops.ReduceSum(numbers, [1], keep_dims=True)
        # A column before the sequences: there may be one token only.
        wide = ops.Pad(numbers, np.array([0, 1]), np.zeros(2, np.int64), np.int32(0), pad_mode="constant")
        ends, before = (ops.Gather(wide, [at], 1) > np.int32(0) for at in (-1, -2))
        is_begun = number > ops.Gather(numbers, [-1], 1)
        is_pair = before | ~is_begun
        is_open = ends & ~is_pair

        places = converted(counted(dimension(sequences, 1), sequences), i32)
        last = ops.ReduceMax(numbers * places, [1], keep_dims=True)
        latest = ops.GatherElements(sequences, last, axis=1)
        least = latest + ops.Select(is_open, np.int32(0), np.int32(1))

        times = tokens >= first
        rules = (
            (is_begun, _are(tokens, self.only_before)),
            (~is_begun, tokens > first + LATEST),
            (ends & is_pair, times),
            (is_open, tokens < self.end),
            (number > np.int32(0), ops.Less(tokens, least) & times),
        )
        forbidden: Any = _are(tokens, self.never)
        for applies, which in rules:
            forbidden = ops.LogicalOr(forbidden, applies & which)
        return forbidden


def _preferring_timestamps(scores: Value, first: int, size: int) -> Value:
    """The scores without text, where the sum of the probabilities of timestamps is above that of each text."""
    texts = ops.Slice(scores, [0], [first], [1], [1])
    times = ops.Slice(scores, [first], [size], [1], [1])
    top = ops.ReduceMax(times, [1], keep_dims=True)
    chances = ops.Select(times > LOWEST, ops.Exp(times - top), np.float32(0))
    # Without any timestamp this is -infinity.
    together = ops.Log(ops.ReduceSum(chances, [1], keep_dims=True)) + top
    is_time = together > ops.ReduceMax(texts, [1], keep_dims=True)
    is_text = first_numbers(size)[None] < first
    return _without(scores, is_time & is_text)


def _are(tokens: Any, some: tuple[int | None, ...]) -> Any:
    return np.isin(tokens, [each for each in some if each is not None])


def _without(scores: Value, forbidden: Value) -> Value:
    return ops.Select(forbidden, LOWEST, scores)
