"""Python's control flow, as AutoGraph translates it, and branches."""

from __future__ import annotations

import tensorflow as tf

from tests.models.sources.exporting.inputs import exact, normal
from tests.models.sources.exporting.tensorflow import Catalogue, Outputs, whole
from tests.models.sources.tensorflow_models.loops import MIX

MODELS = Catalogue()


@MODELS.exported("function", opset=13, cases={
    "three_trips": {"x": normal(1, 2, 4), "n": whole(3)}, "one_trip": {"x": normal(2, 2, 4), "n": whole(1)},
    "no_trips": {"x": normal(3, 2, 4), "n": whole(0)},
}, shapes={"x": [2, 4], "n": []})
def for_range(x: tf.Tensor, n: tf.Tensor) -> Outputs:
    """AutoGraph: a for loop over tf.range that writes a TensorArray and uses the iteration number."""
    steps = tf.TensorArray(tf.float32, size=n, element_shape=[2, 4])
    for i in tf.range(n):
        x = tf.tanh(x @ MIX) + 0.1 * tf.cast(i, tf.float32)
        steps = steps.write(i, x)
    return {"last": x, "steps": steps.stack()}


@MODELS.exported("function", opset=17, cases={
    "breaks_at_third": {"x": exact([[1.0, 0.5], [0.5, 0.25], [2.0, 1.0], [9.0, 9.0]]), "limit": exact(3.0)},
    "breaks_at_first": {"x": exact([[1.0, 0.5], [0.5, 0.25]]), "limit": exact(-1.0)},
    "runs_to_the_end": {"x": normal(1, 6, 2), "limit": exact(1000.0)},
    "no_rows": {"x": normal(2, 0, 2), "limit": exact(3.0)},
}, shapes={"x": [None, 2], "limit": []})
def for_break(x: tf.Tensor, limit: tf.Tensor) -> Outputs:
    """AutoGraph: a for loop over rows with a break; the loop's condition is an If."""
    total, used = tf.zeros([2]), 0
    for i in tf.range(tf.shape(x)[0]):
        total += x[i]
        used += 1
        if tf.reduce_sum(total) > limit:
            break
    return {"total": total, "used": used}


@MODELS.exported("function", opset=11, cases={
    "breaks_at_third": {"x": exact([[1.0, 0.5], [-0.5, 0.25], [2.0, 1.0], [9.0, 9.0]]), "limit": exact(3.0)},
    "skips_all": {"x": exact([[-1.0, 0.5], [0.5, -0.25]]), "limit": exact(3.0)},
    "runs_to_the_end": {"x": normal(1, 6, 2), "limit": exact(1000.0)},
    "no_rows": {"x": normal(2, 0, 2), "limit": exact(3.0)},
}, shapes={"x": [None, 2], "limit": []})
def for_continue(x: tf.Tensor, limit: tf.Tensor) -> Outputs:
    """AutoGraph: continue and break in one loop, which become Ifs in Ifs."""
    total = tf.zeros([2])
    for i in tf.range(tf.shape(x)[0]):
        row = x[i]
        if tf.reduce_min(row) < 0.0:
            continue
        total = total * 0.5 + row
        if tf.reduce_sum(total) > limit:
            break
    return {"total": total}


@MODELS.exported("function", opset=18, cases={
    "both_branches": {"x": exact([[0.25, 0.35], [0.1, 0.5]]), "outer": whole(4), "inner": whole(3)},
    "else_only": {"x": exact([[5.25, 6.0]]), "outer": whole(3), "inner": whole(2)},
    "no_inner_trips": {"x": exact([[0.25, 0.35]]), "outer": whole(2), "inner": whole(0)},
    "no_outer_trips": {"x": normal(1, 2, 2), "outer": whole(0), "inner": whole(3)},
}, shapes={"x": [None, 2], "outer": [], "inner": []})
def loop_if_loop(x: tf.Tensor, outer: tf.Tensor, inner: tf.Tensor) -> Outputs:
    """AutoGraph: a while loop in an if in a for loop; the innermost body captures an input of the model."""
    start = x
    for _ in tf.range(outer):
        if tf.reduce_mean(x) < 1.0:
            j = 0
            while j < inner:
                x = x + 0.5 * tf.cast(j, tf.float32) + 0.01 * start
                j += 1
        else:
            x = x - 1.0
    return {"y": x}


@MODELS.exported("function", opset=15, cases={
    "first": {"x": normal(1, 2, 4), "branch": whole(-1)}, "second": {"x": normal(2, 1, 4), "branch": whole(1)},
    "default": {"x": normal(3, 3, 4), "branch": whole(7)},
}, shapes={"x": [None, 4], "branch": []})
def case(x: tf.Tensor, branch: tf.Tensor) -> Outputs:
    """tf.case of three branches: an If in the else branch of an If."""
    first = (branch < 0, lambda: x @ MIX)
    second = (branch < 2, lambda: tf.reverse(x, [1]))
    return {"y": tf.case([first, second], default=lambda: tf.cumsum(x, axis=0))}
