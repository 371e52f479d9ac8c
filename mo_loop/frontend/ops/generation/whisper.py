"""WhisperBeamSearch: a beam search whose encoder reads audio features, and which can have timestamps.

    logits, hidden, present_self ..., present_cross ...  =  encoder (features [N, F, E], tokens [N, S])
    logits, present_self ...  =  decoder (tokens, hidden, past_self ..., past_cross ...)             # hidden: optional

The tokens are decoder_input_ids, else decoder_start_token_id. logits_processor 1 are the rules for timestamps.
"""

import numpy as np

from mo_loop.frontend.ops.generation.beam_loop import number_of_beams, searched
from mo_loop.frontend.ops.generation.encoders import EncoderDecoder
from mo_loop.frontend.ops.generation.generation_inputs import Given, as_i32, not_translated
from mo_loop.frontend.ops.generation.timestamps import Timestamps
from mo_loop.frontend.ops.generation.token_scores import Rules
from mo_loop.frontend.ops.shared import one_integer
from mo_loop.frontend.scope import Scope
from mo_loop.frontend.vocabulary import MICROSOFT, Body, Context, ModelError, UnsupportedError, Value, ops, translates
from mo_loop.ops.ranges import FewOrNone, Integers, One

NO_PROCESSOR, TIMESTAMPS = 0, 1
"""Values of logits_processor; others have no effect."""


class Whisper(EncoderDecoder):
    """An encoder of audio features and its decoder, without masks."""

    has_mask = False

    def begin(self, scope: Scope, features: Value, tokens: Value | None) -> tuple[Value, Value, list[Value]]:
        """The sequences [N, S] to continue, the logits [N, V] of the first new token, and the states after it."""
        if len(self.encoder.inputs) != 2:
            found = len(self.encoder.inputs)
            raise ModelError(f"the encoder has {found} inputs, not features and tokens", code="ML226")
        begun = self.first_tokens(features) if tokens is None else as_i32(tokens)
        return self.first_step(scope, [features, begun])


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
):  # fmt: skip
    """The outputs of BeamSearch, and the probability of no_speech_token_id in the first step [N]."""
    if model_type != 2:
        raise ModelError(f"WhisperBeamSearch of model_type {model_type}: it must be 2", code="ML227")
    if decoder_output_cross_qk or node.wants(3):
        raise UnsupportedError(
            "the output cross_qk: ONNX Runtime has it on GPUs only", code="ML316",
            hint="export the model without --collect_cross_qk",
        )  # fmt: skip
    if extra_decoding_ids is not None:
        raise UnsupportedError(
            "extra_decoding_ids: ONNX Runtime reads them on GPUs only", code="ML316",
            hint="append them to decoder_input_ids",
        )  # fmt: skip
    beams = number_of_beams(num_beams, num_return_sequences)
    given = Given(node, {
        "min_length": min_length, "length_penalty": length_penalty, "repetition_penalty": repetition_penalty,
        "vocab_mask": vocab_mask, "temperature": temperature,
    })  # fmt: skip
    timestamps = None
    if _processor(logits_processor) in (TIMESTAMPS, None):
        given.add("logits_processor", logits_processor)
        timestamps = Timestamps(
            beginning_timestamp_token_id, eos_token_id, (no_timestamps_token_id, start_of_lm_token_id),
            (decoder_start_token_id, translate_token_id, transcribe_token_id),
        )  # fmt: skip
    model = Whisper(encoder, decoder, given, beams, decoder_start_token_id)
    begun = model.begin(given.scope, input_ids, decoder_input_ids)
    rules = Rules(given, eos_token_id, no_repeat_ngram_size, vocab_size, timestamps=timestamps)
    results = searched(
        node, model, begun, rules, max_length, beams, num_return_sequences, prefix_vocab_mask, pad_token_id,
        bool(early_stopping),
    )  # fmt: skip
    if not node.wants(4) or not_translated(results):
        return results
    no_results = [None] * (4 - len(results))
    return [*results, *no_results, _without_speech(begun[1], no_speech_token_id)]


def check_processor(logits_processor: Value | None) -> None:
    """Refuse timestamps in BeamSearch, which has no attributes for their tokens."""
    if _processor(logits_processor) in (TIMESTAMPS, None):
        raise UnsupportedError(
            "BeamSearch with a logits_processor that may be 1: it does not have the tokens of timestamps", code="ML316",
            hint="export a WhisperBeamSearch, or make logits_processor a constant 0",
        )  # fmt: skip


def _without_speech(logits: Value, token: int | None) -> Value:
    """The probability of a token, [N]. ONNX Runtime's CPU kernel leaves it undefined."""
    size = logits.type.dims[-1]
    if token is None or not 0 <= token < size:
        raise ModelError(f"no_speech_token_id is {token}, but the decoder has {size} logits", code="ML227")
    return ops.Gather(ops.Softmax(logits, axis=1), np.int64(token), 1)


def _processor(logits_processor: Value | None) -> int | None:
    """The value of logits_processor; None if it is known at run time only."""
    if logits_processor is None:
        return NO_PROCESSOR
    return one_integer(logits_processor)
