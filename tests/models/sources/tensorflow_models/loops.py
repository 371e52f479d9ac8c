"""TensorFlow's own functions that loop: over a condition, over rows."""

from __future__ import annotations

import tensorflow as tf

from tests.models.sources.exporting.inputs import exact, normal
from tests.models.sources.exporting.tensorflow import Catalogue, Outputs, weights, whole

MODELS = Catalogue()

MIX = weights(1, 4, 4)

STEPS = {
    "three_trips": {"x": normal(1, 2, 4), "n": whole(3)},
    "one_trip": {"x": normal(2, 1, 4), "n": whole(1)},
    "no_trips": {"x": normal(3, 3, 4), "n": whole(0)},
    "many_trips": {"x": normal(4, 2, 4), "n": whole(40)},
}


@MODELS.exported("function", opset=11, cases=STEPS, shapes={"x": [None, 4], "n": []})
def while_loop(x: tf.Tensor, n: tf.Tensor) -> Outputs:
    """tf.while_loop with a counter of its own in addition to the iteration number; no trip count."""
    _, y = tf.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, y * 0.5 + tf.cast(i, tf.float32)), (0, x))
    return {"y": y}


@MODELS.exported("function", opset=15, cases={
    "stops_by_limit": {"x": exact([0.5, -1.0]), "y": exact([0.25, 0.5]), "limit": exact(9.0), "most": whole(30)},
    "stops_by_count": {"x": exact([0.5, -1.0]), "y": exact([0.25, 0.5]), "limit": exact(1e9), "most": whole(5)},
    "count_of_zero": {"x": normal(1, 3), "y": normal(2, 3), "limit": exact(1e9), "most": whole(0)},
    "limit_of_zero": {"x": normal(3, 3), "y": normal(4, 3), "limit": exact(0.0), "most": whole(3)},
}, shapes={"x": [None], "y": [None], "limit": [], "most": []})
def while_swap(x: tf.Tensor, y: tf.Tensor, limit: tf.Tensor, most: tf.Tensor) -> Outputs:
    """tf.while_loop with a trip count from an input; each trip x, y = y, x + y, so a body input is an output."""
    first, second = tf.while_loop(lambda _, y: tf.reduce_sum(tf.abs(y)) < limit, lambda x, y: (y, x + y), (x, y),
                                  maximum_iterations=most)
    return {"first": first, "second": second}


@MODELS.exported("function", opset=13, cases={
    "three_trips": {"x": normal(1, 1, 4), "n": whole(3)}, "one_trip": {"x": normal(2, 1, 4), "n": whole(1)},
    "no_trips": {"x": normal(3, 1, 4), "n": whole(0)},
}, shapes={"x": [1, 4], "n": []})
def while_growing(x: tf.Tensor, n: tf.Tensor) -> Outputs:
    """tf.while_loop that carries a tensor growing by one row in each trip, by shape_invariants."""

    def body(i: tf.Tensor, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return i + 1, tf.concat([rows, rows[-1:] * 0.5 + tf.cast(i, tf.float32)], axis=0)

    invariants = (tf.TensorShape([]), tf.TensorShape([None, 4]))
    _, rows = tf.while_loop(lambda i, _: i < n, body, (0, x), shape_invariants=invariants)
    return {"y": rows}


@MODELS.exported("function", opset=18, cases={
    "five_steps": {"h": normal(1, 2, 4), "xs": normal(2, 5, 2, 4)},
    "one_step": {"h": normal(3, 2, 4), "xs": normal(4, 1, 2, 4)},
    "no_steps": {"h": normal(5, 2, 4), "xs": normal(6, 0, 2, 4)},
    "twelve_steps": {"h": normal(7, 2, 4), "xs": normal(8, 12, 2, 4)},
}, shapes={"h": [2, 4], "xs": [None, 2, 4]})
def scan(h: tf.Tensor, xs: tf.Tensor) -> Outputs:
    """tf.scan of one recurrent layer: a Loop with a Gather for each step and a scan output."""
    return {"hs": tf.scan(lambda h, x: tf.tanh(h @ MIX + x), xs, initializer=h)}


ROWS = {"five_rows": {"xs": normal(1, 5, 4)}, "one_row": {"xs": normal(2, 1, 4)}, "no_rows": {"xs": normal(3, 0, 4)}}


@MODELS.exported("function", opset=13, cases=ROWS, shapes={"xs": [None, 4]})
def scan_pair(xs: tf.Tensor) -> Outputs:
    """tf.scan over the rows in reverse order with two states, both constants at first, and two scan outputs."""
    sums, peaks = tf.scan(lambda state, x: (state[0] + x, tf.maximum(state[1], x * 2.0)), tf.reverse(xs, [0]),
                          initializer=(tf.zeros(4), tf.ones(4)))
    return {"sums": tf.reverse(sums, [0]), "peaks": peaks}


@MODELS.exported("function", opset=17, cases={
    "three_rows": {"a": normal(1, 3, 2, 4), "b": normal(2, 3, 5)},
    "one_row": {"a": normal(3, 1, 2, 4), "b": normal(4, 1, 5)},
    "no_rows": {"a": normal(5, 0, 2, 4), "b": normal(6, 0, 5)},
}, shapes={"a": [None, 2, 4], "b": [None, 5]})
def map_fn(a: tf.Tensor, b: tf.Tensor) -> Outputs:
    """tf.map_fn over two tensors to two results of another type and rank: a Loop that carries nothing but counters."""
    soft, best = tf.map_fn(lambda row: (tf.nn.softmax(row[0] @ MIX), tf.argmax(row[1], axis=-1)), (a, b),
                           fn_output_signature=(tf.float32, tf.int64))
    return {"soft": soft, "best": best}


@MODELS.exported("function", opset=11, cases=ROWS, shapes={"xs": [None, 4]})
def map_cond(xs: tf.Tensor) -> Outputs:
    """tf.map_fn of tf.cond: an If in a Loop, whose branches capture the row."""

    def one(row: tf.Tensor) -> tf.Tensor:
        return tf.cond(tf.reduce_sum(row) > 0.0, lambda: row * 2.0, lambda: tf.nn.relu(-row) - 1.0)

    return {"y": tf.map_fn(one, xs)}


@MODELS.exported("function", opset=13, cases={
    "two_of_three": {"x": normal(1, 2, 3, 3)}, "one_of_one": {"x": normal(2, 1, 1, 3)},
    "no_inner_trips": {"x": normal(3, 2, 0, 3)}, "four_of_two": {"x": normal(4, 4, 2, 3)},
}, refused={"no_outer_trips": {"x": normal(5, 0, 2, 3)}}, shapes={"x": [None, None, 3]})
def map_nested(x: tf.Tensor) -> Outputs:
    """tf.map_fn in tf.map_fn: a Loop in a Loop, each with a scan output; the inner trip count is the outer body's."""
    return {"y": tf.map_fn(lambda rows: tf.map_fn(lambda row: tf.reduce_sum(row * row) + row[0], rows), x)}


@MODELS.exported("function", opset=15, cases=ROWS, shapes={"xs": [None, 4]})
def fold(xs: tf.Tensor) -> Outputs:
    """tf.foldl and tf.foldr over the same rows, from constants."""
    left = tf.foldl(lambda total, x: total * 0.5 + x, xs, initializer=tf.zeros([4]))
    right = tf.foldr(lambda h, x: tf.tanh(h @ MIX + x[tf.newaxis]), xs, initializer=tf.zeros([1, 4]))
    return {"left": left, "right": right}
