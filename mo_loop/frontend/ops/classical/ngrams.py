"""TfIdfVectorizer: counts n-grams of numbers, with gaps between their members.

[1, 5, 1, 5, 7] with the 2-grams (1, 5) and (5, 5), gaps up to 1   ->   (1, 5) twice, (5, 5) once
"""

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from mo_loop.frontend.arrays import ones, zeros
from mo_loop.frontend.ops.classical.features import no_strings
from mo_loop.frontend.ops.elementwise.arithmetic import number
from mo_loop.frontend.ops.normalisation import ranked
from mo_loop.frontend.vocabulary import ModelError, UnsupportedError, Value, ops, translates
from mo_loop.graph.types import f32, string
from mo_loop.ops.ranges import FewOrNone, require_parts

Ints = tuple[int, ...]
Floats = tuple[float, ...]
Strings = tuple[str, ...]


@translates("TfIdfVectorizer", since=9)
def tf_idf_vectorizer(
    x, *, max_gram_length: int, max_skip_count: FewOrNone, min_gram_length: int, mode: str, ngram_counts: Ints,
    ngram_indexes: Ints, pool_int64s: Ints | None = None, pool_strings: Strings | None = None,
    weights: Floats | None = None,
):  # fmt: skip
    """[N, count] of [N, C], [count] of [C]."""
    if x.dtype is string or pool_strings:
        raise no_strings("n-grams of strings")
    if mode not in ("TF", "IDF", "TFIDF"):
        raise ModelError(f"mode {mode!r}: ONNX defines TF, IDF and TFIDF", code="ML227")
    rank = ranked(x, "TfIdfVectorizer")
    if rank not in (1, 2):
        raise ModelError(f"TfIdfVectorizer of a tensor of rank {rank}, not [C] or [N, C]", code="ML227")
    pools = _pools(pool_int64s or (), ngram_counts)
    if sum(len(each) for each in pools) != len(ngram_indexes):
        raise ModelError(f"{len(ngram_indexes)} ngram_indexes for another number of n-grams", code="ML227")
    counted = {
        length: range(1, 2 if length == 1 else max_skip_count + 2)
        for length, pool in enumerate(pools, 1)
        if len(pool) and min_gram_length <= length <= max_gram_length
    }
    require_parts(sum(length * len(gaps) for length, gaps in counted.items()), "the members of n-grams with all gaps")
    found = []
    for length, pool in enumerate(pools, 1):
        if length in counted:
            found.append(reduce(ops.Add, [_counted(x, pool, gap) for gap in counted[length]]))
        elif len(pool):
            found.append(_none(x, len(pool)))
    return _weighed(ops.Concat(*found, axis=rank - 1), ngram_indexes, mode, weights)


def _pools(pool: Ints, starts: Ints) -> list[Any]:
    """The n-grams [count, n] for n = 1, 2, ..."""
    if not starts:
        raise ModelError("TfIdfVectorizer has no ngram_counts", code="ML227")
    ends = [*starts[1:], len(pool)]
    pieces = [pool[start:end] for start, end in zip(starts, ends, strict=True)]
    if any(len(piece) % n for n, piece in enumerate(pieces, 1)):
        raise ModelError("ngram_counts cut the pool inside an n-gram", code="ML227")
    return [np.array(piece, np.int64).reshape(-1, n) for n, piece in enumerate(pieces, 1)]


def _counted(x: Value, pool, gap: int) -> Value:
    """[N, count]: how often each n-gram occurs with its members `gap` places apart."""
    length = pool.shape[1]
    hits: Any = None
    for place in range(length):
        rest = (length - 1 - place) * gap
        piece = ops.Slice(x, [place * gap], [-rest or 2**30], [1], [-1])
        # The runtime compares integers in f32: their difference to 0 is exact.
        gone = ops.Unsqueeze(piece, -1) - pool[:, place].astype(x.dtype.numpy)
        here = ops.Equal(gone, number(x, 0))
        hits = here if hits is None else hits & here
    return ops.ReduceSum(ops.Convert(hits, destination_type=f32), [-2], keep_dims=False)


def _none(x: Value, count: int) -> Value:
    """Zeros for n-grams whose length is not selected."""
    rows = ops.Slice(ops.ShapeOf(x), [0], [-1], [1], [0])
    return ops.Broadcast(np.float32(0), ops.Concat(rows, np.array([count]), axis=0))


def _weighed(counts: Value, places: Sequence[int], mode: str, weights: Floats | None):
    """The counts of n-grams at their places, n-grams of one place added up."""
    size = max(places) + 1
    matrix = zeros((len(places), size), np.float32)
    matrix[np.arange(len(places)), list(places)] = 1
    # One row times the matrix: a vector is made one, and back.
    row = counts if counts.rank == 2 else ops.Unsqueeze(counts, 0)
    made = row @ matrix
    if mode == "IDF":
        made = ops.Minimum(made, np.float32(1))
    if mode != "TF" and weights:
        made = made * _at_places(weights, places, size)
    return made if counts.rank == 2 else ops.Squeeze(made, 0)


def _at_places(weights: Floats, places: Sequence[int], size: int):
    """The weight of each place. ONNX gives it to the n-gram, ONNX Runtime to the place of that number."""
    found = ones([size], np.float32)
    found[list(places)] = weights
    agreed = all(place < len(weights) and weights[place] == each for place, each in zip(places, weights, strict=True))
    if not agreed:
        raise UnsupportedError(
            "weights in another order than ngram_indexes: runtimes differ in which weight they use",
            code="ML316", hint="order ngram_indexes and weights alike",
        )  # fmt: skip
    return found
