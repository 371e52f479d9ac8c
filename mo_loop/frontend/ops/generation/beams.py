"""BeamSearch: the sequences of the highest sums of log probabilities, several of each prompt at a time.

    tokens, caches = first step (prompts), for each beam
    Loop (max_length - S - 1, not all finished) <states: beams, ended sequences, caches> {
        logits, caches = decoder (tokens, caches)
        scores = log_softmax (logits), restricted, + sum of the beam                      [N * M, V]
        the 2 M best of a prompt: an end token among the first M ends a sequence, the first M others continue
        finished = M sequences have ended, and none that continues can become better (early_stopping: in any case)
    }

The score of a sequence is its sum / length ** length_penalty; the beams that continue count at the end as well.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from mo_loop.frontend.ops.generation.decoders import scores_of
from mo_loop.frontend.ops.generation.generation_inputs import LOWEST, Given, filled, padded
from mo_loop.frontend.ops.generation.token_scores import Rules
from mo_loop.frontend.ops.ranking import top
from mo_loop.frontend.ops.shared import converted, counted
from mo_loop.frontend.scope import Scope
from mo_loop.frontend.vocabulary import Value, ops
from mo_loop.graph.types import f32, i32
from mo_loop.ops.lengths import as_value, dimension, joined, scalar

NONE = np.float32(-np.inf)
"""The score of a sequence that does not exist."""


class Beams(NamedTuple):
    """M beams of N prompts, and the best M sequences of each that have ended."""

    tokens: Value
    """The newest tokens, [N * M, 1]."""
    sequences: Value
    """[N * M, L]"""
    sums: Value
    """The sum of each beam, [N, M]."""
    finished: Value
    """Whether a prompt is done, [N, 1]."""
    scores: Value
    """The scores of the ended sequences, the best first, [N, M]."""
    ended: Value
    """The ended sequences, padded, [N, M, max_length]."""
    number: Value
    """The number of sequences, [N, 1]."""


@dataclass(frozen=True)
class Search:
    """One step of the search, in the graph of a scope."""

    given: Given
    rules: Rules
    padding: int
    is_early: bool

    def start(self, sequences: Value, prompts: Any, beams: Any, limit: Any) -> Beams:
        """Beams that hold `sequences` [N * M, L]; all but the first of a prompt are too bad to be chosen."""
        is_other = converted(counted(beams, sequences) > np.int64(0), f32)
        others = is_other * np.float32(-1e9)
        sums = ops.Broadcast(others, joined([prompts, beams], sequences))
        return Beams(
            filled(np.int32(0), sequences, prompts * beams, 1), sequences, sums,
            filled(np.zeros((), np.bool_), sequences, prompts, 1), filled(NONE, sequences, prompts, beams),
            filled(np.int32(self.padding), sequences, prompts, beams, limit),
            filled(np.int32(0), sequences, prompts, 1),
        )  # fmt: skip

    def step(self, scope: Scope, logits: Value, beams: Beams, is_first: bool = False) -> tuple[Beams, Value, Value]:
        """The beams after logits [N * M, V], the beams that they continue [N * M], and all scores [N, M, V]."""
        size, width = self.rules.vocabulary, dimension(beams.sums, 1)
        chances = ops.LogSoftmax(scores_of(logits, size), axis=1)
        chances = self.rules.applied(scope, chances, beams.sequences, is_first)
        chances = chances + ops.Reshape(beams.sums, [-1, 1])
        table = ops.Reshape(chances, joined([-1, width * size], logits), special_zero=False)
        best, places = _top(table, width * 2)
        source = places // np.int32(size)
        tokens = places - source * np.int32(size)
        source = source + _starts(beams.sums)
        ends = ops.Equal(tokens, np.int32(self.rules.end))

        stay = _continuing(ends, width)
        sums, following, continued = (ops.GatherElements(each, stay, axis=1) for each in (best, tokens, source))
        finished = beams.finished
        continued = ops.Reshape(ops.Select(finished, np.int32(0), continued), [-1])
        following = ops.Reshape(ops.Select(finished, np.int32(self.padding), following), [-1, 1])
        sequences = ops.Concat(ops.Gather(beams.sequences, continued, 0), following, axis=1)

        first = joined([width], logits)
        leading = (ops.Slice(each, [0], first, [1], [1]) for each in (ends, source, best))
        best_ends, best_source, best_sums = leading
        new = best_ends & ~finished
        scores = ops.Select(new, self._score(scope, best_sums, beams.sequences), NONE)
        kept = self._with(beams, scores, beams.sequences, ops.Reshape(best_source, [-1]))
        added = ops.ReduceSum(converted(new, i32), [1], keep_dims=True)
        number = ops.Minimum(beams.number + added, converted(as_value(width, logits.graph), i32))
        is_done = ops.Equal(number, converted(as_value(width, logits.graph), i32))
        if not self.is_early:
            bound = self._score(scope, _compared(best, beams.sums), beams.sequences)
            worst = ops.Gather(kept[0], [-1], 1)
            is_done = is_done & (worst >= bound)
        after = Beams(
            following, sequences, ops.Select(finished, np.float32(0), sums),
            finished | is_done, *kept, number,
        )  # fmt: skip
        # ONNX Runtime continues with other numbers where a prompt is finished.
        shown = ops.Select(finished, np.float32(0), table)
        shown = ops.Reshape(shown, joined([-1, width, size], logits), special_zero=False)
        return after, self._caches(continued, finished, beams.sums), shown

    def _caches(self, continued: Value, finished: Value, sums: Value) -> Value:
        """The caches that the next step reads. Those of finished prompts matter: their scores decide about others.

        ONNX Runtime gives a finished prompt the cache of the first beam of all, but with one beam its own.
        """
        width = dimension(sums, 1)
        if isinstance(width, int):
            return continued
        own = ops.Reshape(ops.Broadcast(_starts(sums), ops.ShapeOf(sums)), [-1])
        return ops.Select(ops.Equal(width, np.int64(1)), own, continued)

    def final(self, scope: Scope, beams: Beams) -> tuple[Value, Value]:
        """The scores [N, M] and the sequences [N, M, max_length] with the beams of the prompts that are not done."""
        scores = ops.Select(beams.finished, NONE, self._score(scope, beams.sums, beams.sequences))
        best, texts = self._with(beams, scores, beams.sequences, None)
        return ops.Select(best <= LOWEST, NONE, best), texts

    def _with(self, beams: Beams, scores: Value, sequences: Value, rows: Value | None) -> tuple[Value, Value]:
        """The best of the ended sequences and others: `rows` of `sequences`, in their order by default."""
        longer = padded(sequences, dimension(beams.ended, 2), self.padding)
        texts = longer if rows is None else ops.Gather(longer, rows, 0)
        width, limit = dimension(beams.ended, 1), dimension(beams.ended, 2)
        texts = ops.Reshape(texts, joined([-1, width, limit], texts), special_zero=False)
        both = ops.Concat(beams.scores, scores, axis=1)
        best, places = _top(both, width)
        # Without batch dimensions: the runtime crashes for one batch of them.
        rows = ops.Reshape(ops.Concat(beams.ended, texts, axis=1), joined([-1, limit], texts), special_zero=False)
        places = places + _starts(both)
        return best, ops.Gather(rows, places, 0)

    def _score(self, scope: Scope, sums: Value, sequences: Value) -> Value:
        """The sums of sequences [N * M, L], divided by L ** length_penalty."""
        penalty = self.given.find(scope, "length_penalty")
        length = converted(as_value(dimension(sequences, 1), sums.graph), f32)
        if penalty is not None:
            length = ops.Power(length, scalar(converted(penalty, f32)))
        # Of forbidden tokens the sum can be -infinity, and such a sequence counts more than none.
        return ops.Maximum(sums / length, LOWEST)


def _top(x: Value, count: Any) -> tuple[Value, Value]:
    """The largest of each row, and where they are, as i32."""
    best, places = top(x, count, 1, "max", i32)
    return best, places


def _starts(sums: Value) -> Value:
    """The number of the first beam of each prompt, [N, 1] of i32."""
    prompts, width = dimension(sums, 0), dimension(sums, 1)
    firsts = counted(prompts, sums) * as_value(width, sums.graph)
    return converted(ops.Unsqueeze(firsts, 1), i32)


def _compared(best: Value, sums: Value) -> Value:
    """The sum that decides whether a prompt can become better, [N, 1].

    As in ONNX Runtime, prompt n is compared with the best of the 2 M candidates from number n * M on in the list of
    all prompts, which are 2 M for each prompt: for the first prompt with its own, for others with those before it.
    """
    window = converted(counted(dimension(best, 1), best), i32)
    places = _starts(sums) + window
    return ops.ReduceMax(ops.Gather(ops.Reshape(best, [-1]), places, 0), [1], keep_dims=True)


def _continuing(ends: Value, width: Any) -> Value:
    """The places of the first `width` False of each row, in their order. The runtime sorts integers as f32."""
    places = converted(counted(dimension(ends, 1), ends), f32)
    behind = converted(as_value(dimension(ends, 1), ends.graph), f32)
    order = places + converted(ends, f32) * behind
    _, found = ops.TopK11(order, width, axis=1, mode="min", stable=True, index_element_type=i32)
    return found
