"""The scores of the next token, with the tokens that the inputs and attributes of a generating operator forbid or
penalise.

In the order of ONNX Runtime, on scores [N, vocabulary] of N sequences [N, L]:

    repetition_penalty      s < 0 ? s * penalty : s / penalty       for each token of the sequence
    no_repeat_ngram_size    the last token of each n-gram of the sequence that begins as the sequence ends
    vocab_mask              where it is 0
    prefix_vocab_mask       where it is 0, for the first new token
    min_length              the end token while the sequence is shorter
    temperature             s / temperature
    logits_processor        timestamps

A forbidden token has the lowest finite score.

logits_processor 1 of WhisperBeamSearch has the rules for timestamps in texts of speech. Tokens from `first` on are
timestamps. Of scores [N, V] after sequences [N, L] it forbids, in the order of ONNX Runtime:

    always                                         the tokens for texts without timestamps and for language models
    a timestamp is before the last token           the tokens that begin a text, a translation and a transcription
    none is                                        timestamps after first + 50
    two timestamps are last, or the first one      timestamps
    one timestamp is last                          text: the tokens below the end token
    there are timestamps                           those before the last one; the same one after a complete pair
    timestamps are together the most probable      everything below `first`
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mo_loop.frontend.arrays import first_numbers
from mo_loop.frontend.ops.generation.decoders import LOWEST, Given, marked, vocabulary_of
from mo_loop.frontend.ops.shared import converted, counted
from mo_loop.frontend.scope import Scope
from mo_loop.frontend.vocabulary import ModelError, Value, ops
from mo_loop.graph.types import f32, i32
from mo_loop.ops.lengths import as_i64, as_value, dimension, scalar

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


@dataclass(frozen=True)
class Rules:
    """The rules that change the scores, with the inputs `given` by name."""

    given: Given
    end: int
    ngram: int
    vocabulary: int
    """The number of tokens; the attribute vocab_size until `of` has seen the logits."""
    temperature: float = 1.0
    timestamps: Timestamps | None = None
    """Applied where the input logits_processor is 1."""

    def of(self, logits: Value) -> "Rules":
        """The same for logits of a known size."""
        return replace(self, vocabulary=vocabulary_of(logits, self.vocabulary))

    def applied(self, scope: Scope, scores: Value, sequences: Value, is_first: bool = False) -> Value:
        """The scores of the next token after `sequences`, in the graph of `scope`."""
        penalty = self.given.find(scope, "repetition_penalty")
        if penalty is not None and not _is_one(penalty):
            scores = self._penalised(scores, sequences, scalar(converted(penalty, f32)))
        if self.ngram > 0:
            scores = _without(scores, self._repeating(sequences))
        scores = self._masked(scope, scores, "vocab_mask")
        if is_first:
            scores = self._masked(scope, scores, "prefix_vocab_mask")
        scores = self._long_enough(scope, scores, sequences)
        return self._timed(scope, self._tempered(scope, scores), sequences)

    def _tempered(self, scope: Scope, scores: Value) -> Value:
        given = self.given.find(scope, "temperature")
        if given is not None and not _is_one(given):
            number = scalar(converted(given, f32))
            return scores / ops.Select(number > np.float32(0), number, np.float32(1))
        if self.temperature <= 0 or self.temperature == 1:
            return scores
        return scores / np.float32(self.temperature)

    def _timed(self, scope: Scope, scores: Value, sequences: Value) -> Value:
        processor = self.given.find(scope, "logits_processor")
        if self.timestamps is None or processor is None:
            return scores
        timed = self.timestamps.applied(scores, sequences)
        if processor.type.integers is not None:
            return timed
        return ops.Select(ops.Equal(scalar(processor), np.array(1, processor.dtype.numpy)), timed, scores)

    def _penalised(self, scores: Value, sequences: Value, penalty: Value) -> Value:
        less = ops.Select(scores < np.float32(0), scores * penalty, scores / penalty)
        return ops.Select(marked(sequences, self.vocabulary), less, scores)

    def _repeating(self, sequences: Value) -> Value:
        """[N, vocabulary]: the tokens that would repeat an n-gram."""
        rest = self.ngram - 1
        if not rest:
            return marked(sequences, self.vocabulary)
        # -1 before the sequences makes as many n-grams as tokens; an n-gram with -1 is never the end of a sequence.
        wide = ops.Pad(sequences, np.array([0, rest]), np.zeros(2, np.int64), np.int32(-1), pad_mode="constant")
        same: Any = None
        for place in range(rest):
            pieces = ops.Slice(wide, [place], [place - rest], [1], [1])
            ending = ops.Slice(wide, [place - rest], [place - rest + 1 or 2**30], [1], [1])
            equal = ops.Equal(pieces, ending)
            same = equal if same is None else same & equal
        return marked(ops.Select(same, sequences, np.int32(self.vocabulary)), self.vocabulary)

    def _masked(self, scope: Scope, scores: Value, name: str) -> Value:
        mask = self.given.find(scope, name)
        return scores if mask is None else _without(scores, ops.Equal(mask, np.array(0, mask.dtype.numpy)))

    def _long_enough(self, scope: Scope, scores: Value, sequences: Value) -> Value:
        least = self.given.find(scope, "min_length")
        if least is None or (least.type.integers or (1,))[0] <= 0:
            return scores
        is_short = as_value(dimension(sequences, 1), scores.graph) < scalar(as_i64(least))
        end = first_numbers(self.vocabulary) == self.end
        return _without(scores, is_short & end[None])




def _is_one(value: Value) -> bool:
    return value.constant is not None and bool(np.all(value.constant == 1))
