"""BeamSearch of decoders (GPT-2), and of encoders with decoders (T5, Whisper): the sequences of the highest sums of log
probabilities, several of each prompt at a time.

    tokens, caches = first step (prompts), for each beam
    Loop (max_length - S - 1, not all finished) <states: beams, ended sequences, caches> {
        logits, caches = decoder (tokens, caches)
        scores = log_softmax (logits), restricted, + sum of the beam                      [N * M, V]
        the 2 M best of a prompt: an end token among the first M ends a sequence, the first M others continue
        finished = M sequences have ended, and none that continues can become better (early_stopping: in any case)
    }

The score of a sequence is its sum / length ** length_penalty; the beams that continue count at the end as well.

The encoder of WhisperBeamSearch reads audio features, and its texts can have timestamps.

    logits, hidden, present_self ..., present_cross ...  =  encoder (features [N, F, E], tokens [N, S])
    logits, present_self ...  =  decoder (tokens, hidden, past_self ..., past_cross ...)             # hidden: optional

The tokens are decoder_input_ids, else decoder_start_token_id. logits_processor 1 are the rules for timestamps.
"""

from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import Any, NamedTuple

import numpy as np

from mo_loop.frontend.ops import decoders
from mo_loop.frontend.ops.conditional import BuiltBody
from mo_loop.frontend.ops.control import loop
from mo_loop.frontend.ops.greedy_search import Rules, Timestamps
from mo_loop.frontend.ops.ranking import top
from mo_loop.frontend.ops.shared import counted, one_integer
from mo_loop.frontend.scope import Scope
from mo_loop.frontend.vocabulary import MICROSOFT, Body, Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import f32, i32
from mo_loop.ops.lengths import as_value, joined, length_in, scalar
from mo_loop.ops.ranges import FewOrNone, Integers, One

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

    given: decoders.Given
    rules: Rules
    padding: int
    is_early: bool

    def start(self, sequences: Value, prompts: Any, beams: Any, limit: Any) -> Beams:
        """Beams that hold `sequences` [N * M, L]; all but the first of a prompt are too bad to be chosen."""
        others = (counted(beams, sequences) > np.int64(0)).astype(f32) * np.float32(-1e9)
        sums = ops.Broadcast(others, joined([prompts, beams], sequences))
        return Beams(
            decoders.filled(np.int32(0), sequences, prompts * beams, 1), sequences, sums,
            decoders.filled(np.zeros((), np.bool_), sequences, prompts, 1),
            decoders.filled(NONE, sequences, prompts, beams),
            decoders.filled(np.int32(self.padding), sequences, prompts, beams, limit),
            decoders.filled(np.int32(0), sequences, prompts, 1),
        )

    def step(self, scope: Scope, logits: Value, beams: Beams, is_first: bool = False) -> tuple[Beams, Value, Value]:
        """The beams after logits [N * M, V], the beams that they continue [N * M], and all scores [N, M, V]."""
        size, width = self.rules.vocabulary, beams.sums.size(1)
        chances = ops.LogSoftmax(decoders.scores_of(logits, size), axis=1)
        chances = self.rules.applied(scope, chances, beams.sequences, is_first)
        chances = chances + beams.sums.reshape([-1, 1])
        table = chances.reshape([-1, width * size])
        best, places = top(table, width * 2, 1, "max", i32)
        source = places // np.int32(size)
        tokens = places - source * np.int32(size)
        source = source + _starts(beams.sums)
        ends = ops.Equal(tokens, np.int32(self.rules.end))

        stay = _continuing(ends, width)
        sums, following, continued = (ops.GatherElements(each, stay, axis=1) for each in (best, tokens, source))
        finished = beams.finished
        continued = ops.Select(finished, np.int32(0), continued).reshape([-1])
        following = ops.Select(finished, np.int32(self.padding), following).reshape([-1, 1])
        sequences = ops.Concat(ops.Gather(beams.sequences, continued, 0), following, axis=1)

        first = joined([width], logits)
        leading = (each[:, :first] for each in (ends, source, best))
        best_ends, best_source, best_sums = leading
        new = best_ends & ~finished
        scores = ops.Select(new, self._score(scope, best_sums, beams.sequences), NONE)
        kept = self._with(beams, scores, beams.sequences, best_source.reshape([-1]))
        added = ops.ReduceSum(new.astype(i32), [1], keep_dims=True)
        number = ops.Minimum(beams.number + added, as_value(width, logits.graph).astype(i32))
        is_done = ops.Equal(number, as_value(width, logits.graph).astype(i32))
        if not self.is_early:
            bound = self._score(scope, _compared(best, beams.sums), beams.sequences)
            is_done = is_done & (ops.Gather(kept[0], [-1], 1) >= bound)
        after = Beams(
            following, sequences, ops.Select(finished, np.float32(0), sums),
            finished | is_done, *kept, number,
        )
        # ONNX Runtime continues with other numbers where a prompt is finished.
        shown = ops.Select(finished, np.float32(0), table)
        shown = shown.reshape([-1, width, size])
        return after, self._caches(continued, finished, beams.sums), shown

    def _caches(self, continued: Value, finished: Value, sums: Value) -> Value:
        """The caches that the next step reads. Those of finished prompts matter: their scores decide about others.

        ONNX Runtime gives a finished prompt the cache of the first beam of all, but with one beam its own.
        """
        width = sums.size(1)
        if isinstance(width, int):
            return continued
        own = ops.Broadcast(_starts(sums), sums.sizes).reshape([-1])
        return ops.Select(ops.Equal(width, np.int64(1)), own, continued)

    def final(self, scope: Scope, beams: Beams) -> tuple[Value, Value]:
        """The scores [N, M] and the sequences [N, M, max_length] with the beams of the prompts that are not done."""
        scores = ops.Select(beams.finished, NONE, self._score(scope, beams.sums, beams.sequences))
        best, texts = self._with(beams, scores, beams.sequences, None)
        return ops.Select(best <= decoders.LOWEST, NONE, best), texts

    def _with(self, beams: Beams, scores: Value, sequences: Value, rows: Value | None) -> tuple[Value, Value]:
        """The best of the ended sequences and others: `rows` of `sequences`, in their order by default."""
        longer = decoders.padded(sequences, beams.ended.size(2), self.padding)
        texts = longer if rows is None else ops.Gather(longer, rows, 0)
        width, limit = beams.ended.size(1), beams.ended.size(2)
        texts = texts.reshape([-1, width, limit])
        both = ops.Concat(beams.scores, scores, axis=1)
        best, places = top(both, width, 1, "max", i32)
        # Without batch dimensions: the runtime crashes for one batch of them.
        rows = ops.Concat(beams.ended, texts, axis=1).reshape([-1, limit])
        places = places + _starts(both)
        return best, ops.Gather(rows, places, 0)

    def _score(self, scope: Scope, sums: Value, sequences: Value) -> Value:
        """The sums of sequences [N * M, L], divided by L ** length_penalty."""
        penalty = self.given.find(scope, "length_penalty")
        length = as_value(sequences.size(1), sums.graph).astype(f32)
        if penalty is not None:
            length = ops.Power(length, scalar(penalty.astype(f32)))
        # Of forbidden tokens the sum can be -infinity, and such a sequence counts more than none.
        return ops.Maximum(sums / length, decoders.LOWEST)


def _starts(sums: Value) -> Value:
    """The number of the first beam of each prompt, [N, 1] of i32."""
    prompts, width = sums.size(0), sums.size(1)
    return ops.Unsqueeze(counted(prompts, sums) * as_value(width, sums.graph), 1).astype(i32)


def _compared(best: Value, sums: Value) -> Value:
    """The sum that decides whether a prompt can become better, [N, 1].

    As in ONNX Runtime, prompt n is compared with the best of the 2 M candidates from number n * M on in the list of
    all prompts, which are 2 M for each prompt: for the first prompt with its own, for others with those before it.
    """
    window = counted(best.size(1), best).astype(i32)
    places = _starts(sums) + window
    return ops.ReduceMax(ops.Gather(best.reshape([-1]), places, 0), [1], keep_dims=True)


def _continuing(ends: Value, width: Any) -> Value:
    """The places of the first `width` False of each row, in their order. The runtime sorts integers as f32."""
    places = counted(ends.size(1), ends).astype(f32)
    length = as_value(ends.size(1), ends.graph).astype(f32)
    order = places + ends.astype(f32) * length
    _, found = ops.TopK11(order, width, axis=1, mode="min", stable=True, index_element_type=i32)
    return found


STATES = len(Beams._fields)


def number_of_beams(num_beams: Value | None, num_return_sequences: Value | None) -> Any:
    """The number of beams, an int or a scalar Value."""
    if num_beams is None or num_return_sequences is None:
        raise ModelError("num_beams or num_return_sequences is missing", code="ML227")
    return length_in(num_beams)


def searched(
    node: Context, model: Any, begun: tuple[Value, Value, list[Value]], rules: Rules, max_length: Value, beams: Any,
    num_return_sequences: Any, prefix_vocab_mask: Value | None, padding: int, is_early: bool,
) -> list[Value]:
    """The sequences [N, K, max_length], their scores [N, K], and the scores of all tokens [steps, N, M, V].

    `begun` is the result of the first step of `model` for the prompts.
    """
    given, decoder, limit = rules.given, model.decoder, length_in(max_length)
    prompts, logits, states = begun
    failed = decoders.not_translated([logits, *states])
    if failed is not None:
        return [failed] * len(node.outputs)
    if prefix_vocab_mask is not None:
        given.add("prefix_vocab_mask", decoders.repeated(prefix_vocab_mask, beams))
    rules = rules.of(logits)
    search = Search(given, rules, padding, is_early)
    start = search.start(decoders.repeated(prompts, beams), prompts.size(0), beams, limit)
    first, picked, step_scores = search.step(given.scope, decoders.repeated(logits, beams), start, is_first=True)
    states = model.for_beams(states, beams)
    states = states if beams == 1 else model.picked(states, picked)
    wants_scores = node.wants(2)

    def make(scope: Scope, iteration: Value, values: list[Value]) -> list[Value]:
        before, states = Beams(*values[:STATES]), values[STATES:]
        logits, states = model.step(scope, before.tokens, before.sequences, states)
        failed = decoders.not_translated([logits, *states])
        if failed is not None:
            return [failed] * (1 + len(values) + wants_scores)
        after, picked, scores = search.step(scope, logits, before)
        states = states if beams == 1 else model.picked(states, picked)
        return [~decoders.all_true(after.finished), *after, *states, *[scores] * wants_scores]

    others = limit + (prompts.size(1) + 1) * -1
    go = ~decoders.all_true(first.finished)
    body = BuiltBody(decoder, given.scope, STATES + len(states), int(wants_scores), make)
    made: Any = loop(as_value(others, node.graph), go, *first, *states, body=body, node=node)
    if decoders.not_translated(made.outputs):
        return [made.outputs[0]] * len(node.outputs)
    scores, sequences = search.final(given.scope, Beams(*made.outputs[:STATES]))
    kept = joined([length_in(num_return_sequences)], sequences)
    results = [each[:, :kept] for each in (sequences, scores)]
    if wants_scores:
        results.append(_all_scores(step_scores, made.outputs[-1], others + 1))
    return results


def _all_scores(first: Value, others: Value, steps: Any) -> Value:
    """The scores of each step [steps, N, M, V], 0 for steps that are not made."""
    # As a vector: after no iteration, `others` [0, N, M, V] has none of these dimensions in the runtime.
    found = ops.Concat(*(each.reshape([-1]) for each in (first, others)), axis=0)
    shape = [steps, *(first.size(axis) for axis in range(3))]
    missing = reduce(mul, shape) + found.size(0) * -1
    return ops.Concat(found, decoders.filled(np.float32(0), first, missing), axis=0).reshape(shape)


@translates("WhisperBeamSearch", since=1, domain=MICROSOFT, ignored="attention_mask cross_qk_layer_head init_decoder")
def whisper_beam_search(
    input_ids, max_length: One | Integers, min_length: One | Integers = None, num_beams: One | Integers = None,
    num_return_sequences: One | Integers = None, length_penalty: One = None, repetition_penalty: One = None,
    vocab_mask=None, prefix_vocab_mask=None, attention_mask=None, decoder_input_ids=None, logits_processor=None,
    cross_qk_layer_head=None, extra_decoding_ids=None, temperature=None, *,
    beginning_timestamp_token_id: int | None = None, decoder: Body, decoder_output_cross_qk: int | None = None,
    decoder_start_token_id: int = -1, early_stopping: int = 0, encoder: Body | None = None, eos_token_id: int,
    init_decoder: Body | None = None, model_type: int = 2, no_repeat_ngram_size: FewOrNone = 0,
    no_speech_token_id: int | None = None, no_timestamps_token_id: int | None = None, pad_token_id: int,
    start_of_lm_token_id: int | None = None, transcribe_token_id: int | None = None,
    translate_token_id: int | None = None, vocab_size: int = -1, node: Context,
):
    """The outputs of BeamSearch, and the probability of no_speech_token_id in the first step [N]."""
    if model_type != 2:
        raise ModelError(f"WhisperBeamSearch of model_type {model_type}: it must be 2", code="ML227")
    if decoder_output_cross_qk or node.wants(3):
        raise UnsupportedError(
            "the output cross_qk: ONNX Runtime has it on GPUs only", code="ML316",
            hint="export the model without --collect_cross_qk",
        )
    if extra_decoding_ids is not None:
        raise UnsupportedError(
            "extra_decoding_ids: ONNX Runtime reads them on GPUs only", code="ML316",
            hint="append them to decoder_input_ids",
        )
    beams = number_of_beams(num_beams, num_return_sequences)
    given = decoders.Given(node, {
        "min_length": min_length, "length_penalty": length_penalty, "repetition_penalty": repetition_penalty,
        "vocab_mask": vocab_mask, "temperature": temperature,
    })
    timestamps = None
    if _may_have_timestamps(logits_processor):
        given.add("logits_processor", logits_processor)
        timestamps = Timestamps(
            beginning_timestamp_token_id, eos_token_id, (no_timestamps_token_id, start_of_lm_token_id),
            (decoder_start_token_id, translate_token_id, transcribe_token_id),
        )
    model = decoders.Whisper(encoder, decoder, given, beams, decoder_start_token_id)
    begun = model.begin(given.scope, input_ids, decoder_input_ids)
    rules = Rules(given, eos_token_id, no_repeat_ngram_size, vocab_size, timestamps=timestamps)
    results = searched(
        node, model, begun, rules, max_length, beams, num_return_sequences, prefix_vocab_mask, pad_token_id,
        bool(early_stopping),
    )
    if not node.wants(4) or decoders.not_translated(results):
        return results
    size = begun[1].type.dims[-1]
    if no_speech_token_id is None or not 0 <= no_speech_token_id < size:
        raise ModelError(f"no_speech_token_id is {no_speech_token_id}, but the decoder has {size} logits", code="ML227")
    # ONNX Runtime's CPU kernel leaves it undefined.
    without_speech = ops.Gather(ops.Softmax(begun[1], axis=1), np.int64(no_speech_token_id), 1)
    return [*results, *[None] * (4 - len(results)), without_speech]


def _may_have_timestamps(logits_processor: Value | None) -> bool:
    """Whether logits_processor is 1, or known at run time only; other values have no effect."""
    return logits_processor is not None and one_integer(logits_processor) in (1, None)


GPT, T5, WHISPER = 0, 1, 2
"""Values of model_type."""


@translates("BeamSearch", since=1, domain=MICROSOFT)
def beam_search(
    input_ids, max_length: One | Integers, min_length: One | Integers = None, num_beams: One | Integers = None,
    num_return_sequences: One | Integers = None, length_penalty: One = None, repetition_penalty: One = None,
    vocab_mask=None, prefix_vocab_mask=None, attention_mask=None, decoder_input_ids=None, logits_processor=None, *,
    decoder: Body, decoder_start_token_id: int = -1, early_stopping: int = 0, encoder: Body | None = None,
    eos_token_id: int, init_decoder: Body | None = None, model_type: int = 0, no_repeat_ngram_size: FewOrNone = 0,
    pad_token_id: int, vocab_size: int = -1, node: Context,
):
    """The sequences [N, K, max_length], their scores [N, K], and the scores of all tokens [steps, N, M, V]."""
    if model_type not in (GPT, T5, WHISPER):
        raise UnsupportedError(
            f"BeamSearch of model_type {model_type}: 0 (decoder), 1 (encoder and decoder) and 2 (Whisper) are defined",
            code="ML316", hint="export the encoder and the decoder as two models",
        )
    beams = number_of_beams(num_beams, num_return_sequences)
    given = decoders.Given(node, {
        "min_length": min_length, "length_penalty": length_penalty, "repetition_penalty": repetition_penalty,
        "vocab_mask": vocab_mask,
    })
    model: Any
    if model_type == WHISPER:
        if _may_have_timestamps(logits_processor):
            raise UnsupportedError(
                "BeamSearch with a logits_processor that may be 1: it does not have the tokens of timestamps",
                code="ML316", hint="export a WhisperBeamSearch, or make logits_processor a constant 0",
            )
        model = decoders.Whisper(encoder, decoder, given, beams, decoder_start_token_id)
        begun = model.begin(given.scope, input_ids, decoder_input_ids)
    elif model_type == T5:
        model = decoders.EncoderDecoder(encoder, decoder, given, beams, decoder_start_token_id)
        begun = model.start(given.scope, input_ids.astype(i32), attention_mask, pad_token_id)
    else:
        model = decoders.Gpt(decoder, init_decoder)
        begun = model.start(given.scope, input_ids.astype(i32), attention_mask, pad_token_id)
    rules = Rules(given, eos_token_id, no_repeat_ngram_size, vocab_size)
    return searched(
        node, model, begun, rules, max_length, beams, num_return_sequences, prefix_vocab_mask, pad_token_id,
        bool(early_stopping),
    )
