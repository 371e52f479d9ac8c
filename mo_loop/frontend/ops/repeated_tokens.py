"""NGramRepeatBlock: tokens that would repeat a sequence of tokens get a score of minus infinity."""

from functools import reduce
from typing import Any

import numpy as np

from mo_loop.frontend.ops.shared import FAR
from mo_loop.frontend.vocabulary import MICROSOFT, ModelError, Value, ops, translates
from mo_loop.ops.lengths import dimension
from mo_loop.ops.ranges import Few, Integers, Matrix


@translates("NGramRepeatBlock", since=1, domain=MICROSOFT)
def ngram_repeat_block(input_ids: Matrix | Integers, scores: Matrix, *, ngram_size: Few):
    """A token is banned if it follows the last `ngram_size` - 1 tokens anywhere in its row of `input_ids`."""
    if ngram_size < 1:
        raise ModelError(f"NGramRepeatBlock has the ngram_size {ngram_size}", code="ML227")
    before = ngram_size - 1
    tokens = _columns(input_ids, before, FAR)
    if tokens.type.dims[1] == 0:
        return scores
    same = [_is_tail(input_ids, place, before) for place in range(before)]
    words: Any = dimension(scores, 1)
    if same:
        banned = reduce(lambda a, b: a & b, same)
        tokens = ops.Select(banned, tokens, words if isinstance(words, Value) else np.int64(words))
    # Tokens that are not banned write to one more column, which is dropped.
    wide = ops.Pad(scores, [0, 0], [0, 1], np.float32(0))
    lowest = ops.Broadcast(np.full((), -np.inf, np.float32), ops.ShapeOf(tokens))
    marked = ops.ScatterElementsUpdate(wide, tokens, lowest, 1)
    return ops.Slice(marked, [0], [-1], [1], [1])


def _is_tail(ids: Value, place: int, before: int) -> Value:
    """[batch, windows]: whether token `place` of a window is that of the last `before` tokens."""
    left = place - before
    return ops.Equal(_columns(ids, place, left), _columns(ids, left, left + 1 or FAR))


def _columns(ids: Value, start: int, stop: int) -> Value:
    return ops.Slice(ids, [start], [stop], [1], [1])
