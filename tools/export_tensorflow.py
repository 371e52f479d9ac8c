"""Export small TensorFlow models to ONNX with tf2onnx, as test material for control flow and recurrent layers.

    pip install tensorflow-cpu==2.15.1 tf2onnx==1.17.0 onnx==1.17.0 onnxruntime==1.20.1      # Python 3.11
    python tools/export_tensorflow.py               # every model, into tests/models/tensorflow
    python tools/export_tensorflow.py --out models lstm_masked fold

TensorFlow 2.15 is the last with Keras 2, the Keras that tf2onnx is made for; it wants numpy 1, and an ml_dtypes that is
too old for a later onnx.

Writes NAME.onnx for each model and one cases.toml with the inputs to run them on; runs every case with ONNX Runtime and
compares it with TensorFlow where that does not refuse it. Exporters are "keras" (a Keras model), "function" (a function
of tensors, with what AutoGraph makes of Python's control flow) and "graph" (a graph of TensorFlow 1, the only way to an
ONNX Scan).

The files are reproducible: weights come from one seed, doc strings are removed, every model is made in a process of its
own (TensorFlow counts what it names), and hashes are fixed (tf2onnx writes nodes in the order of sets; where Python
hashes strings at random, the tool starts itself again). Other versions of TensorFlow or tf2onnx may write other graphs.
"""

from __future__ import annotations

import argparse
import itertools
import logging
import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")  # read once, when TensorFlow is imported
os.environ.setdefault("TF_ENABLE_ONEDNN_OPTS", "0")

import numpy as np
import onnx
import onnxruntime
import tensorflow as tf
import tf2onnx
from google.protobuf.message import Message
from tensorflow import keras
from tensorflow.keras import layers
from tf2onnx.graph import Node

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tools.exporting.inputs import Data, Inputs, exact, normal

OUT = Path(__file__).resolve().parents[1] / "tests" / "models" / "tensorflow"
WEIGHT_SEED = 20240229
MAX_BYTES = 60_000
RTOL, ATOL = 1e-4, 1e-5

HEADER = """\
# Inputs of the models in this folder, one table a model. Written by tools/export_tensorflow.py: change them there.
# seed: numpy.random.default_rng(seed).standard_normal(shape), then cast to dtype.  values: row-major order.
"""

v1 = tf.compat.v1
Outputs = Mapping[str, tf.Tensor]
Expected = list[list[np.ndarray]]
"""For each case, the outputs in the order of the ONNX model."""


# -------------------------------------------------------------------------------------------------------------- inputs


def whole(values: int | list) -> Data:
    """int32 data, TensorFlow's type of integers."""
    data = exact(values)
    return Data(data.shape, "int32", values=data.values)


def padded(seed: int, *lengths: int, time: int, features: int) -> Data:
    """A batch of sequences of the given lengths, filled up to `time` with zeros, which keras.layers.Masking masks."""
    array = np.random.default_rng(seed).standard_normal((len(lengths), time, features)).round(2)
    array[np.arange(time) >= np.array(lengths)[:, None]] = 0.0
    return exact(array.tolist())


def weights(seed: int, *shape: int) -> np.ndarray:
    """float32 constants of a function."""
    return np.random.default_rng([WEIGHT_SEED, seed]).normal(scale=0.5, size=shape).astype(np.float32)


# -------------------------------------------------------------------------------------------------------------- models


@dataclass(frozen=True)
class Model:
    """What to export: a function that makes a Keras model, or one that computes named outputs from named inputs.

    `refused` holds cases that TensorFlow refuses and ONNX Runtime runs: layers on no steps at all. `shapes` holds the
    inputs of a function, with None for a dynamic axis.
    """

    make: Callable[..., keras.Model | Outputs]
    exporter: str
    opset: int
    cases: Mapping[str, Inputs]
    refused: Mapping[str, Inputs]
    shapes: Mapping[str, Sequence[int | None]]

    @property
    def about(self) -> str:
        """The docstring of the function."""
        return " ".join((self.make.__doc__ or "").split())

    @property
    def specs(self) -> list[tf.TensorSpec]:
        """The inputs of a function, typed as in the first case."""
        example = next(iter(self.cases.values()))
        return [tf.TensorSpec(self.shapes[name], data.dtype, name) for name, data in example.items()]


MODELS: dict[str, Model] = {}

Make = Callable[..., keras.Model | Outputs]


def exported(
    exporter: str,
    *,
    opset: int,
    cases: Mapping[str, Inputs],
    refused: Mapping[str, Inputs] | None = None,
    shapes: Mapping[str, Sequence[int | None]] | None = None,
) -> Callable[[Make], Make]:
    """Register a function as the model of its name."""

    def register(make: Make) -> Make:
        MODELS[make.__name__] = Model(make, exporter, opset, cases, refused or {}, shapes or {})
        return make

    return register


SEQUENCES = {
    "two_of_five": {"x": normal(1, 2, 5, 3)},
    "one_of_one": {"x": normal(2, 1, 1, 3)},
    "three_of_nine": {"x": normal(3, 3, 9, 3)},
}
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


@exported("keras", opset=15, cases=SEQUENCES, refused=NO_STEPS)
def simple_rnn() -> keras.Model:
    """SimpleRNN, all steps and the last state: a Loop, for tf2onnx writes no RNN."""
    return recurrent(layers.SimpleRNN(4, return_sequences=True, return_state=True))


@exported("keras", opset=13, cases=SEQUENCES)
def gru() -> keras.Model:
    """GRU, all steps and the last state, which tf2onnx writes as GRU."""
    return recurrent(layers.GRU(4, return_sequences=True, return_state=True))


@exported("keras", opset=17, cases=SEQUENCES, refused=NO_STEPS)
def gru_backwards() -> keras.Model:
    """GRU with the reset gate before the product, running backwards: ReverseSequence and a Loop."""
    return recurrent(layers.GRU(4, reset_after=False, go_backwards=True, return_sequences=True, return_state=True))


@exported("keras", opset=11, cases=PADDED)
def gru_masked() -> keras.Model:
    """Masking and GRU with zeros as the output of masked steps: a Loop that carries state and last output."""
    return recurrent(layers.Masking(), layers.GRU(4, zero_output_for_mask=True, return_sequences=True))


@exported("keras", opset=18, cases=SEQUENCES, refused=NO_STEPS)
def lstm_bidirectional() -> keras.Model:
    """Bidirectional LSTM, which tf2onnx writes as one LSTM."""
    return recurrent(layers.Bidirectional(layers.LSTM(3, return_sequences=True)))


@exported("keras", opset=15, cases=PADDED)
def lstm_masked() -> keras.Model:
    """Masking and a bidirectional LSTM: two Loops, one of them between ReverseSequence."""
    return recurrent(layers.Masking(), layers.Bidirectional(layers.LSTM(3, return_sequences=True)))


@exported(
    "keras",
    opset=17,
    cases={
        "unequal": {"x": padded(1, 3, 5, time=5, features=3)},
        "one_step": {"x": padded(2, 1, 1, time=1, features=3)},
        "all_padding": {"x": padded(3, 0, 0, time=4, features=3)},
    },
    refused=NO_STEPS,
)
def lstm_stateful() -> keras.Model:
    """A stateful LSTM with masking: a Loop whose initial states are constants."""
    return recurrent(layers.Masking(), layers.LSTM(3, stateful=True, return_sequences=True, return_state=True), batch=2)


@exported("keras", opset=13, cases=SEQUENCES, refused=NO_STEPS)
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


@exported("keras", opset=18, cases=SEQUENCES, refused=NO_STEPS)
def peephole_cell() -> keras.Model:
    """An RNN of a cell of one's own: a Loop."""
    return recurrent(layers.RNN(PeepholeCell(3), return_sequences=True, return_state=True))


@exported(
    "keras",
    opset=13,
    cases={
        "two_of_three": {"x": normal(1, 2, 3, 4, 4, 2)},
        "one_of_one": {"x": normal(2, 1, 1, 4, 4, 2)},
        "one_of_six": {"x": normal(3, 1, 6, 4, 4, 2)},
    },
    refused={"no_steps": {"x": normal(4, 2, 0, 4, 4, 2)}},
)
def conv_lstm() -> keras.Model:
    """ConvLSTM2D, all steps and the last states: a Loop over eight convolutions."""
    x = keras.Input((None, 4, 4, 2), name="x")
    return keras.Model(x, layers.ConvLSTM2D(2, 3, padding="same", return_sequences=True, return_state=True)(x))


@exported("keras", opset=11, cases=PADDED)
def time_distributed() -> keras.Model:
    """Masking, TimeDistributed(Dense) and LSTM: Reshape around the dense layer, and the mask goes on to a Loop."""
    return recurrent(layers.Masking(), layers.TimeDistributed(layers.Dense(3, activation="relu")), layers.LSTM(3))


MIX = weights(1, 4, 4)

STEPS = {
    "three_trips": {"x": normal(1, 2, 4), "n": whole(3)},
    "one_trip": {"x": normal(2, 1, 4), "n": whole(1)},
    "no_trips": {"x": normal(3, 3, 4), "n": whole(0)},
    "many_trips": {"x": normal(4, 2, 4), "n": whole(40)},
}


@exported("function", opset=11, cases=STEPS, shapes={"x": [None, 4], "n": []})
def while_loop(x: tf.Tensor, n: tf.Tensor) -> Outputs:
    """tf.while_loop with a counter of its own beside the iteration number; no trip count."""
    _, y = tf.while_loop(lambda i, _: i < n, lambda i, y: (i + 1, y * 0.5 + tf.cast(i, tf.float32)), (0, x))
    return {"y": y}


@exported(
    "function",
    opset=15,
    cases={
        "stops_by_limit": {"x": exact([0.5, -1.0]), "y": exact([0.25, 0.5]), "limit": exact(9.0), "most": whole(30)},
        "stops_by_count": {"x": exact([0.5, -1.0]), "y": exact([0.25, 0.5]), "limit": exact(1e9), "most": whole(5)},
        "count_of_zero": {"x": normal(1, 3), "y": normal(2, 3), "limit": exact(1e9), "most": whole(0)},
        "limit_of_zero": {"x": normal(3, 3), "y": normal(4, 3), "limit": exact(0.0), "most": whole(3)},
    },
    shapes={"x": [None], "y": [None], "limit": [], "most": []},
)
def while_swap(x: tf.Tensor, y: tf.Tensor, limit: tf.Tensor, most: tf.Tensor) -> Outputs:
    """tf.while_loop with a trip count from an input; each trip x, y = y, x + y, so a body input is an output."""
    first, second = tf.while_loop(
        lambda _, y: tf.reduce_sum(tf.abs(y)) < limit,
        lambda x, y: (y, x + y),
        (x, y),
        maximum_iterations=most,
    )
    return {"first": first, "second": second}


@exported(
    "function",
    opset=13,
    cases={
        "three_trips": {"x": normal(1, 1, 4), "n": whole(3)},
        "one_trip": {"x": normal(2, 1, 4), "n": whole(1)},
        "no_trips": {"x": normal(3, 1, 4), "n": whole(0)},
    },
    shapes={"x": [1, 4], "n": []},
)
def while_growing(x: tf.Tensor, n: tf.Tensor) -> Outputs:
    """tf.while_loop that carries a tensor growing by one row in each trip, by shape_invariants."""

    def body(i: tf.Tensor, rows: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
        return i + 1, tf.concat([rows, rows[-1:] * 0.5 + tf.cast(i, tf.float32)], axis=0)

    invariants = (tf.TensorShape([]), tf.TensorShape([None, 4]))
    _, rows = tf.while_loop(lambda i, _: i < n, body, (0, x), shape_invariants=invariants)
    return {"y": rows}


@exported(
    "function",
    opset=18,
    cases={
        "five_steps": {"h": normal(1, 2, 4), "xs": normal(2, 5, 2, 4)},
        "one_step": {"h": normal(3, 2, 4), "xs": normal(4, 1, 2, 4)},
        "no_steps": {"h": normal(5, 2, 4), "xs": normal(6, 0, 2, 4)},
        "twelve_steps": {"h": normal(7, 2, 4), "xs": normal(8, 12, 2, 4)},
    },
    shapes={"h": [2, 4], "xs": [None, 2, 4]},
)
def scan(h: tf.Tensor, xs: tf.Tensor) -> Outputs:
    """tf.scan of one recurrent layer: a Loop with a Gather for each step and a scan output."""
    return {"hs": tf.scan(lambda h, x: tf.tanh(h @ MIX + x), xs, initializer=h)}


ROWS = {
    "five_rows": {"xs": normal(1, 5, 4)},
    "one_row": {"xs": normal(2, 1, 4)},
    "no_rows": {"xs": normal(3, 0, 4)},
}


@exported("function", opset=13, cases=ROWS, shapes={"xs": [None, 4]})
def scan_pair(xs: tf.Tensor) -> Outputs:
    """tf.scan over the rows in reverse order with two states, both constants at first, and two scan outputs."""
    sums, peaks = tf.scan(
        lambda state, x: (state[0] + x, tf.maximum(state[1], x * 2.0)),
        tf.reverse(xs, [0]),
        initializer=(tf.zeros(4), tf.ones(4)),
    )
    return {"sums": tf.reverse(sums, [0]), "peaks": peaks}


@exported(
    "function",
    opset=17,
    cases={
        "three_rows": {"a": normal(1, 3, 2, 4), "b": normal(2, 3, 5)},
        "one_row": {"a": normal(3, 1, 2, 4), "b": normal(4, 1, 5)},
        "no_rows": {"a": normal(5, 0, 2, 4), "b": normal(6, 0, 5)},
    },
    shapes={"a": [None, 2, 4], "b": [None, 5]},
)
def map_fn(a: tf.Tensor, b: tf.Tensor) -> Outputs:
    """tf.map_fn over two tensors to two results of another type and rank: a Loop that carries nothing but counters."""
    soft, best = tf.map_fn(
        lambda row: (tf.nn.softmax(row[0] @ MIX), tf.argmax(row[1], axis=-1)),
        (a, b),
        fn_output_signature=(tf.float32, tf.int64),
    )
    return {"soft": soft, "best": best}


@exported("function", opset=11, cases=ROWS, shapes={"xs": [None, 4]})
def map_cond(xs: tf.Tensor) -> Outputs:
    """tf.map_fn of tf.cond: an If in a Loop, whose branches capture the row."""

    def one(row: tf.Tensor) -> tf.Tensor:
        return tf.cond(tf.reduce_sum(row) > 0.0, lambda: row * 2.0, lambda: tf.nn.relu(-row) - 1.0)

    return {"y": tf.map_fn(one, xs)}


@exported(
    "function",
    opset=13,
    cases={
        "two_of_three": {"x": normal(1, 2, 3, 3)},
        "one_of_one": {"x": normal(2, 1, 1, 3)},
        "no_inner_trips": {"x": normal(3, 2, 0, 3)},
        "four_of_two": {"x": normal(4, 4, 2, 3)},
    },
    refused={"no_outer_trips": {"x": normal(5, 0, 2, 3)}},
    shapes={"x": [None, None, 3]},
)
def map_nested(x: tf.Tensor) -> Outputs:
    """tf.map_fn in tf.map_fn: a Loop in a Loop, each with a scan output; the inner trip count is the outer body's."""
    return {"y": tf.map_fn(lambda rows: tf.map_fn(lambda row: tf.reduce_sum(row * row) + row[0], rows), x)}


@exported("function", opset=15, cases=ROWS, shapes={"xs": [None, 4]})
def fold(xs: tf.Tensor) -> Outputs:
    """tf.foldl and tf.foldr over the same rows, from constants."""
    left = tf.foldl(lambda total, x: total * 0.5 + x, xs, initializer=tf.zeros([4]))
    right = tf.foldr(lambda h, x: tf.tanh(h @ MIX + x[tf.newaxis]), xs, initializer=tf.zeros([1, 4]))
    return {"left": left, "right": right}


@exported(
    "function",
    opset=13,
    cases={
        "three_trips": {"x": normal(1, 2, 4), "n": whole(3)},
        "one_trip": {"x": normal(2, 2, 4), "n": whole(1)},
        "no_trips": {"x": normal(3, 2, 4), "n": whole(0)},
    },
    shapes={"x": [2, 4], "n": []},
)
def for_range(x: tf.Tensor, n: tf.Tensor) -> Outputs:
    """AutoGraph: a for loop over tf.range that writes a TensorArray and uses the iteration number."""
    steps = tf.TensorArray(tf.float32, size=n, element_shape=[2, 4])
    for i in tf.range(n):
        x = tf.tanh(x @ MIX) + 0.1 * tf.cast(i, tf.float32)
        steps = steps.write(i, x)
    return {"last": x, "steps": steps.stack()}


@exported(
    "function",
    opset=17,
    cases={
        "breaks_at_third": {"x": exact([[1.0, 0.5], [0.5, 0.25], [2.0, 1.0], [9.0, 9.0]]), "limit": exact(3.0)},
        "breaks_at_first": {"x": exact([[1.0, 0.5], [0.5, 0.25]]), "limit": exact(-1.0)},
        "runs_to_the_end": {"x": normal(1, 6, 2), "limit": exact(1000.0)},
        "no_rows": {"x": normal(2, 0, 2), "limit": exact(3.0)},
    },
    shapes={"x": [None, 2], "limit": []},
)
def for_break(x: tf.Tensor, limit: tf.Tensor) -> Outputs:
    """AutoGraph: a for loop over rows with a break; the loop's condition is an If."""
    total, used = tf.zeros([2]), 0
    for i in tf.range(tf.shape(x)[0]):
        total += x[i]
        used += 1
        if tf.reduce_sum(total) > limit:
            break
    return {"total": total, "used": used}


@exported(
    "function",
    opset=11,
    cases={
        "breaks_at_third": {
            "x": exact([[1.0, 0.5], [-0.5, 0.25], [2.0, 1.0], [9.0, 9.0]]),
            "limit": exact(3.0),
        },
        "skips_all": {"x": exact([[-1.0, 0.5], [0.5, -0.25]]), "limit": exact(3.0)},
        "runs_to_the_end": {"x": normal(1, 6, 2), "limit": exact(1000.0)},
        "no_rows": {"x": normal(2, 0, 2), "limit": exact(3.0)},
    },
    shapes={"x": [None, 2], "limit": []},
)
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


@exported(
    "function",
    opset=18,
    cases={
        "both_branches": {"x": exact([[0.25, 0.35], [0.1, 0.5]]), "outer": whole(4), "inner": whole(3)},
        "else_only": {"x": exact([[5.25, 6.0]]), "outer": whole(3), "inner": whole(2)},
        "no_inner_trips": {"x": exact([[0.25, 0.35]]), "outer": whole(2), "inner": whole(0)},
        "no_outer_trips": {"x": normal(1, 2, 2), "outer": whole(0), "inner": whole(3)},
    },
    shapes={"x": [None, 2], "outer": [], "inner": []},
)
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


@exported(
    "function",
    opset=15,
    cases={
        "first": {"x": normal(1, 2, 4), "branch": whole(-1)},
        "second": {"x": normal(2, 1, 4), "branch": whole(1)},
        "default": {"x": normal(3, 3, 4), "branch": whole(7)},
    },
    shapes={"x": [None, 4], "branch": []},
)
def case(x: tf.Tensor, branch: tf.Tensor) -> Outputs:
    """tf.case of three branches: an If in the else branch of an If."""
    first = (branch < 0, lambda: x @ MIX)
    second = (branch < 2, lambda: tf.reverse(x, [1]))
    return {"y": tf.case([first, second], default=lambda: tf.cumsum(x, axis=0))}


EMBEDDING, CELL, HEAD = weights(2, 8, 6), weights(3, 12, 6), weights(4, 6, 8)


@exported(
    "function",
    opset=18,
    cases={
        "ends_late": {"state": normal(10, 1, 6), "limit": whole(20)},
        "ends_early": {"state": normal(1, 1, 6), "limit": whole(20)},
        "cut_short": {"state": normal(10, 1, 6), "limit": whole(4)},
        "no_trips": {"state": normal(10, 1, 6), "limit": whole(0)},
    },
    shapes={"state": [1, 6], "limit": []},
)
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


@exported(
    "function",
    opset=13,
    cases={
        "three_rows": {"x": normal(1, 3, 5), "lengths": whole([2, 5, 1])},
        "one_row": {"x": normal(2, 1, 5), "lengths": whole([3])},
        "one_empty": {"x": normal(3, 2, 5), "lengths": whole([0, 4])},
    },
    shapes={"x": [None, 5], "lengths": [None]},
)
def ragged(x: tf.Tensor, lengths: tf.Tensor) -> Outputs:
    """tf.map_fn to rows of unequal length: a Loop that carries a sequence, then ConcatFromSequence."""
    rows = tf.map_fn(
        lambda row: row[0][: row[1]] * 2.0, (x, lengths), fn_output_signature=tf.RaggedTensorSpec([None], tf.float32)
    )
    return {"values": tf.reshape(rows.values, [-1]), "splits": rows.row_splits}


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


@exported(
    "graph",
    opset=11,
    cases={
        "unequal": {"x": normal(1, 2, 5, 3), "lengths": whole([3, 5])},
        "one_step": {"x": normal(2, 1, 1, 3), "lengths": whole([1])},
        "one_empty": {"x": normal(3, 3, 4, 3), "lengths": whole([0, 4, 1])},
    },
    shapes={"x": [None, None, 3], "lengths": [None]},
)
def dynamic_rnn(x: tf.Tensor, lengths: tf.Tensor) -> Outputs:
    """dynamic_rnn with lengths, time inside: a Scan between Transposes that counts steps and captures lengths."""
    y, last = v1.nn.dynamic_rnn(Cell(), x, sequence_length=lengths, dtype=tf.float32)
    return {"y": y, "last": last}


@exported(
    "graph",
    opset=17,
    cases={
        "five_steps": {"x": normal(1, 5, 2, 3), "memory": normal(2, 2, 4, 3)},
        "one_step": {"x": normal(3, 1, 2, 3), "memory": normal(4, 2, 1, 3)},
        "nine_steps": {"x": normal(7, 9, 2, 3), "memory": normal(8, 2, 6, 3)},
    },
    shapes={"x": [None, 2, 3], "memory": [2, None, 3]},
)
def attention(x: tf.Tensor, memory: tf.Tensor) -> Outputs:
    """dynamic_rnn, time first, whose cell attends to a memory: a Scan that captures an input of the model."""
    y, last = v1.nn.dynamic_rnn(Cell(memory), x, dtype=tf.float32, time_major=True)
    return {"y": y, "last": last}


# -------------------------------------------------------------------------------------------------------------- export


def export(model: Model) -> tuple[onnx.ModelProto, Expected]:
    """The ONNX model as tf2onnx writes it, and what TensorFlow computes for each case."""
    return {"keras": export_keras, "function": export_function, "graph": export_graph}[model.exporter](model)


def export_keras(model: Model) -> tuple[onnx.ModelProto, Expected]:
    """A Keras model, its weights (and the states of a stateful layer) drawn from the weight seed."""
    network = model.make()
    states = [each for layer in network.layers if getattr(layer, "stateful", False) for each in layer.states]
    variables = [*network.weights, *states]
    random = np.random.default_rng(WEIGHT_SEED)
    drawn = [random.normal(scale=0.5, size=each.shape) for each in variables]
    assign(variables, drawn)
    specs = [tf.TensorSpec(each.shape, each.dtype, each.name) for each in network.inputs]
    proto, _ = tf2onnx.convert.from_keras(network, specs, opset=model.opset)
    expected = []
    for inputs in model.cases.values():
        assign(states, drawn[len(network.weights) :])
        results = network([tf.constant(data.array()) for data in inputs.values()])
        expected.append([each.numpy() for each in tf.nest.flatten(results)])
    return proto, expected


def assign(variables: Sequence[tf.Variable], values: Sequence[np.ndarray]) -> None:
    """Set each variable to its value."""
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def export_function(model: Model) -> tuple[onnx.ModelProto, Expected]:
    """A function of tensors, through AutoGraph. Its outputs are in the order of their names."""
    function = tf.function(model.make, input_signature=model.specs)
    proto, _ = tf2onnx.convert.from_function(function, model.specs, opset=model.opset)
    expected = []
    for inputs in model.cases.values():
        results = function(**{name: tf.constant(data.array()) for name, data in inputs.items()})
        expected.append([each.numpy() for each in tf.nest.flatten(results)])
    return proto, expected


def export_graph(model: Model) -> tuple[onnx.ModelProto, Expected]:
    """A graph of TensorFlow 1, with its loops in single nodes (Enter, Exit, Switch, Merge), its variables frozen."""
    v1.disable_control_flow_v2()
    random = np.random.default_rng(WEIGHT_SEED)
    with tf.Graph().as_default() as graph, v1.Session() as session:
        places = [v1.placeholder(spec.dtype, spec.shape, spec.name) for spec in model.specs]
        results = [tf.identity(each, name) for name, each in model.make(*places).items()]
        session.run(v1.global_variables_initializer())
        for variable in v1.trainable_variables():
            variable.load(random.normal(scale=0.5, size=variable.shape), session)
        expected = [
            session.run(results, dict(zip(places, (data.array() for data in inputs.values()), strict=True)))
            for inputs in model.cases.values()
        ]
        frozen = v1.graph_util.convert_variables_to_constants(
            session, graph.as_graph_def(), [each.op.name for each in results]
        )
    proto, _ = tf2onnx.convert.from_graph_def(
        frozen,
        input_names=[each.name for each in places],
        output_names=[each.name for each in results],
        tensors_to_rename={each.name: each.op.name for each in (*places, *results)},
        opset=model.opset,
    )
    return proto, expected


def number_nodes() -> None:
    """Hash tf2onnx's nodes by number instead of by address."""
    numbers = itertools.count()

    def number(node: Node) -> int:
        return node.__dict__.setdefault("_number", next(numbers))

    Node.__hash__ = number


def messages(message: Message) -> Iterator[Message]:
    """A protobuf message and all messages inside it: graphs, sub-graphs, functions, nodes, types."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        for child in (value,) if isinstance(value, Message) else value:
            yield from messages(child)


def strip(proto: onnx.ModelProto) -> None:
    """Remove doc strings and metadata at every depth."""
    for message in messages(proto):
        for field in ("doc_string", "metadata_props"):
            if field in message.DESCRIPTOR.fields_by_name:
                message.ClearField(field)


def check(proto: onnx.ModelProto) -> None:
    """Raise ValueError unless a model is small, self-contained, plain ONNX, of tensors at its boundary."""
    onnx.checker.check_model(proto, full_check=True)
    if proto.ByteSize() > MAX_BYTES:
        raise ValueError(f"{proto.ByteSize()} bytes, more than {MAX_BYTES}")
    for port in (*proto.graph.input, *proto.graph.output):
        if not port.type.HasField("tensor_type"):
            raise ValueError(f"{port.name} is no tensor")
    for message in messages(proto):
        if isinstance(message, onnx.NodeProto) and message.domain:
            raise ValueError(f"operator {message.domain}::{message.op_type}")
        if isinstance(message, onnx.TensorProto) and message.external_data:
            raise ValueError(f"external data of {message.name}")


def compare(model: Model, data: bytes, expected: Expected) -> float:
    """The largest difference of ONNX Runtime from TensorFlow over all cases; AssertionError beyond the tolerance."""
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    largest = 0.0
    for inputs, wanted in zip(model.cases.values(), expected, strict=True):
        actual = session.run(None, {name: data.array() for name, data in inputs.items()})
        for want, have in zip(wanted, actual, strict=True):
            assert (have.dtype, have.shape) == (want.dtype, want.shape)
            np.testing.assert_allclose(have, want, RTOL, ATOL)
            largest = max(largest, float(np.abs(have - want).max(initial=0)))
    for inputs in model.refused.values():
        session.run(None, {name: data.array() for name, data in inputs.items()})
    return largest


def write(name: str, out: Path) -> None:
    """Export, check and write one model."""
    warnings.filterwarnings("ignore")
    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    logging.getLogger("tf2onnx").setLevel(logging.ERROR)
    onnxruntime.set_default_logger_severity(3)
    number_nodes()
    model = MODELS[name]
    proto, expected = export(model)
    strip(proto)
    check(proto)
    data = proto.SerializeToString(deterministic=True)
    difference = compare(model, data, expected)
    (out / f"{name}.onnx").write_bytes(data)
    print(f"{name:20} {model.exporter:9} opset {model.opset} {len(data):6} bytes  max difference {difference:.1e}")


def cases_toml() -> str:
    """The inputs of every model, as the text of cases.toml."""
    lines = [HEADER]
    for name, model in MODELS.items():
        lines += [f"[{name}]", f'about = "{model.about}"', f'exporter = "{model.exporter}"', f"opset = {model.opset}"]
        for label, inputs in (*model.cases.items(), *model.refused.items()):
            lines += [f"[{name}.cases.{label}]", *(f"{key} = {data.toml()}" for key, data in inputs.items())]
        lines += [""]
    return "\n".join(lines)


def main() -> int:
    """Export the models named on the command line, or all of them."""
    parser = argparse.ArgumentParser(description="Export small TensorFlow models to ONNX.")
    parser.add_argument("--out", type=Path, default=OUT, help="folder to write to (default: tests/models/tensorflow)")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of: {', '.join(MODELS)}")
    options = parser.parse_args()
    if unknown := [name for name in options.names if name not in MODELS]:
        parser.error(f"unknown model: {', '.join(unknown)}")

    options.out.mkdir(parents=True, exist_ok=True)
    failed = []
    for name in options.names or MODELS:
        process = multiprocessing.get_context("fork").Process(target=partial(write, name, options.out))
        process.start()
        process.join()
        failed += [name] if process.exitcode else []
    (options.out / "cases.toml").write_text(cases_toml(), encoding="utf-8")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.execve(sys.executable, sys.orig_argv, {**os.environ, "PYTHONHASHSEED": "0"})
    sys.exit(main())
