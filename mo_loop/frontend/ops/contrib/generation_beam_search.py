"""BeamSearch of decoders (GPT-2), and of encoders with decoders (T5)."""

from __future__ import annotations

from functools import partial, reduce
from typing import Any

import numpy as np

from mo_loop import ops
from mo_loop.errors import ModelError, UnsupportedError
from mo_loop.frontend.built_body import BuiltBody
from mo_loop.frontend.context import Body, Context
from mo_loop.frontend.contrib_schemas import MICROSOFT
from mo_loop.frontend.ops.contrib.generation_beam import Beams, Search
from mo_loop.frontend.ops.contrib.generation_decoders import Gpt
from mo_loop.frontend.ops.contrib.generation_encoders import EncoderDecoder
from mo_loop.frontend.ops.contrib.generation_inputs import (
    Given,
    all_true,
    as_i32,
    as_scalar,
    filled,
    not_translated,
    number_of,
    plus,
    repeated,
    times,
)
from mo_loop.frontend.ops.contrib.generation_scores import Rules
from mo_loop.frontend.ops.control import loop
from mo_loop.frontend.ops.shared import dimension, joined
from mo_loop.frontend.registry import translates
from mo_loop.frontend.scope import Scope
from mo_loop.graph import Value

GPT, T5 = 0, 1
"""Values of model_type."""

STATES = len(Beams._fields)


@translates("BeamSearch", since=1, domain=MICROSOFT)
def beam_search(
    input_ids, max_length, min_length=None, num_beams=None, num_return_sequences=None, length_penalty=None,
    repetition_penalty=None, vocab_mask=None, prefix_vocab_mask=None, attention_mask=None, decoder_input_ids=None,
    logits_processor=None, *,
    decoder: Body, decoder_start_token_id: int = -1, early_stopping: int = 0, encoder: Body | None = None,
    eos_token_id: int, init_decoder: Body | None = None, model_type: int = 0, no_repeat_ngram_size: int = 0,
    pad_token_id: int, vocab_size: int = -1, node: Context,
):  # fmt: skip
    """The sequences [N, K, max_length], their scores [N, K], and the scores of all tokens [steps, N, M, V]."""
    if model_type not in (GPT, T5):
        raise UnsupportedError(
            f"BeamSearch of model_type {model_type}: decoders (0) and encoders with decoders (1) are translated",
            code="ML316", hint="export the encoder and the decoder as two models",
        )  # fmt: skip
    if num_beams is None or num_return_sequences is None:
        raise ModelError("num_beams or num_return_sequences is missing", code="ML227")
    given = Given(node, {
        "min_length": min_length, "length_penalty": length_penalty, "repetition_penalty": repetition_penalty,
        "vocab_mask": vocab_mask,
    })  # fmt: skip
    beams, limit = number_of(num_beams), number_of(max_length)
    model: Any
    if model_type == GPT:
        model = Gpt(decoder, init_decoder)
    else:
        model = EncoderDecoder(encoder, decoder, given, beams, decoder_start_token_id)
    prompts, logits, states = model.start(given.scope, as_i32(input_ids), attention_mask, pad_token_id)
    failed = not_translated([logits, *states])
    if failed is not None:
        return [failed] * len(node.outputs)
    if prefix_vocab_mask is not None:
        given.add("prefix_vocab_mask", repeated(prefix_vocab_mask, beams))
    rules = Rules(given, eos_token_id, no_repeat_ngram_size, vocab_size).of(logits)
    search = Search(given, rules, pad_token_id, bool(early_stopping))
    begun = search.start(repeated(prompts, beams), dimension(prompts, 0), beams, limit)
    first, picked, step_scores = search.step(given.scope, repeated(logits, beams), begun, is_first=True)
    states = model.for_beams(states, beams)
    states = states if beams == 1 else model.picked(states, picked)
    wants_scores = node.wants(2)

    def make(scope: Scope, iteration: Value, values: list[Value]) -> list[Value]:
        before, states = Beams(*values[:STATES]), values[STATES:]
        logits, states = model.step(scope, before.tokens, before.sequences, states)
        failed = not_translated([logits, *states])
        if failed is not None:
            return [failed] * (1 + len(values) + wants_scores)
        after, picked, scores = search.step(scope, logits, before)
        states = states if beams == 1 else model.picked(states, picked)
        return [ops.LogicalNot(all_true(after.finished)).output, *after, *states, *[scores] * wants_scores]

    others = plus(limit, times(plus(dimension(prompts, 1), 1, node.graph), -1, node.graph), node.graph)
    go = ops.LogicalNot(all_true(first.finished)).output
    body = BuiltBody(decoder, given.scope, STATES + len(states), int(wants_scores), make)
    made: Any = loop(as_scalar(others, node.graph), go, *first, *states, body=body, node=node)
    if not_translated(made.outputs):
        return [made.outputs[0]] * len(node.outputs)
    scores, sequences = search.final(given.scope, Beams(*made.outputs[:STATES]))
    kept = joined([number_of(num_return_sequences)], sequences)
    results = [ops.Slice(each, [0], kept, [1], [1]).output for each in (sequences, scores)]
    if wants_scores:
        results.append(_all_scores(step_scores, made.outputs[-1], plus(others, 1, node.graph)))
    return results


def _all_scores(first: Value, others: Value, steps: Any) -> Value:
    """The scores of each step [steps, N, M, V], 0 for steps that are not made."""
    # As a vector: after no iteration, `others` [0, N, M, V] has none of these dimensions in the runtime.
    found = ops.Concat(*(ops.Reshape(each, [-1]) for each in (first, others)), axis=0).output
    shape = [steps, *(dimension(first, axis) for axis in range(3))]
    total = reduce(partial(times, graph=first.graph), shape)
    missing = plus(total, times(dimension(found, 0), -1, first.graph), first.graph)
    longer = ops.Concat(found, filled(np.float32(0), first, missing), axis=0)
    return ops.Reshape(longer, joined(shape, first), special_zero=False).output
