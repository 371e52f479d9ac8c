"""GreedySearch: the token of the highest score follows, until all sequences have ended or are as long as allowed.

    token, caches = first step (prompts)
    Loop (max_length - S - 1, not all ended) <states: token, ended, sequences, positions, mask, caches> {
        logits, caches = decoder (token, positions, mask, caches)
        token = ended or argmax == eos ? pad : argmax (scores)
    }

After its end token a sequence has padding tokens, and one
in place of the end token. In ONNX Runtime, the numbers after the step at which all have ended are not defined; here
they are padding tokens.

Sampling is a greedy search whose token is drawn, from the most probable ones.

    p = softmax (scores in ascending order),  c = the sums of p up to each           (custom: in descending order)
    a score becomes filter_value where c <= 1 - top_p, but of min_tokens_to_keep      (custom: where c - p > top_p)
    token = the number of sums of the softmax of these scores that are at most u * the last one, u in [0, 1)

The random numbers are those of the runtime: other ones than in ONNX Runtime. A constant seed makes them the same each
time the model is loaded.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from mo_loop.frontend.arrays import first_numbers
from mo_loop.frontend.loop_bodies import BuiltBody
from mo_loop.frontend.ops.control import loop
from mo_loop.frontend.ops.generation.decoders import (
    Given,
    Gpt,
    all_true,
    as_i32,
    filled,
    not_translated,
    padded,
    scores_of,
)
from mo_loop.frontend.ops.generation.token_scores import Rules
from mo_loop.frontend.ops.random import uniform
from mo_loop.frontend.ops.ranking import Mode, first, top
from mo_loop.frontend.ops.shared import converted, integers
from mo_loop.frontend.scope import Scope
from mo_loop.frontend.vocabulary import MICROSOFT, Body, Context, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import i32
from mo_loop.ops.lengths import as_value, dimension, joined, length_in
from mo_loop.ops.ranges import FewOrNone, Integers, Matrix, One

Choose = Callable[[Value], Value]
"""Scores [N, V] -> the next tokens [N, 1]."""


@translates("GreedySearch", since=1, domain=MICROSOFT, ignored="decoder_start_token_id encoder")
def greedy_search(
    input_ids: Matrix | Integers, max_length: One | Integers, min_length: One | Integers = None,
    repetition_penalty: One = None, vocab_mask=None, prefix_vocab_mask=None, attention_mask=None, *, decoder: Body,
    decoder_start_token_id: int = -1, encoder: Body | None = None, eos_token_id: int,
    init_decoder: Body | None = None, model_type: int = 0, no_repeat_ngram_size: FewOrNone = 0, pad_token_id: int,
    vocab_size: int = -1, node: Context,
):  # fmt: skip
    """The sequences [N, max_length]. ONNX Runtime has decoders of the GPT-2 kind (model_type 0) only."""
    check_type(model_type)
    given = Given(node, {
        "min_length": min_length, "repetition_penalty": repetition_penalty, "vocab_mask": vocab_mask,
        "prefix_vocab_mask": prefix_vocab_mask,
    })  # fmt: skip
    gpt = Gpt(decoder, init_decoder)
    begun = gpt.start(given.scope, as_i32(input_ids), attention_mask, pad_token_id)
    rules = Rules(given, eos_token_id, no_repeat_ngram_size, vocab_size)
    return generated(node, gpt, begun, rules, length_in(max_length), pad_token_id, _best)


def check_type(model_type: int) -> None:
    """Refuse encoders."""
    if model_type != 0:
        raise UnsupportedError(
            f"a search of model_type {model_type}: ONNX Runtime implements decoders (0) only", code="ML316",
            hint="use BeamSearch with num_beams 1",
        )  # fmt: skip


def _best(scores: Value) -> Value:
    """The tokens of the highest scores."""
    return first(scores, 1, "max", i32)


def generated(
    node: Context, gpt: Gpt, begun: tuple[Value, Value, list[Value]], rules: Rules, limit: Any, padding: int,
    choose: Choose,
) -> Value:  # fmt: skip
    """The sequences [N, limit] that follow from a first step, of tokens that `choose` takes."""
    prompts, logits, states = begun
    failed = not_translated([logits, *states])
    if failed is not None:
        return failed
    rules = rules.of(logits)

    def chosen(scope: Scope, logits: Value, sequences: Value, ended: Value, is_first: bool = False) -> list[Value]:
        """The next tokens [N, 1], the sequences with them, and which sequences have ended."""
        best = choose(rules.applied(scope, scores_of(logits, rules.vocabulary), sequences, is_first))
        ended = ended | ops.Equal(best, np.int32(rules.end))
        tokens = ops.Select(ended, np.int32(padding), best)
        return [tokens, ops.Concat(sequences, tokens, axis=1), ended]

    running = filled(np.zeros((), np.bool_), prompts, dimension(prompts, 0), 1)
    first = chosen(rules.given.scope, logits, prompts, running, is_first=True)

    def make(scope: Scope, iteration: Value, states: list[Value]) -> list[Value]:
        tokens, sequences, ended, *states = states
        logits, states = gpt.step(scope, tokens, sequences, states)
        failed = not_translated([logits, *states])
        if failed is not None:
            return [failed] * (4 + len(states))
        following = chosen(scope, logits, sequences, ended)
        return [~all_true(following[-1]), *following, *states]

    others = limit + (dimension(prompts, 1) + 1) * -1
    go = ~all_true(first[-1])
    body = BuiltBody(gpt.decoder, rules.given.scope, len(first) + len(states), 0, make)
    made: Any = loop(as_value(others, node.graph), go, *first, *states, body=body, node=node)
    failed = not_translated(made.outputs)
    return padded(made.outputs[1], limit, padding) if failed is None else failed


@translates("Sampling", since=1, domain=MICROSOFT, ignored="decoder_start_token_id encoder")
def sampling(
    input_ids: Matrix | Integers, max_length: One | Integers, min_length: One | Integers = None,
    repetition_penalty: One = None, vocab_mask=None, prefix_vocab_mask=None, attention_mask=None, presence_mask=None,
    seed=None, *, custom: int = 0, decoder: Body, decoder_start_token_id: int = -1, encoder: Body | None = None,
    eos_token_id: int, filter_value: float = -1.0000000200408773e20, init_decoder: Body | None = None,
    min_tokens_to_keep: int = 0, model_type: int = 0, no_repeat_ngram_size: FewOrNone = 0, pad_token_id: int,
    presence_penalty: float = 0.0, temperature: float = 1.0, top_p: float = 0.0, vocab_size: int = -1, node: Context,
):  # fmt: skip
    """The sequences [N, max_length]."""
    check_type(model_type)
    if node.wants(1):
        raise UnsupportedError("the output filtered_logits: ONNX Runtime writes it on GPUs only", code="ML316")
    if presence_mask is not None and presence_penalty != 0:
        raise UnsupportedError(
            "a presence penalty: ONNX Runtime does not subtract it from the scores that its documentation names",
            code="ML316", hint="set presence_penalty to 0 and use repetition_penalty",
        )  # fmt: skip
    given = Given(node, {
        "min_length": min_length, "repetition_penalty": repetition_penalty, "vocab_mask": vocab_mask,
        "prefix_vocab_mask": prefix_vocab_mask,
    })  # fmt: skip
    gpt = Gpt(decoder, init_decoder)
    begun = gpt.start(given.scope, as_i32(input_ids), attention_mask, pad_token_id)
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
        shape = joined([dimension(scores, 0), 1], scores)
        drawn = uniform(shape, self.seed) * ops.Gather(sums, [-1], 1)
        place = ops.ReduceSum(converted(sums <= drawn, i32), [1], keep_dims=True)
        last = ops.Minimum(place, np.int32(size - 1))
        return ops.GatherElements(order, last, axis=1)

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
