"""GreedySearch: the token of the highest score follows, until all sequences have ended or are as long as allowed.

    token, caches = first step (prompts)
    Loop (max_length - S - 1, not all ended) <states: token, ended, sequences, positions, mask, caches> {
        logits, caches = decoder (token, positions, mask, caches)
        token = ended or argmax == eos ? pad : argmax (scores)
    }

After its end token a sequence has padding tokens, and one in place of the end token. In ONNX Runtime, the numbers after
the step at which all have ended are not defined; here they are padding tokens.

Sampling is a greedy search whose token is drawn, from the most probable ones.

    p = softmax (scores in ascending order),  c = the sums of p up to each           (custom: in descending order)
    a score becomes filter_value where c <= 1 - top_p, but of min_tokens_to_keep      (custom: where c - p > top_p)
    token = the number of sums of the softmax of these scores that are at most u * the last one, u in [0, 1)

The random numbers are those of the runtime: other ones than in ONNX Runtime. A constant seed makes them the same each
time the model is loaded.

`Rules` forbid or penalise tokens, as the inputs and attributes of a generating operator require. In the order of ONNX
Runtime, on scores [N, vocabulary] of N sequences [N, L]:

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

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mo_loop.frontend.ops import decoders
from mo_loop.frontend.ops.conditional import BuiltBody
from mo_loop.frontend.ops.control import loop
from mo_loop.frontend.ops.ranking import Mode, first, top
from mo_loop.frontend.ops.shared import counted, first_numbers, integers
from mo_loop.frontend.ops.tensors import uniform
from mo_loop.frontend.scope import Scope
from mo_loop.frontend.vocabulary import MICROSOFT, Body, Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import f32, i32
from mo_loop.ops.lengths import as_i64, as_value, joined, length_in, scalar
from mo_loop.ops.ranges import FewOrNone, Integers, Matrix, One

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
        numbers = is_time.astype(i32)
        number = ops.ReduceSum(numbers, [1], keep_dims=True)
        # A column before the sequences: there may be one token only.
        wide = ops.Pad(numbers, np.array([0, 1]), np.zeros(2, np.int64), np.int32(0), pad_mode="constant")
        ends, before = (ops.Gather(wide, [at], 1) > np.int32(0) for at in (-1, -2))
        is_begun = number > ops.Gather(numbers, [-1], 1)
        is_pair = before | ~is_begun
        is_open = ends & ~is_pair

        last = ops.ReduceMax(numbers * counted(sequences.size(1), sequences).astype(i32), [1], keep_dims=True)
        least = ops.GatherElements(sequences, last, axis=1) + ops.Select(is_open, np.int32(0), np.int32(1))

        times = tokens >= first
        rules = (
            (is_begun, np.isin(tokens, [each for each in self.only_before if each is not None])),
            (~is_begun, tokens > first + LATEST),
            (ends & is_pair, times),
            (is_open, tokens < self.end),
            (number > np.int32(0), ops.Less(tokens, least) & times),
        )
        forbidden: Any = np.isin(tokens, [each for each in self.never if each is not None])
        for applies, which in rules:
            forbidden = ops.LogicalOr(forbidden, applies & which)
        return forbidden


def _preferring_timestamps(scores: Value, first: int, size: int) -> Value:
    """The scores without text, where the sum of the probabilities of timestamps is above that of each text."""
    texts = scores[:, :first]
    times = scores[:, first:size]
    top = ops.ReduceMax(times, [1], keep_dims=True)
    chances = ops.Select(times > decoders.LOWEST, ops.Exp(times - top), np.float32(0))
    # Without any timestamp this is -infinity.
    together = ops.Log(ops.ReduceSum(chances, [1], keep_dims=True)) + top
    is_time = together > ops.ReduceMax(texts, [1], keep_dims=True)
    return _without(scores, is_time & (first_numbers(size)[None] < first))


def _without(scores: Value, forbidden: Value) -> Value:
    return ops.Select(forbidden, decoders.LOWEST, scores)


@dataclass(frozen=True)
class Rules:
    """The rules that change the scores, with the inputs `given` by name."""

    given: decoders.Given
    end: int
    ngram: int
    vocabulary: int
    """The number of tokens; the attribute vocab_size until `of` has seen the logits."""
    temperature: float = 1.0
    timestamps: Timestamps | None = None
    """Applied where the input logits_processor is 1."""

    def of(self, logits: Value) -> "Rules":
        """The same for logits of a known size."""
        return replace(self, vocabulary=decoders.vocabulary_of(logits, self.vocabulary))

    def applied(self, scope: Scope, scores: Value, sequences: Value, is_first: bool = False) -> Value:
        """The scores of the next token after `sequences`, in the graph of `scope`."""
        penalty = self.given.find(scope, "repetition_penalty")
        if penalty is not None and not _is_one(penalty):
            by = scalar(penalty.astype(f32))
            less = ops.Select(scores < np.float32(0), scores * by, scores / by)
            scores = ops.Select(decoders.marked(sequences, self.vocabulary), less, scores)
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
            number = scalar(given.astype(f32))
            return scores / ops.Select(number > np.float32(0), number, np.float32(1))
        return scores if self.temperature <= 0 or self.temperature == 1 else scores / np.float32(self.temperature)

    def _timed(self, scope: Scope, scores: Value, sequences: Value) -> Value:
        processor = self.given.find(scope, "logits_processor")
        if self.timestamps is None or processor is None:
            return scores
        timed = self.timestamps.applied(scores, sequences)
        if processor.type.integers is not None:
            return timed
        return ops.Select(ops.Equal(scalar(processor), np.array(1, processor.dtype.numpy)), timed, scores)

    def _repeating(self, sequences: Value) -> Value:
        """[N, vocabulary]: the tokens that would repeat an n-gram."""
        rest = self.ngram - 1
        if not rest:
            return decoders.marked(sequences, self.vocabulary)
        # -1 before the sequences makes as many n-grams as tokens; an n-gram with -1 is never the end of a sequence.
        wide = ops.Pad(sequences, np.array([0, rest]), np.zeros(2, np.int64), np.int32(-1), pad_mode="constant")
        same: Any = None
        for place in range(rest):
            pieces = wide[:, place : place - rest]
            equal = ops.Equal(pieces, wide.cut(1, place - rest, place - rest + 1 or 2**30))
            same = equal if same is None else same & equal
        return decoders.marked(ops.Select(same, sequences, np.int32(self.vocabulary)), self.vocabulary)

    def _masked(self, scope: Scope, scores: Value, name: str) -> Value:
        mask = self.given.find(scope, name)
        return scores if mask is None else _without(scores, ops.Equal(mask, np.array(0, mask.dtype.numpy)))

    def _long_enough(self, scope: Scope, scores: Value, sequences: Value) -> Value:
        least = self.given.find(scope, "min_length")
        if least is None or (least.type.integers or (1,))[0] <= 0:
            return scores
        is_short = as_value(sequences.size(1), scores.graph) < scalar(as_i64(least))
        return _without(scores, is_short & (first_numbers(self.vocabulary) == self.end)[None])


def _is_one(value: Value) -> bool:
    return value.constant is not None and bool(np.all(value.constant == 1))


Choose = Callable[[Value], Value]
"""Scores [N, V] -> the next tokens [N, 1]."""


@translates("GreedySearch", since=1, domain=MICROSOFT, ignored="decoder_start_token_id encoder")
def greedy_search(
    input_ids: Matrix | Integers, max_length: One | Integers, min_length: One | Integers = None,
    repetition_penalty: One = None, vocab_mask=None, prefix_vocab_mask=None, attention_mask=None, *, decoder: Body,
    decoder_start_token_id: int = -1, encoder: Body | None = None, eos_token_id: int,
    init_decoder: Body | None = None, model_type: int = 0, no_repeat_ngram_size: FewOrNone = 0, pad_token_id: int,
    vocab_size: int = -1, node: Context,
):
    """The sequences [N, max_length]. ONNX Runtime has decoders of the GPT-2 kind (model_type 0) only."""
    check_type(model_type)
    given = decoders.Given(node, {
        "min_length": min_length, "repetition_penalty": repetition_penalty, "vocab_mask": vocab_mask,
        "prefix_vocab_mask": prefix_vocab_mask,
    })
    gpt = decoders.Gpt(decoder, init_decoder)
    begun = gpt.start(given.scope, input_ids.astype(i32), attention_mask, pad_token_id)
    rules = Rules(given, eos_token_id, no_repeat_ngram_size, vocab_size)
    return generated(
        node, gpt, begun, rules, length_in(max_length), pad_token_id, lambda scores: first(scores, 1, "max", i32)
    )


def check_type(model_type: int) -> None:
    """Refuse encoders."""
    if model_type != 0:
        raise UnsupportedError(
            f"a search of model_type {model_type}: ONNX Runtime implements decoders (0) only", code="ML316",
            hint="use BeamSearch with num_beams 1",
        )


def generated(
    node: Context, gpt: decoders.Gpt, begun: tuple[Value, Value, list[Value]], rules: Rules, limit: Any, padding: int,
    choose: Choose,
) -> Value:
    """The sequences [N, limit] that follow from a first step, of tokens that `choose` takes."""
    prompts, logits, states = begun
    failed = decoders.not_translated([logits, *states])
    if failed is not None:
        return failed
    rules = rules.of(logits)

    def chosen(scope: Scope, logits: Value, sequences: Value, ended: Value, is_first: bool = False) -> list[Value]:
        """The next tokens [N, 1], the sequences with them, and which sequences have ended."""
        best = choose(rules.applied(scope, decoders.scores_of(logits, rules.vocabulary), sequences, is_first))
        ended = ended | ops.Equal(best, np.int32(rules.end))
        tokens = ops.Select(ended, np.int32(padding), best)
        return [tokens, ops.Concat(sequences, tokens, axis=1), ended]

    running = decoders.filled(np.zeros((), np.bool_), prompts, prompts.size(0), 1)
    first = chosen(rules.given.scope, logits, prompts, running, is_first=True)

    def make(scope: Scope, iteration: Value, states: list[Value]) -> list[Value]:
        tokens, sequences, ended, *states = states
        logits, states = gpt.step(scope, tokens, sequences, states)
        failed = decoders.not_translated([logits, *states])
        if failed is not None:
            return [failed] * (4 + len(states))
        following = chosen(scope, logits, sequences, ended)
        return [~decoders.all_true(following[-1]), *following, *states]

    others = limit + (prompts.size(1) + 1) * -1
    go = ~decoders.all_true(first[-1])
    body = BuiltBody(gpt.decoder, rules.given.scope, len(first) + len(states), 0, make)
    made: Any = loop(as_value(others, node.graph), go, *first, *states, body=body, node=node)
    failed = decoders.not_translated(made.outputs)
    return decoders.padded(made.outputs[1], limit, padding) if failed is None else failed


@translates("Sampling", since=1, domain=MICROSOFT, ignored="decoder_start_token_id encoder")
def sampling(
    input_ids: Matrix | Integers, max_length: One | Integers, min_length: One | Integers = None,
    repetition_penalty: One = None, vocab_mask=None, prefix_vocab_mask=None, attention_mask=None, presence_mask=None,
    seed=None, *, custom: int = 0, decoder: Body, decoder_start_token_id: int = -1, encoder: Body | None = None,
    eos_token_id: int, filter_value: float = -1.0000000200408773e20, init_decoder: Body | None = None,
    min_tokens_to_keep: int = 0, model_type: int = 0, no_repeat_ngram_size: FewOrNone = 0, pad_token_id: int,
    presence_penalty: float = 0.0, temperature: float = 1.0, top_p: float = 0.0, vocab_size: int = -1, node: Context,
):
    """The sequences [N, max_length]."""
    check_type(model_type)
    if node.wants(1):
        raise UnsupportedError("the output filtered_logits: ONNX Runtime writes it on GPUs only", code="ML316")
    if presence_mask is not None and presence_penalty != 0:
        raise UnsupportedError(
            "a presence penalty: ONNX Runtime does not subtract it from the scores that its documentation names",
            code="ML316", hint="set presence_penalty to 0 and use repetition_penalty",
        )
    given = decoders.Given(node, {
        "min_length": min_length, "repetition_penalty": repetition_penalty, "vocab_mask": vocab_mask,
        "prefix_vocab_mask": prefix_vocab_mask,
    })
    gpt = decoders.Gpt(decoder, init_decoder)
    begun = gpt.start(given.scope, input_ids.astype(i32), attention_mask, pad_token_id)
    rules = Rules(given, eos_token_id, no_repeat_ngram_size, vocab_size, temperature)
    numbers = integers(seed)
    draw = Draw(top_p, filter_value, min_tokens_to_keep, bool(custom), numbers[0] if numbers else None)
    return generated(node, gpt, begun, rules, length_in(max_length), pad_token_id, draw.tokens)


@dataclass(frozen=True)
class Draw:
    """The filter and the drawing of tokens; without a seed with new numbers in every inference."""

    top_p: float
    filter_value: float
    least: int
    is_custom: bool
    seed: int | None

    def tokens(self, scores: Value) -> Value:
        """One token of each row of scores [N, V], [N, 1]."""
        size = scores.type.dims[1]
        mode: Mode = "max" if self.is_custom else "min"
        ordered, order = top(scores, size, 1, mode, i32)
        kept = ops.Select(self._dropped(ordered, size), np.float32(self.filter_value), ordered)
        sums = ops.CumSum(ops.Softmax(kept, axis=1), 1)
        drawn = uniform(joined([scores.size(0), 1], scores), self.seed) * ops.Gather(sums, [-1], 1)
        place = ops.ReduceSum((sums <= drawn).astype(i32), [1], keep_dims=True)
        return ops.GatherElements(order, ops.Minimum(place, np.int32(size - 1)), axis=1)

    def _dropped(self, ordered: Value, size: int) -> Value:
        """[N, V]: which of the ordered scores are filtered."""
        chances = ops.Softmax(ordered, axis=1)
        places = first_numbers(size)
        if self.is_custom:
            before = ops.CumSum(chances, 1, exclusive=True)
            return ops.Greater(before, np.float32(self.top_p)) & (places > 0)[None]
        may_go = (places == 0) | (places < size - self.least)
        is_rare = ops.CumSum(chances, 1) <= np.float32(1) - np.float32(self.top_p)
        return is_rare & may_go[None]
