"""Graphs of TensorFlow 1, the only way to an ONNX Scan."""

from __future__ import annotations

import tensorflow as tf

from tests.models.sources.exporting.inputs import normal
from tests.models.sources.exporting.tensorflow import Catalogue, Outputs, v1, whole

MODELS = Catalogue()


class Cell(v1.nn.rnn_cell.RNNCell):
    """A recurrent cell that attends to a memory of [batch, places, 3] where there is one."""

    state_size = output_size = 3

    def __init__(self, memory: tf.Tensor | None = None) -> None:
        super().__init__()
        self.memory = memory

    def __call__(self, x: tf.Tensor, h: tf.Tensor, scope: object = None) -> tuple[tf.Tensor, tf.Tensor]:
        z = tf.tanh(tf.concat([x, h], axis=1) @ v1.get_variable("kernel", (6, 3)))
        if self.memory is None:
            return z * 2.0, 0.5 * h + z
        scores = tf.nn.softmax(tf.reduce_sum(self.memory * z[:, tf.newaxis], axis=2))
        context = tf.reduce_sum(scores[:, :, tf.newaxis] * self.memory, axis=1)
        return context, tf.tanh(context + z)


@MODELS.exported("graph", opset=11, cases={
    "unequal": {"x": normal(1, 2, 5, 3), "lengths": whole([3, 5])},
    "one_step": {"x": normal(2, 1, 1, 3), "lengths": whole([1])},
    "one_empty": {"x": normal(3, 3, 4, 3), "lengths": whole([0, 4, 1])},
}, shapes={"x": [None, None, 3], "lengths": [None]})
def dynamic_rnn(x: tf.Tensor, lengths: tf.Tensor) -> Outputs:
    """dynamic_rnn with lengths, time inside: a Scan between Transposes that counts steps and captures lengths."""
    y, last = v1.nn.dynamic_rnn(Cell(), x, sequence_length=lengths, dtype=tf.float32)
    return {"y": y, "last": last}


@MODELS.exported("graph", opset=17, cases={
    "five_steps": {"x": normal(1, 5, 2, 3), "memory": normal(2, 2, 4, 3)},
    "one_step": {"x": normal(3, 1, 2, 3), "memory": normal(4, 2, 1, 3)},
    "nine_steps": {"x": normal(7, 9, 2, 3), "memory": normal(8, 2, 6, 3)},
}, shapes={"x": [None, 2, 3], "memory": [2, None, 3]})
def attention(x: tf.Tensor, memory: tf.Tensor) -> Outputs:
    """dynamic_rnn, time first, whose cell attends to a memory: a Scan that captures an input of the model."""
    y, last = v1.nn.dynamic_rnn(Cell(memory), x, dtype=tf.float32, time_major=True)
    return {"y": y, "last": last}
