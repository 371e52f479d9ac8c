"""Results whose length is known only after the run."""

from __future__ import annotations

import tensorflow as tf

from tests.models.sources.exporting.inputs import normal
from tests.models.sources.exporting.tensorflow import Catalogue, Outputs, weights, whole

MODELS = Catalogue()

EMBEDDING, CELL, HEAD = weights(2, 8, 6), weights(3, 12, 6), weights(4, 6, 8)


@MODELS.exported("function", opset=18, cases={
    "ends_late": {"state": normal(10, 1, 6), "limit": whole(20)},
    "ends_early": {"state": normal(1, 1, 6), "limit": whole(20)},
    "cut_short": {"state": normal(10, 1, 6), "limit": whole(4)},
    "no_trips": {"state": normal(10, 1, 6), "limit": whole(0)},
}, shapes={"state": [1, 6], "limit": []})
def decoder(state: tf.Tensor, limit: tf.Tensor) -> Outputs:
    """AutoGraph: greedy decoding that appends each token, until the end token or a limit of tokens."""
    token = tf.ones([1], tf.int32)
    tokens, done, step = token, False, 0
    while step < limit and not done:
        tf.autograph.experimental.set_loop_options(shape_invariants=[(tokens, tf.TensorShape([None]))])
        state = tf.tanh(tf.concat([tf.gather(EMBEDDING, token), state], axis=1) @ CELL)
        token = tf.argmax(state @ HEAD, axis=1, output_type=tf.int32)
        tokens = tf.concat([tokens, token], axis=0)
        done = token[0] == 3
        step += 1
    return {"tokens": tokens, "last": state}


@MODELS.exported("function", opset=13, cases={
    "three_rows": {"x": normal(1, 3, 5), "lengths": whole([2, 5, 1])},
    "one_row": {"x": normal(2, 1, 5), "lengths": whole([3])},
    "one_empty": {"x": normal(3, 2, 5), "lengths": whole([0, 4])},
}, shapes={"x": [None, 5], "lengths": [None]})
def ragged(x: tf.Tensor, lengths: tf.Tensor) -> Outputs:
    """tf.map_fn to rows of unequal length: a Loop that carries a sequence, then ConcatFromSequence."""
    rows = tf.map_fn(lambda row: row[0][: row[1]] * 2.0, (x, lengths),
                     fn_output_signature=tf.RaggedTensorSpec([None], tf.float32))
    return {"values": tf.reshape(rows.values, [-1]), "splits": rows.row_splits}
