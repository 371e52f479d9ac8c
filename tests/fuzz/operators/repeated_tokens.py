"""Scores of tokens that would repeat a sequence of tokens."""

import numpy as np

from tests.fuzz.operators.draw import Draw, Node


def repeats(d: Draw) -> Node:
    """Few words, so that sequences repeat."""
    batch, length, words, count = d.size(1, 3, 0), d.size(1, 9, 0), d.size(2, 6, 0), d.integer(1, 4)
    ids = d.given(d.values.integers(0, min(words, 3), (batch, length)), 0.05)
    return d.node([ids, d.data([batch, words], np.float32)], ngram_size=count)


OPERATORS = {"com.microsoft::NGramRepeatBlock": repeats}
