"""The scores of the next token, with the tokens that the inputs and attributes of a generating operator forbid or
penalise.

In the order of ONNX Runtime, on scores [N, vocabulary] of N sequences [N, L]:

    repetition_penalty      s < 0 ? s * penalty : s / penalty       for each token of the sequence
    no_repeat_ngram_size    the last token of each n-gram of the sequence that begins as the sequence ends
    vocab_mask              where it is 0
    prefix_vocab_mask       where it is 0, for the first new token
    min_length              the end token while the sequence is shorter
    temperature             s / temperature
    logits_processor        timestamps (generation_timestamps.py)

A forbidden token has the lowest finite score.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mo_loop.frontend.arrays import first_numbers
from mo_loop.frontend.ops.generation.decoders import vocabulary_of
from mo_loop.frontend.ops.generation.generation_inputs import LOWEST, Given, marked
from mo_loop.frontend.ops.generation.timestamps import Timestamps
from mo_loop.frontend.ops.shared import converted
from mo_loop.frontend.scope import Scope
from mo_loop.frontend.vocabulary import Value, ops
from mo_loop.graph.types import f32
from mo_loop.ops.lengths import as_i64, as_value, dimension, scalar


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


def _without(scores: Value, forbidden: Value) -> Value:
    return ops.Select(forbidden, LOWEST, scores)


def _is_one(value: Value) -> bool:
    return value.constant is not None and bool(np.all(value.constant == 1))
