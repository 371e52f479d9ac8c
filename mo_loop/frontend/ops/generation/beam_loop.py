"""The loop of BeamSearch and WhisperBeamSearch around a decoder, with the outputs of these operators."""

from functools import reduce
from operator import mul
from typing import Any

import numpy as np

from mo_loop.frontend.loop_bodies import BuiltBody
from mo_loop.frontend.ops.control import loop
from mo_loop.frontend.ops.generation.beams import Beams, Search
from mo_loop.frontend.ops.generation.generation_inputs import all_true, filled, not_translated, repeated
from mo_loop.frontend.ops.generation.token_scores import Rules
from mo_loop.frontend.scope import Scope
from mo_loop.frontend.vocabulary import Context, ModelError, Value, ops
from mo_loop.ops.lengths import as_value, dimension, joined, length_in

STATES = len(Beams._fields)


def number_of_beams(num_beams: Value | None, num_return_sequences: Value | None) -> Any:
    """The number of beams, an int or a scalar Value."""
    if num_beams is None or num_return_sequences is None:
        raise ModelError("num_beams or num_return_sequences is missing", code="ML227")
    return length_in(num_beams)


def searched(
    node: Context, model: Any, begun: tuple[Value, Value, list[Value]], rules: Rules, max_length: Value, beams: Any,
    num_return_sequences: Any, prefix_vocab_mask: Value | None, padding: int, is_early: bool,
) -> list[Value]:  # fmt: skip
    """The sequences [N, K, max_length], their scores [N, K], and the scores of all tokens [steps, N, M, V].

    `begun` is the result of the first step of `model` for the prompts.
    """
    given, decoder, limit = rules.given, model.decoder, length_in(max_length)
    prompts, logits, states = begun
    failed = not_translated([logits, *states])
    if failed is not None:
        return [failed] * len(node.outputs)
    if prefix_vocab_mask is not None:
        given.add("prefix_vocab_mask", repeated(prefix_vocab_mask, beams))
    rules = rules.of(logits)
    search = Search(given, rules, padding, is_early)
    start = search.start(repeated(prompts, beams), dimension(prompts, 0), beams, limit)
    first, picked, step_scores = search.step(given.scope, repeated(logits, beams), start, is_first=True)
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
        return [~all_true(after.finished), *after, *states, *[scores] * wants_scores]

    others = limit + (dimension(prompts, 1) + 1) * -1
    go = ~all_true(first.finished)
    body = BuiltBody(decoder, given.scope, STATES + len(states), int(wants_scores), make)
    made: Any = loop(as_value(others, node.graph), go, *first, *states, body=body, node=node)
    if not_translated(made.outputs):
        return [made.outputs[0]] * len(node.outputs)
    scores, sequences = search.final(given.scope, Beams(*made.outputs[:STATES]))
    kept = joined([length_in(num_return_sequences)], sequences)
    results = [ops.Slice(each, [0], kept, [1], [1]) for each in (sequences, scores)]
    if wants_scores:
        results.append(_all_scores(step_scores, made.outputs[-1], others + 1))
    return results


def _all_scores(first: Value, others: Value, steps: Any) -> Value:
    """The scores of each step [steps, N, M, V], 0 for steps that are not made."""
    # As a vector: after no iteration, `others` [0, N, M, V] has none of these dimensions in the runtime.
    found = ops.Concat(*(ops.Reshape(each, [-1]) for each in (first, others)), axis=0)
    shape = [steps, *(dimension(first, axis) for axis in range(3))]
    total = reduce(mul, shape)
    missing = total + dimension(found, 0) * -1
    longer = ops.Concat(found, filled(np.float32(0), first, missing), axis=0)
    return ops.Reshape(longer, joined(shape, first), special_zero=False)
