"""Numbers that attention adds to its scores, from the distance between a query and a key."""

import math
from typing import Any

import numpy as np

from mo_loop.frontend.arrays import counted_up
from mo_loop.frontend.ops.attention import heads as parts
from mo_loop.frontend.ops.attention import packed_attention as unpadded
from mo_loop.frontend.ops.normalisation import ranked
from mo_loop.frontend.ops.shared import counted
from mo_loop.frontend.vocabulary import MICROSOFT, ModelError, UnsupportedError, ops, translates
from mo_loop.ops.lengths import length_in
from mo_loop.ops.ranges import Integers, Matrix, One, Positive, Rank3, Rank4, Vector


@translates("RelativePositionBias", since=1, domain=MICROSOFT)
def relative_position_bias(
    bias_table: Matrix, query_length: One | Integers, key_length: One | Integers, *, is_bidirectional: int = 0,
    max_distance: int,
):  # fmt: skip
    """[1, heads, S, T] as in T5: near distances have a bucket each, far ones share buckets of growing width.

    The elements of the table lie in memory as [heads, buckets], although its shape is [buckets, heads]. All
    distances from `max_distance` on are in one bucket, so a table of the distances up to there is computed here.
    """
    buckets, heads = (bias_table.shape or (None, None))[:2]
    if not isinstance(buckets, int) or not isinstance(heads, int):
        raise UnsupportedError(
            "the shape of bias_table is not known: make it a constant, or declare its shape (--input)", code="ML314"
        )
    at = _buckets(buckets, max_distance, bool(is_bidirectional))
    of_distance = ops.Gather(ops.Reshape(bias_table, [heads, buckets]), at, 1)
    queries, keys = (counted(length_in(each), bias_table) for each in (query_length, key_length))
    distance = keys - ops.Unsqueeze(queries, [1])
    row = ops.Minimum(ops.Maximum(distance, -max_distance), max_distance) + max_distance
    return ops.Unsqueeze(ops.Gather(of_distance, row, 1), [0])


def _buckets(count: int, largest: int, both: bool) -> Any:
    """The buckets of the distances (key - query) from -largest to largest.

    Logarithms of distances are computed in f32, and that of `max_distance` in f64, as by the models that were trained
    with these buckets: some are just at the border of two.
    """
    distances = counted_up(-largest, largest + 1)
    half = count // 2 if both else count
    exact = half // 2
    if not 0 < exact < largest:
        raise ModelError(
            f"{count} buckets and a max_distance of {largest}: the distances below {exact} have buckets of their own, "
            "and max_distance must be larger",
            code="ML227",
        )
    far = np.abs(distances) if both else np.maximum(-distances, 0)
    ratio = np.maximum(far, exact).astype(np.float32) / np.float32(exact)
    scaled = np.log(ratio) / np.float32(math.log(largest / exact)) * np.float32(half - exact)
    bucket = np.where(far < exact, far, np.minimum(exact + scaled.astype(np.int64), half - 1))
    return bucket + half * (distances > 0) if both else bucket


@translates("GatedRelativePositionBias", since=1, domain=MICROSOFT)
def gated_relative_position_bias(
    query_layer: Matrix | Rank3, query_bias: Vector, rel_pos: Rank4, weight: Matrix, bias: Vector, eco_a,
    token_offset: Matrix = None, *, num_heads: Positive,
):  # fmt: skip
    """[batch, heads, S, T]: rel_pos * (u * (r * eco_a - 1) + 2), where u and r are the sigmoids of two sums of the
    projected query. Queries without padding are [tokens, hidden], and `token_offset` [batch, S] has their places.
    """
    query = query_layer
    if token_offset is not None:
        query = unpadded.restored(query, token_offset, unpadded.token_offsets(token_offset, query))
    if ranked(query, "the query_layer of GatedRelativePositionBias") != 3:
        raise ModelError("a query_layer of [tokens, hidden] needs the input token_offset", code="ML227")
    q = parts.split_heads(query + query_bias, num_heads)
    projected = q @ weight + bias
    halves = ops.Split(projected, 3, num_splits=2)
    u, r = (ops.Sigmoid(ops.ReduceSum(each, [3], keep_dims=True)) for each in halves)
    gate = u * (r * eco_a - 1) + 2
    return gate * rel_pos
