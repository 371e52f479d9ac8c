"""TensorFlow: the models of one folder, and the export of one.

MODELS = Catalogue()

@MODELS.exported("function", opset=11, cases=CASES, shapes={"x": [None, 4], "n": []})
def for_range(x: tf.Tensor, n: tf.Tensor) -> Outputs:
    "AutoGraph: a for loop over tf.range."

Files are reproducible: weights come from one seed, doc strings are removed. TensorFlow numbers its names, so every
model needs a process of its own; tf2onnx writes nodes in the order of sets, so hashes of strings must be fixed.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import onnx
import tensorflow as tf
import tf2onnx
from tensorflow import keras
from tf2onnx.graph import Node

from tests.models.sources.exporting.comparing import Expected
from tests.models.sources.exporting.inputs import Data, Inputs, exact
from tests.models.sources.exporting.models import WEIGHT_SEED, Model

v1 = tf.compat.v1
Outputs = Mapping[str, tf.Tensor]
Make = Callable[..., keras.Model | Outputs]


def whole(values: int | list) -> Data:
    """int32 data, TensorFlow's default integer type."""
    data = exact(values)
    return Data(data.shape, "int32", values=data.values)


def weights(seed: int, *shape: int) -> np.ndarray:
    """float32 constants of a function."""
    return np.random.default_rng([WEIGHT_SEED, seed]).normal(scale=0.5, size=shape).astype(np.float32)


@dataclass(frozen=True)
class TensorflowModel(Model):
    """`make` makes a Keras model, or computes named outputs from named inputs.

    `refused` holds cases that TensorFlow refuses and ONNX Runtime runs: layers on no steps at all. `shapes` holds the
    inputs of a function, with None for a dynamic axis.
    """

    refused: Mapping[str, Inputs]
    shapes: Mapping[str, Sequence[int | None]]

    @property
    def listed(self) -> Mapping[str, Inputs]:
        """The cases that ONNX Runtime runs, which cases.toml lists."""
        return {**self.cases, **self.refused}

    @property
    def specs(self) -> list[tf.TensorSpec]:
        """The inputs of a function, typed as in the first case."""
        return [tf.TensorSpec(self.shapes[name], data.dtype, name) for name, data in self.example.items()]


class Catalogue(dict[str, TensorflowModel]):
    """Models by name, in the order of their definition."""

    def exported(self, exporter: str, *, opset: int, cases: Mapping[str, Inputs],
                 refused: Mapping[str, Inputs] | None = None,
                 shapes: Mapping[str, Sequence[int | None]] | None = None) -> Callable[[Make], Make]:
        """Register a function as the model of its name.

        exporter: "keras" (the function makes a Keras model), "function" (a function of tensors, with what AutoGraph
        makes of Python's control flow) or "graph" (a graph of TensorFlow 1).
        """

        def register(make: Make) -> Make:
            self[make.__name__] = TensorflowModel(make, exporter, opset, cases, refused or {}, shapes or {})
            return make

        return register


def export(model: TensorflowModel) -> tuple[onnx.ModelProto, Expected]:
    """The ONNX model as tf2onnx writes it, and what TensorFlow computes for each case."""
    for name in ("tensorflow", "tf2onnx"):
        logging.getLogger(name).setLevel(logging.ERROR)
    number_nodes()
    return {"keras": export_keras, "function": export_function, "graph": export_graph}[model.exporter](model)


def export_keras(model: TensorflowModel) -> tuple[onnx.ModelProto, Expected]:
    """A Keras model, its weights (and the states of a stateful layer) drawn from the weight seed."""
    network = model.make()
    states = [each for layer in network.layers if getattr(layer, "stateful", False) for each in layer.states]
    variables = [*network.weights, *states]
    random = np.random.default_rng(WEIGHT_SEED)
    drawn = [random.normal(scale=0.5, size=each.shape) for each in variables]
    assign(variables, drawn)
    specs = [tf.TensorSpec(each.shape, each.dtype, each.name) for each in network.inputs]
    proto, _ = tf2onnx.convert.from_keras(network, specs, opset=model.opset)
    expected = {}
    for case, inputs in model.cases.items():
        assign(states, drawn[len(network.weights) :])
        results = network([tf.constant(data.array()) for data in inputs.values()])
        expected[case] = [each.numpy() for each in tf.nest.flatten(results)]
    return proto, expected


def assign(variables: Sequence[tf.Variable], values: Sequence[np.ndarray]) -> None:
    """Set each variable to its value."""
    for variable, value in zip(variables, values, strict=True):
        variable.assign(value)


def export_function(model: TensorflowModel) -> tuple[onnx.ModelProto, Expected]:
    """A function of tensors, through AutoGraph. Its outputs are in the order of their names."""
    function = tf.function(model.make, input_signature=model.specs)
    proto, _ = tf2onnx.convert.from_function(function, model.specs, opset=model.opset)
    expected = {}
    for case, inputs in model.cases.items():
        results = function(**{name: tf.constant(data.array()) for name, data in inputs.items()})
        expected[case] = [each.numpy() for each in tf.nest.flatten(results)]
    return proto, expected


def export_graph(model: TensorflowModel) -> tuple[onnx.ModelProto, Expected]:
    """A graph of TensorFlow 1 with frozen variables, whose loops are single nodes (Enter, Exit, Switch, Merge)."""
    v1.disable_control_flow_v2()
    random = np.random.default_rng(WEIGHT_SEED)
    with tf.Graph().as_default() as graph, v1.Session() as session:
        places = [v1.placeholder(spec.dtype, spec.shape, spec.name) for spec in model.specs]
        results = [tf.identity(each, name) for name, each in model.make(*places).items()]
        session.run(v1.global_variables_initializer())
        for variable in v1.trainable_variables():
            variable.load(random.normal(scale=0.5, size=variable.shape), session)
        expected = {
            case: session.run(results, dict(zip(places, (data.array() for data in inputs.values()), strict=True)))
            for case, inputs in model.cases.items()
        }
        frozen = v1.graph_util.convert_variables_to_constants(
            session, graph.as_graph_def(), [each.op.name for each in results]
        )
    proto, _ = tf2onnx.convert.from_graph_def(
        frozen, input_names=[each.name for each in places], output_names=[each.name for each in results],
        tensors_to_rename={each.name: each.op.name for each in (*places, *results)}, opset=model.opset,
    )
    return proto, expected


def number_nodes() -> None:
    """Hash tf2onnx's nodes by number instead of by address."""
    numbers = itertools.count()

    def number(node: Node) -> int:
        return node.__dict__.setdefault("_number", next(numbers))

    Node.__hash__ = number
