"""Sampling: a greedy search whose token is drawn, from the most probable ones.

    p = softmax (scores in ascending order),  c = the sums of p up to each           (custom: in descending order)
    a score becomes filter_value where c <= 1 - top_p, but of min_tokens_to_keep      (custom: where c - p > top_p)
    token = the number of sums of the softmax of these scores that are at most u * the last one, u in [0, 1)

The random numbers are those of the runtime: other ones than in ONNX Runtime. A constant seed makes them the same each
time the model is loaded.
"""

from dataclasses import dataclass

import numpy as np

from mo_loop.frontend.arrays import first_numbers
from mo_loop.frontend.ops.generation.decoders import Gpt
from mo_loop.frontend.ops.generation.generation_inputs import Given, as_i32
from mo_loop.frontend.ops.generation.greedy_search import check_type, generated
from mo_loop.frontend.ops.generation.token_scores import Rules
from mo_loop.frontend.ops.random import uniform
from mo_loop.frontend.ops.ranking import Mode, top
from mo_loop.frontend.ops.shared import converted, integers
from mo_loop.frontend.vocabulary import MICROSOFT, Body, Context, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import i32
from mo_loop.ops.lengths import dimension, joined, length_in
from mo_loop.ops.ranges import FewOrNone, Integers, Matrix, One


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
