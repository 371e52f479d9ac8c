"""Recurrent Keras layers."""

from __future__ import annotations

import numpy as np
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import layers

from tests.models.sources.exporting.inputs import Data, exact, normal
from tests.models.sources.exporting.tensorflow import Catalogue

MODELS = Catalogue()


def padded(seed: int, *lengths: int, time: int, features: int) -> Data:
    """A batch of sequences of the given lengths, filled up to `time` with zeros, which keras.layers.Masking masks."""
    array = np.random.default_rng(seed).standard_normal((len(lengths), time, features)).round(2)
    array[np.arange(time) >= np.array(lengths)[:, None]] = 0.0
    return exact(array.tolist())


SEQUENCES = {"two_of_five": {"x": normal(1, 2, 5, 3)}, "one_of_one": {"x": normal(2, 1, 1, 3)},
             "three_of_nine": {"x": normal(3, 3, 9, 3)}}
NO_STEPS = {"no_steps": {"x": normal(4, 2, 0, 3)}}
PADDED = {
    "unequal": {"x": padded(1, 3, 5, time=5, features=3)},
    "none_padded": {"x": padded(2, 2, time=2, features=3)},
    "one_empty": {"x": padded(3, 0, 4, 1, time=4, features=3)},
    "all_padding": {"x": padded(4, 0, time=3, features=3)},
}


def recurrent(*chain: layers.Layer, batch: int | None = None) -> keras.Model:
    """Layers one after the other, on a batch of sequences of three features."""
    y = x = keras.Input((None, 3), batch_size=batch, name="x")
    for layer in chain:
        y = layer(y)
    return keras.Model(x, y)


@MODELS.exported("keras", opset=15, cases=SEQUENCES, refused=NO_STEPS)
def simple_rnn() -> keras.Model:
    """SimpleRNN, all steps and the last state: a Loop, for tf2onnx writes no RNN."""
    return recurrent(layers.SimpleRNN(4, return_sequences=True, return_state=True))


@MODELS.exported("keras", opset=13, cases=SEQUENCES)
def gru() -> keras.Model:
    """GRU, all steps and the last state, which tf2onnx writes as GRU."""
    return recurrent(layers.GRU(4, return_sequences=True, return_state=True))


@MODELS.exported("keras", opset=17, cases=SEQUENCES, refused=NO_STEPS)
def gru_backwards() -> keras.Model:
    """GRU with the reset gate before the product, running backwards: ReverseSequence and a Loop."""
    return recurrent(layers.GRU(4, reset_after=False, go_backwards=True, return_sequences=True, return_state=True))


@MODELS.exported("keras", opset=11, cases=PADDED)
def gru_masked() -> keras.Model:
    """Masking and GRU with zeros as the output of masked steps: a Loop that carries state and last output."""
    return recurrent(layers.Masking(), layers.GRU(4, zero_output_for_mask=True, return_sequences=True))


@MODELS.exported("keras", opset=18, cases=SEQUENCES, refused=NO_STEPS)
def lstm_bidirectional() -> keras.Model:
    """Bidirectional LSTM, which tf2onnx writes as one LSTM."""
    return recurrent(layers.Bidirectional(layers.LSTM(3, return_sequences=True)))


@MODELS.exported("keras", opset=15, cases=PADDED)
def lstm_masked() -> keras.Model:
    """Masking and a bidirectional LSTM: two Loops, one of them between ReverseSequence."""
    return recurrent(layers.Masking(), layers.Bidirectional(layers.LSTM(3, return_sequences=True)))


@MODELS.exported("keras", opset=17, cases={
    "unequal": {"x": padded(1, 3, 5, time=5, features=3)},
    "one_step": {"x": padded(2, 1, 1, time=1, features=3)},
    "all_padding": {"x": padded(3, 0, 0, time=4, features=3)},
}, refused=NO_STEPS)
def lstm_stateful() -> keras.Model:
    """A stateful LSTM with masking: a Loop whose initial states are constants."""
    return recurrent(layers.Masking(), layers.LSTM(3, stateful=True, return_sequences=True, return_state=True), batch=2)


@MODELS.exported("keras", opset=13, cases=SEQUENCES, refused=NO_STEPS)
def stacked_cells() -> keras.Model:
    """An RNN of an LSTM cell under a GRU cell: one Loop that carries three states."""
    return recurrent(layers.RNN([layers.LSTMCell(3), layers.GRUCell(4)], return_sequences=True, return_state=True))


class PeepholeCell(layers.Layer):
    """An LSTM cell whose gates see the cell state."""

    def __init__(self, units: int) -> None:
        super().__init__()
        self.units = self.output_size = units
        self.state_size = [units, units]

    def build(self, shape: tf.TensorShape) -> None:
        """Make the weights for inputs of `shape`."""
        self.kernel = self.add_weight("kernel", (shape[-1], 4 * self.units))
        self.recurrent = self.add_weight("recurrent", (self.units, 4 * self.units))
        self.peepholes = self.add_weight("peepholes", (3, self.units))
        super().build(shape)

    def call(self, x: tf.Tensor, states: list[tf.Tensor]) -> tuple[tf.Tensor, list[tf.Tensor]]:
        """The output and the states after one step."""
        h, c = states
        i, f, g, o = tf.split(x @ self.kernel + h @ self.recurrent, 4, axis=-1)
        i, f = tf.sigmoid(i + self.peepholes[0] * c), tf.sigmoid(f + self.peepholes[1] * c)
        c = f * c + i * tf.tanh(g)
        h = tf.sigmoid(o + self.peepholes[2] * c) * tf.tanh(c)
        return h, [h, c]


@MODELS.exported("keras", opset=18, cases=SEQUENCES, refused=NO_STEPS)
def peephole_cell() -> keras.Model:
    """An RNN of a cell of one's own: a Loop."""
    return recurrent(layers.RNN(PeepholeCell(3), return_sequences=True, return_state=True))


@MODELS.exported("keras", opset=13, cases={
    "two_of_three": {"x": normal(1, 2, 3, 4, 4, 2)}, "one_of_one": {"x": normal(2, 1, 1, 4, 4, 2)},
    "one_of_six": {"x": normal(3, 1, 6, 4, 4, 2)},
}, refused={"no_steps": {"x": normal(4, 2, 0, 4, 4, 2)}})
def conv_lstm() -> keras.Model:
    """ConvLSTM2D, all steps and the last states: a Loop over eight convolutions."""
    x = keras.Input((None, 4, 4, 2), name="x")
    return keras.Model(x, layers.ConvLSTM2D(2, 3, padding="same", return_sequences=True, return_state=True)(x))


@MODELS.exported("keras", opset=11, cases=PADDED)
def time_distributed() -> keras.Model:
    """Masking, TimeDistributed(Dense) and LSTM: Reshape around the dense layer, and the mask continues to a Loop."""
    return recurrent(layers.Masking(), layers.TimeDistributed(layers.Dense(3, activation="relu")), layers.LSTM(3))
