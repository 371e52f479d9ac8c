"""BeamSearch of decoders (GPT-2), and of encoders with decoders (T5, Whisper)."""

from typing import Any

from mo_loop.frontend.ops.generation.beam_loop import number_of_beams, searched
from mo_loop.frontend.ops.generation.decoders import Gpt
from mo_loop.frontend.ops.generation.encoders import EncoderDecoder
from mo_loop.frontend.ops.generation.generation_inputs import Given, as_i32
from mo_loop.frontend.ops.generation.token_scores import Rules
from mo_loop.frontend.ops.generation.whisper import Whisper, check_processor
from mo_loop.frontend.vocabulary import MICROSOFT, Body, Context, UnsupportedError, translates
from mo_loop.ops.ranges import FewOrNone, Integers, One

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
):  # fmt: skip
    """The sequences [N, K, max_length], their scores [N, K], and the scores of all tokens [steps, N, M, V]."""
    if model_type not in (GPT, T5, WHISPER):
        raise UnsupportedError(
            f"BeamSearch of model_type {model_type}: 0 (decoder), 1 (encoder and decoder) and 2 (Whisper) are defined",
            code="ML316", hint="export the encoder and the decoder as two models",
        )  # fmt: skip
    beams = number_of_beams(num_beams, num_return_sequences)
    given = Given(node, {
        "min_length": min_length, "length_penalty": length_penalty, "repetition_penalty": repetition_penalty,
        "vocab_mask": vocab_mask,
    })  # fmt: skip
    model: Any
    if model_type == WHISPER:
        check_processor(logits_processor)
        model = Whisper(encoder, decoder, given, beams, decoder_start_token_id)
        begun = model.begin(given.scope, input_ids, decoder_input_ids)
    elif model_type == T5:
        model = EncoderDecoder(encoder, decoder, given, beams, decoder_start_token_id)
        begun = model.start(given.scope, as_i32(input_ids), attention_mask, pad_token_id)
    else:
        model = Gpt(decoder, init_decoder)
        begun = model.start(given.scope, as_i32(input_ids), attention_mask, pad_token_id)
    rules = Rules(given, eos_token_id, no_repeat_ngram_size, vocab_size)
    return searched(
        node, model, begun, rules, max_length, beams, num_return_sequences, prefix_vocab_mask, pad_token_id,
        bool(early_stopping),
    )  # fmt: skip
